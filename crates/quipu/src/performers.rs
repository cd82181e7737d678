//! Who may be asked to perform a turn: the names that `--agent` knows.

use std::path::Path;

use quipu_protocol::flow::{Performer, Scripted};

use crate::answer::{Failure, exit};

/// The performer of a name.
pub fn performer(name: Option<&str>) -> Result<Box<dyn Performer>, Failure> {
    match name {
        None => Err(Failure::usage("who does it? name an agent", "--agent script     (plays the texts of the folder in QUIPU_SCRIPT)")),
        Some("script") => match std::env::var_os("QUIPU_SCRIPT") {
            Some(folder) => {
                let mut script = Scripted::of(Path::new(&folder));
                let pause = std::env::var("QUIPU_SCRIPT_PAUSE").ok().and_then(|ms| ms.parse().ok()).unwrap_or(0);
                script.pause = std::time::Duration::from_millis(pause);
                Ok(Box::new(script))
            }
            None => {
                Err(Failure::usage("agent `script` plays prepared texts, but has none", "QUIPU_SCRIPT=FOLDER quipu run --agent script"))
            }
        },
        Some(other) => Err(Failure::new(exit::NOT_FOUND, format!("there is no agent `{other}`"), "--agent script")),
    }
}
