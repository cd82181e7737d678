//! The words of the `story` commands, in both languages. JSON has the English ones alone.

use quipu_claims::{Kind, Period, Point};
use quipu_contract::Language;

use crate::answer::count;

/// The label of a line, padded to the width of the longest one.
pub fn label(language: Language, english: &str) -> String {
    match language {
        Language::En => format!("{english:<8}"),
        Language::Zh => {
            let label = match english {
                "chapter" => "定稿",
                "old" => "旧判",
                "overdue" => "逾期",
                "source" => "出处",
                "vanished" => "失踪",
                "unjudged" => "未判",
                other => other,
            };
            format!("{label}    ")
        }
    }
}

/// `3 facts`, `3 条事实`.
pub fn number(language: Language, number: usize, english: &str) -> String {
    match language {
        Language::En => count(number, english),
        Language::Zh => {
            let unit = match english {
                "value" => "个值",
                "fact" => "条事实",
                "relation" => "条关系",
                "moment" => "个时点",
                other => other,
            };
            format!("{number} {unit}")
        }
    }
}

pub fn verb(language: Language, kind: Option<Kind>) -> String {
    let english = kind.map_or("", Kind::name);
    match (language, kind) {
        (Language::Zh, Some(Kind::Knows)) => "知道　".to_owned(),
        (Language::Zh, Some(Kind::Believes)) => "以为　".to_owned(),
        (Language::Zh, Some(Kind::DoesNotKnow)) => "不知道".to_owned(),
        _ => format!("{english:<13}"),
    }
}

/// `held by` or `here`.
pub fn relation(language: Language, english: &str) -> &str {
    match (language, english) {
        (Language::Zh, "held by") => "持有者",
        (Language::Zh, "here") => "在此",
        _ => english,
    }
}

pub fn at_the_end_of(language: Language, at: Option<Point>) -> String {
    match (language, at) {
        (_, None) => String::new(),
        (Language::En, Some(at)) => format!(" at the end of {at}"),
        (Language::Zh, Some(at)) => format!("（{at} 末）"),
    }
}

pub fn from(language: Language, from: Point) -> String {
    match language {
        Language::En => format!("from {from}"),
        Language::Zh => format!("自 {from}"),
    }
}

pub fn until(language: Language, until: Point) -> String {
    match language {
        Language::En => format!("until {until}"),
        Language::Zh => format!("至 {until}"),
    }
}

/// `  (from ch03, until ch08)`, or nothing.
pub fn period(language: Language, period: &Period) -> String {
    let parts = [
        period.from.map(|point| from(language, point)),
        period.until.map(|point| until(language, point)),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    match (parts.is_empty(), language) {
        (true, _) => String::new(),
        (false, Language::En) => format!("  ({})", parts.join(", ")),
        (false, Language::Zh) => format!("  （{}）", parts.join("，")),
    }
}
