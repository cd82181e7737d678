//! The few words that pages say by themselves, in both languages.

use quipu_contract::Language;

pub(crate) struct Words {
    /// The value of `lang`.
    pub tag: &'static str,
    pub contents: &'static str,
    pub in_chapter: &'static str,
    pub previous: &'static str,
    pub next: &'static str,
    pub skip: &'static str,
    pub chapters: &'static str,
    pub notes: &'static str,
    pub back: &'static str,
    pub ebook: &'static str,
    pub code: &'static str,
    pub table: &'static str,
    pub done: &'static str,
    pub open: &'static str,
    pub alerts: [&'static str; 5],
}

pub(crate) fn words(language: Language) -> &'static Words {
    match language {
        Language::En => &ENGLISH,
        Language::Zh => &CHINESE,
    }
}

static ENGLISH: Words = Words {
    tag: "en",
    contents: "Contents",
    in_chapter: "In this chapter",
    previous: "Previous",
    next: "Next",
    skip: "Skip to the text",
    chapters: "Chapters before and after",
    notes: "Notes",
    back: "Back to the text",
    ebook: "This book as EPUB",
    code: "Code",
    table: "Table",
    done: "done",
    open: "open",
    alerts: ["Note", "Tip", "Important", "Warning", "Caution"],
};

static CHINESE: Words = Words {
    tag: "zh-Hans",
    contents: "目录",
    in_chapter: "本章内容",
    previous: "上一章",
    next: "下一章",
    skip: "跳到正文",
    chapters: "前后各章",
    notes: "注释",
    back: "回到正文",
    ebook: "本书的 EPUB 版",
    code: "代码",
    table: "表格",
    done: "已完成",
    open: "未完成",
    alerts: ["说明", "提示", "重要", "警告", "注意"],
};
