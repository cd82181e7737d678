//! Every built-in profile resolves, and has what it promises in both languages.

#![allow(clippy::unwrap_used)]

use std::path::{Path, PathBuf};

use quipu_contract::{Contract, Faults, Language, Localized, Source, resolve_contract};

fn profiles() -> PathBuf {
    Path::new(&std::env::var("CARGO_MANIFEST_DIR").unwrap()).join("../../profiles")
}

fn names() -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(profiles())
        .unwrap()
        .map(|entry| entry.unwrap())
        .filter(|entry| entry.path().join("profile.toml").exists())
        .map(|entry| entry.file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

fn load(name: &str, file: &str) -> Result<Source, String> {
    let path = profiles().join(name).join(file);
    let text =
        std::fs::read_to_string(&path).map_err(|e| format!("profiles/{name}/{file}: {e}"))?;
    Ok(Source::new(format!("profiles/{name}/{file}"), text))
}

fn resolve(profiles: &[String], language: Language) -> Result<Contract, Faults> {
    let list = profiles
        .iter()
        .map(|p| format!("\"{p}\""))
        .collect::<Vec<_>>()
        .join(", ");
    let text = format!(
        "quipu = 1\nprofiles = [{list}]\nlanguage = \"{}\"\n[vars]\nproject = \"Sample\"\n",
        language.as_str()
    );
    resolve_contract(&Source::new("quipu.toml", text), &load)
}

#[test]
fn every_profile_resolves_in_both_languages() {
    for name in names() {
        for language in Language::ALL {
            if let Err(faults) = resolve(std::slice::from_ref(&name), language) {
                panic!("{name}: {faults}");
            }
        }
    }
}

#[test]
fn every_file_that_init_makes_has_a_template_in_both_languages() {
    for name in names() {
        let contract = resolve(std::slice::from_ref(&name), Language::En).unwrap();
        for rule in contract.files.iter().filter(|r| r.create) {
            for language in Language::ALL {
                let template = profiles()
                    .join(&name)
                    .join("templates")
                    .join(language.as_str())
                    .join(rule.path.as_str());
                assert!(
                    template.exists(),
                    "{} has no template {}",
                    rule.place,
                    template.display()
                );
            }
        }
    }
}

#[test]
fn every_template_belongs_to_a_rule() {
    fn walk(folder: &Path, found: &mut Vec<PathBuf>) {
        for entry in std::fs::read_dir(folder).into_iter().flatten() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                walk(&path, found)
            } else {
                found.push(path)
            }
        }
    }
    for name in names() {
        let contract = resolve(std::slice::from_ref(&name), Language::En).unwrap();
        for language in Language::ALL {
            let root = profiles()
                .join(&name)
                .join("templates")
                .join(language.as_str());
            let mut found = Vec::new();
            walk(&root, &mut found);
            for file in found {
                let path = file
                    .strip_prefix(&root)
                    .unwrap()
                    .to_str()
                    .unwrap()
                    .to_owned();
                assert!(
                    contract.files.iter().any(|r| r.path.as_str() == path),
                    "{name}: template {path} belongs to no rule"
                );
            }
        }
    }
}

#[test]
fn everything_a_person_reads_is_said_in_both_languages() {
    let both = |said: &Localized, what: &str| {
        assert!(
            matches!(said, Localized::Each { en, zh } if !en.is_empty() && !zh.is_empty()),
            "{what} is not said in both languages: {said:?}"
        );
    };
    for name in names() {
        let contract = resolve(std::slice::from_ref(&name), Language::En).unwrap();
        both(&contract.profiles[0].about, &name);
        both(&contract.profiles[0].guide, &name);
        if !contract.profiles[0]
            .welcome
            .in_language(Language::En)
            .is_empty()
        {
            both(&contract.profiles[0].welcome, &name);
        }
        for rule in &contract.files {
            both(&rule.about, &rule.place.to_string());
        }
        for role in contract.roles.values() {
            both(&role.title, &role.place.to_string());
            both(&role.duty, &role.place.to_string());
            role.reads
                .iter()
                .for_each(|p| both(&p.why, &p.place.to_string()));
            role.denies
                .iter()
                .for_each(|p| both(&p.why, &p.place.to_string()));
            role.standards
                .iter()
                .for_each(|s| both(s, &role.place.to_string()));
        }
    }
}

#[test]
fn relay_and_worldlog_live_together() {
    let alone = resolve(&["worldlog".into()], Language::En).unwrap();
    assert!(
        alone.roles["agent"].also.is_empty(),
        "a role that is not there is no fault"
    );
    let both = resolve(&["relay".into(), "worldlog".into()], Language::En).unwrap();
    let agent = &both.roles["agent"];
    assert_eq!(agent.also, ["main"]);
    let writes = |role: &str, path: &str| {
        both.roles[role]
            .writes
            .iter()
            .any(|w| w.path.as_str() == path)
    };
    assert!(writes("agent", "state.json") && writes("agent", "world_state.md"));
    assert!(
        writes("main", "state.json") && !writes("main", "world_state.md"),
        "only the role that says so"
    );
}
