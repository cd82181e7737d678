//! Means and shares that whole numbers cannot have (GRIM: granularity-related inconsistency of
//! means).
//!
//! A mean is checked only if its paragraph names a scale of whole numbers and the text speaks of no
//! items, because a mean over several items is finer.

use std::sync::LazyLock;

use regex::Regex;

use crate::number::Written;
use crate::{Finder, Gravity};

fn pattern(text: &str) -> Regex {
    Regex::new(text).expect("a valid pattern")
}

/// Words for a scale of whole numbers.
static WHOLE: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"(?i)likert|-point (?:scale|rating)|(?-u:\b)rated(?-u:\b)|(?-u:\b)rating|李克特|[点级分]量表|[点级分]制|评分",
    )
});
static SEVERAL: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"(?i)(?-u:\b)items?(?-u:\b)|subscale|composite|averaged (?:over|across)|weighted|imput|trials?(?-u:\b)|raters|条目|题项|个题|分量表|加权|插补",
    )
});
static MEAN: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"(?:(?-u:\b)M|(?-u:\b)[Mm]ean(?: rating| score)?|均值|平均分|平均值|平均评分)\s*(?:=|:|was|of|is|为|是)?\s*(\d{1,3}\.\d{1,3})(?-u:\b)",
    )
});
static SIZE: LazyLock<Regex> = LazyLock::new(|| pattern(r"(?-u:\b)[nN]\s*=\s*(\d{1,4})(?-u:\b)"));

/// `35.5% of the 20 participants`
static SHARE: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"(?P<about>about |approximately |nearly |roughly |around |over |under |than |least |most |~|≈)?(?P<share>\d{1,3}(?:\.\d{1,2})?)\s?%\s+of\s+(?:the\s+|all\s+|our\s+|all the\s+)?(?P<whole>\d{1,4})\s+(?:[a-z]+ )?(?:participants|patients|respondents|students|subjects|people|persons|children|adults|women|men|users|teachers|cases|articles|papers|studies|projects|repositories|interviewees|volunteers)(?-u:\b)",
    )
});
/// `20 名受试者中 35.5%`
static SHARE_ZH: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"(?:^|[^\d.])(?P<whole>\d{1,4})\s*[名例位](?:受试者|参与者|患者|学生|被试|受访者|教师|用户)中[,]?(?P<about>约|近|超过|大约)?(?:有\s*)?(?P<share>\d{1,3}(?:\.\d{1,2})?)\s?%",
    )
});

pub(crate) fn check(found: &mut Finder<'_>) {
    let count = check_means(found) + check_shares(found);
    if count > 0 {
        found.covered(
            format!("means and shares of whole numbers (GRIM): {count}"),
            format!("整数数据的均值与比例（GRIM）：{count}"),
        );
    }
}

fn check_means(found: &mut Finder<'_>) -> usize {
    let plain = found.plain;
    if SEVERAL.is_match(&plain.text) {
        return 0;
    }
    let mut count = 0;
    for (offset, paragraph) in plain.paragraphs().filter(|(_, p)| WHOLE.is_match(p)) {
        let mut sizes = SIZE.captures_iter(paragraph).filter_map(|c| c.get(1));
        let (Some(size), None) = (sizes.next(), sizes.next()) else {
            continue;
        };
        for mean in MEAN.captures_iter(paragraph) {
            let numbers = (Written::parse(&mean[1]), Written::parse(size.as_str()));
            let (Some(said), Some(whole)) = numbers else {
                continue;
            };
            if whole.value * said.unit() >= 1.0 || whole.value == 0.0 {
                continue;
            }
            count += 1;
            if exists(said, whole.value, 1.0) {
                continue;
            }
            let text = found.say(
                format!("No {} whole numbers have the mean {}; check mean, sample size and missing answers.", size.as_str(), &mean[1]),
                format!("{} 个整数的均值不可能是 {}；请核对均值、样本量与缺失值。", size.as_str(), &mean[1]),
            );
            let at = mean.get(0).map_or(0..0, |m| m.range());
            found.plain(offset + at.start..offset + at.end, Gravity::Minor, text);
        }
    }
    count
}

fn check_shares(found: &mut Finder<'_>) -> usize {
    let plain = found.plain;
    let mut count = 0;
    for (offset, paragraph) in plain.paragraphs() {
        for stated in [&*SHARE, &*SHARE_ZH] {
            for share in stated.captures_iter(paragraph) {
                let numbers = (
                    Written::parse(&share["share"]),
                    Written::parse(&share["whole"]),
                );
                let (Some(said), Some(whole)) = numbers else {
                    continue;
                };
                if share.name("about").is_some() || whole.value == 0.0 {
                    continue;
                }
                count += 1;
                if exists(said, whole.value, 100.0) {
                    continue;
                }
                let (said, whole) = (&share["share"], &share["whole"]);
                let text = found.say(
                    format!(
                        "No whole number is {said} % of {whole}; check the share and the number."
                    ),
                    format!("{whole} 的 {said}% 不是整数；请核对比例与人数。"),
                );
                let first = share.name("share").map_or(0, |m| m.start());
                let first = first.min(share.name("whole").map_or(first, |m| m.start()));
                let last = share.get(0).map_or(first, |m| m.end());
                found.plain(offset + first..offset + last, Gravity::Minor, text);
            }
        }
    }
    count
}

/// Whether a whole number divided by the sample size gives the stated value.
fn exists(said: Written, size: f64, factor: f64) -> bool {
    let nearest = (said.value * size / factor).floor();
    let mut counts = [nearest - 1.0, nearest, nearest + 1.0].into_iter();
    counts.any(|count| said.covers(factor * count / size))
}
