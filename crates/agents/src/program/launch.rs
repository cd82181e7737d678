//! Starts an agent's program: environment, folders, sandbox.
//!
//! The program's environment is an allowlist: the locale and network variables, the variables that
//! the host's table passes on or sets, and the agent's identity.

use super::{PrivateHome, Running};
use crate::assignment::Assignment;
use crate::host::{Host, Places};
use crate::sandbox::{Policy, SANDBOX_COMMAND, Sandbox, plan_grants, search_path, wrap_variables};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Variables for locale, time zone and network proxies.
const ORDINARY: &[&str] = &[
    "LANG",
    "LANGUAGE",
    "LC_ALL",
    "LC_CTYPE",
    "TZ",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "no_proxy",
];

/// Variables that name certificates. They are passed on, and the named files become readable.
const CERTIFICATES: &[&str] = &["SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS"];

/// The inputs to start one program, once or several times.
pub struct Launch<'a> {
    pub sandbox: &'a Sandbox,
    pub host: &'a Host,
    pub assignment: &'a Assignment,
    pub home: &'a PrivateHome,
    pub places: &'a Places,
    /// Number of the program within one assignment, for the names of its files in the record.
    pub turn: u32,
}

impl Launch<'_> {
    /// Starts the program with its standard streams piped.
    pub fn start(&self, args: Vec<String>) -> Result<Running, String> {
        let name = self.host.program.as_deref().unwrap_or_default();
        let program = resolve_program(&self.places.fill(name))?;
        let record = &self.assignment.record;
        let report = record.join(format!("sandbox-{}.jsonl", self.turn));
        let policy = self.plan_policy(&program, args, &report)?;
        let orders = record.join(format!("sandbox-{}.json", self.turn));
        policy
            .save(&orders)
            .map_err(|why| format!("{}: {why}", orders.display()))?;
        std::fs::write(&report, "").map_err(|why| format!("{}: {why}", report.display()))?;

        let mut command = if cfg!(target_os = "linux") {
            let mut command = Command::new(&self.sandbox.helper);
            command
                .arg(SANDBOX_COMMAND)
                .arg(&orders)
                .env_clear()
                .envs(wrap_variables(self.environment(&program)));
            command
        } else {
            let mut command = Command::new(&policy.program);
            command
                .args(&policy.args)
                .current_dir(&policy.folder)
                .env_clear()
                .envs(self.environment(&program));
            command
        };
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0);
        let child = command
            .spawn()
            .map_err(|why| format!("{}: {why}", self.sandbox.helper.display()))?;
        let bounds = self.host.bounds(&self.assignment.bounds);
        Running::new(
            child,
            report,
            &self.assignment.out,
            self.home.root(),
            bounds,
        )
    }

    fn plan_policy(
        &self,
        program: &Path,
        args: Vec<String>,
        report: &Path,
    ) -> Result<Policy, String> {
        let real = |path: &Path| {
            path.canonicalize()
                .map_err(|why| format!("{}: {why}", path.display()))
        };
        let mut programs = vec![program.to_path_buf()];
        if let Some(server) = self.assignment.mcp.as_ref().and_then(|line| line.first()) {
            programs.push(resolve_program(server)?);
        }
        let certificates = CERTIFICATES
            .iter()
            .filter_map(std::env::var_os)
            .map(PathBuf::from);
        let extra: Vec<PathBuf> = self
            .host
            .reads
            .iter()
            .map(|path| from_home(path))
            .chain(certificates)
            .collect();
        let bounds = self.host.bounds(&self.assignment.bounds);
        let grants = plan_grants(&programs, &extra, &self.assignment.keep_out);
        Ok(Policy {
            program: program.to_path_buf(),
            args,
            folder: real(&self.assignment.out)?,
            run: grants.run,
            read: vec![real(&self.assignment.view)?],
            write: vec![
                real(&self.assignment.out)?,
                self.home.home().to_path_buf(),
                self.home.tmp().to_path_buf(),
            ],
            devices: grants.devices,
            offline: self.host.offline,
            file_bound: bounds.file,
            memory_bound: bounds.memory,
            task_bound: bounds.tasks,
            report: std::path::absolute(report)
                .map_err(|why| format!("{}: {why}", report.display()))?,
            parent: std::process::id(),
        })
    }

    fn environment(&self, program: &Path) -> BTreeMap<OsString, OsString> {
        let mut variables: BTreeMap<OsString, OsString> = BTreeMap::new();
        let passed = ORDINARY
            .iter()
            .chain(CERTIFICATES)
            .map(|name| name.to_string())
            .chain(self.host.pass.iter().cloned());
        for name in passed {
            if let Some(value) = std::env::var_os(&name) {
                variables.insert(name.into(), value);
            }
        }
        let mut put = |name: &str, value: String| variables.insert(name.into(), value.into());
        put("PATH", search_path(program));
        put("HOME", self.home.home().display().to_string());
        put("TMPDIR", self.home.tmp().display().to_string());
        put("USER", "agent".to_string());
        put("SHELL", "/bin/sh".to_string());
        put("TERM", "dumb".to_string());
        for (name, value) in &self.host.set {
            put(name, self.places.fill(value));
        }
        if self.assignment.mcp.is_some() {
            for (name, value) in &self.host.mcp.set {
                put(name, self.places.fill(value));
            }
        }
        for (name, value) in self.assignment.environment() {
            put(&name, value);
        }
        variables
    }
}

/// Checks that the program of a host exists. A name with a placeholder is known only at the start.
pub fn find_program(host: &Host) -> Result<(), String> {
    match host.program.as_deref() {
        Some(name) if !name.contains("{{") => resolve_program(name).map(|_| ()),
        _ => Ok(()),
    }
}

/// Resolves a program by its name in `PATH` or by its path; `~` is the caller's home.
pub fn resolve_program(name: &str) -> Result<PathBuf, String> {
    if name.contains('/') {
        let path = from_home(name);
        return if path.is_file() {
            // The program is started in the out folder, where a relative path leads elsewhere.
            std::path::absolute(&path).map_err(|why| format!("program `{name}`: {why}"))
        } else {
            Err(format!("program `{}` does not exist", path.display()))
        };
    }
    let folders = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&folders)
        .map(|folder| folder.join(name))
        .find(|path| path.is_file())
        .ok_or_else(|| {
            format!("program `{name}` is not in PATH: install it, or set its path as `program`")
        })
}

fn from_home(path: &str) -> PathBuf {
    match (path.strip_prefix("~/"), std::env::home_dir()) {
        (Some(rest), Some(home)) => home.join(rest),
        _ => PathBuf::from(path),
    }
}
