//! The headings of a finish text, in both languages and in the spellings that models use.
//!
//! This is the only place that maps a heading to its `Section`.

use super::none::normalised;

/// The meaning of a heading or a label for the lines below it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Section {
    Done,
    Decisions,
    Todos,
    /// Todos that are postponed.
    Later,
    Next,
    Notes,
    Facts,
    Blocked,
    Unblocked,
    Phase,
    Task,
    InProgress,
    State,
    Reviewed,
    TakesOver,
    Abandoned,
    /// A key of a profile's own closer, such as `solution`.
    Key(&'static str),
}

/// All names of each section. Quipu prints the first two: English and Chinese.
const NAMES: &[(Section, &[&str])] = &[
    (
        Section::Done,
        &[
            "done",
            "完成",
            "did",
            "completed",
            "what was done",
            "what i did",
            "what was completed",
            "work done",
            "accomplished",
            "accomplishments",
            "summary",
            "changes",
            "what changed",
            "已完成",
            "完成的工作",
            "已完成的工作",
            "完成情况",
            "本次完成",
            "做了什么",
            "总结",
            "小结",
        ],
    ),
    (
        Section::Decisions,
        &[
            "decisions",
            "决策",
            "decision",
            "decisions made",
            "key decisions",
            "new decisions",
            "decided",
            "决定",
            "决策记录",
            "新决策",
            "关键决策",
        ],
    ),
    (
        Section::Todos,
        &[
            "todos",
            "待办",
            "todo",
            "to do",
            "to dos",
            "tasks",
            "open todos",
            "todo list",
            "remaining",
            "remaining work",
            "open items",
            "待办事项",
            "待办清单",
            "未完成的待办",
        ],
    ),
    (
        Section::Later,
        &["later", "以后", "not now", "稍后", "以后再做", "暂不"],
    ),
    (
        Section::Next,
        &[
            "next",
            "下一步",
            "next steps",
            "next step",
            "what's next",
            "what next",
            "whats next",
            "plan",
            "接下来",
            "后续",
            "后续步骤",
            "下一步计划",
            "下步",
        ],
    ),
    (
        Section::Notes,
        &[
            "notes",
            "备注",
            "note",
            "questions",
            "open questions",
            "open question",
            "笔记",
            "注意",
            "注意事项",
            "问题",
            "待确认",
            "待问",
        ],
    ),
    (
        Section::Facts,
        &[
            "facts",
            "事实",
            "fact",
            "people",
            "people and facts",
            "outside facts",
            "external facts",
            "dates",
            "人与事实",
            "人员",
            "外部事实",
            "日期",
        ],
    ),
    (
        Section::Blocked,
        &[
            "blocked", "阻塞", "blockers", "blocker", "blocks", "受阻", "障碍",
        ],
    ),
    (
        Section::Unblocked,
        &["unblocked", "解除阻塞", "no longer blocked", "已解除阻塞"],
    ),
    (
        Section::Phase,
        &["phase", "阶段", "current phase", "当前阶段", "所处阶段"],
    ),
    (Section::Task, &["task", "当前任务", "current task", "任务"]),
    (
        Section::InProgress,
        &[
            "in progress",
            "进行中",
            "wip",
            "work in progress",
            "half done",
            "unfinished",
            "partly done",
            "未完成",
            "半成品",
        ],
    ),
    (
        Section::State,
        &[
            "state",
            "状态",
            "status",
            "where things stand",
            "当前状态",
            "现状",
        ],
    ),
    (
        Section::Reviewed,
        &["reviewed", "已检视", "todos reviewed", "检视"],
    ),
    (
        Section::TakesOver,
        &["takes over", "接手", "take over", "taken over"],
    ),
    (
        Section::Abandoned,
        &["abandoned", "放弃", "abandon", "given up"],
    ),
];

/// Names of the keys that a profile's own closers read.
const KEYS: &[(&str, &[&str])] = &[
    ("problem", &["problem", "任务描述", "问题描述"]),
    ("solution", &["solution", "解决", "解决方案"]),
    ("rounds", &["rounds", "轮数"]),
    ("pattern", &["pattern", "模式"]),
    ("learnt", &["learnt", "learned", "习得"]),
    ("lesson", &["lesson", "lessons", "经验"]),
    ("cause", &["cause", "原因", "根因", "root cause"]),
    ("cure", &["cure", "解法"]),
    ("improvement", &["improvement", "改进"]),
    ("outcome", &["outcome", "结果"]),
    ("world", &["world", "世界"]),
    ("replaces", &["replaces", "取代"]),
];

/// The section that a heading names. `keys` are those that the project's closers read.
pub(super) fn section_of(title: &str, keys: &[&'static str]) -> Option<Section> {
    let whole = normalised(title);
    let bare = whole
        .split(['(', '（', '['])
        .next()
        .unwrap_or_default()
        .trim();
    let parts = || whole.split(['/', '|', '&', '、']).map(str::trim);
    std::iter::once(whole.as_str())
        .chain([bare])
        .chain(parts())
        .find_map(|name| named(name, keys))
}

fn named(name: &str, keys: &[&'static str]) -> Option<Section> {
    let own = || {
        let (key, _) = KEYS
            .iter()
            .find(|(key, names)| keys.contains(key) && names.contains(&name))?;
        Some(Section::Key(key))
    };
    own().or_else(|| {
        NAMES
            .iter()
            .find(|(_, names)| names.contains(&name))
            .map(|(section, _)| *section)
    })
}

/// The known heading that an unknown one probably means.
pub(super) fn near_miss(title: &str) -> Option<&'static str> {
    let name = normalised(title);
    let far_enough = |known: &str| known.chars().count() >= 4 && name.chars().count() >= 3;
    let is_near = |known: &&str| {
        far_enough(known)
            && strsim::damerau_levenshtein(known, &name) <= if known.len() > 5 { 2 } else { 1 }
    };
    NAMES
        .iter()
        .flat_map(|(_, names)| names.iter().copied())
        .find(is_near)
}

impl Section {
    /// The printed names, in English and in Chinese.
    pub(super) fn names(self) -> (&'static str, &'static str) {
        match self {
            Section::Key(key) => KEYS
                .iter()
                .find(|(k, _)| *k == key)
                .map_or((key, key), |(_, names)| (names[0], names[1])),
            section => NAMES
                .iter()
                .find(|(s, _)| *s == section)
                .map_or(("notes", "备注"), |(_, names)| (names[0], names[1])),
        }
    }
}
