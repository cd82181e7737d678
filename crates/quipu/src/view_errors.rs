//! Messages for a view or a brief that cannot be built: the missing or oversized text, and the
//! remedy.

use quipu_contract::plan::{Overflow, Stuck};
use quipu_contract::{Shrink, Tokens};
use quipu_protocol::{Absent, BriefError, FolderError, Unreadable, ViewError};
use serde_json::Value;

use crate::answer::{Failure, exit};

impl From<ViewError> for Failure {
    fn from(error: ViewError) -> Failure {
        let what = error.to_string();
        match error {
            ViewError::UnknownActor(_) => {
                Failure::new(exit::NOT_FOUND, what, "quipu contract show")
            }
            ViewError::NeedsUnit { place, .. } => Failure {
                rule: Some((place, "its pointers name `{unit}`".into())),
                ..Failure::usage(what, "--unit UNIT")
            },
            ViewError::NeedsAgent { place, .. } => Failure {
                rule: Some((place, "its pointers name `{agent}`".into())),
                ..Failure::usage(what, "--agent NAME")
            },
            ViewError::NoValue {
                ref name,
                ref place,
            } => {
                let remedy = format!(
                    "set it in quipu.toml under [units.UNIT.vars] or [vars]: {name} = \"…\""
                );
                Failure {
                    rule: Some((place.clone(), "a pointer names it".into())),
                    ..Failure::usage(what, remedy)
                }
            }
            ViewError::Absent(absent) => {
                let rule = absent
                    .first()
                    .map(|a| (a.place.clone(), "need = \"must\"".to_owned()));
                Failure {
                    rule,
                    ..Failure::new(exit::NOT_FOUND, what, mend_absent(&absent))
                }
            }
            ViewError::Overflow { overflow, places } => {
                let rule = places
                    .into_iter()
                    .next()
                    .zip(overflow.stuck.first().map(told_shrink));
                Failure {
                    rule,
                    ..Failure::new(exit::NO, what, mend_overflow(&overflow))
                }
            }
            ViewError::Store(error) => error.into(),
        }
    }
}

fn mend_absent(absent: &[Absent]) -> String {
    if let Some((found, unreadable)) = absent.iter().find_map(|a| Some((a, a.unreadable?))) {
        let path = found.name.split('#').next().unwrap_or_default();
        return match unreadable {
            Unreadable::NotText => {
                format!(
                    "save it as UTF-8; or quipu restore {path}; or continue without it: \
                    --partial"
                )
            }
            Unreadable::NotFile => {
                "replace it with a regular file; or continue without it: --partial".into()
            }
        };
    }
    let writer = absent
        .iter()
        .flat_map(|a| &a.writers)
        .find_map(|w| w.role.clone());
    match writer {
        Some(role) => format!("quipu brief {role} …     (or continue without it: --partial)"),
        None => "create it, or continue without it: --partial".into(),
    }
}

fn told_shrink(stuck: &Stuck) -> String {
    let Stuck { whole, least, .. } = stuck;
    let shrink = serde_json::to_value(stuck.shrink).ok();
    let name = match shrink {
        Some(Value::String(name)) => name,
        Some(Value::Object(map)) => map.iter().map(|(name, n)| format!("{name}({n})")).collect(),
        _ => String::new(),
    };
    format!("shrink = \"{name}\": {whole} tokens in full, at least {least}")
}

/// Suggests which pointer to shrink, and how, or which budget to set.
fn mend_overflow(overflow: &Overflow) -> String {
    let Tokens(least) = overflow.least;
    let room = format!("--budget {least}");
    match overflow.stuck.first() {
        Some(stuck) if matches!(stuck.shrink, Shrink::Never | Shrink::Section) => {
            format!(
                "allow `{}` to shrink in the contract (shrink = \"relevant\", \"head\" or \
                 \"stage\"), shorten it, or give {room}",
                stuck.name
            )
        }
        Some(stuck) => format!("shorten the sections of `{}`, or give {room}", stuck.name),
        None => format!("give {room}"),
    }
}

impl From<FolderError> for Failure {
    fn from(error: FolderError) -> Failure {
        let what = error.to_string();
        match error {
            FolderError::NotEmpty { .. }
            | FolderError::Foreign(_)
            | FolderError::IsProject(_)
            | FolderError::Ruled(_) => {
                Failure::new(exit::REFUSED, what, "name an empty or new folder")
            }
            FolderError::InProject(_) => Failure::new(
                exit::REFUSED,
                what,
                "name a folder outside \
                the project",
            ),
            FolderError::OtherRole { .. } => {
                Failure::new(exit::REFUSED, what, "quipu view --out DIR     (your own)")
            }
            FolderError::Path(error) => error.into(),
            FolderError::Read(error) => error.into(),
            FolderError::NoManifest(_) => {
                Failure::new(exit::NOT_FOUND, what, "quipu view ROLE --out DIR")
            }
            FolderError::BadManifest { .. } => Failure::new(
                exit::USAGE,
                what,
                "quipu view ROLE --out DIR     (writes it again)",
            ),
            FolderError::Io { .. } => Failure::new(exit::IO, what, ""),
            FolderError::Store(error) => error.into(),
        }
    }
}

impl From<BriefError> for Failure {
    fn from(error: BriefError) -> Failure {
        let what = error.to_string();
        match error {
            BriefError::View(error) => error.into(),
            BriefError::Template(_) => {
                Failure::usage(what, "quipu profile eject NAME     (then fix the template)")
            }
            BriefError::OwnTemplate(error) => {
                Failure::usage(what, format!("fix line {} of {}", error.line, error.file))
            }
            BriefError::Profile(_) => Failure::usage(what, "save it as UTF-8"),
            BriefError::NoStage { .. } => {
                Failure::new(exit::NOT_FOUND, what, "quipu view ROLE --explain")
            }
        }
    }
}
