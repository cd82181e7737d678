//! Fuzzes contract files: a project's own, and its profiles.

use proptest::prelude::*;
use quipu_contract::{Source, resolve_contract};
use quipu_testkit::{CONTRACT, mutated};

const MANIFESTS: &[&str] = &[
    CONTRACT,
    include_str!("../../../../profiles/relay/profile.toml"),
    include_str!("../../../../profiles/book/profile.toml"),
    "quipu = 1\nprofiles = [\"p\"]\n[vars]\nmode = \"full\"\n[agents.x]\nprogram = \"x\"\nargs = [\"{{brief}}\"]\n",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn a_mutated_contract_resolves_or_names_its_faults(manifest in mutated(MANIFESTS), profile in mutated(MANIFESTS)) {
        let load = |name: &str, _: &str| Ok(Source::new(format!("profiles/{name}/profile.toml"), profile.clone()));
        if let Err(faults) = resolve_contract(&Source::new("quipu.toml", manifest), &load) {
            prop_assert!(!faults.to_string().trim().is_empty());
        }
    }
}
