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
    /// The line above a chapter. `#` is replaced by its number.
    pub chapter: &'static str,
    pub one_page: &'static str,
    /// The name of the choice of a theme, and the choices: automatic, light, dark.
    pub themes: [&'static str; 4],
    pub copy: &'static str,
    pub copied: &'static str,
    pub print: &'static str,
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
    no_script: "Search needs JavaScript. The text of this book does not.",
    chapter: "Chapter #",
    one_page: "The whole book on one page, for printing",
    themes: ["Theme", "Auto", "Light", "Dark"],
    copy: "Copy",
    copied: "Copied",
    print: "Print",
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
    no_script: "搜索需要 JavaScript，阅读正文不需要。",
    chapter: "第 # 章",
    one_page: "合为一页的全书，供打印",
    themes: ["主题", "自动", "浅色", "深色"],
    copy: "复制",
    copied: "已复制",
    print: "打印",
};
