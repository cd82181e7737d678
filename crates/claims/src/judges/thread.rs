//! Judges threads: reports a closed thread that a text treats as open.
//!
//! `threads` decides whether a thread is closed at the draft's chapter.

use super::{Finding, Sentence};
use crate::memory::content;
use crate::threads::Standing;
use crate::words::{find_all, is_quoted, is_unreal, says_any};

const OPEN: &[&str] = &[
    "still unanswered",
    "unanswered",
    "still wondered",
    "no one knew",
    "nobody knew",
    "no one had ever learned",
    "never found out",
    "remained a mystery",
    "still a mystery",
    "was a mystery",
    "unsolved",
    "still did not know",
    "still didn't know",
    "yet to be found",
    "still missing",
    "never been found",
    "who could have",
    "unexplained",
    "no one had discovered",
    "had never learned",
    "unknown to everyone",
    "never seen again",
    "not known",
    "not been found",
    "had found out who",
    "still unknown",
    "remains a mystery",
    "is a mystery",
    "never been solved",
    "never came to light",
    "是个谜",
    "没有找到",
    "没有人见过",
    "没人见过",
    "还是不知道",
    "未能找到",
    "没有下落",
    "杳无音讯",
    "仍是谜",
    "仍是个谜",
    "还是个谜",
    "谜团",
    "无人知晓",
    "没人知道",
    "谁也不知道",
    "没有人知道",
    "至今未",
    "始终没有",
    "仍未",
    "还没找到",
    "下落不明",
    "仍不知道",
    "还不知道",
    "悬而未决",
    "仍然成谜",
    "不得而知",
    "一直没弄清",
];

pub fn judge(sentence: &Sentence<'_>, findings: &mut Vec<Finding>) {
    let text = sentence.text;
    if !says_any(text, OPEN) || is_unreal(&sentence.bare) {
        return;
    }
    let said = content(text);
    for thread in &sentence.memory.threads {
        if thread.standing(sentence.chapter) != Standing::Closed {
            continue;
        }
        let bare = |name: &str| {
            name.trim_start_matches("The ")
                .trim_start_matches("the ")
                .to_owned()
        };
        let at = thread.names.iter().find_map(|name| {
            find_all(text, &bare(name), true)
                .first()
                .map(|range| range.start)
        });
        // Match the thread by its name, or by most words of its promise.
        let asked = content(thread.promise.as_deref().unwrap_or_default());
        let shared = asked.iter().filter(|word| said.contains(word)).count();
        let by_promise = asked.len() >= 3 && shared * 2 > asked.len();
        let Some(at) = at.or(by_promise.then_some(0)) else {
            continue;
        };
        if at > 0 && is_quoted(text, at) {
            continue;
        }
        let closed = thread.closed.clone().unwrap_or_default();
        findings.push(Finding {
            judge: "thread",
            conflict: true,
            confidence: 0.8,
            why: sentence.why(
                format!("this thread was closed: {closed}"),
                format!("这条伏笔已收：{closed}"),
            ),
            at: thread.at.clone(),
            evidence: format!("{} — closed: {closed}", thread.name),
            level: None,
        });
    }
}

#[cfg(test)]
mod tests {
    use crate::judges::bench::expect;

    #[test]
    fn what_was_answered_is_no_mystery() {
        expect(
            "# T\n\n## The second key\n- planted: ch02\n- promise: who else can open the lamp room?\n- due: ch05\n- closed: [→ manuscripts/ch05.md#key]\n\n## The red cord\n- planted: ch03\n- closed:\n",
            &[
                ("No one knew who had the second key.", &["thread!"]),
                ("Who else could open the lamp room remained a mystery.", &[]),
                ("Nobody knew who else can open the lamp room.", &["thread!"]),
                ("She turned the second key.", &[]),
                ("The red cord remained a mystery.", &[]),
            ],
        );
        expect(
            "# 伏笔\n\n## 第二把钥匙\n- 埋于：ch02\n- 收于：[→ manuscripts/ch05.md#钥匙]\n\n## 红绳\n- 埋于：ch03\n- 收于：\n",
            &[
                ("第二把钥匙在谁手里，至今未明。", &["thread!"]),
                ("她转动第二把钥匙。", &[]),
                ("红绳的来历谁也不知道。", &[]),
            ],
        );
    }
}
