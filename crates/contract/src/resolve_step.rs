//! Resolves a step's table to a [`Step`]: checks which settings may be combined, and which names it
//! may use.

use std::collections::BTreeMap;

use toml::Spanned;

use crate::contract::Var;
use crate::fault::one_of;
use crate::flow::{Builtin, Each, Step, parse_seconds, parse_span};
use crate::manifest::StepTable;
use crate::resolve::Resolver;
use crate::source::Source;

/// Default number of consecutive failures before a person is asked.
const RETRIES: u32 = 3;
/// Long enough for a chapter, short enough that a hanging agent does not cost a night.
const DEADLINE_SECONDS: u64 = 30 * 60;
/// A larger batch is a mistake.
const LARGEST_BATCH: usize = 50;

impl Resolver {
    pub(crate) fn step(
        &mut self,
        source: &Source,
        step: &Spanned<StepTable>,
        profile: &str,
        vars: &BTreeMap<String, Var>,
    ) -> Step {
        let table = step.get_ref();
        let name = table.name.get_ref().clone();
        if table.role.is_some() == table.builtin.is_some() {
            let what = format!("step `{name}` must name either a `role` or a `builtin`");
            self.fault(
                source,
                table.name.span(),
                what,
                "`builtin` is one of merge, remember, derive, publish, gate".into(),
            );
        }
        self.check_objection(source, table);
        self.check_builtin_tables(source, table);
        self.check_remember(source, table);
        if let Some(when) = &table.when {
            let asked = when.get_ref();
            for var in [&asked.switch, &asked.units, &asked.var]
                .into_iter()
                .flatten()
                .filter(|v| !vars.contains_key(*v))
            {
                self.fault(
                    source,
                    when.span(),
                    format!("step `{name}`: unknown variable `{var}`"),
                    one_of(vars.keys()),
                );
            }
            if asked.var.is_some() == asked.is.is_empty() {
                self.fault(
                    source,
                    when.span(),
                    format!("step `{name}`: `var` and `is` must be used together"),
                    "var = \"NAME\", is = [\"VALUE\"]".into(),
                );
            }
            if !asked.words.is_empty() && asked.files.is_none() {
                self.fault(
                    source,
                    when.span(),
                    format!("step `{name}`: `words` needs a file"),
                    "files = \"PATH\"".into(),
                );
            }
            if asked.units.is_some() && table.each != Each::Unit {
                self.fault(
                    source,
                    when.span(),
                    format!("step `{name}` is not repeated for each unit"),
                    "set each = \"unit\", or remove `units`".into(),
                );
            }
        }
        Step {
            about: table.about.clone().unwrap_or_default(),
            role: table.role.as_ref().map(|r| r.get_ref().clone()),
            builtin: table.builtin,
            each: table.each,
            after: table.after.iter().map(|a| a.get_ref().clone()).collect(),
            phase: table.phase.clone(),
            domain: table.domain.clone(),
            panel: table.panel,
            most_words: table.most_words,
            when: table
                .when
                .as_ref()
                .map(|w| w.get_ref().clone())
                .unwrap_or_default(),
            objection: table.objection.as_ref().map(|o| o.get_ref().clone()),
            back: table.back.iter().map(|b| b.get_ref().clone()).collect(),
            rounds: table.rounds.as_ref().map(|r| *r.get_ref()),
            retries: self.retries(source, table),
            deadline_seconds: self.deadline(source, table),
            batch: self.batch(source, table, vars),
            reads: table.reads.clone(),
            writes: table.writes.clone(),
            marker: self.marker(source, table.marker.as_ref()),
            merge: table.merge.as_ref().map(|m| m.get_ref().clone()),
            remember: table.remember.as_ref().map(|r| r.get_ref().clone()),
            declare: table.declare.as_ref().map(|d| d.get_ref().clone()),
            compare: self.compare(source, table),
            check: self.check(source, table),
            passages: table.passages.clone(),
            profile: profile.to_owned(),
            place: source.place(table.name.span()),
            name,
        }
    }

    fn check_objection(&mut self, source: &Source, table: &StepTable) {
        let name = table.name.get_ref();
        if let Some(rounds) = &table.rounds
            && (table.back.is_empty() || table.objection.is_none())
        {
            let what = format!("step `{name}` has `rounds`, but no `objection` and no `back`");
            self.fault(
                source,
                rounds.span(),
                what,
                "add objection = { sign = \"❌\" } and back = [\"STEP\"]".into(),
            );
        }
        if let Some(back) = table
            .back
            .first()
            .filter(|_| table.rounds.is_none() && table.builtin != Some(Builtin::Gate))
        {
            self.fault(
                source,
                back.span(),
                format!("step `{name}` has `back`, but no `rounds`"),
                "rounds = 2".into(),
            );
        }
        if let Some(objection) = table
            .objection
            .as_ref()
            .filter(|o| o.get_ref().sign.is_none() && o.get_ref().marker.is_none())
        {
            let what = format!("step `{name}`: an objection needs a sign or a marker");
            self.fault(
                source,
                objection.span(),
                what,
                "write objection = { sign = \"❌\" } or { marker = \"QA_FAILED\" }".into(),
            );
        }
    }

    /// Refuses a table on a step of another kind, where it would silently have no effect.
    fn check_builtin_tables(&mut self, source: &Source, table: &StepTable) {
        let name = table.name.get_ref();
        let tables = [
            (
                "merge",
                "merge",
                Builtin::Merge,
                table.merge.as_ref().map(Spanned::span),
            ),
            (
                "remember",
                "remember",
                Builtin::Remember,
                table.remember.as_ref().map(Spanned::span),
            ),
            (
                "declare",
                "gate",
                Builtin::Gate,
                table.declare.as_ref().map(Spanned::span),
            ),
        ];
        for (key, kind, builtin, span) in tables {
            if let Some(span) = span.filter(|_| table.builtin != Some(builtin)) {
                self.fault(
                    source,
                    span,
                    format!("step `{name}` has a table `{key}`, but is not a `{kind}` step"),
                    format!("builtin = \"{kind}\""),
                );
            }
        }
    }

    /// Checks that a `remember` names its source in exactly one way.
    fn check_remember(&mut self, source: &Source, table: &StepTable) {
        let name = table.name.get_ref();
        let remedy = "set section and items, or entries = true".to_owned();
        match &table.remember {
            None if table.builtin == Some(Builtin::Remember) => {
                self.fault(
                    source,
                    table.name.span(),
                    format!("step `{name}` does not declare what it remembers"),
                    "[steps.remember]".into(),
                );
            }
            Some(remember) => {
                let asked = remember.get_ref();
                if asked.entries == (!asked.section.is_empty() || !asked.items.is_empty()) {
                    self.fault(
                        source,
                        remember.span(),
                        format!("step `{name}`: `remember` needs a source and a target"),
                        remedy,
                    );
                }
                if let Some(words) = asked
                    .items
                    .iter()
                    .filter_map(|i| i.words.as_ref())
                    .find(|words| parse_span(words).is_none())
                {
                    self.fault(
                        source,
                        remember.span(),
                        format!("`{words}` is not a number of words"),
                        "write a number such as 250, or a range such as 200-300".into(),
                    );
                }
            }
            None => {}
        }
    }

    fn compare(&mut self, source: &Source, table: &StepTable) -> Vec<String> {
        let Some(compare) = &table.compare else {
            return Vec::new();
        };
        let name = table.name.get_ref();
        if table.role.is_none() {
            self.fault(
                source,
                compare.span(),
                format!("step `{name}` has `compare`, but no brief to show it in"),
                "role = \"ROLE\"".into(),
            );
        }
        if compare.get_ref().len() != 2 {
            let help = "compare = [\"OLDER\", \"NEWER\"]".into();
            self.fault(
                source,
                compare.span(),
                format!("step `{name}`: `compare` needs two files"),
                help,
            );
        }
        compare.get_ref().clone()
    }

    fn check(&mut self, source: &Source, table: &StepTable) -> Option<String> {
        let check = table.check.as_ref()?;
        if table.role.is_none() {
            let name = table.name.get_ref();
            self.fault(
                source,
                check.span(),
                format!("step `{name}` has `check`, but no brief to show it in"),
                "role = \"ROLE\"".into(),
            );
        }
        Some(check.get_ref().clone())
    }

    fn retries(&mut self, source: &Source, table: &StepTable) -> u32 {
        match &table.retries {
            Some(retries) if *retries.get_ref() == 0 => {
                self.fault(
                    source,
                    retries.span(),
                    "`retries` must be at least 1".into(),
                    "use a number from 1".into(),
                );
                RETRIES
            }
            Some(retries) => *retries.get_ref(),
            None => RETRIES,
        }
    }

    fn deadline(&mut self, source: &Source, table: &StepTable) -> u64 {
        let Some(deadline) = &table.deadline else {
            return DEADLINE_SECONDS;
        };
        parse_seconds(deadline.get_ref()).unwrap_or_else(|| {
            self.fault(
                source,
                deadline.span(),
                format!("`{}` is not a duration", deadline.get_ref()),
                "write a duration such as 90s, 30m, 2h".into(),
            );
            DEADLINE_SECONDS
        })
    }

    fn batch(
        &mut self,
        source: &Source,
        table: &StepTable,
        vars: &BTreeMap<String, Var>,
    ) -> Option<usize> {
        let batch = table.batch.as_ref()?;
        if table.each != Each::Unit {
            self.fault(
                source,
                batch.span(),
                "a batch consists of units".into(),
                "each = \"unit\"".into(),
            );
        }
        let text = batch.get_ref();
        let value = vars
            .get(text)
            .and_then(|v| v.value.clone())
            .unwrap_or_else(|| text.clone());
        match value
            .trim()
            .parse::<usize>()
            .ok()
            .filter(|n| (1..=LARGEST_BATCH).contains(n))
        {
            Some(number) => Some(number),
            None => {
                let what = format!("`{value}` is not a valid batch size");
                self.fault(
                    source,
                    batch.span(),
                    what,
                    format!(
                        "use a number from 1 to {LARGEST_BATCH}, or a variable with such a \
                        number"
                    ),
                );
                None
            }
        }
    }
}
