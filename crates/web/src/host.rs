//! Parser for the value of a `Host` header: a name or an address, and an optional port.
//!
//! Browsers and proxies disagree about odd values (`127.0.0.1:80@evil.example`), so the parser
//! accepts only the plain forms.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// A valid `Host` value, in lower case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Host {
    /// The whole value, including the port if there is one.
    pub whole: String,
    /// The name or address without brackets and port.
    pub name: String,
}

impl Host {
    /// Parses `name`, `name:port`, `[address]` or `[address]:port`. It refuses user names, percent
    /// escapes, spaces, empty or oversized ports, IPv6 zones and names with empty labels (a
    /// trailing dot).
    pub fn parse(text: &str) -> Option<Host> {
        let whole = text.to_ascii_lowercase();
        let (name, port) = match whole.strip_prefix('[') {
            Some(rest) => {
                let (address, after) = rest.split_once(']')?;
                address.parse::<Ipv6Addr>().ok()?;
                (
                    address,
                    if after.is_empty() {
                        None
                    } else {
                        Some(after.strip_prefix(':')?)
                    },
                )
            }
            None => {
                let (name, port) = whole
                    .split_once(':')
                    .map_or((whole.as_str(), None), |(name, port)| (name, Some(port)));
                is_name(name).then_some((name, port))?
            }
        };
        let is_port = |port: &str| {
            port.bytes().all(|byte| byte.is_ascii_digit()) && port.parse::<u16>().is_ok()
        };
        port.is_none_or(is_port).then(|| Host {
            name: name.to_owned(),
            whole: whole.clone(),
        })
    }

    /// Returns true if the value names this machine's loopback interface.
    pub fn is_loopback(&self) -> bool {
        self.name == "localhost"
            || self
                .name
                .parse::<IpAddr>()
                .is_ok_and(|address| address.is_loopback())
    }
}

/// Accepts labels of letters, digits, hyphens and underscores, separated by single dots. If the
/// last label starts with a digit, the name must be an IPv4 address in dotted-quad form, because
/// some resolvers also accept `127.1` and `0x7f.1`.
fn is_name(name: &str) -> bool {
    let is_label = |label: &str| {
        let plain = label
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'));
        !label.is_empty() && plain
    };
    let last_is_number = name
        .rsplit('.')
        .next()
        .is_some_and(|last| last.starts_with(|c: char| c.is_ascii_digit()));
    name.len() <= 253
        && name.split('.').all(is_label)
        && (!last_is_number || name.parse::<Ipv4Addr>().is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_forms_are_parsed() {
        for (text, name) in [
            ("localhost", "localhost"),
            ("LocalHost:8080", "localhost"),
            ("127.0.0.1:80", "127.0.0.1"),
            ("[::1]", "::1"),
            ("[::1]:65535", "::1"),
            ("notes.lan:1", "notes.lan"),
        ] {
            assert_eq!(
                Host::parse(text).map(|host| host.name).as_deref(),
                Some(name),
                "{text}"
            );
        }
    }

    #[test]
    fn everything_else_is_refused() {
        for text in [
            "",
            ":80",
            "[]",
            "[::1",
            "::1",
            "[::1]x",
            "[::1]:",
            "[::1]80",
            "[::1%25lo]",
            "[::1%lo]",
            "[127.0.0.1]",
            "localhost:",
            "localhost:x",
            "localhost:65536",
            "localhost:+80",
            "localhost:80:80",
            "localhost.",
            "127.0.0.1.",
            ".localhost",
            "a..b",
            "127.0.0.1:80@evil.example",
            "user@localhost",
            "localhost@evil.example",
            "localhost%2eevil",
            "127.0.0.1%00",
            "localhost/",
            "localhost/x",
            "localhost?x",
            "localhost#x",
            " localhost",
            "localhost ",
            "local host",
            "localhost,evil",
            "127.1",
            "0x7f.0.0.1",
            "0177.0.0.1",
            "2130706433",
            "http://localhost",
            "löcalhost",
            "localhost\\evil",
        ] {
            assert_eq!(Host::parse(text), None, "{text}");
        }
    }
}
