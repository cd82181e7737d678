//! Estimates the usual length of a role's texts in tokens, from the word counts in the contract.
//!
//! The estimates determine the reserve for answers and the expected cost of a flow.

use quipu_contract::{Binding, Budget, Contract, Language, ProjectPath, Role, Tokens};

/// Tokens per ten words of prose about code, including quoted code: English, Chinese.
const TOKENS_OF_TEN_WORDS: (u64, u64) = (18, 13);
/// Space for an answer, as a multiple of the usual text: thinking, writing, and rewriting when it
/// is sent back.
const ANSWERS: u64 = 3;
/// The minimum space for an answer: even a short text needs reasoning.
const LEAST_RESERVE: Tokens = Tokens(4_000);

/// The length of a role's text: from the shape of the file, else from the role's pointer. None if
/// neither gives a word count.
pub(crate) fn usual_tokens(
    contract: &Contract,
    role: Option<&Role>,
    binding: &Binding,
    path: &ProjectPath,
) -> Option<Tokens> {
    let number = |words: &String| {
        words
            .parse()
            .ok()
            .or_else(|| binding.get(words)?.trim().parse::<u64>().ok())
    };
    let shaped = contract
        .rule(path)
        .and_then(|rule| rule.shape.as_ref()?.words.as_ref())
        .and_then(number);
    let mut own = role
        .iter()
        .flat_map(|role| &role.writes)
        .filter(|write| write.path.fill(binding).matches(path.as_str()).is_some());
    let words = shaped.or_else(|| own.find_map(|write| write.words).map(u64::from))?;
    let (english, chinese) = TOKENS_OF_TEN_WORDS;
    Some(Tokens(
        words.saturating_mul(if contract.language == Language::Zh {
            chinese
        } else {
            english
        }) / 10,
    ))
}

/// Derives the space for an answer from the role's outputs, unless the contract states it or gives
/// no lengths.
pub(crate) fn fit_reserve(
    contract: &Contract,
    role: &Role,
    binding: &Binding,
    budget: &mut Budget,
) {
    let paths = role
        .writes
        .iter()
        .filter(|write| !write.optional)
        .filter_map(|write| {
            let filled = write.path.fill(binding);
            ProjectPath::parse(filled.as_literal()?).ok()
        });
    let usual: Vec<Tokens> = paths
        .filter_map(|path| usual_tokens(contract, Some(role), binding, &path))
        .collect();
    if budget.reserve_is_stated || usual.is_empty() {
        return;
    }
    let wanted =
        Tokens(usual.into_iter().sum::<Tokens>().0.saturating_mul(ANSWERS)).max(LEAST_RESERVE);
    // Half of the window is always left for reading.
    budget.reserve = wanted.min(Tokens(budget.window.saturating_sub(budget.system).0 / 2));
}
