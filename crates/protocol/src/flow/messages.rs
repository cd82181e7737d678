//! The messages that a flow itself sends to agents and writes to the audit log, in both languages.
//!
//! Text from agents and files is quoted or put on one line.

use quipu_contract::{Language, in_one_line};

use super::state::SentBack;

pub fn sent_back(language: Language, sent: &SentBack, rounds: u32) -> String {
    let items = sent
        .items
        .iter()
        .map(|i| format!("- {i}\n"))
        .collect::<String>();
    let of = if rounds > 0 {
        format!("{} / {rounds}", sent.round)
    } else {
        sent.round.to_string()
    };
    match language {
        Language::En => {
            format!(
                "\n**Sent back** (round {of}). Your earlier text lies in the file that you write, without its completion marker: write that again when all is done. Fix this, and leave the rest as it is:\n{items}"
            )
        }
        Language::Zh => format!(
            "\n**退回修改**（第 {of} 轮）。你先前的文稿就在要写的文件里，完成标记已去掉：全部改完后再写上。只改以下各条，其余保持原样：\n{items}"
        ),
    }
}

/// Quotes a report for an agent, line by line.
pub fn report(language: Language, path: &str, text: &str) -> String {
    let quoted = text
        .trim()
        .lines()
        .map(|line| format!("> {line}").trim_end().to_owned() + "\n")
        .collect::<String>();
    match language {
        Language::En => format!("\n**What `{path}` said of it:**\n\n{quoted}"),
        Language::Zh => format!("\n**`{path}` 的意见：**\n\n{quoted}"),
    }
}

/// The heading of the message to an agent that redoes a job.
pub fn again(language: Language, round: usize, why: &[String]) -> String {
    let why = why.join("; ");
    match language {
        Language::En if why.is_empty() => {
            format!("\n**Done again** (round {round}). Someone asked for it.\n")
        }
        Language::En => format!("\n**Done again** (round {round}), because {why}.\n"),
        Language::Zh if why.is_empty() => format!("\n**重做**（第 {round} 轮）：有人要求重做。\n"),
        Language::Zh => format!("\n**重做**（第 {round} 轮），原因：{why}。\n"),
    }
}

pub fn earlier(language: Language, fenced: &str) -> String {
    match language {
        Language::En => format!(
            "\nYou wrote this before. Keep what still holds, and write the whole file again:\n\n{fenced}\n"
        ),
        Language::Zh => {
            format!("\n你先前写的如下。仍然成立的保留，整份文件重新写出：\n\n{fenced}\n")
        }
    }
}

pub fn difference(language: Language, fenced: &str) -> String {
    match language {
        Language::En => format!("\n**What changed:**\n\n{fenced}\n"),
        Language::Zh => format!("\n**改动之处：**\n\n{fenced}\n"),
    }
}

/// Replaces a diff that would be longer than the text.
pub fn rewritten(language: Language, path: &str) -> String {
    match language {
        Language::En => format!("\n**What changed:** most of `{path}`. Take all of it as new.\n"),
        Language::Zh => format!("\n**改动之处：**`{path}` 大部分已经改写，全文按新写的看待。\n"),
    }
}

pub fn salvage(language: Language, path: &str) -> String {
    match language {
        Language::En => {
            format!(
                "\n**To be completed.** `{path}` was begun and not finished; it lies where you write. Carry it on to its end, do not begin again.\n"
            )
        }
        Language::Zh => format!(
            "\n**续写。**`{path}` 已经开头但没有写完，就放在你写文件的地方。请接着写完，不要从头再来。\n"
        ),
    }
}

/// One section of the audit log.
pub struct Audit<'a> {
    pub about: &'a str,
    /// `NEEDS_HUMAN_REVIEW`, or another kind.
    pub kind: &'a str,
    pub what: &'a str,
    pub done: &'a str,
    pub open: &'a str,
}

impl Audit<'_> {
    pub fn render(&self, language: Language, now: jiff::Timestamp) -> String {
        let date = now
            .to_zoned(jiff::tz::TimeZone::UTC)
            .strftime("%Y-%m-%d")
            .to_string();
        // These fields contain text from agents and files. One line each, so that no text can start
        // a new entry.
        let [about, kind, what, done, open] =
            [self.about, self.kind, self.what, self.done, self.open].map(in_one_line);
        match language {
            Language::En => format!(
                "\n## {date} {about} {kind}\n- What: {what}\n- Done: {done}\n- Open: {open}\n"
            ),
            Language::Zh => format!(
                "\n## {date} {about} {kind}\n- 事由：{what}\n- 处理：{done}\n- 待决：{open}\n"
            ),
        }
    }
}
