//! The fixed texts of pages, in English and Chinese.
//!
//! Both languages fill the same struct, so a text cannot be missing in one of them.

use quipu_contract::Language;

pub(crate) struct Words {
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
    pub diagram: &'static str,
    pub diagram_source: &'static str,
    pub glossary: &'static str,
    pub see_also: &'static str,
    pub referred: &'static str,
    /// The separator between a name and its description.
    pub colon: &'static str,
    pub search: &'static str,
    /// The line above the search results. `#` is replaced by their number.
    pub found: &'static str,
    pub nothing: &'static str,
    pub no_script: &'static str,
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
    diagram: "Diagram",
    diagram_source: "Source of the diagram (Mermaid)",
    glossary: "Glossary",
    see_also: "See also",
    referred: "Chapters that refer to this one",
    colon: ": ",
    search: "Search",
    found: "Found in # sections",
    nothing: "Nothing was found",
    no_script: "Search needs JavaScript. Everything else in this book works without it.",
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
    diagram: "图示",
    diagram_source: "图示的源码（Mermaid）",
    glossary: "术语表",
    see_also: "参见",
    referred: "提到本章的章节",
    colon: "：",
    search: "搜索",
    found: "在 # 节中找到",
    nothing: "没有找到",
    no_script: "搜索需要 JavaScript。本书其余部分不需要。",
};
