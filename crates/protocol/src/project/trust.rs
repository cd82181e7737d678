//! Trust: decides which settings of a project may run programs or contact servers.
//!
//! A project may come from a stranger. Its `quipu.toml` can name programs (`[agents]`) and a server
//! (`store`), and can have git run (`[git] finish`); its `.quipu/shared` can name a server. None of
//! these is run or contacted before a person has seen it and agreed with `quipu trust`. The
//! agreement is stored outside the project, for one folder and the exact text of each setting. A
//! changed setting needs a new agreement; all others stay trusted.

use std::io;
use std::path::{Path, PathBuf};

use quipu_contract::Contract;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::project::user_folder::{make_state_folder, state_file, write_state};

/// The command named in refusals.
pub const TRUST_COMMAND: &str =
    "quipu trust     (shows what would run or be contacted; a person agrees once)";

/// The effect of a setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Power {
    /// Runs programs and sends texts to models: the tables of `[agents]`.
    Agents,
    /// Contacts a server: the address of a shared store.
    Store,
    /// Runs git, and with it the programs that the repository configures.
    Git,
}

/// A setting that needs trust, with its exact text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Setting {
    pub power: Power,
    pub text: String,
}

impl Setting {
    pub fn agents(contract: &Contract) -> Option<Setting> {
        let text = || toml::to_string(&contract.agents).unwrap_or_default();
        (!contract.agents.is_empty()).then(|| Setting {
            power: Power::Agents,
            text: text(),
        })
    }

    pub fn store(address: &str) -> Setting {
        Setting {
            power: Power::Store,
            text: address.to_owned(),
        }
    }

    pub fn git(contract: &Contract) -> Option<Setting> {
        contract.git_at_finish.then(|| Setting {
            power: Power::Git,
            text: "[git]\nfinish = true\n".to_owned(),
        })
    }

    /// All settings of a project that need trust. `attached` is the address in `.quipu/shared`.
    pub fn all(contract: &Contract, attached: Option<&str>) -> Vec<Setting> {
        let mut addresses: Vec<&str> = attached
            .into_iter()
            .chain(contract.store.as_deref())
            .collect();
        addresses.dedup();
        let stores = addresses.into_iter().map(Setting::store);
        Setting::agents(contract)
            .into_iter()
            .chain(stores)
            .chain(Setting::git(contract))
            .collect()
    }
}

#[derive(Debug, Error)]
pub enum TrustError {
    #[error("cannot save the trust decision: {0}")]
    Io(#[from] io::Error),
    /// Refused, because an agent that can write project files could then write the agreement too.
    #[error("the trust decisions would be stored inside the project itself, in `{}`", .0.display())]
    Inside(PathBuf),
}

/// The agreement for one folder.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Agreement {
    v: u32,
    root: String,
    settings: Vec<Setting>,
}

const FORMAT: u32 = 1;

/// Whether a person has agreed to this setting of the project in this folder.
pub fn is_trusted(root: &Path, setting: &Setting) -> bool {
    let Ok((root, file)) = place_of(root) else {
        return false;
    };
    load(&root, &file).settings.contains(setting)
}

/// Records a person's agreement to these settings, in addition to earlier ones.
pub fn trust(root: &Path, settings: &[Setting]) -> Result<(), TrustError> {
    make_state_folder("trust")?;
    let (root, file) = place_of(root)?;
    let mut agreement = load(&root, &file);
    for setting in settings {
        if !agreement.settings.contains(setting) {
            agreement.settings.push(setting.clone());
        }
    }
    Ok(write_state(&file, &agreement)?)
}

/// Records a person's agreement to exactly these settings, and revokes all earlier ones.
pub fn trust_only(root: &Path, settings: &[Setting]) -> Result<(), TrustError> {
    revoke_trust(root)?;
    trust(root, settings)
}

/// Revokes all agreements for a folder. Returns false if there were none.
pub fn revoke_trust(root: &Path) -> Result<bool, TrustError> {
    let (_, file) = place_of(root)?;
    match std::fs::remove_file(&file) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// The folder's real path, and the file with its agreement.
fn place_of(root: &Path) -> Result<(PathBuf, PathBuf), TrustError> {
    let (root, file) = state_file("trust", root)?;
    let folder = file.parent().unwrap_or(&file).to_owned();
    let real = std::fs::canonicalize(&folder).unwrap_or_else(|_| folder.clone());
    if real.starts_with(&root) {
        return Err(TrustError::Inside(folder));
    }
    Ok((root, file))
}

/// Loads the agreement. It is empty if the file is missing, unreadable or about another folder.
fn load(root: &Path, file: &Path) -> Agreement {
    let root = root.to_string_lossy().into_owned();
    let found = std::fs::read(file)
        .ok()
        .and_then(|text| serde_json::from_slice::<Agreement>(&text).ok());
    let fits = found.filter(|agreement| agreement.v == FORMAT && agreement.root == root);
    fits.unwrap_or(Agreement {
        v: FORMAT,
        root,
        settings: Vec::new(),
    })
}
