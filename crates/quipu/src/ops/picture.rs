//! Writes a rendered picture to a file of the caller, or to stdout.

use std::path::Path;

use quipu_protocol::{PictureError, Project, lay_picture};
use serde_json::json;

use crate::answer::{Answer, Failure, count, exit};
use crate::session::Session;

/// Writes a picture to a file relative to the folder of the call.
pub fn deliver(
    session: &Session,
    project: &Project,
    file: &Path,
    svg: &str,
) -> Result<Answer, Failure> {
    if file.as_os_str() == "-" {
        let mut answer = Answer::new(json!({"svg": svg}), "");
        answer.raw = Some(svg.as_bytes().to_vec());
        return Ok(answer);
    }
    lay_picture(project, &session.actor, &session.folder, file, svg)?;
    let name = file.display().to_string();
    Ok(Answer::new(
        json!({"file": name, "bytes": svg.len()}),
        format!("{name}\n"),
    )
    .say(count(svg.len(), "byte")))
}

impl From<PictureError> for Failure {
    fn from(error: PictureError) -> Failure {
        let what = error.to_string();
        match error {
            PictureError::NoName(_) => {
                Failure::usage(what, "--svg NAME.svg, or --svg - for stdout")
            }
            PictureError::Denied(denial) => Failure {
                rule: Some((denial.place, "pointers of the role".into())),
                ..Failure::new(exit::REFUSED, what, "--svg -     (writes to stdout)")
            },
            PictureError::Ruled(_) | PictureError::NoPicture(_) => Failure::new(
                exit::REFUSED,
                what,
                "--svg NAME.svg, with a name that does not exist",
            ),
            PictureError::UnknownActor(_) => {
                Failure::new(exit::REFUSED, what, "quipu contract show")
            }
            PictureError::Path(error) => error.into(),
            PictureError::Io { .. } => Failure::new(exit::IO, what, ""),
        }
    }
}
