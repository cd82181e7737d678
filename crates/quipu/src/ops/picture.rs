//! Where a drawn picture goes: a file of the caller's, or stdout.

use std::path::Path;

use serde_json::json;

use crate::answer::{Answer, Failure, count, exit};
use crate::session::Session;

/// Writes a picture to a file relative to the folder of the call. Memory is written through the store, so a
/// file that the contract names is refused.
pub fn deliver(session: &Session, file: &Path, svg: &str) -> Result<Answer, Failure> {
    if file.as_os_str() == "-" {
        let mut answer = Answer::new(json!({"svg": svg}), "");
        answer.raw = Some(svg.as_bytes().to_vec());
        return Ok(answer);
    }
    if file.extension().is_none_or(|extension| extension != "svg") {
        return Err(Failure::usage(format!("`{}` is no name for a picture", file.display()), "--svg NAME.svg, or --svg - for stdout"));
    }
    let target = session.folder.join(file);
    std::fs::write(&target, svg).map_err(|error| Failure::new(exit::IO, format!("cannot write `{}`: {error}", file.display()), ""))?;
    let name = file.display().to_string();
    Ok(Answer::new(json!({"file": name, "bytes": svg.len()}), format!("{name}\n")).say(count(svg.len(), "byte")))
}
