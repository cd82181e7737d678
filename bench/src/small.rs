//! A project of one append-only log and some drafts, for measurements of the store itself.

use std::path::Path;
use std::sync::Arc;

use quipu_contract::{Actor, Contract, ProjectPath, Source, resolve_contract};
use quipu_store::{Change, Options, Store};

const CONTRACT: &str = "quipu = 1\n[[files]]\npath = \"log.md\"\nclass = \"append\"\n[[files]]\npath = \"drafts/*.md\"\nclass = \"overwrite\"\n";

pub fn contract() -> Arc<Contract> {
    let source = Source::new("quipu.toml", CONTRACT);
    Arc::new(resolve_contract(&source, &|name, _| Err(name.to_owned())).unwrap())
}

/// Makes the project in an empty folder.
pub fn prepare(folder: &Path) {
    std::fs::write(folder.join("quipu.toml"), CONTRACT).unwrap();
    Store::init(folder).unwrap();
    let store = Store::open(folder, contract(), Options::default()).unwrap();
    let change =
        Change::by(&Actor::Person).append(&ProjectPath::parse("log.md").unwrap(), "begin\n");
    store.validate(change).unwrap().publish().unwrap();
}
