//! The `write` command: creates a file, or replaces all of its text or one passage.

use clap::Args;
use quipu_contract::{Class, ProjectPath};
use quipu_protocol::{Project, ReadError, may_expect, may_read_whole, not_found};
use quipu_store::{Change, Expect, Op, Version};

use super::input::Input;
use super::{memory_check, receipt};
use crate::answer::{Answer, Failure, exit};
use crate::session::Session;
use crate::table::Operate;

#[derive(Debug, Args)]
pub struct Write {
    /// The file, relative to the project root
    path: String,
    #[command(flatten)]
    input: Input,
    /// Replace only this text, which must occur exactly once; the rest of the file stays
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    old: Option<String>,
    /// Write only if the file is still at this version
    #[arg(long, value_name = "VERSION")]
    expect: Option<String>,
    /// Write even if most of the text disappears, it looks like a placeholder, or a new name is
    /// close to one in the contract
    #[arg(long)]
    force: bool,
    /// An idempotency key: a second write with this key returns the receipt of the first
    #[arg(long, value_name = "KEY")]
    key: Option<String>,
    /// The reason, recorded in the journal
    #[arg(long, value_name = "WHY", allow_hyphen_values = true)]
    why: Option<String>,
}

impl Operate for Write {
    const NAME: &'static str = "write";
    const ABOUT: &'static str = "Create a file, or replace all of its text or one passage";

    fn operate(self, session: &Session) -> Result<Answer, Failure> {
        let path = Session::path(&self.path)?;
        let project = session.project()?;
        let given = self
            .expect
            .map_or(Expect::Any, |v| Expect::Version(Version::parse(&v)));
        let (bytes, expect) = match &self.old {
            Some(old) => {
                let new = self.input.bytes(session)?;
                let (bytes, read) = replaced(&project, session, &path, old, &new)?;
                let expect = match given {
                    Expect::Any => Expect::Version(read),
                    given => given,
                };
                (bytes, expect)
            }
            None => (
                super::pdf::as_text(path.as_str(), self.input.lines(session)?)?,
                given,
            ),
        };
        let written = path.clone();
        let mut change = Change::by(&session.actor).op(Op::Write {
            path,
            bytes,
            expect,
        });
        (change.key, change.why, change.lease, change.force) =
            (self.key, self.why, session.lease.clone(), self.force);
        change.new_name = self.force;
        may_expect(&project, &change)?;
        let receipt = project.validate(change)?.publish()?;
        let answer = receipt::with_open_conflicts(
            &project,
            &session.actor,
            &[written],
            receipt::answer(project.contract.language, &receipt),
        );
        Ok(memory_check::with_notes(
            answer,
            &project,
            &session.actor,
            &receipt,
        ))
    }
}

/// The text of a file with one passage replaced, and the version in which it was found.
fn replaced(
    project: &Project,
    session: &Session,
    path: &ProjectPath,
    old: &str,
    new: &[u8],
) -> Result<(Vec<u8>, Version), Failure> {
    let op = Op::Write {
        path: path.clone(),
        bytes: Vec::new(),
        expect: Expect::Any,
    };
    project.store.permit(&session.actor, &op)?;
    // A match would confirm a guess, and guesses can be lengthened one character at a time.
    may_read_whole(project, &session.actor, path).map_err(|unread| {
        let failure = Failure::from(unread);
        Failure {
            what: format!("{}, so no passage of it can be replaced", failure.what),
            remedy: Some(match project.contract.class(path) {
                Class::State => format!(
                    r#"echo '{{"ops":[{{"op":"merge","path":"{path}","value":{{…}}}}]}}' | quipu commit     (changes single keys)"#
                ),
                _ => format!("quipu write {path} --text \"…\"     (the whole text)"),
            }),
            ..failure
        }
    })?;
    let (bytes, version) = project
        .store
        .read(path)?
        .ok_or_else(|| not_found(project, &session.actor, path))?;
    let look = format!("quipu read {path}");
    let text = std::str::from_utf8(&bytes).map_err(|_| ReadError::NotText(path.clone()))?;
    let count = match old {
        "" => 0,
        old => text.matches(old).count(),
    };
    if count != 1 {
        let what = match count {
            0 => format!("the old text is not in `{path}`"),
            count => format!(
                "the old text is in `{path}` {count} times: pass more of the text around it"
            ),
        };
        return Err(Failure::new(exit::NOT_FOUND, what, look));
    }
    let at = text.find(old).unwrap_or_default();
    let mut bytes = bytes[..at].to_vec();
    bytes.extend_from_slice(new);
    bytes.extend_from_slice(&text.as_bytes()[at + old.len()..]);
    Ok((bytes, version))
}
