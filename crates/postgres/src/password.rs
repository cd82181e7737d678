//! Finds the password of an address that does not contain one: in the environment or in
//! `~/.pgpass`.
//!
//! An address from a project gets only a password from the file, because a line of the file names
//! its host.

use std::path::PathBuf;

use tokio_postgres::Config;
use tokio_postgres::config::Host;

/// The first of these that is set: `QUIPU_STORE_PASSWORD`, `PGPASSWORD`, a line of the password
/// file.
pub(crate) fn find(config: &Config) -> Option<String> {
    let given = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    if let Some(password) = given("QUIPU_STORE_PASSWORD").or_else(|| given("PGPASSWORD")) {
        return Some(password);
    }
    find_in_file(config)
}

/// A matching line of the password file. Unlike a variable, a line names its host.
pub(crate) fn find_in_file(config: &Config) -> Option<String> {
    let given = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let file = given("PGPASSFILE")
        .map(PathBuf::from)
        .or_else(|| given("HOME").map(|home| PathBuf::from(home).join(".pgpass")))?;
    let text = std::fs::read_to_string(file).ok()?;
    let host = config.get_hosts().first().map(|host| match host {
        Host::Tcp(name) => name.clone(),
        Host::Unix(_) => "localhost".into(),
    })?;
    let port = config
        .get_ports()
        .first()
        .copied()
        .unwrap_or(5432)
        .to_string();
    let user = config.get_user().unwrap_or_default();
    in_lines(
        &text,
        [&host, &port, config.get_dbname().unwrap_or(user), user],
    )
}

/// Parses `host:port:database:user:password`, with `*` for any value and the escapes `\:` and `\\`.
fn in_lines(text: &str, wanted: [&str; 4]) -> Option<String> {
    text.lines()
        .filter(|line| !line.starts_with('#'))
        .find_map(|line| {
            let mut fields = vec![String::new()];
            let mut chars = line.chars();
            while let Some(c) = chars.next() {
                match c {
                    '\\' => fields.last_mut()?.extend(chars.next()),
                    ':' if fields.len() < 5 => fields.push(String::new()),
                    c => fields.last_mut()?.push(c),
                }
            }
            let matches = fields.len() == 5
                && fields
                    .iter()
                    .zip(wanted)
                    .all(|(field, wanted)| field == "*" || field == wanted);
            matches.then(|| fields.pop()).flatten()
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_that_fits_counts() {
        let text =
            "# comment\nother:5432:db:ann:no\ndb.example:*:books:ann:a\\:b\\\\c\n*:*:*:*:last\n";
        assert_eq!(
            in_lines(text, ["db.example", "5433", "books", "ann"]).unwrap(),
            "a:b\\c"
        );
        assert_eq!(
            in_lines(text, ["db.example", "5433", "books", "bob"]).unwrap(),
            "last"
        );
        assert_eq!(in_lines("a:b:c:d", ["a", "b", "c", "d"]), None);
    }
}
