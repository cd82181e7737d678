//! The `import` command: imports memory from other tools, with its provenance, in one commit.

use std::path::PathBuf;

use clap::Args;
use clap::builder::PossibleValuesParser;
use quipu_contract::in_one_line;
use quipu_protocol::{Import as Asked, ImportAct, ImportError, ImportSource, ImportedFile, import};
use serde_json::json;

use super::receipt;
use crate::answer::{Answer, Failure, exit};
use crate::session::Session;
use crate::table::Operate;

#[derive(Debug, Args)]
pub struct Import {
    /// The source format: a basic-memory vault, Claude Code's memory folder, a CLAUDE.md with its
    /// imports, the file of the MCP memory server, or any Markdown
    #[arg(value_name = "FROM", value_parser = PossibleValuesParser::new(ImportSource::ALL.map(ImportSource::name)))]
    from: String,
    /// The folder or file to import
    path: PathBuf,
    /// The folder in the project to import into; by default imported/FROM
    #[arg(long, value_name = "FOLDER")]
    into: Option<String>,
    /// Show what would be imported; write nothing
    #[arg(long)]
    dry_run: bool,
    /// Import even if a text looks like a placeholder
    #[arg(long)]
    force: bool,
}

impl Operate for Import {
    const NAME: &'static str = "import";
    const ABOUT: &'static str = "Import memory from elsewhere, with its provenance, in one commit";

    fn operate(self, session: &Session) -> Result<Answer, Failure> {
        let source = ImportSource::parse(&self.from)?;
        let into = self
            .into
            .unwrap_or_else(|| format!("imported/{}", source.name()));
        let project = session.project()?;
        let place = session.folder.join(&self.path);
        let (dry_run, force, lease) = (self.dry_run, self.force, session.lease.clone());
        let told = self.path.to_string_lossy();
        let asked = Asked {
            source,
            place: &place,
            told: &told,
            into: &into,
            dry_run,
            force,
            lease,
        };
        let imported = import(&project, &session.actor, &asked)?;

        let mut text: String = imported.files.iter().map(render_file).collect();
        imported
            .left_out
            .iter()
            .for_each(|left| text.push_str(&format!("left out  {}  ({})\n", left.from, left.why)));
        let of = |act: ImportAct| imported.files.iter().filter(|file| file.act == act).count();
        let (new, renewed, known, differs) = (
            of(ImportAct::New),
            of(ImportAct::Renewed),
            of(ImportAct::Known),
            of(ImportAct::Differs),
        );
        let data = json!({"source": source.name(), "into": into, "files": imported.files, "left_out": imported.left_out});
        let mut answer = match &imported.receipt {
            Some(told) => receipt::with(project.contract.language, told, data, text),
            None => Answer::new(data, text),
        };
        answer = answer.say(format!(
            "{new} new, {renewed} renewed, {known} known, {differs} different, {} left out",
            imported.left_out.len()
        ));
        if dry_run {
            answer = answer.say("dry run: nothing was written");
        }
        if differs > 0 {
            answer.exit = exit::NO;
            answer = answer.say(
                "different files were not changed; to import them elsewhere: \
                --into FOLDER",
            );
        }
        Ok(answer)
    }
}

fn render_file(file: &ImportedFile) -> String {
    let act = match file.act {
        ImportAct::New => "new",
        ImportAct::Renewed => "renewed",
        ImportAct::Known => "known",
        ImportAct::Differs => "differs",
    };
    let why = file
        .why
        .as_ref()
        .map(|why| format!("  ({why})"))
        .unwrap_or_default();
    format!(
        "{act:<8}  {}  from {}{}\n",
        file.path,
        in_one_line(&file.from),
        in_one_line(&why)
    )
}

impl From<ImportError> for Failure {
    fn from(error: ImportError) -> Failure {
        let what = error.to_string();
        match error {
            ImportError::NoSource(..) => Failure::usage(what, "quipu import --help"),
            ImportError::Unreadable { source, .. }
                if source.kind() == std::io::ErrorKind::NotFound =>
            {
                Failure::new(exit::NOT_FOUND, what, "")
            }
            ImportError::Unreadable { .. } => Failure::new(exit::IO, what, ""),
            ImportError::Other { remedy, .. } => Failure::new(exit::NOT_FOUND, what, remedy),
            ImportError::Malformed { .. } => {
                Failure::usage(what, "fix that line; nothing was imported")
            }
            ImportError::Credentials(_) => Failure::new(
                exit::REFUSED,
                what,
                "remove them; or allow them in quipu.toml: [guards] credentials_in = [\"PATH\"]",
            ),
            ImportError::Source(error) => error.into(),
            ImportError::Path(error) => error.into(),
            ImportError::Store(error) => error.into(),
        }
    }
}
