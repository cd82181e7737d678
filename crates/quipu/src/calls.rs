//! Watches an agent's calls for loops: maintains the derived file behind the notice that the agent
//! gets with its next call.
//!
//! It also counts the rounds of a task. Only a caller that names its agent is watched, and only if
//! the contract gives it a task process. A failure in this module never fails a command.

use std::ffi::{OsStr, OsString};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use quipu_contract::{Actor, Form};
use quipu_protocol::worldlog::{Call, Calls, Limits, write_derived};
use quipu_protocol::{Project, resolve_form};
use quipu_store::OpenFolder;

use crate::answer::{Answer, Failure};

/// The watch on one agent of one project.
#[derive(Debug, Clone)]
pub struct Watched {
    file: PathBuf,
    process: PathBuf,
    name: String,
    limits: Limits,
}

impl Watched {
    pub fn of(project: &Project, actor: &Actor) -> Option<Watched> {
        let agent = actor.agent()?;
        let limit = |name: &str| {
            project
                .contract
                .vars
                .get(name)?
                .value
                .as_ref()?
                .trim()
                .parse()
                .ok()
        };
        let limits = Limits {
            repeat_calls: limit("repeat_calls"),
            quiet_rounds: limit("quiet_rounds"),
        };
        if project.store.is_read_only() {
            return None;
        }
        let process = resolve_form(project, actor, Form::Task).ok()?;
        let root = project.store.root();
        Some(Watched {
            file: root.join(".quipu/calls").join(format!("{agent}.json")),
            process: root.join(process.as_str()),
            name: process.as_str().to_owned(),
            limits,
        })
    }

    /// Records a call and returns the notice that earlier calls caused.
    pub fn take(
        &self,
        operation: &str,
        arguments: &[OsString],
        result: &Result<Answer, Failure>,
    ) -> Vec<String> {
        let mut calls = self.load();
        let told = calls.warnings(self.limits, &self.name);
        let failure = result.as_ref().err().map(|failure| failure.what.as_str());
        calls.take(
            &Call {
                name: operation,
                fingerprint: fingerprint(arguments),
                failure,
                process: self.look(),
                is_border: is_border(operation, result),
            },
            self.limits,
        );
        if let Ok(bytes) = serde_json::to_vec(&calls) {
            let _ = self.save(&bytes);
        }
        told
    }

    fn load(&self) -> Calls {
        std::fs::read(&self.file)
            .ok()
            .and_then(|bytes| serde_json::from_slice(&bytes).ok())
            .unwrap_or_default()
    }

    /// The rounds of the current task: its calls, the one under way included.
    pub fn rounds(&self) -> u32 {
        self.load().rounds().saturating_add(1)
    }

    /// Overwrites the file in place, which costs a tenth of replacing it. A reader that meets half
    /// of it begins to count anew.
    fn save(&self, bytes: &[u8]) -> std::io::Result<()> {
        let folder = self.file.parent().unwrap_or(&self.file);
        let name = self.file.file_name().and_then(OsStr::to_str);
        let opened = OpenFolder::open(folder)?
            .zip(name)
            .map(|(folder, name)| folder.open_single(name));
        match opened {
            Some(Ok(file)) => {
                file.write_all_at(bytes, 0)?;
                file.set_len(bytes.len() as u64)
            }
            _ => {
                std::fs::create_dir_all(folder)?;
                write_derived(&self.file, bytes)
            }
        }
    }

    fn look(&self) -> String {
        let Ok(found) = std::fs::metadata(&self.process) else {
            return "none".into();
        };
        let modified = found
            .modified()
            .ok()
            .and_then(|time| time.duration_since(std::time::UNIX_EPOCH).ok());
        format!(
            "{}-{}",
            found.len(),
            modified.map_or(0, |time| time.as_nanos())
        )
    }
}

/// Whether a call started a task or ended one.
fn is_border(operation: &str, result: &Result<Answer, Failure>) -> bool {
    let Ok(answer) = result else {
        return false;
    };
    match operation {
        "task start" => true,
        "start" => answer.json["begun"] == true,
        // A finish with missing parts, and a dry run, save nothing.
        "finish" => answer.json.get("paths").is_some(),
        _ => false,
    }
}

/// Arguments may contain written text, so only their hash is stored.
fn fingerprint(arguments: &[OsString]) -> String {
    let mut hasher = DefaultHasher::new();
    arguments
        .iter()
        .skip(1)
        .filter(|argument| *argument != "--json")
        .for_each(|argument| argument.hash(&mut hasher));
    format!("{:016x}", hasher.finish())
}
