//! The stores that `commits` compares. Each makes the same payload durable in its own way.

use std::fs::File;
use std::io::{BufRead, Read, Write};
use std::path::Path;
use std::sync::Arc;

use quipu_contract::{Actor, Contract, ProjectPath, Source, resolve_contract};
use quipu_store::{Change, Expect, Options, Store};

/// Bytes per file per commit.
const PAYLOAD: usize = 500;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rival {
    /// Acknowledges when the record is durable, as the other stores do. The files are applied
    /// later; the clock runs until all are applied.
    QuipuDurable,
    /// Applies the files before each acknowledgement, as a single command does.
    QuipuInPlace,
    Sqlite,
    RawAppend,
    Replace,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Work {
    OneAppend,
    FourFiles,
}

impl Rival {
    pub const ALL: [Rival; 5] = [
        Rival::QuipuDurable,
        Rival::QuipuInPlace,
        Rival::Sqlite,
        Rival::RawAppend,
        Rival::Replace,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Rival::QuipuDurable => "quipu-durable",
            Rival::QuipuInPlace => "quipu-in-place",
            Rival::Sqlite => "sqlite",
            Rival::RawAppend => "raw-append",
            Rival::Replace => "replace",
        }
    }

    /// Number of commits: enough to measure, few enough that slow stores finish within minutes.
    pub fn commits(self, work: Work) -> usize {
        match (self, work) {
            (Rival::Replace, Work::OneAppend) => 320,
            (Rival::Replace, Work::FourFiles) => 128,
            _ => 1920,
        }
    }
}

impl Work {
    pub fn name(self) -> &'static str {
        match self {
            Work::OneAppend => "one-append",
            Work::FourFiles => "four-files",
        }
    }

    fn files(self) -> usize {
        if self == Work::OneAppend { 1 } else { 4 }
    }
}

const CONTRACT: &str = "quipu = 1\n[[files]]\npath = \"log.md\"\nclass = \"append\"\n[[files]]\npath = \"drafts/*.md\"\nclass = \"overwrite\"\n";

pub fn contract() -> Arc<Contract> {
    let source = Source::new("quipu.toml", CONTRACT);
    Arc::new(resolve_contract(&source, &|name, _| Err(name.to_owned())).unwrap())
}

/// Prepares a folder for one store.
pub fn prepare_named(rival: &str, folder: &Path) {
    prepare(
        Rival::ALL.into_iter().find(|r| r.name() == rival).unwrap(),
        folder,
    );
}

pub fn prepare(rival: Rival, folder: &Path) {
    match rival {
        Rival::QuipuDurable | Rival::QuipuInPlace => {
            std::fs::write(folder.join("quipu.toml"), CONTRACT).unwrap();
            Store::init(folder).unwrap();
            let store = Store::open(folder, contract(), Options::default()).unwrap();
            let path = ProjectPath::parse("log.md").unwrap();
            store
                .judge(Change::by(&Actor::Person).append(&path, "begin\n"))
                .unwrap()
                .publish()
                .unwrap();
        }
        Rival::Sqlite => {
            sqlite(folder).execute_batch("CREATE TABLE log (id INTEGER PRIMARY KEY, path TEXT, body BLOB); CREATE TABLE file (path TEXT PRIMARY KEY, body BLOB) WITHOUT ROWID;").unwrap();
        }
        Rival::RawAppend => drop(File::create(folder.join("log")).unwrap()),
        Rival::Replace => {}
    }
}

fn sqlite(folder: &Path) -> rusqlite::Connection {
    let db = rusqlite::Connection::open(folder.join("rival.db")).unwrap();
    db.execute_batch(
        "PRAGMA busy_timeout=60000; PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;",
    )
    .unwrap();
    db
}

/// The open handles of one writer.
pub enum Writer {
    Quipu { store: Arc<Store>, behind: bool },
    Sqlite(rusqlite::Connection),
    RawAppend(File),
    Replace(std::path::PathBuf),
}

impl Writer {
    pub fn open(rival: Rival, folder: &Path, shared: Option<&Arc<Store>>) -> Writer {
        match rival {
            Rival::QuipuDurable | Rival::QuipuInPlace => {
                let store = shared.cloned().unwrap_or_else(|| {
                    Arc::new(Store::open(folder, contract(), Options::default()).unwrap())
                });
                // Quipu opens its files on first use. The other stores have theirs open before the
                // clock starts.
                store.settle().unwrap();
                Writer::Quipu {
                    store,
                    behind: rival == Rival::QuipuDurable,
                }
            }
            Rival::Sqlite => Writer::Sqlite(sqlite(folder)),
            Rival::RawAppend => Writer::RawAppend(
                File::options()
                    .append(true)
                    .open(folder.join("log"))
                    .unwrap(),
            ),
            Rival::Replace => Writer::Replace(folder.to_owned()),
        }
    }

    pub fn commit(&mut self, work: Work, writer: usize, number: usize) {
        let body = |file: usize| {
            format!(
                "{writer:04} {number:08} {file} {}\n",
                "x".repeat(PAYLOAD - 17)
            )
        };
        match self {
            Writer::Quipu { store, behind } => {
                let mut change = Change::by(&Actor::Person);
                if work == Work::OneAppend {
                    change = change.append(&ProjectPath::parse("log.md").unwrap(), body(0));
                } else {
                    for file in 0..4 {
                        let path =
                            ProjectPath::parse(&format!("drafts/w{writer}-{file}.md")).unwrap();
                        change = change.write(&path, body(file), Expect::Any);
                    }
                }
                let judged = store.judge(change).unwrap();
                if *behind {
                    judged.publish_behind().unwrap()
                } else {
                    judged.publish().unwrap()
                };
            }
            Writer::Sqlite(db) => {
                db.execute_batch("BEGIN IMMEDIATE").unwrap();
                for file in 0..work.files() {
                    if work == Work::OneAppend {
                        db.prepare_cached("INSERT INTO log (path, body) VALUES ('log.md', ?)")
                            .unwrap()
                            .execute([body(0)])
                            .unwrap();
                    } else {
                        let path = format!("drafts/w{writer}-{file}.md");
                        db.prepare_cached("INSERT OR REPLACE INTO file VALUES (?, ?)")
                            .unwrap()
                            .execute((path, body(file)))
                            .unwrap();
                    }
                }
                db.execute_batch("COMMIT").unwrap();
            }
            Writer::RawAppend(file) => {
                let text: String = (0..work.files()).map(body).collect();
                file.write_all(text.as_bytes()).unwrap();
                file.sync_data().unwrap();
            }
            Writer::Replace(folder) => {
                for file in 0..work.files() {
                    let temp = folder.join(format!("t{writer}-{file}"));
                    let mut open = File::create(&temp).unwrap();
                    open.write_all(body(file).as_bytes()).unwrap();
                    open.sync_all().unwrap();
                    std::fs::rename(&temp, folder.join(format!("w{writer}-{file}.md"))).unwrap();
                }
            }
        }
    }

    /// Waits until every commit is applied; nothing counts before that.
    pub fn finish(&self) {
        if let Writer::Quipu { store, .. } = self {
            store.settle().unwrap();
        }
    }
}

/// Runs a writer process: reports that it is ready, waits for the start signal, writes.
pub fn child(arguments: &[&str]) {
    let [rival, work, folder, writer, count] = arguments else {
        panic!("commits-writer is started by commits")
    };
    let rival = Rival::ALL.into_iter().find(|r| r.name() == *rival).unwrap();
    let work = if *work == Work::OneAppend.name() {
        Work::OneAppend
    } else {
        Work::FourFiles
    };
    let mut open = Writer::open(rival, Path::new(folder), None);
    let index: usize = writer.parse().unwrap();
    println!("ready");
    std::io::stdout().flush().unwrap();
    let _ = std::io::stdin().lock().read(&mut [0u8; 1]).unwrap();
    for number in 0..count.parse().unwrap() {
        open.commit(work, index, number);
    }
    open.finish();
}

/// Waits until a child is ready.
pub fn wait_ready(child: &mut std::process::Child) {
    let mut line = String::new();
    std::io::BufReader::new(child.stdout.as_mut().unwrap())
        .read_line(&mut line)
        .unwrap();
    assert_eq!(line.trim(), "ready");
}
