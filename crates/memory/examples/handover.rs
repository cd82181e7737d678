//! Two agents, one after the other: the second knows what the first decided.
//!
//! `cargo run -p quipu-memory --example handover`

use quipu_memory::{Error, Memory};

fn main() -> Result<(), Error> {
    let folder = std::env::temp_dir().join(format!("quipu-handover-{}", std::process::id()));
    std::fs::create_dir_all(&folder).map_err(|error| Error::Failed(error.to_string()))?;

    let ada = Memory::create(&folder, "relay")?
        .agent("ada")?
        .role("main")?;
    ada.start()?;
    ada.append(
        "decisions.md",
        "## Times\n\n- We keep times in UTC, because hosts differ.",
    )?;

    let bob = Memory::open(&folder)?.agent("bob")?.role("main")?;
    let found = bob.recall("In which zone are times kept?")?;
    for hit in &found.hits {
        println!("{}:{}  {}", hit.path, hit.line, hit.snippet);
    }
    match bob.write("decisions.md", "nothing was decided", None) {
        Err(Error::Refused { what, rule, repair }) => {
            println!(
                "refused: {what}\n   rule: {}\n   help: {repair}",
                rule.unwrap_or_default()
            );
        }
        other => println!("unexpected: {other:?}"),
    }
    std::fs::remove_dir_all(&folder).map_err(|error| Error::Failed(error.to_string()))
}
