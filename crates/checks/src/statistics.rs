//! Recomputes p-values from the statistics beside them, as statcheck does.
//!
//! A p-value is inconsistent if no statistic that rounds to the stated one gives it. A one-sided
//! test and a correction for several tests are respected wherever the text mentions them.

use std::ops::RangeInclusive;
use std::sync::LazyLock;

use regex::{Captures, Regex};
use statrs::distribution::{ChiSquared, ContinuousCDF, FisherSnedecor, Normal, StudentsT};

use crate::number::Written;
use crate::{Finder, Gravity};

fn pattern(text: &str) -> Regex {
    Regex::new(text).expect("a valid pattern")
}

/// `t(28) = 2.20, d = 0.4, p = .036`
static RESULT: LazyLock<Regex> = LazyLock::new(|| {
    pattern(concat!(
        r"(?:^|[^A-Za-z0-9_])(?P<name>t|F|r|[zZ]|[χΧ]\s?(?:²|\^?2)|chi\^?2|[Cc]hi-squared?|X\s?(?:²|\^2)|卡方)\s*",
        r"(?:\(\s*(?P<df>\d+(?:\.\d+)?(?:\s*,\s*(?:[Nn]\s*=\s*)?\d+(?:\.\d+)?)?)\s*\)\s*)?",
        r"=\s*(?P<value>-?(?:\d+)?\.?\d+)\s*",
        r"(?P<between>(?:[,;]\s*[^\s,;=<>()\[\]]{1,12}(?: [^\s,;=<>()\[\]]{1,12})?\s*=\s*-?\d*\.?\d+%?\s*|[,;]\s*\d+\s?%\s?CI\s*[:=]?\s*[\[(][^\])]{3,30}[\])]\s*){0,3})",
        r"[,;]?\s*(?P<side>(?:two|one)-(?:tailed|sided)\s+)?[pP]\s?(?:值|-?value)?\s*(?P<sign><=|>=|=|<|>|≤|≥)\s*",
        r"(?P<p>(?:[01])?\.\d+|[01](?:\.\d+)?)(?P<after>\s*[×x]\s*10|[eE]-?\d|\^|%)?",
    ))
});
static DF: LazyLock<Regex> = LazyLock::new(|| pattern(r"(?-u:\b)df\s*=\s*(\d+(?:\.\d+)?)"));
static ONE_SIDED: LazyLock<Regex> = LazyLock::new(|| {
    pattern(r"(?i)one[- ](?:tailed|sided)|single[- ]tailed|directional|单侧|单尾")
});
static CORRECTED: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"(?i)bonferroni|holm(?-u:\b)|hochberg|tukey|scheff|sidak|šidák|(?-u:\b)FDR(?-u:\b)|false discovery|multiple comparisons|correct(?:ed|ion) for|adjusted p|padj|greenhouse|huynh|permutation|bootstrap|bayes|校正|矫正|置换",
    )
});

/// The level of significance that decides how grave a difference is.
const LEVEL: f64 = 0.05;

pub(crate) fn check(found: &mut Finder<'_>) {
    let plain = found.plain;
    let known = Known {
        one_sided: ONE_SIDED.is_match(&plain.text),
        corrected: CORRECTED.is_match(&plain.text),
    };
    let (mut count, mut unknown) = (0, 0);
    for (offset, paragraph) in plain.paragraphs() {
        for result in RESULT.captures_iter(paragraph) {
            let Some(test) = Test::parse(&result) else {
                unknown += 1;
                continue;
            };
            count += 1;
            let Some(fault) = test.fault(&known) else {
                continue;
            };
            let text = fault.text(found);
            let first = result.name("name").map_or(0, |m| m.start());
            let last = result.name("p").map_or(first, |m| m.end());
            let gravity = if fault.decides {
                Gravity::Important
            } else {
                Gravity::Minor
            };
            found.plain(offset + first..offset + last, gravity, text);
        }
    }
    let (mut en, mut zh) = (String::new(), String::new());
    if unknown > 0 {
        en = format!("; {unknown} without degrees of freedom");
        zh = format!("；另有 {unknown} 个未给自由度");
    }
    if count + unknown > 0 {
        found.covered(
            format!("p-values recomputed from their statistics: {count}{en}"),
            format!("依据统计量重算的 p 值：{count}{zh}"),
        );
    }
}

/// The statements of the text about its tests.
struct Known {
    one_sided: bool,
    corrected: bool,
}

#[derive(Debug, Clone, Copy)]
enum Statistic {
    T(f64),
    F(f64, f64),
    ChiSquared(f64),
    R(f64),
    Z,
}

struct Test {
    statistic: Statistic,
    value: Written,
    sign: char,
    p: Written,
}

struct Fault {
    computed: f64,
    /// Whether the difference decides about significance.
    decides: bool,
}

impl Test {
    /// None if the degrees of freedom are missing, or the number has a form that is not read.
    fn parse(result: &Captures<'_>) -> Option<Test> {
        if result.name("after").is_some() {
            return None;
        }
        let name = &result["name"];
        let df = result.name("df").map(|df| df.as_str());
        let beside = DF.captures(&result["between"]).map(|df| df[1].to_owned());
        let df = df.map(str::to_owned).or(beside);
        let mut numbers = df.as_deref().unwrap_or_default().split(',').map(|part| {
            let number = part.rsplit('=').next().unwrap_or_default();
            number.trim().parse::<f64>().ok()
        });
        let (first, second) = (numbers.next().flatten(), numbers.next().flatten());
        let statistic = match name.chars().next()? {
            't' => Statistic::T(first?),
            'F' => Statistic::F(first?, second?),
            'r' => Statistic::R(first?),
            'z' | 'Z' => Statistic::Z,
            _ => Statistic::ChiSquared(first?),
        };
        let sign = match &result["sign"] {
            "<" | "<=" | "≤" => '<',
            ">" | ">=" | "≥" => '>',
            _ => '=',
        };
        let value = Written::parse(&result["value"])?;
        let p = Written::parse(&result["p"])?;
        // `r = 12` and `p < 0` are something else.
        let is_r = matches!(statistic, Statistic::R(_)) && value.value.abs() < 1.0;
        let is_read = p.value <= 1.0
            && (is_r || !matches!(statistic, Statistic::R(_)))
            && !(sign == '<' && p.value == 0.0);
        is_read.then_some(Test {
            statistic,
            value,
            sign,
            p,
        })
    }

    fn fault(&self, known: &Known) -> Option<Fault> {
        let mut ranges = vec![self.range(self.statistic)?];
        if let Statistic::R(df) = self.statistic {
            // Some write the sample size in the place of the degrees of freedom.
            ranges.extend(
                (df > 3.0)
                    .then(|| self.range(Statistic::R(df - 2.0)))
                    .flatten(),
            );
        }
        if known.one_sided
            && matches!(
                self.statistic,
                Statistic::T(_) | Statistic::R(_) | Statistic::Z
            )
        {
            let halves: Vec<_> = ranges
                .iter()
                .map(|r| r.start() / 2.0..=r.end() / 2.0)
                .collect();
            ranges.extend(halves);
        }
        if ranges.iter().any(|range| self.agrees(range, known)) {
            return None;
        }
        let range = &ranges[0];
        let is_called = match self.sign {
            '>' => (self.p.value >= LEVEL).then_some(false),
            '<' => (self.p.value <= LEVEL).then_some(true),
            _ => Some(self.p.value < LEVEL),
        };
        let is_significant = if *range.end() < LEVEL {
            Some(true)
        } else {
            (*range.start() > LEVEL).then_some(false)
        };
        Some(Fault {
            computed: self.value_of(self.statistic, self.value.value.abs())?,
            decides: is_called
                .zip(is_significant)
                .is_some_and(|(called, is)| called != is),
        })
    }

    /// The p-values of all statistics that round to the stated one.
    fn range(&self, statistic: Statistic) -> Option<RangeInclusive<f64>> {
        let (value, half) = (self.value.value.abs(), self.value.unit() / 2.0);
        let least = self.value_of(statistic, value + half)?;
        let most = self.value_of(statistic, (value - half).max(0.0))?;
        Some(least..=most)
    }

    /// The p-value of a statistic: two-sided for t, r and z.
    fn value_of(&self, statistic: Statistic, value: f64) -> Option<f64> {
        let two_sided = |df: f64, t: f64| Some(2.0 * StudentsT::new(0.0, 1.0, df).ok()?.sf(t));
        let p = match statistic {
            Statistic::T(df) => two_sided(df, value)?,
            Statistic::R(_) if value >= 1.0 => 0.0,
            Statistic::R(df) => two_sided(df, value * (df / (1.0 - value * value)).sqrt())?,
            Statistic::Z => 2.0 * Normal::standard().sf(value),
            Statistic::F(between, within) => FisherSnedecor::new(between, within).ok()?.sf(value),
            Statistic::ChiSquared(df) => ChiSquared::new(df).ok()?.sf(value),
        };
        p.is_finite().then_some(p.clamp(0.0, 1.0))
    }

    fn agrees(&self, range: &RangeInclusive<f64>, known: &Known) -> bool {
        let (least, most) = (*range.start(), *range.end());
        // Rounded or truncated.
        let from = self.p.value - self.p.unit() / 2.0;
        let to = self.p.value + self.p.unit();
        match self.sign {
            '<' => least <= self.p.value,
            // A correction makes p-values larger.
            _ if known.corrected && to > least => true,
            '>' => most >= self.p.value,
            _ => from <= most && least <= to,
        }
    }
}

impl Fault {
    fn text(&self, found: &Finder<'_>) -> String {
        let p = if self.computed < 0.001 {
            "p < 0.001".to_owned()
        } else {
            format!("p = {:.3}", self.computed)
        };
        let (en, zh) = if self.decides {
            (
                " The two differ in whether the result is significant at 0.05.",
                "两者在 0.05 水平上是否显著的结论不同。",
            )
        } else {
            ("", "")
        };
        found.say(
            format!("The statistic and its degrees of freedom give {p}; check all three.{en}"),
            format!("由该统计量与自由度得 {p}；请核对三者。{zh}"),
        )
    }
}
