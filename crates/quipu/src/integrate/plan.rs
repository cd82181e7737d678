//! Plans the changes to a host's files, and applies them.

use std::path::Path;

use quipu_contract::{Contract, ProjectPath};
use quipu_store::OpenFolder;
use serde_json::Value;

use super::hosts::{Fillings, Host, HostFile, Kind};
use super::record::{Original, Record};
use super::{block, keys};
use crate::answer::{Failure, exit};

/// Marks a file that Quipu wrote completely.
const OURS: &str = "Written by `quipu integrate`";

/// One file, before and after; `None` if the file does not exist.
#[derive(Debug)]
pub struct Planned {
    pub path: String,
    pub before: Option<String>,
    pub after: Option<String>,
    /// The bytes that a removal must restore, if deleting our part does not.
    pub original: Option<Original>,
    /// Whether the file already has a part of ours.
    pub has_ours: bool,
    /// The host runs the file.
    pub executable: bool,
}

impl Planned {
    /// A change that needs no record.
    pub fn new(path: &str, before: Option<String>, after: Option<String>) -> Planned {
        Planned {
            path: path.to_owned(),
            before,
            after,
            original: None,
            has_ours: false,
            executable: false,
        }
    }

    pub fn act(&self) -> &'static str {
        match (&self.before, &self.after) {
            (before, after) if before == after => "same",
            (None, _) => "created",
            (_, None) => "removed",
            _ => "changed",
        }
    }
}

/// Computes the new state of a host's files.
pub fn plan(
    root: &Path,
    contract: &Contract,
    host: &Host,
    remove: bool,
) -> Result<Vec<Planned>, Failure> {
    let record = Record::load(root);
    let folder = open(root)?;
    let fillings = Fillings::of(contract);
    host.files
        .iter()
        .map(|file| {
            refuse_memory(contract, &file.path)?;
            let edit = Edit {
                file,
                content: file.content(&host.name, &fillings),
                original: record.originals.get(&file.path),
            };
            edit.plan(read_text(&folder, &file.path)?, remove)
        })
        .collect()
}

/// Files under the contract are memory, which only commands change.
fn refuse_memory(contract: &Contract, path: &str) -> Result<(), Failure> {
    let path = ProjectPath::parse(path)?;
    let Some(rule) = contract.rule(&path) else {
        return Ok(());
    };
    let what = format!(
        "`{path}` is under the contract; `quipu integrate` does not write such \
         files"
    );
    let rule = Some((rule.place.clone(), format!("path = \"{}\"", rule.path)));
    Err(Failure {
        rule,
        ..Failure::new(exit::REFUSED, what, "quipu contract show")
    })
}

/// One file of a host, with the content that it should have.
struct Edit<'e> {
    file: &'e HostFile,
    content: String,
    /// The entry of the user's record for the file.
    original: Option<&'e Original>,
}

impl Edit<'_> {
    fn plan(&self, before: Option<String>, remove: bool) -> Result<Planned, Failure> {
        let parted = self.part(before.as_deref())?;
        let has_ours = parted != before;
        let known = self
            .original
            .filter(|original| Some(&original.written) == before.as_ref());
        // The file as it was before the first integration.
        let first = known.map_or(&parted, |original| &original.before);
        if remove {
            return Ok(Planned {
                path: self.file.path.clone(),
                after: first.clone(),
                before,
                original: None,
                has_ours,
                executable: false,
            });
        }
        let after = self.join(before.as_deref())?;
        let is_restored = self.part(Some(&after))? == *first;
        let original = (!is_restored).then(|| Original {
            before: first.clone(),
            written: after.clone(),
        });
        Ok(Planned {
            path: self.file.path.clone(),
            before,
            after: Some(after),
            original,
            has_ours,
            executable: self.file.executable,
        })
    }

    fn bad(&self, what: impl std::fmt::Display) -> Failure {
        Failure::new(
            exit::REFUSED,
            format!("`{}`: {what}", self.file.path),
            "fix the file in an editor; nothing was written",
        )
    }

    fn ours(&self) -> Value {
        serde_json::from_str(&self.content).expect("the table is checked by a test")
    }

    /// Returns the file's text with our part.
    fn join(&self, text: Option<&str>) -> Result<String, Failure> {
        match (self.file.kind, text) {
            (Kind::Block, None) => block::put_alone(self.file.mark, &self.content),
            (Kind::Block, Some(text)) => block::put(text, self.file.mark, &self.content),
            (Kind::Json, text) => {
                return keys::join(text.unwrap_or_default(), &self.ours()).map_err(|e| self.bad(e));
            }
            (Kind::Whole, _) => Ok(self.content.clone()),
        }
        .map_err(|what| self.bad(what))
    }

    /// Returns the file's text without our part. A file of which nothing is left was created by
    /// Quipu.
    fn part(&self, text: Option<&str>) -> Result<Option<String>, Failure> {
        let Some(text) = text else {
            return Ok(None);
        };
        let left = match self.file.kind {
            Kind::Whole if text.contains(OURS) => return Ok(None),
            Kind::Whole => {
                return Err(self.bad("it already exists and was not written by Quipu"));
            }
            Kind::Block => block::take(text, self.file.mark).map_err(|what| self.bad(what))?,
            Kind::Json => keys::part(text, &self.ours()).map_err(|e| self.bad(e))?,
        };
        let is_emptied = left != text && ["", "{}"].contains(&left.trim());
        Ok((!is_emptied).then_some(left))
    }
}

/// Opens the project's folder. No path below it is resolved through a link.
pub fn open(root: &Path) -> Result<OpenFolder, Failure> {
    let failed = |error: std::io::Error| {
        Failure::new(
            exit::IO,
            format!("cannot open `{}`: {error}", root.display()),
            "",
        )
    };
    let opened = OpenFolder::locate(root)
        .and_then(|real| OpenFolder::open(&real))
        .map_err(failed)?;
    opened.ok_or_else(|| {
        Failure::new(
            exit::NOT_FOUND,
            format!("`{}` does not exist", root.display()),
            "",
        )
    })
}

/// Returns the text of a file; `None` if it does not exist.
pub fn read_text(folder: &OpenFolder, path: &str) -> Result<Option<String>, Failure> {
    let unread = |error| unreached("read", path, error);
    let Some(bytes) = folder.read(path).map_err(unread)? else {
        return Ok(None);
    };
    let text = String::from_utf8(bytes).map_err(|_| {
        Failure::new(
            exit::IO,
            format!("cannot read `{path}`: it is not valid UTF-8"),
            "convert it to UTF-8, or move it away",
        )
    })?;
    Ok(Some(text))
}

/// Explains why a file was not read or written. Links are not followed, because a foreign project
/// may contain some.
pub fn unreached(act: &str, path: &str, error: std::io::Error) -> Failure {
    use std::io::ErrorKind::{InvalidInput, NotADirectory};
    let (code, remedy) = match error.kind() {
        InvalidInput | NotADirectory => (
            exit::REFUSED,
            "replace it with a regular file in regular folders: links are not followed",
        ),
        _ => (exit::IO, ""),
    };
    Failure::new(code, format!("cannot {act} `{path}`: {error}"), remedy)
}

/// Integrates a host or removes it, and notes that in the user's record. Returns a message if the
/// record cannot be written.
pub fn change_host(
    root: &Path,
    host: &Host,
    planned: &[Planned],
    remove: bool,
) -> Result<Option<String>, Failure> {
    // The originals are stored before the files change, and deleted after they are back.
    let mut noted = Ok(());
    if !remove {
        noted = Record::note(root, host, planned, false);
    }
    apply(root, planned)?;
    if remove {
        noted = Record::note(root, host, planned, true);
    }
    Ok(noted.err().map(|error| {
        format!("not recorded outside the project ({error}): a later loss will not be noticed")
    }))
}

/// Writes the planned files. Folders that become empty are removed.
pub fn apply(root: &Path, planned: &[Planned]) -> Result<(), Failure> {
    let folder = open(root)?;
    for file in planned.iter().filter(|f| f.before != f.after) {
        match &file.after {
            Some(text) => folder
                .replace(&file.path, text.as_bytes())
                .and_then(|()| match file.executable {
                    true => folder.make_executable(&file.path),
                    false => Ok(()),
                })
                .map_err(|error| unreached("write", &file.path, error))?,
            None => {
                folder
                    .remove(&file.path)
                    .map_err(|error| unreached("remove", &file.path, error))?;
                let mut above = file.path.as_str();
                while let Some((parent, _)) = above.rsplit_once('/') {
                    if folder.remove_folder(parent).is_err() {
                        break;
                    }
                    above = parent;
                }
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use quipu_contract::Language;

    use super::super::hosts::hosts;
    use super::*;

    /// Integrates, integrates again and removes; returns what is left.
    fn there_and_back(host: &Host, file: &HostFile, before: Option<&str>) -> Option<String> {
        let content = file.content(&host.name, &Fillings::anywhere(Language::En));
        let edit = |original| Edit {
            file,
            content: content.clone(),
            original,
        };
        let first = edit(None).plan(before.map(str::to_owned), false).unwrap();
        let again = edit(first.original.as_ref())
            .plan(first.after.clone(), false)
            .unwrap();
        assert_eq!(again.act(), "same", "{}", file.path);
        assert_eq!(again.original, first.original, "{}", file.path);
        let left = edit(again.original.as_ref())
            .plan(again.after, true)
            .unwrap();
        left.after
    }

    fn assert_returns(text: &str, kind: Kind) {
        for host in hosts() {
            for file in host.files.iter().filter(|file| file.kind == kind) {
                let left = there_and_back(&host, file, Some(text));
                assert_eq!(left.as_deref(), Some(text), "{}", file.path);
            }
        }
    }

    #[test]
    fn a_new_file_goes_again() {
        for host in hosts() {
            for file in &host.files {
                assert_eq!(there_and_back(&host, file, None), None, "{}", file.path);
            }
        }
    }

    #[test]
    fn settings_of_every_shape_return_byte_for_byte() {
        for text in [
            "",
            "\n",
            "{}",
            "{ }\n",
            "{\n}",
            "\u{feff}{}",
            "{\"a\":1}",
            "{\"a\": 1,\r\n}\r\n",
            "{\"hooks\":{}}",
            "{\"version\":1}",
            "{\"version\": 2, \"hooks\": {\"stop\": []}}",
            "// mine\n{\n\t\"hooks\": {/* none */},\n}",
            "{\"mcpServers\": {\"quipu\": {\"mine\": 1}}}",
        ] {
            assert_returns(text, Kind::Json);
        }
    }

    /// Objects in every formatting, with comments and trailing commas.
    fn settings() -> impl Strategy<Value = String> {
        let gap =
            || prop::sample::select(vec!["", " ", "\n", "\r\n", "\n\t", " // x\n", "/* y */"]);
        let scalar = prop::sample::select(vec!["1", "\"a\"", "null", "true", "[]", "[1, 2]", "{}"]);
        let key = prop::sample::select(vec![
            "a",
            "b",
            "hooks",
            "mcpServers",
            "version",
            "mcp",
            "name",
        ]);
        let inner = prop::sample::select(vec!["x", "y", "Stop", "stop", "quipu", "SessionStart"]);
        let object = |key, value: BoxedStrategy<String>| {
            (
                prop::collection::btree_map(key, (gap(), gap(), value), 0..4),
                gap(),
                any::<bool>(),
            )
                .prop_map(|(entries, end, is_trailed)| {
                    let entries: Vec<String> = entries
                        .iter()
                        .map(|(key, (before, after, value))| {
                            format!("{before}\"{key}\":{after}{value}")
                        })
                        .collect();
                    let comma = if is_trailed && !entries.is_empty() {
                        ","
                    } else {
                        ""
                    };
                    format!("{{{}{comma}{end}}}", entries.join(","))
                })
        };
        let nested = object(inner, scalar.clone().prop_map(str::to_owned).boxed());
        let value = prop_oneof![scalar.prop_map(str::to_owned), nested].boxed();
        (gap(), object(key, value), gap()).prop_map(|(a, text, b)| format!("{a}{text}{b}"))
    }

    proptest! {
        // Every case goes through the settings of every host.
        #![proptest_config(ProptestConfig::with_cases(32))]

        #[test]
        fn any_settings_return_byte_for_byte(text in settings()) {
            for host in hosts() {
                for file in host.files.iter().filter(|file| file.kind == Kind::Json) {
                    let content = file.content(&host.name, &Fillings::anywhere(Language::En));
                    let edit = Edit { file, content, original: None };
                    // Settings of another shape are refused, and nothing is written.
                    if edit.plan(Some(text.clone()), false).is_ok() {
                        let left = there_and_back(&host, file, Some(&text));
                        prop_assert_eq!(left.as_deref(), Some(text.as_str()));
                    }
                }
            }
        }

        #[test]
        fn any_text_returns_byte_for_byte(text in "[ab\r\n# ]{0,12}") {
            assert_returns(&text, Kind::Block);
        }
    }
}
