//! A project in a temporary folder, local or a working copy of a shared one.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use quipu_contract::{Actor, ActorName, Contract, ProjectPath, Source, UnitId, resolve_contract};
use quipu_store::{At, Change, Options, Receipt, Store, StoreError};
use tempfile::TempDir;

use crate::failing::PausedDisk;
use crate::postgres::Cluster;

/// A contract with one file of each class and two roles.
pub const CONTRACT: &str = r#"quipu = 1

[[files]]
path = "outline.md"
class = "sealed"

[[files]]
path = "meta/*.md"
class = "append"

[[files]]
path = ".sessions/*.md"
class = "record"

[[files]]
path = "drafts/{unit}.md"
class = "overwrite"

[[files]]
path = "state.json"
class = "state"

[[files]]
path = "index.md"
class = "derived"

[units.ch01]
[units.ch02]

[roles.writer]
title = "Writer"
duty = "writing"

[[roles.writer.read]]
path = "outline.md"

[[roles.writer.write]]
path = "drafts/{unit}.md"

[roles.keeper]
title = "Keeper"
duty = "keeping"

[[roles.keeper.write]]
path = "meta/*.md"

[[roles.keeper.write]]
path = "state.json"
"#;

/// A project in a temporary folder that is deleted on drop.
pub struct Playground {
    folder: TempDir,
    pub contract: Arc<Contract>,
}

impl Playground {
    pub fn new() -> Playground {
        Playground::with_contract(CONTRACT)
    }

    pub fn with_contract(text: &str) -> Playground {
        let folder = temp_folder();
        std::fs::write(folder.path().join("quipu.toml"), text).unwrap();
        Store::init(folder.path()).unwrap();
        let play = Playground {
            folder,
            contract: contract(text),
        };
        if std::env::var_os("QUIPU_TEST_STORE").is_some_and(|kind| kind == "postgres") {
            play.share(Cluster::shared());
        }
        play
    }

    /// Creates a local project, even if the tests run on a shared store.
    pub fn local() -> Playground {
        let folder = temp_folder();
        std::fs::write(folder.path().join("quipu.toml"), CONTRACT).unwrap();
        Store::init(folder.path()).unwrap();
        Playground {
            folder,
            contract: contract(CONTRACT),
        }
    }

    /// Creates a working copy of a new project in a shared store.
    pub fn shared() -> Playground {
        Playground::shared_in(Cluster::shared())
    }

    /// Like `shared`, on a given server.
    pub fn shared_in(cluster: &Cluster) -> Playground {
        let play = Playground::local();
        play.share(cluster);
        play
    }

    fn share(&self, cluster: &Cluster) {
        let name = cluster.fresh_name();
        let address = quipu_postgres::Address::parse(&cluster.url(&name)).unwrap();
        let postgres = quipu_postgres::Postgres::at(&address);
        postgres.migrate().unwrap();
        let id = postgres.found(&name).unwrap();
        quipu_postgres::Attachment {
            address: address.shown().to_owned(),
            project: name,
            id,
        }
        .save(self.root())
        .unwrap();
    }

    /// Creates another working copy of the same shared project, without its records.
    pub fn another(&self) -> Playground {
        self.another_at(&self.attachment().address)
    }

    /// Like `another`, through another address: another database role, a proxy.
    pub fn another_at(&self, address: &str) -> Playground {
        let folder = temp_folder();
        std::fs::copy(self.file("quipu.toml"), folder.path().join("quipu.toml")).unwrap();
        Store::init(folder.path()).unwrap();
        quipu_postgres::Attachment {
            address: address.to_owned(),
            ..self.attachment()
        }
        .save(folder.path())
        .unwrap();
        Playground {
            folder,
            contract: Arc::clone(&self.contract),
        }
    }

    pub fn is_shared(&self) -> bool {
        quipu_postgres::Attachment::load(self.root())
            .unwrap()
            .is_some()
    }

    /// Returns the attachment of this working copy.
    pub fn attachment(&self) -> quipu_postgres::Attachment {
        quipu_postgres::Attachment::load(self.root())
            .unwrap()
            .unwrap()
    }

    pub fn root(&self) -> &Path {
        self.folder.path()
    }

    pub fn open(&self) -> Store {
        self.open_with(Options::default())
    }

    pub fn open_with(&self, options: Options) -> Store {
        open_store(self.root(), Arc::clone(&self.contract), options)
    }

    /// A store whose commits can be left unapplied.
    pub fn open_paused(&self, options: Options) -> (Store, Arc<PausedDisk>) {
        let disk = Arc::new(PausedDisk::default());
        let store = self.open_with(Options {
            watch: Some(disk.clone()),
            ..options
        });
        (store, disk)
    }

    pub fn file(&self, path: &str) -> PathBuf {
        self.root().join(path)
    }

    pub fn text(&self, path: &str) -> Option<String> {
        std::fs::read_to_string(self.file(path)).ok()
    }

    /// Writes a file as an editor would, outside Quipu.
    pub fn edit(&self, path: &str, text: &str) {
        std::fs::create_dir_all(self.file(path).parent().unwrap()).unwrap();
        std::fs::write(self.file(path), text).unwrap();
    }

    pub fn path(text: &str) -> ProjectPath {
        ProjectPath::parse(text).unwrap()
    }

    /// Returns every memory file on disk with its bytes.
    pub fn files(&self) -> BTreeMap<String, Vec<u8>> {
        let mut files = BTreeMap::new();
        let mut folders = vec![self.root().to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(&folder).unwrap() {
                let path = entry.unwrap().path();
                let name = path
                    .strip_prefix(self.root())
                    .unwrap()
                    .to_str()
                    .unwrap()
                    .to_owned();
                if path.is_dir() {
                    if name != ".quipu" {
                        folders.push(path);
                    }
                } else if name != "quipu.toml" {
                    files.insert(name, std::fs::read(&path).unwrap());
                }
            }
        }
        files
    }

    /// Copies everything at this moment, including `.quipu`.
    pub fn copy(&self) -> Playground {
        let folder = temp_folder();
        copy_folder(self.root(), folder.path());
        Playground {
            folder,
            contract: Arc::clone(&self.contract),
        }
    }

    pub fn role(role: &str, unit: Option<&str>) -> Actor {
        Actor::Agent {
            role: ActorName::parse(role).ok(),
            unit: unit.map(|u| UnitId::parse(u).unwrap()),
            agent: None,
        }
    }
}

impl Default for Playground {
    fn default() -> Self {
        Playground::new()
    }
}

/// Opens a store, a working copy included.
pub fn open_store(root: &Path, contract: Arc<Contract>, options: Options) -> Store {
    quipu_postgres::register(|_| {}, |_, _| true);
    Store::open(root, contract, options).unwrap()
}

/// Returns a temporary folder, in memory if such a file system exists: the suites sync thousands of
/// times and simulate power cuts themselves. `QUIPU_TEST_FOLDER` selects another file system.
pub fn temp_folder() -> TempDir {
    if let Some(folder) = std::env::var_os("QUIPU_TEST_FOLDER") {
        return tempfile::tempdir_in(folder).unwrap();
    }
    let memory = Path::new("/dev/shm");
    if memory.is_dir() {
        tempfile::tempdir_in(memory).unwrap()
    } else {
        tempfile::tempdir().unwrap()
    }
}

/// Copies a folder with everything in it.
pub fn copy_folder(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let target = to.join(path.file_name().unwrap());
        if path.is_dir() {
            copy_folder(&path, &target);
            continue;
        }
        std::fs::copy(&path, &target).unwrap();
        // A copy with a newer time than its original would look edited.
        let modified = std::fs::metadata(&path).unwrap().modified().unwrap();
        std::fs::File::options()
            .write(true)
            .open(&target)
            .unwrap()
            .set_modified(modified)
            .unwrap();
    }
}

/// Resolves a contract without profiles.
pub fn contract(text: &str) -> Arc<Contract> {
    let source = Source::new("quipu.toml", text.to_owned());
    Arc::new(resolve_contract(&source, &|name, _| Err(format!("no profile `{name}`"))).unwrap())
}

/// Restores one file in a change of its own, as `quipu restore` does.
pub trait Restore {
    /// Restores the newest journalled version, or an older one.
    fn restore(
        &self,
        actor: &Actor,
        path: &ProjectPath,
        at: Option<&At>,
    ) -> Result<Receipt, StoreError>;
}

impl Restore for Store {
    fn restore(
        &self,
        actor: &Actor,
        path: &ProjectPath,
        at: Option<&At>,
    ) -> Result<Receipt, StoreError> {
        let change = self.restoring(Change::by(actor), path, at)?;
        self.validate(change)?.publish()
    }
}
