//! Evaluates the conditions of a step, declared in the contract, from variables and files.
//!
//! Pure: the files are read through `Now`.

use quipu_contract::Contract;

use super::job::{PlannedJob, fill};
use super::state::CurrentFiles;

/// Returns the reason why a job does not apply, or None if it applies.
pub fn why_not(
    contract: &Contract,
    job: &PlannedJob<'_>,
    now: &dyn CurrentFiles,
) -> Option<String> {
    let when = &job.step.when;
    let value = |name: &String| {
        job.binding
            .get(name)
            .map(|v| v.trim().to_owned())
            .unwrap_or_default()
    };
    if let Some(var) = &when.var
        && !when.is.contains(&value(var))
    {
        return Some(format!("{var} = {}", value(var)));
    }
    if let (Some(var), Some(unit)) = (&when.units, &job.job.unit) {
        let named = contract
            .vars
            .get(var)
            .and_then(|v| v.value.clone())
            .unwrap_or_default();
        let listed = named.trim() == "all"
            || named
                .split([',', '，', ' '])
                .any(|id| id.trim() == unit.as_str());
        if !listed {
            return Some(format!("{var} = {named}"));
        }
    }
    match when.switch.as_ref().map(value).as_deref() {
        Some("yes") => return None,
        Some("no") => {
            return Some(format!(
                "{} = no",
                when.switch.as_deref().unwrap_or_default()
            ));
        }
        _ => {}
    }
    let files = when.files.as_ref()?;
    let found = fill(files, &job.binding)
        .map(|pattern| now.matching(&pattern))
        .unwrap_or_default();
    if found.is_empty() {
        return Some(format!("`{files}` does not exist"));
    }
    if when.words.is_empty()
        || found
            .iter()
            .any(|path| now.holds_word(path.as_str(), &when.words))
    {
        return None;
    }
    Some("the text does not require it".into())
}
