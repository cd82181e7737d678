//! The address of a shared store: `postgres://user@host:5432/database?project=NAME&sslmode=…`.
//!
//! An address may contain a password, which is never shown: everything that is printed or stored
//! comes from `shown`.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use quipu_contract::in_one_line;
use quipu_store::StoreError;
use tokio_postgres::config::{Host, SslMode};

use crate::password;

/// How the connection is encrypted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tls {
    Off,
    /// Encrypted, and the server proves its name with a certificate.
    Proven,
}

/// The address of a shared store, with the credentials to log in.
#[derive(Clone)]
pub struct Address {
    pub(crate) config: tokio_postgres::Config,
    pub(crate) tls: Tls,
    /// Certificates to trust instead of the default ones.
    pub(crate) roots: Option<PathBuf>,
    pub project: Option<String>,
    /// How long a writer waits for a server that does not answer.
    pub(crate) wait: Option<Duration>,
    shown: String,
    has_password: bool,
}

const CONNECT: Duration = Duration::from_secs(4);
/// A server that does not answer for this long is considered dead, even if the connection is still
/// open.
const SILENCE: Duration = Duration::from_secs(10);

impl Address {
    /// Parses an address that the user named.
    pub fn parse(text: &str) -> Result<Address, StoreError> {
        Self::parse_with(text, password::find)
    }

    /// Parses an address that came with the project. A stranger may have written it, so it never
    /// gets a password from the environment.
    pub(crate) fn parse_given(text: &str) -> Result<Address, StoreError> {
        Self::parse_with(text, password::find_in_file)
    }

    fn parse_with(
        text: &str,
        find: fn(&tokio_postgres::Config) -> Option<String>,
    ) -> Result<Address, StoreError> {
        let shown = in_one_line(&without_password(text)).into_owned();
        let bad = |what: String| {
            StoreError::refused(
                format!("`{shown}` is not the address of a shared store: {what}"),
                FORM,
            )
        };
        if !text.starts_with("postgres://") && !text.starts_with("postgresql://") {
            return Err(bad("it does not begin with `postgres://`".into()));
        }
        // Messages quote an address before the user has trusted it.
        if shown != without_password(text) {
            return Err(bad("it contains a control character or a line break".into()));
        }
        let (base, query) = text.split_once('?').unwrap_or((text, ""));
        let (mut project, mut sslmode, mut roots, mut wait, mut rest) =
            (None, None, None, None, Vec::new());
        for pair in query.split('&').filter(|p| !p.is_empty()) {
            match pair.split_once('=').unwrap_or((pair, "")) {
                ("project", value) => project = Some(in_one_line(&decoded(value)).into_owned()),
                ("sslmode", value) => sslmode = Some(value.to_owned()),
                ("sslrootcert", value) => roots = Some(PathBuf::from(decoded(value))),
                ("wait", value) => {
                    let seconds = value
                        .parse()
                        .map_err(|_| bad(format!("wait `{value}` is not a number of seconds")))?;
                    wait = Some(Duration::from_secs(seconds));
                }
                _ => rest.push(pair),
            }
        }
        let plain = if rest.is_empty() {
            base.to_owned()
        } else {
            format!("{base}?{}", rest.join("&"))
        };
        let mut config =
            tokio_postgres::Config::from_str(&plain).map_err(|e| bad(e.to_string()))?;
        if config.get_hosts().is_empty() {
            return Err(bad("it names no host".into()));
        }
        if config.get_user().is_none() {
            config.user(
                std::env::var("PGUSER")
                    .or_else(|_| std::env::var("USER"))
                    .unwrap_or_else(|_| "postgres".into()),
            );
        }
        let has_password = config.get_password().is_some();
        if !has_password && let Some(found) = find(&config) {
            config.password(found);
        }
        let cached_folder = config.get_hosts().iter().all(|host| match host {
            Host::Tcp(name) => matches!(name.as_str(), "localhost" | "127.0.0.1" | "::1"),
            Host::Unix(_) => true,
        });
        let tls = match sslmode.as_deref() {
            Some("disable") => Tls::Off,
            Some("require" | "verify-ca" | "verify-full") => Tls::Proven,
            None if cached_folder => Tls::Off,
            None => Tls::Proven,
            Some(other) => {
                return Err(bad(format!(
                    "sslmode `{other}` is not one of disable, require, verify-full"
                )));
            }
        };
        config.ssl_mode(if tls == Tls::Off {
            SslMode::Disable
        } else {
            SslMode::Require
        });
        config
            .connect_timeout(CONNECT)
            .keepalives_idle(SILENCE)
            .tcp_user_timeout(SILENCE);
        if config.get_application_name().is_none() {
            config.application_name("quipu");
        }
        Ok(Address {
            config,
            tls,
            roots,
            project,
            wait,
            shown,
            has_password,
        })
    }

    /// Whether the address itself contains a password.
    pub fn has_password(&self) -> bool {
        self.has_password
    }

    /// The address without its password.
    pub fn shown(&self) -> &str {
        &self.shown
    }
}

const FORM: &str =
    "postgres://USER@HOST:5432/DATABASE?project=NAME     (the password: PGPASSWORD, or ~/.pgpass)";

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown)
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Address({})", self.shown)
    }
}

/// Cuts out every part that may be a password, in any text that looks like an address.
fn without_password(text: &str) -> String {
    let (scheme, rest) = match text.split_once("://") {
        Some((scheme, rest)) => (format!("{scheme}://"), rest),
        None => (String::new(), text),
    };
    // A password may contain an unescaped `@`: everything up to the last one belongs to the user
    // part.
    let end = rest
        .find(['/', '?'])
        .filter(|end| rest[*end..].rfind('@').is_none())
        .unwrap_or(rest.len());
    let (authority, tail) = rest.split_at(end);
    let (user, host) = match authority.rsplit_once('@') {
        Some((user, host)) => (Some(user), host),
        None => (None, authority),
    };
    let user = user
        .map(|user| format!("{}@", user.split(':').next().unwrap_or_default()))
        .unwrap_or_default();
    let (path, query) = tail
        .split_once('?')
        .map_or((tail, None), |(path, query)| (path, Some(query)));
    let kept: Vec<&str> = query
        .unwrap_or_default()
        .split('&')
        .filter(|p| !p.is_empty() && !p.starts_with("password="))
        .collect();
    let query = if kept.is_empty() {
        String::new()
    } else {
        format!("?{}", kept.join("&"))
    };
    format!("{scheme}{user}{host}{path}{query}")
}

/// Decodes `%20` and similar.
fn decoded(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let hex = |at: usize| after.get(at).and_then(|b| char::from(*b).to_digit(16));
        match (first, hex(0), hex(1)) {
            (b'%', Some(high), Some(low)) => {
                bytes.push(u8::try_from(high * 16 + low).unwrap_or(b'?'));
                rest = &after[2..];
            }
            _ => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_never_shown() {
        for text in [
            "postgres://ann:s3cret@db.example:5433/books?project=novel",
            "postgres://ann:s3cret@db.example:5433/books?password=s3cret&project=novel",
            "postgres://ann:s3c/s3cret@x@db.example:5433/books?project=novel",
        ] {
            let shown = without_password(text);
            assert!(!shown.contains("s3c"), "{shown}");
            assert!(
                shown.contains("db.example:5433/books?project=novel"),
                "{shown}"
            );
            match Address::parse(text) {
                Ok(address) => assert!(!format!("{address:?} {address}").contains("s3c")),
                Err(error) => assert!(!format!("{error:?} {error}").contains("s3c")),
            }
        }
    }

    #[test]
    fn far_hosts_prove_their_name_unless_told_otherwise() {
        let tls = |text: &str| Address::parse(text).unwrap().tls;
        assert_eq!(tls("postgres://a@db.example/x"), Tls::Proven);
        assert_eq!(tls("postgres://a@db.example/x?sslmode=disable"), Tls::Off);
        assert_eq!(tls("postgres://a@127.0.0.1/x"), Tls::Off);
        assert_eq!(tls("postgres://a@localhost,db.example/x"), Tls::Proven);
        assert!(Address::parse("postgres://a@db.example/x?sslmode=prefer").is_err());
        assert!(Address::parse("mysql://a@db.example/x").is_err());
        assert_eq!(
            Address::parse("postgres://a@h/x?project=my%20book")
                .unwrap()
                .project
                .unwrap(),
            "my book"
        );
    }
}
