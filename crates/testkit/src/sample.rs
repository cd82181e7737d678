//! A sample book of realistic size: ten chapters, nine written, the tenth about to be.
//!
//! It is generated deterministically, in English or Chinese. Its sizes follow a real book: about a
//! thousand tokens for each summary, three thousand for the glossary, one for the metaphors, five
//! for the research report, two for the style guide and one for the outline of a chapter.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tongue {
    English,
    Chinese,
}

/// Chapter titles with their vocabulary.
const ENGLISH: [(&str, [&str; 5]); 10] = [
    (
        "Why agents forget",
        ["session", "amnesia", "handover", "prompt", "transcript"],
    ),
    (
        "The journal",
        ["journal", "record", "segment", "checksum", "replay"],
    ),
    (
        "Classes of files",
        ["class", "append", "seal", "overwrite", "supersede"],
    ),
    (
        "Versions and hashes",
        ["version", "digest", "prefix", "conflict", "baseline"],
    ),
    (
        "Locks between processes",
        ["lock", "kernel", "waiter", "deadline", "holder"],
    ),
    (
        "Recovery after a crash",
        ["recovery", "torn tail", "redo", "fsync", "checkpoint"],
    ),
    (
        "Pointers and roles",
        ["pointer", "role", "deny list", "grant", "variable"],
    ),
    (
        "Budgets and views",
        ["budget", "view", "window", "reserve", "overview"],
    ),
    (
        "Recall",
        ["recall", "index", "bigram", "stemming", "freshness"],
    ),
    (
        "Leases and fencing",
        ["lease", "fencing number", "expiry", "renewal", "clock"],
    ),
];

const CHINESE: [(&str, [&str; 5]); 10] = [
    (
        "智能体为何遗忘",
        ["会话", "失忆", "交接", "提示词", "记录稿"],
    ),
    ("日志", ["日志", "记录", "分段", "校验和", "重放"]),
    ("文件的类别", ["类别", "追加", "封存", "覆盖", "取代"]),
    ("版本与摘要", ["版本", "摘要值", "前缀", "冲突", "基线"]),
    ("进程之间的锁", ["锁", "内核", "等待者", "期限", "持有者"]),
    ("崩溃之后的恢复", ["恢复", "残尾", "重做", "落盘", "检查点"]),
    ("指针与角色", ["指针", "角色", "禁读清单", "授权", "变量"]),
    ("预算与视图", ["预算", "视图", "窗口", "预留", "概览"]),
    ("召回", ["召回", "索引", "二元组", "词干", "新鲜度"]),
    ("租约与防护", ["租约", "防护号", "到期", "续期", "时钟"]),
];

const ENGLISH_SAID: [&str; 8] = [
    "The {a} is what makes the {b} trustworthy, because nothing that was acknowledged can be lost behind its back.",
    "Without a {a}, every worker would have to guess what the {b} looked like a moment ago.",
    "In the code, the {a} is created once and then only read, while the {b} follows it step by step.",
    "A reader who has met the {a} will ask what happens to the {b} when the process dies in between.",
    "The answer is short: the {a} is written first, and the {b} can always be rebuilt from it.",
    "Two processes that touch the same {a} meet at the {b}, and the second is told who came first.",
    "It is tempting to keep the {a} in memory, but then the {b} would depend on a process that may not be there.",
    "Every test of the {a} stops the program at each step and looks whether the {b} is whole.",
];

const CHINESE_SAID: [&str; 8] = [
    "{a}让{b}值得信赖，因为凡是确认过的内容都不会在背后丢失。",
    "没有{a}，每个工作者都只能猜测片刻之前{b}是什么样子。",
    "在代码里，{a}只创建一次，此后只读；{b}则一步一步地跟随它。",
    "读者见过{a}之后会问：进程在中途死去时，{b}会怎样？",
    "答案很短：先写{a}，{b}随时可以由它重建。",
    "两个进程若触及同一个{a}，就会在{b}处相遇，后来者会被告知谁先到。",
    "把{a}放在内存里很诱人，可那样{b}就依赖一个可能不在的进程。",
    "对{a}的每项测试都在每一步停下程序，看{b}是否完整。",
];

/// Definitions share no words with the prose, as in a real glossary: rows have only their terms in
/// common.
const ENGLISH_MEANT: [&str; 4] = [
    "Names {a} as opposed to {b}; mind the difference from {c}, with which newcomers often mix it up.",
    "Whatever {a} adds to {b}: smaller than {c}, counted apart, spelled alike throughout.",
    "Plain meaning of {a} within {b}; compare {c} for its counterpart.",
    "Localized of {a} whenever {b} applies; neither {c} nor anything bigger.",
];

const CHINESE_MEANT: [&str; 4] = [
    "指{a}，有别于{b}；注意勿与{c}混淆，新手常常弄错。",
    "{a}给{b}添上的部分：小于{c}，单独计数，通篇写法一致。",
    "{b}范围内{a}的本义；其对应物见{c}。",
    "凡{b}适用之处皆称{a}；既不是{c}，也不是更大的东西。",
];

#[derive(Debug, Clone, Copy)]
pub struct SampleBook {
    pub tongue: Tongue,
}

impl SampleBook {
    /// Returns the units, to be added to `quipu.toml`.
    pub fn units(self) -> String {
        let units = self.chapters().iter().enumerate().map(|(i, (title, _))| {
            let needs = if i == 9 {
                "needs = [\"ch02\", \"ch05\"]\n"
            } else {
                ""
            };
            format!("\n[units.{}]\ntitle = \"{title}\"\n{needs}", id(i))
        });
        units.collect()
    }

    /// Returns paths and texts, in the state before the tenth chapter is written.
    pub fn files(self) -> Vec<(String, String)> {
        let mut files = vec![
            ("meta/style-guide.md".to_owned(), self.style_guide()),
            ("outline-final.md".to_owned(), self.outline()),
            ("meta/chapter-summaries.md".to_owned(), self.summaries()),
            ("meta/glossary.md".to_owned(), self.glossary()),
            ("meta/metaphor-registry.md".to_owned(), self.metaphors()),
            ("research/ch10-research.md".to_owned(), self.research()),
        ];
        files.extend((0..9).map(|i| {
            (
                format!("drafts/{}-draft.md", id(i)),
                format!("# {}\n\n{}", self.chapters()[i].0, self.prose(i, i, 60)),
            )
        }));
        files
    }

    fn chapters(self) -> &'static [(&'static str, [&'static str; 5]); 10] {
        match self.tongue {
            Tongue::English => &ENGLISH,
            Tongue::Chinese => &CHINESE,
        }
    }

    fn say(self, english: &str, chinese: &str) -> String {
        match self.tongue {
            Tongue::English => english.to_owned(),
            Tongue::Chinese => chinese.to_owned(),
        }
    }

    /// Generates sentences about a chapter, up to about this many tokens.
    fn prose(self, chapter: usize, seed: usize, tokens: usize) -> String {
        let (said, per_token) = match self.tongue {
            Tongue::English => (&ENGLISH_SAID, 4.9),
            Tongue::Chinese => (&CHINESE_SAID, 1.45),
        };
        let words = self.chapters()[chapter].1;
        let mut text = String::new();
        let mut n = seed * 3 + 1;
        while (text.chars().count() as f64) < tokens as f64 * per_token {
            let sentence = said[n % 8]
                .replace("{a}", words[n % 5])
                .replace("{b}", words[(n / 5 + n + 1) % 5]);
            text.push_str(&sentence);
            text.push_str(if n.is_multiple_of(5) {
                "\n\n"
            } else if self.tongue == Tongue::English {
                " "
            } else {
                ""
            });
            n += 1;
        }
        format!("{}\n\n", text.trim_end())
    }

    /// Generates a definition of one of a chapter's words, with this many clauses.
    fn meaning(self, chapter: usize, word: usize, clauses: usize) -> String {
        let meant = if self.tongue == Tongue::English {
            &ENGLISH_MEANT
        } else {
            &CHINESE_MEANT
        };
        let words = self.chapters()[chapter].1;
        let clause = |n: usize| {
            let at = |step: usize| words[(word + step) % 5];
            meant[(word + n) % 4]
                .replace("{a}", at(0))
                .replace("{b}", at(n + 1))
                .replace("{c}", at(n + 2))
        };
        (0..clauses)
            .map(clause)
            .collect::<Vec<_>>()
            .join(if self.tongue == Tongue::English {
                " "
            } else {
                ""
            })
    }

    fn style_guide(self) -> String {
        let parts = [
            ("Voice", "语气"),
            ("Sentences", "句子"),
            ("Code", "代码"),
            ("Terms", "术语"),
            ("Figures", "插图"),
        ];
        let mut text = format!("# {}\n\n", self.say("Style guide", "写作体例"));
        for (i, (en, zh)) in parts.into_iter().enumerate() {
            text.push_str(&format!(
                "## {}\n\n{}",
                self.say(en, zh),
                self.prose(0, i, 390)
            ));
        }
        text
    }

    fn outline(self) -> String {
        let mut text = format!("# {}\n\n", self.say("Outline", "大纲"));
        for (i, (title, words)) in self.chapters().iter().enumerate() {
            let needs = if i == 9 {
                self.say(
                    "Builds on journal, lock, deadline and holder.",
                    "建立在日志、锁、期限与持有者之上。",
                )
            } else {
                String::new()
            };
            text.push_str(&format!(
                "## {}\n\n{title}: {}. {needs}\n\n{}",
                id(i),
                words.join(", "),
                self.prose(i, i + 2, 920)
            ));
        }
        text
    }

    fn summaries(self) -> String {
        let mut text = format!("# {}\n\n", self.say("Chapter summaries", "各章摘要"));
        for (i, (title, _)) in self.chapters().iter().enumerate().take(9) {
            let about = self.say(
                &format!("This chapter explains {title}."),
                &format!("本章讲解{title}。"),
            );
            text.push_str(&format!(
                "## {}\n\n{about} {}",
                id(i),
                self.prose(i, i, 960)
            ));
        }
        text
    }

    fn glossary(self) -> String {
        let header = self.say(
            "| term | definition | chapter | supersedes |",
            "| 术语 | 定义 | 章 | 取代 |",
        );
        let mut text = format!(
            "# {}\n\n{header}\n|---|---|---|---|\n",
            self.say("Glossary", "术语表")
        );
        for (i, (_, words)) in self.chapters().iter().enumerate().take(9) {
            for (n, word) in words.iter().enumerate() {
                text.push_str(&format!(
                    "| {word} | {} | {} | |\n",
                    self.meaning(i, n, 3),
                    id(i)
                ));
            }
        }
        text
    }

    fn metaphors(self) -> String {
        let header = self.say(
            "| concept | metaphor | chapter | limits | supersedes |",
            "| 概念 | 比喻 | 章 | 界限 | 取代 |",
        );
        let mut text = format!(
            "# {}\n\n{header}\n|---|---|---|---|---|\n",
            self.say("Metaphor registry", "比喻登记表")
        );
        for (i, (_, words)) in self.chapters().iter().enumerate().take(9) {
            for n in [0, 1] {
                let limits = self.prose(i, n + i, 38);
                let metaphor = self.say("a library loan", "图书馆借书");
                text.push_str(&format!(
                    "| {} | {metaphor} {} | {} | {} | |\n",
                    words[n],
                    i * 2 + n,
                    id(i),
                    limits.trim().replace('\n', " ")
                ));
            }
        }
        text
    }

    fn research(self) -> String {
        let parts = [
            ("Overview", "概览"),
            ("Data structures", "数据结构"),
            ("Functions", "函数"),
            ("Flow", "流程"),
            ("Decisions", "设计决策"),
            ("Material", "素材"),
        ];
        let words = self.chapters()[9].1;
        let mut text = format!(
            "# {}\n\n",
            self.say(
                "Research for ch10: leases and fencing",
                "ch10 研究报告：租约与防护"
            )
        );
        for (i, (en, zh)) in parts.into_iter().enumerate() {
            text.push_str(&format!(
                "## {}: {}\n\n{}",
                self.say(en, zh),
                words[i % 5],
                self.prose(9, i, 810)
            ));
        }
        text.push_str("<!-- RESEARCH_COMPLETE -->\n");
        text
    }
}

fn id(chapter: usize) -> String {
    format!("ch{:02}", chapter + 1)
}
