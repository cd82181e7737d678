//! Tests of resolved contracts, and of the messages for faulty ones.

use super::*;
use crate::{Actor, ActorName, ProjectPath};

fn load(name: &str, file: &str) -> Result<Source, String> {
    let text = match (name, file) {
        ("notes", "profile.toml") => {
            "about = \"n\"\n[unit]\nname = \"chapter\"\nid = \"ch##\"\n[vars.root]\nabout = \"r\"\ndefault = \"src\"\n\
             [[files]]\npath = \"meta/*.md\"\nclass = \"append\"\n[[files]]\npath = \"drafts/{unit}.md\"\nclass = \"overwrite\"\n\
             [roles.writer]\ntitle = \"Writer\"\nduty = \"writing\"\n[[roles.writer.read]]\npath = \"meta/a.md\"\n\
             [[roles.writer.read]]\npath = \"outline.md\"\nsection = \"{unit}\"\n[[roles.writer.read]]\npath = \"wild/*\"\n\
             [[roles.writer.deny]]\npath = \"wild/secret.md\"\nwhy = \"s\"\n\
             [[roles.writer.write]]\npath = \"drafts/{unit}.md\"\nmarker = \"DONE\"\n[[roles.writer.deny]]\npath = \"{root}/**\"\nwhy = \"facts come from research\"\n"
        }
        ("other", "profile.toml") => "[[files]]\npath = \"meta/log.md\"\nclass = \"record\"\n",
        _ => return Err(format!("no profile `{name}`")),
    };
    Ok(Source::new(format!("profiles/{name}/{file}"), text))
}

fn resolve(text: &str) -> Result<Contract, Faults> {
    resolve_contract(&Source::new("quipu.toml", text.to_owned()), &load)
}

fn path(text: &str) -> ProjectPath {
    ProjectPath::parse(text).unwrap()
}

#[test]
fn rules_come_with_their_place() {
    let contract = resolve("quipu = 1\nprofiles = [\"notes\"]\n").unwrap();
    let rule = contract.rule(&path("meta/glossary.md")).unwrap();
    assert_eq!(
        (rule.class, rule.place.to_string()),
        (Class::Append, "profiles/notes/profile.toml:9".to_owned())
    );
    assert_eq!(contract.class(&path("drafts/ch01.md")), Class::Overwrite);
    assert_eq!(
        contract.class(&path("drafts/notes.md")),
        Class::Free,
        "`notes` is not a chapter"
    );
    assert!(contract.look_alike(&path("META/glossary.md")).is_some());
}

#[test]
fn the_manifest_overrides_a_profile() {
    let contract = resolve("quipu = 1\nprofiles = [\"notes\"]\n[[files]]\npath = \"meta/free.md\"\nclass = \"overwrite\"\n").unwrap();
    assert_eq!(contract.class(&path("meta/free.md")), Class::Overwrite);
    assert_eq!(contract.class(&path("meta/other.md")), Class::Append);
}

#[test]
fn two_profiles_that_disagree_are_refused_with_both_places() {
    let faults = resolve("quipu = 1\nprofiles = [\"notes\", \"other\"]\n").unwrap_err();
    assert_eq!(faults.0.len(), 1);
    assert_eq!(
        faults.0[0].place.to_string(),
        "profiles/notes/profile.toml:9"
    );
    assert_eq!(
        faults.0[0].other.as_ref().unwrap().to_string(),
        "profiles/other/profile.toml:2"
    );
    let settled = resolve(
        "quipu = 1\nprofiles = [\"notes\", \"other\"]\n[[files]]\npath = \"meta/log.md\"\nclass = \"record\"\n",
    );
    assert_eq!(settled.unwrap().class(&path("meta/log.md")), Class::Record);
}

#[test]
fn faults_name_line_and_allowed_values() {
    for (text, line, what) in [
        (
            "quipu = 1\n[[files]]\npath = \"a.md\"\nclass = \"appendd\"\n",
            4,
            "unknown class `appendd`",
        ),
        (
            "quipu = 1\nprofiles = [\n\"nope\"]\n",
            3,
            "no profile `nope`",
        ),
        ("quipu = 1\nlanguage = \"fr\"\n", 2, "unknown variant `fr`"),
        ("quipu = 1\ncolour = 1\n", 2, "unknown field `colour`"),
        (
            "quipu = 1\n[[files]]\npath = \"{nope}/a\"\nclass = \"append\"\n",
            3,
            "unknown variable `{nope}`",
        ),
        (
            "quipu = 1\n[[files]]\npath = \"../a\"\nclass = \"append\"\n",
            3,
            "`../a` leaves the project",
        ),
        (
            "quipu = 1\n[[files]]\npath = \"./a.md\"\nclass = \"append\"\n",
            3,
            "`./a.md` leaves the project or has a `.`",
        ),
        (
            "quipu = 1\n[[files]]\npath = \"a//b.md\"\nclass = \"append\"\n",
            3,
            "`a//b.md` leaves the project or has",
        ),
        (
            "quipu = 1\n[[files]]\npath = \"cafe\u{301}.md\"\nclass = \"append\"\n",
            3,
            "`cafe\\u{301}.md` is not in normal form",
        ),
        (
            "quipu = 1\n[[files]]\npath = \".quipu/watermarks\"\nclass = \"append\"\n",
            3,
            "`.quipu/watermarks` is in `.quipu/`",
        ),
        (
            "quipu = 1\n[vars]\nr = \"../..\"\n[[files]]\npath = \"{r}/y\"\nclass = \"append\"\n",
            5,
            "`../../y` leaves the project",
        ),
        (
            "quipu = 1\n[roles.r]\ntitle = \"r\"\nduty = \"d\"\n[[roles.r.deny]]\npath = \"./secret/*.md\"\n",
            6,
            "`./secret/*.md` leaves",
        ),
        (
            "quipu = 1\n[units.a]\nvars = { w = \"..\" }\n[roles.r]\ntitle = \"r\"\nduty = \"d\"\n[[roles.r.deny]]\npath = \"{w}/*.md\"\n",
            8,
            "`../*.md` leaves",
        ),
        (
            "quipu = 1\n[[steps]]\nname = \"g\"\nbuiltin = \"gate\"\nwrites = [\"./open.md\"]\n",
            3,
            "`./open.md` leaves",
        ),
        (
            "quipu = 1\nignore = [\n\"./vendor/\"]\n",
            3,
            "`./vendor` leaves",
        ),
        (
            "quipu = 1\n[guards]\ncredentials_in = [\"./vault/**\"]\n",
            3,
            "`./vault/**` leaves",
        ),
        (
            "quipu = 1\n[units.a]\nneeds = [\"b\"]\n[units.b]\nneeds = [\"a\"]\n",
            2,
            "units wait for each other: a → b → a",
        ),
        (
            "quipu = 1\n[[steps]]\nname = \"s\"\nrole = \"nobody\"\n",
            3,
            "step `s` is for role `nobody`",
        ),
        ("quipu = 2\n", 1, "unknown format 2"),
    ] {
        let faults = resolve(text).unwrap_err();
        assert!(faults.0[0].what.starts_with(what), "{text}: {faults:?}");
        assert_eq!(faults.0[0].place.line, line, "{text}: {faults:?}");
    }
}

#[test]
fn a_path_that_names_nothing_says_what_to_write() {
    let remedy = |text: &str| resolve(text).unwrap_err().0.remove(0).remedy;
    assert_eq!(
        remedy("quipu = 1\n[[files]]\npath = \"./a.md\"\nclass = \"append\"\n"),
        "write `a.md`"
    );
    let by_variable = remedy(
        "quipu = 1\n[vars]\nr = \"src/\"\n[[files]]\npath = \"{r}/**\"\nclass = \"append\"\n",
    );
    assert_eq!(
        by_variable,
        "change its variables, so that it becomes `src/**`"
    );
    assert!(
        resolve("quipu = 1\nignore = [\".git/\", \".quipu\"]\n").is_ok(),
        "what nobody can write may be left out"
    );
}

#[test]
fn a_budget_is_said_for_all_or_for_one_kind() {
    let budgets = |text: &str| resolve(&format!("quipu = 1\n{text}")).map(|c| c.budgets);
    assert_eq!(budgets("").unwrap(), Budgets::default());
    let said =
        budgets("[budget]\nwindow = 60000\nreserve = 10000\n[budget.explore]\nwindow = 30000\n")
            .unwrap();
    assert_eq!(
        (said.explore.window, said.explore.reserve),
        (Tokens(30_000), Tokens(10_000))
    );
    assert_eq!(said.general_purpose.room(), Tokens(46_000));
    let faults = budgets("[budget]\nwindow = 9000\n").unwrap_err();
    assert!(faults.0[0].what.contains("no room for reading"), "{faults}");
}

#[test]
fn a_role_has_its_pointers_and_no_more() {
    let contract = resolve("quipu = 1\nprofiles = [\"notes\"]\n").unwrap();
    let actor = Actor::Agent {
        role: ActorName::parse("writer").ok(),
        unit: UnitId::parse("ch05").ok(),
        agent: None,
    };
    let grant = contract.grant(&actor).unwrap();
    let binding = contract.actor_binding(&actor);
    assert!(grant.may_write(&path("drafts/ch05.md"), &binding).is_ok());
    assert_eq!(
        grant
            .may_write(&path("drafts/ch06.md"), &binding)
            .unwrap_err()
            .what,
        "role `writer` may write `drafts/ch05.md`, not `drafts/ch06.md`"
    );
    assert_eq!(
        grant.may_read(&path("meta/a.md"), &binding),
        Ok(crate::Readable::Whole)
    );
    assert_eq!(
        grant.may_read(&path("outline.md"), &binding),
        Ok(crate::Readable::Sections(vec!["ch05".into()]))
    );
    assert!(grant.may_read(&path("wild/open.md"), &binding).is_ok());
    assert!(
        grant.may_read(&path("wild/secret.md"), &binding).is_err(),
        "a wildcard yields to the deny list"
    );
    assert!(grant.may_read(&path("meta/b.md"), &binding).is_err());
    assert!(
        grant
            .may_read(&path("src/lib.rs"), &binding)
            .unwrap_err()
            .what
            .ends_with("facts come from research")
    );

    let idle = Actor::Agent {
        role: ActorName::parse("writer").ok(),
        unit: None,
        agent: None,
    };
    let unbound = contract.actor_binding(&idle);
    assert!(
        contract
            .grant(&idle)
            .unwrap()
            .may_write(&path("drafts/ch05.md"), &unbound)
            .is_err(),
        "no unit, no wildcard"
    );

    let stranger = Actor::Agent {
        role: ActorName::parse("nobody").ok(),
        unit: None,
        agent: None,
    };
    assert!(contract.grant(&stranger).unwrap_err().contains("writer"));
    let lost = Actor::Agent {
        role: None,
        unit: UnitId::parse("x9").ok(),
        agent: None,
    };
    assert!(contract.grant(&lost).is_err());
}

/// A quadratic algorithm would take minutes here.
#[test]
fn many_units_are_resolved_in_linear_time() {
    const UNITS: usize = 20_000;
    let chain: String = (1..UNITS)
        .map(|n| format!("[units.ch{n}]\nneeds = [\"ch{}\"]\n", n - 1))
        .collect();
    let contract = resolve(&format!("quipu = 1\n[units.ch0]\n{chain}")).unwrap();
    assert_eq!(
        (contract.units.len(), contract.units[UNITS - 1].place.line),
        (UNITS, 2 * UNITS - 1)
    );
    let ids: Vec<UnitId> = contract.units.iter().map(|unit| unit.id.clone()).collect();
    assert!(
        ids.iter()
            .all(|id| contract.unit(id).is_some_and(|unit| unit.id == *id))
    );
    assert!(contract.unit(&UnitId::parse("ch00").unwrap()).is_none());

    let faults = resolve(&format!(
        "quipu = 1\n[units.ch0]\nneeds = [\"ch{}\"]\n{chain}",
        UNITS - 1
    ))
    .unwrap_err();
    assert_eq!(faults.0.len(), 1, "a ring of units is one fault");
    assert!(
        faults.0[0].what.ends_with("→ … → ch0 (20000 in all)"),
        "{faults}"
    );

    let lost: String = (0..UNITS)
        .map(|n| format!("[units.ch{n}]\nneeds = [\"x{n}\"]\n"))
        .collect();
    let faults = resolve(&format!("quipu = 1\n{lost}")).unwrap_err();
    assert_eq!(faults.0.len(), UNITS);
    assert!(
        faults.0[0].remedy.ends_with("ch29, … (19970 more)"),
        "{}",
        faults.0[0].remedy
    );
}

#[test]
fn variables_of_steps_and_roles_are_filled_before_paths_are_compared() {
    let gate = "[[files]]\npath = \"draft.md\"\nclass = \"overwrite\"\n[roles.w]\ntitle = \"W\"\nduty = \"d\"\n[[roles.w.write]]\npath = \"{out}/own.md\"\n\
         [[steps]]\nname = \"gate\"\nbuiltin = \"gate\"\neach = \"unit\"\nreads = [\"draft.md\"]\nwrites = [\"{out}/{unit}.md\"]\n";
    let contract = resolve(&format!(
        "quipu = 1\n[units.ch01]\n[units.ch02]\nvars = {{ out = \"c/d\" }}\n[vars]\nout = \"a/b\"\n{gate}"
    ))
    .unwrap();
    let is_made = |text: &str| contract.gate_that_makes(&path(text)).is_some();
    assert!(is_made("a/b/ch01.md") && is_made("c/d/ch02.md"));
    assert!(!is_made("x/ch01.md") && !is_made("c/d/ch01.md"));
    let overlaps = |text: &str| {
        contract
            .made_by_gate(&Pattern::parse(text).unwrap())
            .is_some()
    };
    assert!(overlaps("a/*/ch01.md") && overlaps("c/**") && !overlaps("x/*"));
    assert!(contract.has_writer(&path("a/b/own.md")) && !contract.has_writer(&path("x/own.md")));
    assert!(!contract.is_projects_own(&path("c/d/own.md")));
    assert!(contract.is_projects_own(&path("x/own.md")));
}
