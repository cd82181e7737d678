//! Formats receipts.

use quipu_contract::{Actor, Language, ProjectPath};
use quipu_protocol::{Blocking, Project, open_conflicts};
use quipu_store::Receipt;

use crate::answer::Answer;
use crate::shell_word::shell_word;

/// Maximum number of open conflicts named after a write; the rest is counted.
const CONFLICTS_SHOWN: usize = 8;

/// Returns data with the receipt beside it.
pub fn with(
    language: Language,
    receipt: &Receipt,
    mut json: serde_json::Value,
    text: impl Into<String>,
) -> Answer {
    json["receipt"] = serde_json::json!(receipt);
    let told = answer(language, receipt);
    Answer {
        json,
        text: text.into(),
        ..told
    }
}

pub fn answer(language: Language, receipt: &Receipt) -> Answer {
    let zh = language == Language::Zh;
    let mut text = String::new();
    if receipt.unchanged {
        text.push_str(&format!("{}\n", unchanged(language)));
    }
    let removed = if zh { "已移除" } else { "removed" };
    for (path, version) in &receipt.versions {
        let now = version.if_any().map_or(removed, |version| version.as_str());
        text.push_str(&format!("{path} {now}\n"));
    }
    let mut answer = Answer::new(serde_json::json!(receipt), text);
    for adopted in &receipt.adopted {
        answer = answer.say(adoption(language, &adopted.path, adopted.how));
    }
    for path in &receipt.merged {
        answer = answer.say(match language {
            Language::En => {
                format!("{path} had changed since it was read: merged by section and key")
            }
            Language::Zh => format!("{path} 读取之后有改动：已按小节与键合并"),
        });
    }
    if receipt.repeated {
        answer = answer.say(match language {
            Language::En => format!("already saved as @{}, with the same key", receipt.seq),
            Language::Zh => format!("此前已用同一个键保存为 @{}", receipt.seq),
        });
    } else if !receipt.unchanged {
        answer = answer.say(saved(language, receipt.seq));
    }
    answer
}

/// Says in which commit a change was saved.
pub fn saved(language: Language, seq: u64) -> String {
    match language {
        Language::En => format!("saved as @{seq}"),
        Language::Zh => format!("已保存为 @{seq}"),
    }
}

/// Says that nothing changed.
pub fn unchanged(language: Language) -> &'static str {
    match language {
        Language::En => "unchanged",
        Language::Zh => "没有改动",
    }
}

/// Says that an external edit was adopted.
fn adoption(language: Language, path: &str, how: &str) -> String {
    match language {
        Language::En => format!("adopted {path} ({how} outside Quipu)"),
        Language::Zh => format!("已收入 {path}（在 Quipu 之外{}）", how_in(language, how)),
    }
}

/// How an external edit changed a file: `grew`, `changed`, `new` or `removed`.
pub fn how_in(language: Language, how: &str) -> &str {
    match (language, how) {
        (Language::En, how) => how,
        (Language::Zh, "grew") => "追加",
        (Language::Zh, "new") => "新建",
        (Language::Zh, "removed") => "删除",
        (Language::Zh, _) => "改动",
    }
}

/// Adds a warning for each open conflict of the written files. The change was accepted: a contract
/// that blocks conflicts would have refused it. It is durable, so a failure here is only a warning.
pub fn with_open_conflicts(
    project: &Project,
    actor: &Actor,
    paths: &[ProjectPath],
    mut answer: Answer,
) -> Answer {
    let open = match open_conflicts(project, actor, paths) {
        Ok(open) => open,
        Err(error) => {
            return answer.say(match project.contract.language {
                Language::En => format!("warning: saved, but not checked for conflicts: {error}"),
                Language::Zh => format!("警告：已保存，但未能检查冲突：{error}"),
            });
        }
    };
    for conflict in open.iter().take(CONFLICTS_SHOWN) {
        answer = answer.say(format!(
            "warning: {}\n  help  {}",
            conflict.fault,
            remedy(conflict, project.contract.language)
        ));
    }
    if open.len() > CONFLICTS_SHOWN {
        let more = open.len() - CONFLICTS_SHOWN;
        answer = answer.say(match project.contract.language {
            Language::En => format!("… and {more} more conflicts"),
            Language::Zh => format!("……另有 {more} 处冲突"),
        });
    }
    if !open.is_empty() {
        answer.json["open_conflicts"] = serde_json::json!(open);
    }
    answer
}

/// The remedy for an open conflict.
pub fn remedy(conflict: &Blocking, language: Language) -> String {
    let id = &conflict.id;
    let file = conflict.at.rsplit_once(':').filter(|_| conflict.old);
    let file = file.map(|(file, _)| shell_word(file));
    match (language, file) {
        (Language::En, Some(file)) => format!(
            "judge it again: quipu check {file} --prompt; or, if it is intended: quipu waive {id} \
             --why \"…\""
        ),
        (Language::En, None) => {
            format!("fix it; or, if it is intended: quipu waive {id} --why \"…\"")
        }
        (Language::Zh, Some(file)) => format!(
            "重新判断：quipu check {file} --prompt；若是有意为之：quipu waive {id} --why \"…\""
        ),
        (Language::Zh, None) => format!("改掉它；若是有意为之：quipu waive {id} --why \"…\""),
    }
}

/// Returns a receipt beside other data and text.
pub fn beside(
    language: Language,
    receipt: &Receipt,
    mut json: serde_json::Value,
    text: impl Into<String>,
) -> Answer {
    let mut told = answer(language, receipt);
    json["receipt"] = std::mem::take(&mut told.json);
    (told.json, told.text) = (json, text.into());
    if receipt.unchanged {
        told.say(unchanged(language))
    } else {
        told
    }
}
