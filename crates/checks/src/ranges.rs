//! Ranges whose first end is the larger one.
//!
//! A dash also means a score (`3–1`), a ratio (`80–20`), a date or a name, so only a range with a
//! unit or with a word that names it as a range is checked.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use regex::Regex;

use crate::number::Written;
use crate::{Finder, Gravity};

/// A word that says that a range follows.
const NAMED: &str = r"(?:(?-u:\b)(?:confidence interval|CI|IQR|interquartile range|range|ranging from|ages?|aged|pages?|pp?\.|years?)|置信区间|四分位[间数]?距?|四分位区间|范围|年龄|区间)";
const UNIT: &str = r"(?:%|°C|℃|K(?-u:\b)|mm(?-u:\b)|cm(?-u:\b)|m(?-u:\b)|km(?-u:\b)|µm(?-u:\b)|μm(?-u:\b)|nm(?-u:\b)|kg(?-u:\b)|g(?-u:\b)|mg(?-u:\b)|ms(?-u:\b)|s(?-u:\b)|min(?-u:\b)|h(?-u:\b)|Hz(?-u:\b)|kHz(?-u:\b)|MHz(?-u:\b)|GHz(?-u:\b)|V(?-u:\b)|W(?-u:\b)|MB(?-u:\b)|GB(?-u:\b)|years?(?-u:\b)|months?(?-u:\b)|weeks?(?-u:\b)|days?(?-u:\b)|hours?(?-u:\b)|minutes?(?-u:\b)|seconds?(?-u:\b)|岁|年|个?月|周|天|小时|分钟|秒|页|毫米|厘米|米|公里|千克|克)";

/// `95% CI [5.2, 3.1]`, `aged 65-18`, `pp. 120-115`
static WITH_NAME: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(&format!(
        r"(?i){NAMED}\s*(?:of|from|was|were|is|为|在|:|=|,|第)?\s*[\[(]?\s*(?:of|from)?\s*(-?\d+(?:\.\d+)?)\s*%?\s*(?P<sign>,|;|–|—|-|~|to|至|到)\s*(-?\d+(?:\.\d+)?)(?P<after>[\d.]*\d|\s*[-–]\s*\d)?"
    ))
    .expect("a valid pattern")
});
/// `20–10 mm`, `80~20 岁`
static WITH_UNIT: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(&format!(
        r"(?P<before>[A-Za-z0-9_.,:/–—~-])?(?-u:\b)(\d+(?:\.\d+)?)\s*(?P<sign>–|~|至)\s*(\d+(?:\.\d+)?)\s*{UNIT}"
    ))
    .expect("a valid pattern")
});
/// Words before a range that make it a change or a list of numbers of things.
static CHANGE: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"(?i)(?:fell|dropped|declined?|decreas\w+|reduc\w+|down|lower\w*|from|下降|降低|减少|降至|从|由|图|表|式|figs?\.?|figures?|tables?|sections?|eqs?\.?|ratio|split|score|比)[^.。;]{0,30}$")
        .expect("a valid pattern")
});

pub(crate) fn check(found: &mut Finder<'_>) {
    let plain = found.plain;
    let mut count = 0;
    for (offset, paragraph) in plain.paragraphs() {
        let mut ranges = Vec::new();
        for range in WITH_NAME.captures_iter(paragraph) {
            // A list of years or ages, or a date, is no range.
            let is_interval = range.get(0).is_some_and(|m| m.as_str().contains('['));
            let is_list = matches!(&range["sign"], "," | ";") && !is_interval;
            if range.name("after").is_none() && !is_list {
                ranges.push((range.get(0), range.get(1), range.get(3), is_interval));
            }
        }
        for range in WITH_UNIT.captures_iter(paragraph) {
            if range.name("before").is_none() {
                ranges.push((range.get(0), range.get(2), range.get(4), false));
            }
        }
        let mut met = BTreeSet::new();
        for (all, first, second, is_interval) in ranges {
            let (Some(all), Some(first), Some(second)) = (all, first, second) else {
                continue;
            };
            // One with a name and a unit is found twice.
            if !met.insert(first.start()) {
                continue;
            }
            count += 1;
            let ends = (
                Written::parse(first.as_str()),
                Written::parse(second.as_str()),
            );
            let (Some(low), Some(high)) = ends else {
                continue;
            };
            let before = &paragraph[..first.start()];
            let may_fall =
                !is_interval && !before.to_lowercase().trim_end().ends_with("ranging from");
            if !is_reversed(low, high) || may_fall && CHANGE.is_match(before) {
                continue;
            }
            let text = found.say(
                format!(
                    "The range begins with {} and ends with {}; correct its ends.",
                    first.as_str(),
                    second.as_str()
                ),
                format!(
                    "范围从 {} 到 {}，首尾颠倒；请改正。",
                    first.as_str(),
                    second.as_str()
                ),
            );
            let range = offset + all.start()..offset + all.end();
            found.plain(range, Gravity::Minor, text);
        }
    }
    if count > 0 {
        found.covered(
            format!("ranges whose order was looked at: {count}"),
            format!("核对首尾次序的范围：{count}"),
        );
    }
}

/// Whether the first end is the larger one. `1234–41` is short for `1234–1241`, and shares that
/// make a whole are a split.
fn is_reversed(first: Written, second: Written) -> bool {
    let is_short = first.decimals == 0
        && second.decimals == 0
        && second.digits() < first.digits()
        && first.value >= 100.0;
    let is_split = (first.value + second.value - 100.0).abs() < 1e-9;
    first.value > second.value && !is_short && !is_split
}
