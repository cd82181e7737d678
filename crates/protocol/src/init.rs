//! Creates a project: the files and folders that its profiles describe.
//!
//! Existing files stay unchanged and are adopted. Only `force` replaces them, and the journal keeps
//! the replaced text.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use quipu_contract::{Actor, Class, Contract, Form, Language, ProjectPath};
use quipu_store::{Change, Expect, Op, Options, SHARED, Store, StoreError};
use serde::Serialize;

use crate::foreign::{Foreign, find_foreign};
use crate::library::Library;
use crate::project::{Project, ProjectError};
use crate::repository::Repository;
use crate::template::{TemplateError, render_template, template_values};

/// A variable that every project has.
const PROJECT: &str = "project";

/// The arguments of `init`.
#[derive(Debug, Clone, Default)]
pub struct Layout {
    pub profiles: Vec<String>,
    pub language: Language,
    /// The folder for the memory files, if it is not the project root.
    pub dir: Option<String>,
    /// Values for the first texts.
    pub repository: Repository,
    pub vars: BTreeMap<String, String>,
    pub force: bool,
}

/// The result of `init`.
#[derive(Debug, Clone, Serialize)]
pub struct Laid {
    pub language: Language,
    /// The folder with the memory files, if it is not the project root.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dir: Option<String>,
    pub created: Vec<String>,
    pub adopted: Vec<String>,
    /// Existing files that were not adopted, with the reason.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub flagged: Vec<String>,
    /// Given variables that no profile knows, and the known ones.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unknown_vars: Vec<String>,
    #[serde(skip)]
    pub known_vars: Vec<String>,
    pub replaced: Vec<String>,
    pub folders: Vec<String>,
    /// The file that describes the project, if it was filled in, and the files used as its sources.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub filled_in: Option<FilledIn>,
    /// The welcome text of each profile.
    pub welcome: Vec<String>,
}

/// A file filled in from the repository's own files.
#[derive(Debug, Clone, Serialize)]
pub struct FilledIn {
    pub path: String,
    pub from: Vec<String>,
}

#[derive(Debug, thiserror::Error)]
pub enum InitError {
    #[error("`quipu.toml` is there already")]
    Exists,
    #[error("{}; nothing was written", render_foreign(.0))]
    Foreign(Vec<Foreign>),
    #[error("`quipu.toml` of this folder was removed; its history is still there")]
    Removed,
    #[error("name at least one profile: {}", Library::built_in().join(", "))]
    NoProfile,
    #[error("{0}")]
    UnknownProfile(String),
    #[error(transparent)]
    Project(#[from] ProjectError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Template(#[from] TemplateError),
    #[error("{what}: {source}")]
    Io {
        what: String,
        source: std::io::Error,
    },
}

fn render_foreign(found: &[Foreign]) -> String {
    let said = found
        .iter()
        .map(|file| format!("`{}` is there for another purpose: {}", file.path, file.why));
    said.collect::<Vec<_>>().join("; ")
}

/// Creates a project in a folder, or adopts existing memory files. A refused `init` leaves no store
/// behind.
pub fn lay_out(root: &Path, layout: &Layout, options: Options) -> Result<Laid, InitError> {
    let store = root.join(".quipu");
    let (was_there, had_root) = (store.symlink_metadata().is_ok(), root.exists());
    let mut committed = false;
    let laid = lay_out_in(root, layout, options, &mut committed);
    // The shared store already knows this working copy by the files kept here. Keep them for the
    // next try.
    let is_tied = store.join(SHARED).exists();
    if laid.is_err() && !was_there && !committed && !is_tied {
        // The folder contains only files created here; adopted files are elsewhere.
        let _ = std::fs::remove_dir_all(store);
        if !had_root {
            let _ = std::fs::remove_dir(root);
        }
    }
    laid
}

fn lay_out_in(
    root: &Path,
    layout: &Layout,
    options: Options,
    committed: &mut bool,
) -> Result<Laid, InitError> {
    if layout.profiles.is_empty() {
        return Err(InitError::NoProfile);
    }
    let manifest = root.join("quipu.toml");
    let has_manifest = manifest.symlink_metadata().is_ok();
    if !layout.force {
        if has_manifest {
            return Err(InitError::Exists);
        }
        if Store::has_history(root) {
            return Err(InitError::Removed);
        }
    }
    let io = |what: String| move |source| InitError::Io { what, source };
    let mut layout = layout.clone();
    let mut named = std::collections::BTreeSet::new();
    layout.profiles.retain(|name| named.insert(name.clone()));
    let layout = &layout;
    let text = render_manifest(layout, root);
    // Resolve the contract before anything is written, so that a faulty one has no effect.
    let library = Library::of(root);
    for name in &layout.profiles {
        library
            .load(name, "profile.toml")
            .map_err(InitError::UnknownProfile)?;
    }
    let source = quipu_contract::Source::new("quipu.toml", text.clone());
    let contract =
        quipu_contract::resolve_contract(&source, &|name, file| library.load(name, file))
            .map_err(ProjectError::Faulty)?;
    if !has_manifest && !Store::has_history(root) {
        let foreign = find_foreign(root, &contract);
        if !foreign.is_empty() {
            return Err(InitError::Foreign(foreign));
        }
    }
    let files = plan_files(&contract, &library, layout.repository.values())?;

    std::fs::create_dir_all(root).map_err(io(format!("cannot make `{}`", root.display())))?;
    if has_manifest {
        // Journal the edits that the old contract allows under its own rules, before the new one
        // applies.
        match Project::open(root, options.clone()) {
            Ok(old) => drop(old.store.survey()?),
            Err(ProjectError::Faulty(_)) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Store::init(root)?;
    let contract = Arc::new(contract);
    let store = Store::open(root, Arc::clone(&contract), options)?;
    for (path, ..) in &files {
        store.check_file(path)?;
    }
    let survey = store.survey()?;
    let said = |f: &quipu_store::Standing| {
        f.flag
            .as_ref()
            .map(|flag| format!("{} {}", f.path, flag.what))
    };
    let strange = survey
        .strange
        .iter()
        .map(|(path, why)| format!("{path} {why}"));
    let flagged: Vec<String> = survey.flagged().filter_map(said).chain(strange).collect();
    let adopted: Vec<String> = survey
        .adopted
        .into_iter()
        .map(|a| a.path)
        .filter(|p| p != "quipu.toml")
        .collect();

    let parsed = |folder: &String| ProjectPath::parse(folder.trim_end_matches('/')).ok();
    let asked: Vec<ProjectPath> = contract
        .profiles
        .iter()
        .flat_map(|profile| &profile.folders)
        .filter_map(parsed)
        .collect();
    asked
        .iter()
        .try_for_each(|folder| store.check_folder(folder))?;
    let folders: Vec<String> = asked
        .iter()
        .map(ToString::to_string)
        .filter(|folder| !root.join(folder).is_dir())
        .collect();
    let (mut created, mut replaced) = (Vec::new(), Vec::new());
    let mut by_person = Change::by(&Actor::Person).why("laid out by quipu init");
    by_person.force = true;
    // The contract and its files are one commit, so that a crash cannot leave half of them.
    let path = ProjectPath::parse("quipu.toml").expect("it is a plain name");
    if has_manifest {
        &mut replaced
    } else {
        &mut created
    }
    .push(path.as_str().to_owned());
    by_person = by_person.write(&path, text, Expect::Any);
    let mut by_quipu = Change::by(&Actor::Runtime).why("laid out by quipu init");
    for (path, class, text) in files {
        let exists = root.join(path.as_str()).exists();
        if exists && !layout.force {
            continue;
        }
        // `init --force` cannot do what a class forbids.
        let may = matches!(class, Class::Overwrite | Class::State | Class::Derived);
        if exists && !may {
            continue;
        }
        if exists { &mut replaced } else { &mut created }.push(path.as_str().to_owned());
        if class == Class::Derived {
            by_quipu = by_quipu.op(Op::Derive {
                path,
                bytes: text.into_bytes(),
                expect: Expect::Any,
            });
        } else {
            let expect = match store.read(&path)? {
                Some((_, version)) => Expect::Version(version),
                None => Expect::Any,
            };
            by_person = by_person.write(&path, text, expect);
        }
    }
    for change in [by_person, by_quipu] {
        if !change.ops.is_empty() {
            let judged = store.judge(change)?;
            *committed = true;
            judged.publish()?;
        }
    }
    asked
        .iter()
        .try_for_each(|folder| store.make_folder(folder))?;
    // The journal has no record of empty folders. Sync them and the project folder against a power
    // cut.
    store.sync_files()?;
    let mut welcome = Vec::new();
    let values = template_values(&contract.binding(), jiff::Timestamp::now());
    for profile in &contract.profiles {
        let text = profile.welcome.in_language(contract.language);
        let text = render_template(
            &Library::shown(&profile.name, "profile.toml"),
            text,
            &values,
        )?
        .trim_end()
        .to_owned();
        if !text.is_empty() {
            welcome.push(text);
        }
    }
    let is_unknown = |name: &&String| {
        contract.vars.get(*name).is_some_and(|var| !var.declared) && *name != PROJECT
    };
    let unknown_vars = layout.vars.keys().filter(is_unknown).cloned().collect();
    let known_vars = contract
        .vars
        .iter()
        .filter(|(_, var)| var.declared)
        .map(|(name, _)| name.clone())
        .collect();
    let identity = contract
        .of_form(Form::Identity)
        .filter_map(|rule| rule.path.as_literal())
        .find(|path| created.iter().any(|c| c == path));
    let from = layout.repository.sources.clone();
    let filled_in = identity.filter(|_| !from.is_empty()).map(|path| FilledIn {
        path: path.to_owned(),
        from,
    });
    let (language, dir) = (contract.language, contract.dir.clone());
    Ok(Laid {
        language,
        dir,
        created,
        adopted,
        flagged,
        unknown_vars,
        known_vars,
        replaced,
        folders,
        filled_in,
        welcome,
    })
}

/// Renders the files that `init` creates, in the order of the contract.
pub(crate) fn plan_files(
    contract: &Contract,
    library: &Library,
    repository: &BTreeMap<String, String>,
) -> Result<Vec<(ProjectPath, Class, String)>, TemplateError> {
    let mut values = template_values(&contract.binding(), jiff::Timestamp::now());
    values.extend(repository.clone());
    let mut files = Vec::new();
    for rule in contract.files.iter().filter(|r| r.create) {
        let (Some(profile), Some(literal)) = (&rule.profile, rule.path.as_literal()) else {
            continue;
        };
        let Ok(path) = ProjectPath::parse(literal) else {
            continue;
        };
        let template = contract.template_path(contract.language, literal);
        let unreadable = |error: crate::library::Unreadable| TemplateError {
            file: error.file,
            line: 1,
            what: error.what,
        };
        let text = library
            .find(profile, &template)
            .map_err(unreadable)?
            .unwrap_or_default();
        files.push((
            path,
            rule.class,
            render_template(&Library::shown(profile, &template), &text, &values)?,
        ));
    }
    Ok(files)
}

fn render_manifest(layout: &Layout, root: &Path) -> String {
    let mut vars = layout.vars.clone();
    if !vars.contains_key(PROJECT)
        && let Some(name) = layout.repository.title.clone().or_else(|| name_of(root))
    {
        vars.insert(PROJECT.into(), name);
    }
    let profiles = layout
        .profiles
        .iter()
        .map(|p| toml::Value::from(p.as_str()).to_string())
        .collect::<Vec<_>>()
        .join(", ");
    let mut text = format!(
        "# The contract of this project. `quipu contract show` prints every rule and where it comes from,\n\
         # `quipu contract schema` every key that may stand here.\n\
         quipu = 1\nprofiles = [{profiles}]\nlanguage = \"{}\"\n",
        layout.language.as_str()
    );
    if let Some(dir) = &layout.dir {
        text.push_str(&format!("dir = {}\n", toml::Value::from(dir.as_str())));
    }
    text.push_str("\n[vars]\n");
    for (name, value) in vars {
        text.push_str(&format!(
            "{} = {}\n",
            quote_key(&name),
            toml::Value::from(value)
        ));
    }
    text
}

fn name_of(folder: &Path) -> Option<String> {
    std::path::absolute(folder)
        .ok()?
        .file_name()
        .map(|name| name.to_string_lossy().into_owned())
}

fn quote_key(name: &str) -> String {
    let bare = !name.is_empty()
        && name
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-');
    if bare {
        name.to_owned()
    } else {
        toml::Value::from(name).to_string()
    }
}
