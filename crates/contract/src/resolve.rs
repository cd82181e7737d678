//! Resolves contract files to a [`Contract`]: profiles first, `quipu.toml` over them.
//!
//! The caller reads the files. All faults are collected, so that the user can fix them in one pass.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use toml::Spanned;

use crate::below_dir;
use crate::budget::{Budget, Budgets};
use crate::class::Class;
use crate::contract::{Contract, FileRule};
use crate::contract_errors::{Reading, read_all};
use crate::fault::{Fault, Faults, list};
use crate::flow::{Shape, parse_span};
use crate::guard::{Fraction, GuardRules};
use crate::ignore::folder_or_file;
use crate::language::Localized;
use crate::manifest::{
    BudgetTable, FileTable, GuardTable, Manifest, PointerTable, ProfileFile, RoleTable, ShapeTable,
    UnitTable,
};
use crate::naming::NamesNothing;
use crate::path::{BadPath, ProjectPath};
use crate::pattern::{Binding, Pattern};
use crate::pointer::{AskPointer, Need, Pointer, Shrink, WritePointer};
use crate::rehearsal::Rehearsed;
use crate::resolve_names;
use crate::role::{AgentKind, Role};
use crate::source::Source;
use crate::tokens::Tokens;
use crate::unit::{Unit, UnitId};

/// The variables that every pattern may use besides the declared ones.
const ACTOR_VARIABLES: [&str; 2] = ["unit", "agent"];

/// Resolves a project's contract. `load` returns a file of a profile, such as `("book",
/// "profile.toml")`, or a sentence that explains why it is missing.
pub fn resolve_contract(
    manifest: &Source,
    load: &dyn Fn(&str, &str) -> Result<Source, String>,
) -> Result<Contract, Faults> {
    let mut resolver = Resolver::default();
    let parsed: Manifest = resolver.parse(manifest).ok_or_else(|| resolver.faults())?;
    if *parsed.quipu.get_ref() != 1 {
        resolver.fault(
            manifest,
            parsed.quipu.span(),
            format!("unknown format {}", parsed.quipu.get_ref()),
            "quipu = 1".into(),
        );
    }
    let mut loaded = Vec::new();
    let found_before = resolver.found.len();
    for name in &parsed.profiles {
        if loaded.iter().any(|p: &Loaded| p.name == *name.get_ref()) {
            continue;
        }
        match resolver.load_profile(name.get_ref(), load) {
            Ok(profile) => loaded.push(profile),
            Err(what) => {
                let folder = name
                    .get_ref()
                    .trim_start_matches("./")
                    .trim_end_matches('/')
                    .to_owned();
                let restore = format!(
                    "quipu restore {folder}/profile.toml     (if it existed); or quipu profile \
                     list"
                );
                let remedy = if name.get_ref().contains('/') {
                    restore
                } else {
                    "quipu profile list".into()
                };
                resolver.fault(manifest, name.span(), what, remedy);
            }
        }
    }
    // Without the profiles, every reference to them would be reported as a false fault.
    if resolver.found.len() > found_before {
        return Err(resolver.faults());
    }
    if let Some(dir) = &parsed.dir {
        match below_dir::parse_dir(dir.get_ref()) {
            Ok(dir) => loaded
                .iter_mut()
                .flat_map(|profile| &mut profile.files)
                .for_each(|(_, file)| below_dir::move_below(&dir, file)),
            Err(what) => resolver.fault(
                manifest,
                dir.span(),
                what,
                "give the name of a folder: dir = \"memory\"".into(),
            ),
        }
    }
    let contract = resolver.join(manifest, parsed, loaded);
    if resolver.found.is_empty() {
        Ok(contract)
    } else {
        Err(resolver.faults())
    }
}

/// The units declared so far.
type Units = BTreeMap<UnitId, Unit>;

/// A profile with its parsed files.
struct Loaded {
    name: String,
    files: Vec<(Source, ProfileFile)>,
}

#[derive(Default)]
pub(crate) struct Resolver {
    pub(crate) found: Vec<Fault>,
    /// Variables that units set. They stay open in the pointers of roles until the unit is known.
    of_units: BTreeSet<String>,
}

impl Resolver {
    fn faults(&mut self) -> Faults {
        let mut found = std::mem::take(&mut self.found);
        found.sort_by(|a, b| a.place.cmp(&b.place));
        found.dedup();
        Faults(found)
    }

    pub(crate) fn fault(
        &mut self,
        source: &Source,
        span: Range<usize>,
        what: String,
        remedy: String,
    ) {
        self.found.push(Fault {
            place: source.place(span),
            what,
            other: None,
            remedy,
        });
    }

    fn parse<T: serde::de::DeserializeOwned>(&mut self, source: &Source) -> Option<T> {
        match source.parse() {
            Ok(parsed) => Some(parsed),
            Err(first) => {
                let Reading { misreads, rest } = read_all::<T>(&source.text);
                for error in if misreads.is_empty() {
                    vec![first]
                } else {
                    misreads
                } {
                    let span = error.span.unwrap_or(0..0);
                    // serde's message already lists the allowed values ("expected one of …").
                    self.fault(
                        source,
                        span,
                        error.message,
                        "quipu contract schema     (lists every key and value that is allowed)"
                            .into(),
                    );
                }
                rest
            }
        }
    }

    fn load_profile(
        &mut self,
        name: &str,
        load: &dyn Fn(&str, &str) -> Result<Source, String>,
    ) -> Result<Loaded, String> {
        let mut files = Vec::new();
        let mut wanted = vec!["profile.toml".to_owned()];
        while let Some(file) = wanted.pop() {
            let source = load(name, &file)?;
            let Some(parsed) = self.parse::<ProfileFile>(&source) else {
                continue;
            };
            for include in parsed
                .include
                .iter()
                .filter(|i| ProjectPath::parse(i.get_ref()).is_err())
            {
                let what = format!(
                    "`{}` is not a file in the profile's folder",
                    include.get_ref()
                );
                self.fault(
                    &source,
                    include.span(),
                    what,
                    "give the name of a file beside profile.toml".into(),
                );
            }
            if files.is_empty() {
                wanted.extend(parsed.include.iter().rev().map(|i| i.get_ref().clone()));
            } else if let Some(nested) = parsed.include.first() {
                self.fault(
                    &source,
                    nested.span(),
                    "an included file may not include others".into(),
                    String::new(),
                );
            }
            files.push((source, parsed));
        }
        Ok(Loaded {
            name: name.to_owned(),
            files,
        })
    }

    fn pattern(
        &mut self,
        source: &Source,
        text: &Spanned<String>,
        binding: &Binding,
        names: &BTreeSet<String>,
    ) -> Option<Pattern> {
        let pattern = match Pattern::parse(text.get_ref()) {
            Ok(pattern) => pattern,
            Err(what) => {
                self.fault(source, text.span(), what, String::new());
                return None;
            }
        };
        for variable in pattern.variables() {
            if !names.contains(variable) {
                let known = list(names.iter().map(|name| format!("{{{name}}}")));
                let remedy = format!("known variables are {known}; declare more under [vars]");
                self.fault(
                    source,
                    text.span(),
                    format!("unknown variable `{{{variable}}}`"),
                    remedy,
                );
                return None;
            }
        }
        let filled = pattern.fill(binding);
        if let Some(open) = filled
            .variables()
            .find(|h| !ACTOR_VARIABLES.contains(h) && !self.of_units.contains(*h))
        {
            self.fault(
                source,
                text.span(),
                format!("variable `{open}` has no value"),
                format!("set it in quipu.toml under [vars]: {open} = \"…\"     (quipu init: --var {open}=…)"),
            );
            return None;
        }
        if let Err(nothing) = filled.can_name() {
            self.found.push(resolve_names::fault(
                source.place(text.span()),
                &pattern,
                &filled,
                nothing,
            ));
            return None;
        }
        Some(filled)
    }

    fn file_rule(
        &mut self,
        source: &Source,
        rule: &Spanned<FileTable>,
        profile: Option<&str>,
        binding: &Binding,
        names: &BTreeSet<String>,
    ) -> Option<FileRule> {
        let table = rule.get_ref();
        let class = Class::NAMED
            .into_iter()
            .find(|c| c.as_str() == table.class.get_ref());
        if class.is_none() {
            let known = Class::NAMED.map(Class::as_str).join(", ");
            self.fault(
                source,
                table.class.span(),
                format!("unknown class `{}`", table.class.get_ref()),
                format!("use one of {known}"),
            );
        }
        if let Some(tier) = table
            .tier
            .as_ref()
            .filter(|t| !["L0", "L1", "L2"].contains(&t.get_ref().as_str()))
        {
            self.fault(
                source,
                tier.span(),
                format!("unknown tier `{}`", tier.get_ref()),
                "use one of L0, L1, L2".into(),
            );
        }
        let marker = self.marker(source, table.marker.as_ref());
        let path = self.pattern(source, &table.path, binding, names)?;
        Some(FileRule {
            path,
            class: class?,
            about: table.about.clone().unwrap_or_default(),
            tier: table.tier.as_ref().map(|t| t.get_ref().clone()),
            form: table.form,
            marker,
            create: table.create,
            at_finish: table.at_finish,
            shape: table
                .shape
                .as_ref()
                .map(|shape| self.shape(source, shape, binding, names)),
            conflicts: self.conflicts(source, table.conflicts.as_ref(), binding, names),
            open: table.open.clone(),
            roles: table.roles.clone(),
            people_only: false,
            profile: profile.map(str::to_owned),
            place: source.place(table.path.span()),
        })
    }

    fn conflicts(
        &mut self,
        source: &Source,
        said: Option<&Spanned<String>>,
        binding: &Binding,
        names: &BTreeSet<String>,
    ) -> Option<String> {
        let said = said?;
        let value = if names.contains(said.get_ref()) {
            binding.get(said.get_ref())
        } else {
            Some(said.get_ref())
        };
        if let Some(value) = value.filter(|value| !["warn", "block"].contains(&value.as_str())) {
            let what = format!("`{value}` is not a valid reaction to a contradiction");
            // A variable that many rules name is reported once.
            if names.contains(said.get_ref()) && self.found.iter().any(|fault| fault.what == what) {
                return Some(said.get_ref().clone());
            }
            self.fault(
                source,
                said.span(),
                what,
                "use warn or block, or the name of a variable of [vars] with one of these values"
                    .into(),
            );
        }
        Some(said.get_ref().clone())
    }

    fn shape(
        &mut self,
        source: &Source,
        shape: &Spanned<ShapeTable>,
        binding: &Binding,
        names: &BTreeSet<String>,
    ) -> Shape {
        let table = shape.get_ref();
        let mut headings = BTreeMap::new();
        for (level, span) in [
            (1, &table.h1),
            (2, &table.h2),
            (3, &table.h3),
            (4, &table.h4),
        ] {
            let Some(span) = span else { continue };
            match parse_span(span.get_ref()) {
                Some(counts) => drop(headings.insert(level, counts)),
                None => self.fault(
                    source,
                    span.span(),
                    format!("`{}` is not a number of headings", span.get_ref()),
                    "write a number such as 1, or a range such as 3-6".into(),
                ),
            }
        }
        if let Some(words) = table
            .words
            .as_ref()
            .filter(|w| !names.contains(w.get_ref()) && w.get_ref().parse::<u32>().is_err())
        {
            let what = format!(
                "`{}` is neither a number of words nor a variable",
                words.get_ref()
            );
            self.fault(
                source,
                words.span(),
                what,
                "write a number such as 3000, or the name of a variable of [vars]".into(),
            );
        }
        let tolerance = table.tolerance.unwrap_or(0.2);
        if !(0.0..1.0).contains(&tolerance) {
            self.fault(
                source,
                shape.span(),
                format!("`{tolerance}` is not a valid tolerance"),
                "use a number from 0 to below 1".into(),
            );
        }
        for path in [&table.places, &table.shows].into_iter().flatten() {
            self.pattern(source, path, binding, names);
        }
        let names_of = |said: &String| {
            said.split('|')
                .map(str::trim)
                .filter(|name| !name.is_empty())
                .map(str::to_owned)
                .collect::<Vec<_>>()
        };
        let sections: Vec<Vec<String>> = table.sections.iter().map(names_of).collect();
        if sections.iter().any(Vec::is_empty) {
            self.fault(
                source,
                shape.span(),
                "a section has no name".into(),
                "sections = [\"Verdict\", \"Findings\"]".into(),
            );
        }
        let text =
            |said: &Option<Spanned<String>>| said.as_ref().map(|said| said.get_ref().clone());
        Shape {
            words: text(&table.words),
            tolerance,
            headings,
            sections,
            places: text(&table.places),
            scores: table.scores,
            distinct: table.distinct,
            shows: text(&table.shows),
        }
    }

    pub(crate) fn marker(
        &mut self,
        source: &Source,
        marker: Option<&Spanned<String>>,
    ) -> Option<String> {
        let marker = marker?;
        let good = !marker.get_ref().is_empty()
            && marker.get_ref().split('|').all(|name| {
                !name.trim().is_empty()
                    && name
                        .trim()
                        .bytes()
                        .all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_')
            });
        if !good {
            let what = format!("`{}` is not a valid marker", marker.get_ref());
            self.fault(
                source,
                marker.span(),
                what,
                "use capital letters, digits and `_`, and `|` between alternatives: \
                 QA_PASSED|QA_FAILED"
                    .into(),
            );
        }
        Some(marker.get_ref().clone())
    }

    /// Refuses a path that two profiles name with different classes.
    fn refuse_double_claims(&mut self, rules: &[FileRule], own: usize) {
        let (own, profiles) = rules.split_at(own);
        let own: BTreeSet<&str> = own.iter().map(|rule| rule.path.as_str()).collect();
        for (index, a) in profiles.iter().enumerate() {
            for b in &profiles[index + 1..] {
                if a.profile == b.profile || a.class == b.class || !a.path.overlaps(&b.path) {
                    continue;
                }
                if own.contains(a.path.as_str()) || own.contains(b.path.as_str()) {
                    continue;
                }
                self.found.push(Fault {
                    what: format!(
                        "two profiles declare the same path differently: `{}` is {} in `{}`, `{}` \
                         is {} in `{}`",
                        a.path,
                        a.class.as_str(),
                        a.profile.as_deref().unwrap_or_default(),
                        b.path,
                        b.class.as_str(),
                        b.profile.as_deref().unwrap_or_default()
                    ),
                    place: a.place.clone(),
                    other: Some(b.place.clone()),
                    remedy: format!(
                        "decide in quipu.toml: [[files]] path = \"{}\" class = \"…\"     (if \
                         there is no quipu.toml, create one with both profiles and this rule; \
                         then quipu start)",
                        b.path
                    ),
                });
            }
        }
    }

    fn role(
        &mut self,
        source: &Source,
        name: &str,
        role: &Spanned<RoleTable>,
        profile: &str,
        binding: &Binding,
        names: &BTreeSet<String>,
    ) -> Role {
        let table = role.get_ref();
        if let Err(bad) = crate::ActorName::parse_given(name) {
            let (what, remedy) = match bad {
                crate::BadName::Odd(_) => (
                    format!("`{name}` is not a valid role name"),
                    "use letters, digits, `-` and `_`",
                ),
                crate::BadName::Taken(_) => (bad.to_string(), "use another name"),
            };
            self.fault(source, role.span(), what, remedy.into());
        }
        let reads = table
            .read
            .iter()
            .filter_map(|p| self.pointer(source, p, binding, names))
            .collect();
        for deny in table
            .deny
            .iter()
            .filter(|deny| deny.get_ref().section.is_some())
        {
            let what = format!(
                "role `{name}`: a deny applies to whole files and cannot have a \
                section"
            );
            self.fault(
                source,
                deny.span(),
                what,
                "use a `read` with the sections that the role may read".into(),
            );
        }
        let denies = table
            .deny
            .iter()
            .filter_map(|p| self.pointer(source, p, binding, names))
            .collect();
        let mut asks = Vec::new();
        for ask in table.ask.iter().map(|ask| &ask.get_ref().path) {
            asks.extend(
                self.pattern(source, ask, binding, names)
                    .map(|path| AskPointer {
                        path,
                        place: source.place(ask.span()),
                    }),
            );
        }
        let mut writes = Vec::new();
        for write in &table.write {
            let marker = self.marker(source, write.get_ref().marker.as_ref());
            if let Some(path) = self.pattern(source, &write.get_ref().path, binding, names) {
                let format = write.get_ref().format.clone().unwrap_or_default();
                let optional = write.get_ref().optional;
                let (words, place) = (
                    write.get_ref().words,
                    source.place(write.get_ref().path.span()),
                );
                writes.push(WritePointer {
                    path,
                    marker,
                    format,
                    optional,
                    words,
                    place,
                });
            }
        }
        let rehearse = table.rehearse.as_ref().map(|rehearse| Rehearsed {
            kind: rehearse.kind,
            from: rehearse
                .from
                .as_ref()
                .and_then(|from| self.pattern(source, from, binding, names)),
        });
        Role {
            name: name.to_owned(),
            title: table.title.clone(),
            duty: table.duty.clone(),
            kind: table.kind,
            also: table.also.clone(),
            reads,
            writes,
            denies,
            asks,
            standards: table.standards.clone(),
            metrics: table.metrics.clone(),
            rehearse,
            profile: profile.to_owned(),
            place: source.header_place(&format!("roles.{name}"), role.span()),
        }
    }

    fn pointer(
        &mut self,
        source: &Source,
        pointer: &Spanned<PointerTable>,
        binding: &Binding,
        names: &BTreeSet<String>,
    ) -> Option<Pointer> {
        let table = pointer.get_ref();
        let mut need = Need::default();
        if let Some(text) = &table.need {
            match Need::parse(text.get_ref()) {
                Some(known) => need = known,
                None => self.fault(
                    source,
                    text.span(),
                    format!("unknown need `{}`", text.get_ref()),
                    format!("use one of {}", Need::NAMES.join(", ")),
                ),
            }
        }
        let mut shrink = Shrink::default();
        if let Some(text) = &table.shrink {
            match Shrink::parse(text.get_ref()) {
                Some(known) => shrink = known,
                None => {
                    self.fault(
                        source,
                        text.span(),
                        format!("unknown way to shrink `{}`", text.get_ref()),
                        format!("use one of {}", Shrink::NAMES.join(", ")),
                    );
                }
            }
        }
        let path = self.pattern(source, &table.path, binding, names)?;
        Some(Pointer {
            path,
            section: table.section.clone(),
            why: table.why.clone().unwrap_or_default(),
            need,
            shrink,
            map: self.map_path(source, table),
            place: source.place(table.path.span()),
        })
    }

    /// Parses the map of a pointer: a file of the project.
    fn map_path(&mut self, source: &Source, table: &PointerTable) -> Option<String> {
        let map = table.map.as_ref()?;
        if let Err(error) = ProjectPath::parse(map.get_ref()) {
            self.fault(
                source,
                map.span(),
                error.to_string(),
                "name a file, such as source-map.md".into(),
            );
        }
        Some(map.get_ref().clone())
    }

    fn units(
        &mut self,
        source: &Source,
        profile: Option<&str>,
        tables: &BTreeMap<String, Spanned<UnitTable>>,
        units: &mut Units,
    ) {
        for (id, unit) in tables {
            let table = unit.get_ref();
            let mut needs = Vec::new();
            for need in &table.needs {
                match UnitId::parse(need.get_ref()) {
                    Ok(need) => needs.push(need),
                    Err(error) => self.fault(source, need.span(), error.to_string(), String::new()),
                }
            }
            match UnitId::parse(id) {
                Ok(id) => {
                    // A later file may replace a unit; the unit still belongs to the profile that
                    // declared it first.
                    let profile = units
                        .get(&id)
                        .map_or_else(|| profile.map(str::to_owned), |unit| unit.profile.clone());
                    let title = table
                        .title
                        .clone()
                        .unwrap_or_else(|| Localized::Once(id.to_string()));
                    let place = source.place(unit.span());
                    units.insert(
                        id.clone(),
                        Unit {
                            id,
                            title,
                            needs,
                            vars: table.vars.clone(),
                            profile,
                            place,
                        },
                    );
                }
                Err(error) => self.fault(source, unit.span(), error.to_string(), String::new()),
            }
        }
    }

    fn budgets(&mut self, source: &Source, table: &Spanned<BudgetTable>, budgets: &mut Budgets) {
        let all = table.get_ref();
        for (kind, budget, own) in [
            (AgentKind::Explore, &mut budgets.explore, all.explore),
            (
                AgentKind::GeneralPurpose,
                &mut budgets.general_purpose,
                all.general_purpose,
            ),
        ] {
            let pick = |own: Option<u64>, all: Option<u64>, so_far: Tokens| {
                own.or(all).map_or(so_far, Tokens)
            };
            *budget = Budget {
                window: pick(own.window, all.window, budget.window),
                system: pick(own.system, all.system, budget.system),
                reserve: pick(own.reserve, all.reserve, budget.reserve),
                reserve_is_stated: budget.reserve_is_stated
                    || own.reserve.or(all.reserve).is_some(),
            };
            if budget.room() == Tokens::ZERO {
                let Budget {
                    window,
                    system,
                    reserve,
                    ..
                } = budget;
                self.fault(
                    source,
                    table.span(),
                    format!(
                        "the window of {window} tokens leaves no room for reading after {system} \
                         for the system prompt and {reserve} for the reserve"
                    ),
                    format!("set a larger `window`, or a smaller `reserve`, for {kind:?} agents"),
                );
            }
        }
    }

    fn guards(
        &mut self,
        source: &Source,
        table: &GuardTable,
        binding: &Binding,
        names: &BTreeSet<String>,
    ) -> GuardRules {
        let mut rules = GuardRules {
            credentials: table.credentials.clone(),
            ..GuardRules::default()
        };
        if let Some(share) = &table.shrink_below {
            let Fraction(number) = *share.get_ref();
            if (0.0..=1.0).contains(&number) {
                rules.shrink_below = number;
            } else {
                self.fault(
                    source,
                    share.span(),
                    format!("`{number}` is not a valid share"),
                    "use a number from 0 to 1".into(),
                );
            }
        }
        rules.credentials_in = table
            .credentials_in
            .iter()
            .filter_map(|p| self.pattern(source, p, binding, names))
            .collect();
        rules
    }

    fn ignored(
        &mut self,
        source: &Source,
        text: &Spanned<String>,
        binding: &Binding,
        names: &BTreeSet<String>,
    ) -> Option<Pattern> {
        let plain = Spanned::new(text.span(), folder_or_file(text.get_ref()).to_owned());
        // Reserved paths may be listed in `ignore` although nobody can write them, because people
        // copy such lists from other tools.
        if let Ok(pattern) = Pattern::parse(plain.get_ref())
            && matches!(
                pattern.can_name(),
                Err(NamesNothing {
                    bad: BadPath::Reserved { .. },
                    ..
                })
            )
        {
            return Some(pattern);
        }
        self.pattern(source, &plain, binding, names)
    }
}

#[path = "resolve_join.rs"]
mod join;
#[path = "resolve_session.rs"]
mod session;

#[cfg(test)]
#[path = "resolve_tests.rs"]
mod tests;
