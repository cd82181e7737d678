//! A PostgreSQL server for tests: a private cluster in a temporary folder, run by a user that is
//! not root.
//!
//! Each test process has one, started on first use. It ends with the process, even if that is
//! killed. A test that breaks a server starts its own with [`Cluster::start`].

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, Once, OnceLock, mpsc};

use crate::playground::temp_folder;

pub struct Cluster {
    folder: PathBuf,
    port: u16,
    server: Mutex<Option<u32>>,
}

/// The user that owns the database and runs its server.
const OWNER: &str = "quipu";

impl Cluster {
    /// Returns the server of this test process.
    pub fn shared() -> &'static Cluster {
        static SHARED: OnceLock<Cluster> = OnceLock::new();
        SHARED.get_or_init(Cluster::start)
    }

    /// Starts a separate server.
    pub fn start() -> Cluster {
        Cluster::start_at(owned(temp_folder().keep()))
    }

    /// Like `start`, on a given disk, because benchmarks need a real one.
    pub fn start_on(disk: &Path) -> Cluster {
        Cluster::start_at(owned(tempfile::tempdir_in(disk).unwrap().keep()))
    }

    fn start_at(folder: PathBuf) -> Cluster {
        let data = folder.join("data");
        run(as_plain_user("initdb")
            .args([
                "-A",
                "trust",
                "-U",
                OWNER,
                "-E",
                "UTF8",
                "--no-locale",
                "--no-sync",
                "-D",
            ])
            .arg(&data));
        // The hosts of a test are network namespaces. The role `locked` needs a password.
        let rules = "local all all trust\nhost all locked 0.0.0.0/0 scram-sha-256\nhost all all 0.0.0.0/0 trust\nhost replication all 0.0.0.0/0 trust\n";
        std::fs::write(data.join("pg_hba.conf"), rules).unwrap();
        let cluster = Cluster {
            folder,
            port: free_port(),
            server: Mutex::new(None),
        };
        cluster.restart();
        cluster
    }

    /// Creates a synchronous standby of this server.
    pub fn standby(&self) -> Cluster {
        let folder = owned(temp_folder().keep());
        let data = folder.join("data");
        let mut copy = as_plain_user("pg_basebackup");
        copy.args([
            "-h",
            "127.0.0.1",
            "-p",
            &self.port.to_string(),
            "-U",
            OWNER,
            "-R",
            "-X",
            "stream",
            "-c",
            "fast",
            "-D",
        ])
        .arg(&data);
        run(&mut copy);
        let standby = Cluster {
            folder,
            port: free_port(),
            server: Mutex::new(None),
        };
        standby.restart();
        self.sql("ALTER SYSTEM SET synchronous_standby_names = '*'");
        self.sql("SELECT pg_reload_conf()");
        standby
    }

    /// Promotes a standby.
    pub fn promote(&self) {
        self.sql("SELECT pg_promote()");
    }

    /// Kills it as in a power cut, without a shutdown.
    pub fn kill(&self) {
        let Some(server) = self.server.lock().unwrap().take() else {
            return;
        };
        run(Command::new("kill").args(["-9", &server.to_string()]));
        // Its children exit by themselves; the next start needs them gone.
        while Path::new(&format!("/proc/{server}")).exists() {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
    }

    /// Shuts it down in order.
    pub fn stop(&self) {
        let Some(server) = self.server.lock().unwrap().take() else {
            return;
        };
        run(Command::new("kill").args(["-INT", &server.to_string()]));
        while Path::new(&format!("/proc/{server}")).exists() {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
    }

    /// Starts it (again) on the same port, and returns when it answers.
    pub fn restart(&self) {
        for _ in 0..20 {
            let pid = start_for_ever(self.command());
            while Path::new(&format!("/proc/{pid}")).exists() {
                let mut ready = as_plain_user("pg_isready");
                ready.args(["-q", "-h", "127.0.0.1", "-p", &self.port.to_string()]);
                if ready.status().is_ok_and(|status| status.success()) {
                    *self.server.lock().unwrap() = Some(pid);
                    return;
                }
                std::thread::sleep(std::time::Duration::from_millis(20));
            }
            // Children of the killed server may still hold its shared memory.
            std::thread::sleep(std::time::Duration::from_millis(200));
        }
        panic!(
            "the server does not start: {}",
            std::fs::read_to_string(self.folder.join("log")).unwrap_or_default()
        );
    }

    fn command(&self) -> Command {
        let mut server = as_plain_user("postgres");
        server
            .arg("-D")
            .arg(self.folder.join("data"))
            .arg("-k")
            .arg(&self.folder)
            .args(["-p", &self.port.to_string()]);
        for setting in [
            "listen_addresses=*",
            "fsync=on",
            "max_connections=200",
            "shared_buffers=64MB",
            "log_min_messages=fatal",
            "max_wal_senders=4",
        ] {
            server.args(["-c", setting]);
        }
        let log = std::fs::File::options()
            .create(true)
            .append(true)
            .open(self.folder.join("log"))
            .unwrap();
        server
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log);
        server
    }

    /// Enables TLS under the name `localhost`. Returns the certificate of its authority.
    pub fn with_tls(&self) -> PathBuf {
        let data = self.folder.join("data");
        let script = "openssl req -x509 -newkey rsa:2048 -nodes -keyout ca.key -out ca.crt -subj /CN=authority -days 9
            openssl req -newkey rsa:2048 -nodes -keyout server.key -out server.csr -subj /CN=localhost
            echo subjectAltName=DNS:localhost > names
            openssl x509 -req -in server.csr -CA ca.crt -CAkey ca.key -CAcreateserial -out server.crt -days 9 -extfile names
            chmod 600 server.key";
        run(as_plain_user("sh").args(["-ec", script]).current_dir(&data));
        self.sql("ALTER SYSTEM SET ssl = on");
        self.stop();
        self.restart();
        data.join("ca.crt")
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// Its folder: the socket, the data, the log.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns the address of the owner's store, for a project if one is named.
    pub fn url(&self, project: &str) -> String {
        self.url_of(OWNER, project)
    }

    /// Like `url`, for another database role. Tests wait ten seconds at most.
    pub fn url_of(&self, role: &str, project: &str) -> String {
        let project = if project.is_empty() {
            String::new()
        } else {
            format!("&project={project}")
        };
        format!(
            "postgres://{role}@127.0.0.1:{}/postgres?wait=10{project}",
            self.port
        )
    }

    /// Runs SQL as the owner of everything; returns its output.
    pub fn sql(&self, sql: &str) -> String {
        self.try_sql(OWNER, sql)
            .unwrap_or_else(|error| panic!("{sql}\n{error}"))
    }

    /// Runs SQL as some role.
    pub fn try_sql(&self, role: &str, sql: &str) -> Result<String, String> {
        let mut psql = as_plain_user("psql");
        psql.args([
            "-h",
            "127.0.0.1",
            "-p",
            &self.port.to_string(),
            "-U",
            role,
            "-d",
            "postgres",
            "-qAtX",
            "-v",
            "ON_ERROR_STOP=1",
            "-c",
            sql,
        ]);
        let output = psql.output().unwrap();
        match output.status.success() {
            true => Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned()),
            false => Err(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
        }
    }

    /// Creates a database with an empty store from a template. Returns its address, for projects
    /// named by their folders.
    pub fn fresh_store(&self) -> String {
        static TEMPLATE: Once = Once::new();
        TEMPLATE.call_once(|| {
            self.sql("CREATE DATABASE empty_store");
            let address = self.url("").replace("/postgres?", "/empty_store?");
            quipu_postgres::Postgres::at(&quipu_postgres::Address::parse(&address).unwrap())
                .migrate()
                .unwrap();
        });
        let name = self.fresh_name().replace('-', "_");
        self.sql(&format!(
            "CREATE DATABASE {name} TEMPLATE empty_store STRATEGY file_copy"
        ));
        self.url("").replace("/postgres?", &format!("/{name}?"))
    }

    /// Returns a project name that no other test of this process uses.
    pub fn fresh_name(&self) -> String {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        format!(
            "p{}-{}",
            std::process::id(),
            NEXT.fetch_add(1, Ordering::Relaxed)
        )
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Starts a program that ends with this process. The kernel ends it with the *thread* that started
/// it, so that thread waits.
fn start_for_ever(mut command: Command) -> u32 {
    let (send, receive) = mpsc::channel();
    std::thread::spawn(move || {
        let mut child = command.spawn().unwrap();
        send.send(child.id()).unwrap();
        let _ = child.wait();
    });
    receive.recv().unwrap()
}

/// Builds a command for a program of PostgreSQL, run by a user that is not root, and ended with its
/// parent.
pub fn as_plain_user(program: &str) -> Command {
    let mut command = Command::new("setpriv");
    command.arg("--pdeathsig=KILL");
    if let Some(user) = plain_user() {
        command.args([
            format!("--reuid={user}"),
            format!("--regid={}", group_of(&user)),
            "--clear-groups".into(),
        ]);
    }
    command
        .arg("--")
        .arg(installed(program))
        .env("LC_ALL", "C.UTF-8")
        .current_dir("/");
    for variable in [
        "PGHOST",
        "PGPORT",
        "PGUSER",
        "PGDATABASE",
        "PGPASSWORD",
        "PGOPTIONS",
    ] {
        command.env_remove(variable);
    }
    command
}

/// Returns the folder of PostgreSQL's programs; empty if they are in the path.
pub fn bin() -> PathBuf {
    installed("postgres")
        .parent()
        .map(Path::to_owned)
        .unwrap_or_default()
}

/// Debian installs the programs of each version in a separate folder.
fn installed(program: &str) -> PathBuf {
    let mut folders: Vec<PathBuf> = std::fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten()
        .flatten()
        .map(|e| e.path().join("bin"))
        .collect();
    folders.sort();
    let found = folders
        .into_iter()
        .rev()
        .map(|folder| folder.join(program))
        .find(|path| path.exists());
    found.unwrap_or_else(|| PathBuf::from(program))
}

/// Returns the unprivileged user; `None` if this process is not root.
pub fn plain_user() -> Option<String> {
    static USER: OnceLock<Option<String>> = OnceLock::new();
    let find = || {
        let me = Command::new("id").arg("-u").output().ok()?;
        if String::from_utf8_lossy(&me.stdout).trim() != "0" {
            return None;
        }
        let known = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
        let there = |name: &str| {
            known
                .lines()
                .any(|line| line.starts_with(&format!("{name}:")))
        };
        Some(
            if there("postgres") {
                "postgres"
            } else {
                "nobody"
            }
            .to_owned(),
        )
    };
    USER.get_or_init(find).clone()
}

fn group_of(user: &str) -> String {
    let output = Command::new("id").args(["-g", user]).output().unwrap();
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

/// Gives a folder to the unprivileged user, and deletes it when this process has ended.
pub fn owned(folder: PathBuf) -> PathBuf {
    if let Some(user) = plain_user() {
        run(Command::new("chown")
            .arg(format!("{user}:{}", group_of(&user)))
            .arg(&folder));
    }
    let tidy = format!(
        "while kill -0 {} 2>/dev/null; do sleep 1; done; sleep 1; rm -rf '{}'",
        std::process::id(),
        folder.display()
    );
    let watch = Command::new("setsid")
        .args(["sh", "-c", &tidy])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    std::thread::spawn(move || watch.map(|mut watch| watch.wait()));
    folder
}

pub fn free_port() -> u16 {
    // A server that is stopped for a while keeps its port, so no other server of this process may
    // get it.
    static GIVEN: Mutex<std::collections::BTreeSet<u16>> =
        Mutex::new(std::collections::BTreeSet::new());
    loop {
        let port = std::net::TcpListener::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap()
            .port();
        if GIVEN.lock().unwrap().insert(port) {
            return port;
        }
    }
}

fn run(command: &mut Command) {
    let output = command
        .stdin(Stdio::null())
        .output()
        .unwrap_or_else(|e| panic!("{command:?}: {e} (scripts/test installs what is missing)"));
    assert!(
        output.status.success(),
        "{command:?}\n{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
}
