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

use crate::project::foreign::{Foreign, find_foreign};
use crate::project::library::Library;
use crate::project::open::{Project, ProjectError};
use crate::project::repository::Repository;
use crate::project::template::{TemplateError, render_template, template_values};

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
    #[error("`quipu.toml` already exists")]
    Exists,
    #[error("{}; nothing was written", render_foreign(.0))]
    Foreign(Vec<Foreign>),
    #[error("`quipu.toml` was removed from this folder; its history still exists")]
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
    let said = found.iter().map(|file| {
        format!(
            "`{}` already exists and has another purpose: {}",
            file.path, file.why
        )
    });
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
    let has_manifest = root.join("quipu.toml").symlink_metadata().is_ok();
    refuse_existing(root, layout, has_manifest)?;
    let mut layout = layout.clone();
    let mut named = std::collections::BTreeSet::new();
    layout.profiles.retain(|name| named.insert(name.clone()));
    // Resolve the contract before anything is written, so that a faulty one has no effect.
    let plan = Plan::of(root, &layout, has_manifest)?;

    std::fs::create_dir_all(root).map_err(|source| InitError::Io {
        what: format!("cannot create `{}`", root.display()),
        source,
    })?;
    if has_manifest {
        // Journal the edits that the old contract allows under its own rules, before the new one
        // applies.
        match Project::open(root, options.clone()) {
            Ok(old) => drop(old.store.scan_status()?),
            Err(ProjectError::Faulty(_)) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Store::init(root)?;
    let store = Store::open(root, Arc::clone(&plan.contract), options)?;
    for (path, ..) in &plan.files {
        store.check_file(path)?;
    }
    let (adopted, flagged) = adopt_existing(&store)?;
    for folder in &plan.folders {
        store.check_folder(folder)?;
    }
    let names = plan.folders.iter().map(ToString::to_string);
    let folders: Vec<String> = names.filter(|name| !root.join(name).is_dir()).collect();
    let written = write_files(&store, &plan, layout.force, committed)?;
    for folder in &plan.folders {
        store.make_folder(folder)?;
    }
    // The journal has no record of empty folders. Sync them and the project folder against a power
    // cut.
    store.sync_files()?;
    let contract = &plan.contract;
    let is_unknown = |name: &&String| {
        contract.vars.get(*name).is_some_and(|var| !var.declared) && *name != PROJECT
    };
    let declared = contract.vars.iter().filter(|(_, var)| var.declared);
    Ok(Laid {
        language: contract.language,
        dir: contract.dir.clone(),
        adopted,
        flagged,
        unknown_vars: layout.vars.keys().filter(is_unknown).cloned().collect(),
        known_vars: declared.map(|(name, _)| name.clone()).collect(),
        folders,
        filled_in: filled_in(contract, &layout, &written.created),
        welcome: welcome(contract)?,
        created: written.created,
        replaced: written.replaced,
    })
}

fn refuse_existing(root: &Path, layout: &Layout, has_manifest: bool) -> Result<(), InitError> {
    if layout.profiles.is_empty() {
        return Err(InitError::NoProfile);
    }
    if layout.force {
        return Ok(());
    }
    if has_manifest {
        return Err(InitError::Exists);
    }
    match Store::has_history(root) {
        true => Err(InitError::Removed),
        false => Ok(()),
    }
}

/// The files and folders that `init` will create.
struct Plan {
    manifest: String,
    replaces_manifest: bool,
    contract: Arc<Contract>,
    files: Vec<(ProjectPath, Class, String)>,
    folders: Vec<ProjectPath>,
}

impl Plan {
    fn of(root: &Path, layout: &Layout, has_manifest: bool) -> Result<Plan, InitError> {
        let manifest = render_manifest(layout, root);
        let library = Library::of(root);
        for name in &layout.profiles {
            library
                .load(name, "profile.toml")
                .map_err(InitError::UnknownProfile)?;
        }
        let source = quipu_contract::Source::new("quipu.toml", manifest.clone());
        let contract =
            quipu_contract::resolve_contract(&source, &|name, file| library.load(name, file))
                .map_err(ProjectError::Faulty)?;
        if !has_manifest && !Store::has_history(root) {
            let foreign = find_foreign(root, &contract);
            if !foreign.is_empty() {
                return Err(InitError::Foreign(foreign));
            }
        }
        let folders = contract
            .profiles
            .iter()
            .flat_map(|profile| &profile.folders);
        Ok(Plan {
            files: plan_files(&contract, &library, layout.repository.values())?,
            folders: folders
                .filter_map(|folder| ProjectPath::parse(folder.trim_end_matches('/')).ok())
                .collect(),
            manifest,
            replaces_manifest: has_manifest,
            contract: Arc::new(contract),
        })
    }
}

/// Adopts the files that exist. Returns them, and those that could not be adopted with the reason.
fn adopt_existing(store: &Store) -> Result<(Vec<String>, Vec<String>), InitError> {
    let scan = store.scan_status()?;
    let reason = |f: &quipu_store::FileStatus| {
        let flag = f.flag.as_ref()?;
        Some(format!("{} {}", f.path, flag.what))
    };
    let strange = scan
        .strange
        .iter()
        .map(|(path, why)| format!("{path} {why}"));
    let flagged = scan.flagged().filter_map(reason).chain(strange).collect();
    let adopted = scan.adopted.into_iter().map(|a| a.path);
    Ok((adopted.filter(|p| p != "quipu.toml").collect(), flagged))
}

#[derive(Default)]
struct Written {
    created: Vec<String>,
    replaced: Vec<String>,
}

/// Writes the contract and its files. They are one commit, so that a crash cannot leave half of
/// them; only files that Quipu derives follow in a second one.
fn write_files(
    store: &Store,
    plan: &Plan,
    force: bool,
    committed: &mut bool,
) -> Result<Written, InitError> {
    let mut written = Written::default();
    let mut note = |path: &ProjectPath, exists: bool| {
        let into = match exists {
            true => &mut written.replaced,
            false => &mut written.created,
        };
        into.push(path.as_str().to_owned());
    };
    let exists = |path: &ProjectPath| store.root().join(path.as_str()).exists();
    let path = ProjectPath::parse("quipu.toml").expect("it is a plain name");
    note(&path, plan.replaces_manifest);
    let mut by_person = Change::by(&Actor::Person)
        .why("created by quipu init")
        .write(&path, plan.manifest.clone(), Expect::Any);
    by_person.force = true;
    let mut by_quipu = Change::by(&Actor::Runtime).why("created by quipu init");
    for (path, class, text) in &plan.files {
        let exists = exists(path);
        // `init --force` cannot do what a class forbids.
        let may = force && matches!(class, Class::Overwrite | Class::State | Class::Derived);
        if exists && !may {
            continue;
        }
        note(path, exists);
        if *class == Class::Derived {
            by_quipu = by_quipu.op(Op::Derive {
                path: path.clone(),
                bytes: text.clone().into_bytes(),
                expect: Expect::Any,
            });
        } else {
            let expect = match store.read(path)? {
                Some((_, version)) => Expect::Version(version),
                None => Expect::Any,
            };
            by_person = by_person.write(path, text.clone(), expect);
        }
    }
    for change in [by_person, by_quipu] {
        if !change.ops.is_empty() {
            let validated = store.validate(change)?;
            *committed = true;
            validated.publish()?;
        }
    }
    Ok(written)
}

/// The welcome texts of the profiles.
fn welcome(contract: &Contract) -> Result<Vec<String>, InitError> {
    let values = template_values(&contract.binding(), jiff::Timestamp::now());
    let mut welcome = Vec::new();
    for profile in &contract.profiles {
        let text = profile.welcome.in_language(contract.language);
        let shown = Library::shown(&profile.name, "profile.toml");
        let text = render_template(&shown, text, &values)?;
        if !text.trim_end().is_empty() {
            welcome.push(text.trim_end().to_owned());
        }
    }
    Ok(welcome)
}

/// The file about the project, if it was created from texts of the repository.
fn filled_in(contract: &Contract, layout: &Layout, created: &[String]) -> Option<FilledIn> {
    let from = layout.repository.sources.clone();
    if from.is_empty() {
        return None;
    }
    let path = contract
        .of_form(Form::Identity)
        .filter_map(|rule| rule.path.as_literal())
        .find(|path| created.iter().any(|c| c == path))?
        .to_owned();
    Some(FilledIn { path, from })
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
        let unreadable = |error: crate::project::library::Unreadable| TemplateError {
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
        "# The contract of this project. `quipu contract show` prints every rule and where it \
         comes from,\n# `quipu contract schema` prints every key that is allowed.\nquipu = \
         1\nprofiles = [{profiles}]\nlanguage = \"{}\"\n",
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
