//! The user's key for signing journal heads: ed25519, in the user's configuration folder, never in
//! a project.
//!
//! A signature shows that the signer could read this key. Every program of the same user can, so it
//! proves nothing against an attacker with access to the account.

use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::PathBuf;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ring::rand::SystemRandom;
use ring::signature::{ED25519, Ed25519KeyPair, KeyPair, UnparsedPublicKey};

const FILE: &str = "head.key";

/// `$XDG_CONFIG_HOME/quipu/head.key`, or below `~/.config`.
pub fn path() -> Option<PathBuf> {
    let absolute = |name: &str| {
        std::env::var_os(name)
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
    };
    let config = absolute("XDG_CONFIG_HOME").or_else(|| Some(absolute("HOME")?.join(".config")))?;
    Some(config.join("quipu").join(FILE))
}

/// Creates a key and returns its public part. Refuses to replace an existing key.
pub fn make() -> std::io::Result<String> {
    let random = |_| std::io::Error::other("the system returned no random bytes");
    let path =
        path().ok_or_else(|| std::io::Error::other("neither XDG_CONFIG_HOME nor HOME is set"))?;
    let folder = path.parent().ok_or(std::io::ErrorKind::NotFound)?;
    let document = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).map_err(random)?;
    let pair = Ed25519KeyPair::from_pkcs8(document.as_ref())
        .map_err(|e| std::io::Error::other(e.to_string()))?;
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)?;
    let mut file = std::fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&path)?;
    file.write_all(format!("{}\n", STANDARD.encode(document.as_ref())).as_bytes())?;
    file.sync_all()?;
    Ok(STANDARD.encode(pair.public_key()))
}

fn load() -> Option<Ed25519KeyPair> {
    let text = std::fs::read_to_string(path()?).ok()?;
    Ed25519KeyPair::from_pkcs8(&STANDARD.decode(text.trim()).ok()?).ok()
}

/// Returns the public part of the user's key; `None` without a readable key.
pub fn public_key() -> Option<String> {
    load().map(|pair| STANDARD.encode(pair.public_key()))
}

/// Returns the public key and the signature of a text; `None` without a key.
pub fn sign(text: &str) -> Option<(String, String)> {
    let pair = load()?;
    Some((
        STANDARD.encode(pair.public_key()),
        STANDARD.encode(pair.sign(text.as_bytes())),
    ))
}

pub fn verifies(key: &str, signature: &str, text: &str) -> bool {
    let (Ok(key), Ok(signature)) = (STANDARD.decode(key), STANDARD.decode(signature)) else {
        return false;
    };
    UnparsedPublicKey::new(&ED25519, key)
        .verify(text.as_bytes(), &signature)
        .is_ok()
}
