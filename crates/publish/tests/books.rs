//! A small book in each language, set whole and held against real checkers.
//!
//! `epubcheck` and `tidy` are installed by `scripts/test`. Where they are not, the tests fail and
//! say so.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use quipu_contract::Language;
use quipu_publish::{
    Book, Chapter, Places, Published, Reference, Term, diagrams_of, drawing_name, images_of,
    own_script, publish, sources_of,
};

/// One black pixel.
const PIXEL: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\0\0\0\0:~\x9bU\0\0\0\nIDATx\x9cc`\0\0\0\x02\0\x01H\xaf\xa4q\0\0\0\0IEND\xaeB`\x82";

/// Thirteen lines, with a comment and a string that span some.
const SOURCE: &str = "//! The journal.\n\n/* a comment\n   of two lines */\npub fn append() -> &'static str {\n    \"</code></pre><script>alert(1)</script>\n\n    \"\n}\n\n\nfn twelfth() {}\n// end\n";

fn term(term: &str, definition: &str, chapter: &str) -> Term {
    Term {
        term: term.into(),
        definition: definition.into(),
        chapter: chapter.into(),
    }
}

fn refer(from: &str, to: &str, about: &str) -> Reference {
    Reference {
        from: from.into(),
        to: to.into(),
        about: about.into(),
        path: "meta/cross-references.md".into(),
        line: 5,
    }
}

fn chapter(id: &str, text: &str) -> Chapter {
    Chapter {
        id: id.into(),
        number: id.trim_start_matches("ch").parse().unwrap(),
        title: format!("Chapter {id}"),
        path: format!("chapters/{id}.md"),
        text: text.into(),
        page: format!("publish/{id}.html"),
    }
}

fn book(language: Language, chapters: Vec<Chapter>) -> Book {
    let title = match language {
        Language::En => "Knots & cords",
        Language::Zh => "结绳记事",
    };
    let places = Places {
        contents: "publish/index.html".into(),
        stylesheet: "publish/style.css".into(),
        media: "publish/media".into(),
        ebook: Some("publish/book.epub".into()),
        glossary: Some("publish/glossary.html".into()),
        search: Some("publish/search.html".into()),
        print: Some("publish/print.html".into()),
        sources: Some("publish/source".into()),
    };
    Book {
        drawings: BTreeMap::from([
            ("graph TD\n  A --> B\n".into(), Ok(PIXEL.to_vec())),
            ("bad\n".into(), Err("<no>".into())),
        ]),
        terms: vec![
            term("journal", "the *file* that only grows", "ch01"),
            term("Append `lock`", "held by `one`", "ch02"),
        ],
        references: vec![
            refer("ch01", "ch02#leases", "who holds the journal"),
            refer("ch02", "ch01", "what a lease guards"),
        ],
        source_root: "source".into(),
        sources: BTreeMap::from([("source/journal.rs".into(), SOURCE.into())]),
        withheld: BTreeMap::new(),
        title: title.into(),
        author: Some("A. Runner".into()),
        language,
        images: BTreeMap::from([("chapters/img/knots.png".into(), PIXEL.to_vec())]),
        chapters,
        places,
    }
}

fn english() -> Book {
    book(
        Language::En,
        vec![
            chapter("ch01", include_str!("book/en1.md")),
            chapter("ch02", include_str!("book/en2.md")),
        ],
    )
}

fn chinese() -> Book {
    book(
        Language::Zh,
        vec![
            chapter("ch01", include_str!("book/zh1.md")),
            chapter("ch02", include_str!("book/zh2.md")),
        ],
    )
}

/// What people and agents do to files, at its worst.
fn hostile() -> Book {
    let deep = format!("{}deep\n", "> ".repeat(200));
    let many = format!("{}\n", "*a **b ".repeat(300));
    let texts = [
        "",
        "no heading, <!-- never closed\n\n<!-- CHAPTER_FINAL -->",
        "# <img src=x onerror=alert(1)>\n\n## \n\n## \u{0}\u{b}\u{ffff}\n\n[a](<data:text/html,x> \"t\") [b](JaVaScRiPt:x) [c](vbscript:x)\n",
        "# A\n# B\n\n[a [b](http://x) c](http://y) ![i ![j](img/knots.png) k](img/knots.png)\n\n[^1] [^1] [^2]\n\n[^1]: x\n\n    y [^2]\n\n[^2]: z [^1]\n\n[^3]: never meant\n",
        "| a |\n|---|\n| b | c | d |\n\n<iframe src=x>\n</iframe>\n\n```js\"onload=x\n</code></pre><script>\n",
        "\u{feff}+++\nx = 1\n+++\n\n[→ ../../etc/passwd] [[ch01#nowhere|x]] [[]] [→ ]\n\n[x](#nowhere) [y](http://[::1]/%zz\"'<>) <http://a.b/{c}>\n\n<a id=\"text\"></a>\n## text\n",
        &deep,
        &many,
    ];
    let chapters = texts
        .iter()
        .enumerate()
        .map(|(at, text)| chapter(&format!("ch{:02}", at + 1), text))
        .collect();
    let mut book = book(Language::En, chapters);
    book.title = "A <b>\"book\"</b> & \u{1}".into();
    book.images
        .insert("chapters/img/text.png".into(), b"not an image".to_vec());
    book.terms.push(term(
        "</script><script>alert(1)</script>",
        "<img src=x onerror=alert(1)> \u{2028}",
        "ch99",
    ));
    book.terms.extend([
        term("", "", ""),
        term("journal", "[x](javascript:alert(1))", "[→ ../..]"),
        term("*", "**", "#text"),
    ]);
    book.references.extend([
        refer("ch01", "ch99", "<b>"),
        refer("", "", ""),
        refer("#text", "javascript:x", ""),
        refer("ch03", "ch04", "<b>*"),
    ]);
    book.sources
        .insert("source/a <b>\".rs".into(), "x\u{0}\r\n</pre>".into());
    book
}

fn text_of<'p>(made: &'p Published, path: &str) -> &'p str {
    std::str::from_utf8(&made.files[path]).unwrap()
}

/// A page without the publisher's own script, and with no other change.
fn without_own_script(page: &str, language: Language) -> String {
    let own = own_script(language);
    assert_eq!(page.matches(&own).count(), 1, "{page}");
    page.replace(&own, "")
}

fn lay_down(made: &Published, folder: &Path) {
    for (path, bytes) in &made.files {
        let place = folder.join(path);
        std::fs::create_dir_all(place.parent().unwrap()).unwrap();
        std::fs::write(place, bytes).unwrap();
    }
}

/// Runs a checker; its complaints fail the test, and so does its absence.
fn check(program: &str, arguments: &[&str], file: &Path, passes: impl Fn(i32, &str) -> bool) {
    let run = |program: &str, before: &[&str]| {
        Command::new(program)
            .args(before)
            .args(arguments)
            .arg(file)
            .output()
    };
    // Debian installs epubcheck as a jar that can be executed only where the kernel was told how.
    let done = run(program, &[])
        .or_else(|_| run("java", &["-jar", &format!("/usr/share/java/{program}.jar")]));
    let done = done.unwrap_or_else(|e| panic!("{program} is needed ({e}): run scripts/test"));
    let said = format!(
        "{}{}",
        String::from_utf8_lossy(&done.stdout),
        String::from_utf8_lossy(&done.stderr)
    );
    assert!(
        passes(done.status.code().unwrap_or(-1), &said),
        "{program} {}:\n{said}",
        file.display()
    );
}

#[test]
fn real_checkers_find_nothing() {
    for (name, book) in [
        ("english", english()),
        ("chinese", chinese()),
        ("hostile", hostile()),
    ] {
        let made = publish(&book);
        let folder = tempfile::tempdir().unwrap();
        lay_down(&made, folder.path());
        if let Ok(kept) = std::env::var("QUIPU_LOOK") {
            lay_down(&made, &Path::new(&kept).join(name));
        }
        check(
            "epubcheck",
            &["--failonwarnings"],
            &folder.path().join("publish/book.epub"),
            |code, _| code == 0,
        );
        for path in made.files.keys().filter(|path| path.ends_with(".html")) {
            // An empty heading or paragraph is what the author wrote. `tidy` is older than ARIA 1.1,
            // which has `aria-current`.
            let known = |line: &str| {
                line.contains("trimming empty")
                    || line.contains("proprietary attribute \"aria-current\"")
                    || !line.contains("Warning:") && !line.contains("Error:")
            };
            check(
                "tidy",
                &["-q", "-e", "--show-info", "no", "-utf8"],
                &folder.path().join(path),
                |_, said| said.lines().all(known),
            );
        }
    }
}

#[test]
fn the_same_book_gives_the_same_bytes() {
    assert_eq!(publish(&english()).files, publish(&english()).files);
}

#[test]
fn pages_hold_the_chapter_and_nothing_of_the_workshop() {
    let made = publish(&english());
    let page = without_own_script(text_of(&made, "publish/ch01.html"), Language::En);
    assert!(page.ends_with("</html>\n<!-- HTML_COMPLETE -->\n"));
    for hidden in [
        "CHAPTER_FINAL",
        "do not print",
        "status: final",
        "<script",
        "onclick=\"",
        "javascript:",
        "<b>",
        "style=\"",
    ] {
        assert!(!page.contains(hidden), "{hidden}");
    }
    for shown in [
        "&lt;script&gt;alert(1)&lt;/script&gt;",
        "<a href=\"ch02.html#leases\">the second chapter</a>",
        "→ <a href=\"ch02.html#leases\">Leases</a>",
        "<a href=\"ch02.html\">a wikilink</a>",
        "<h2 id=\"s-3-numbers-first\">3. Numbers first</h2>",
        "<img src=\"media/chapters-img-knots.png\" alt=\"A picture of knots\">",
        "<span class=\"missing\">[one that is missing]</span>",
        "<em class=\"cjk\">强调</em>",
        "<p lang=\"zh-Hans\">这一段",
        "斜体，换行",
        "<th scope=\"col\" class=\"right\">cost in ms</th>",
        "<a class=\"next\" rel=\"next\" href=\"ch02.html\"><span>Next</span> Leases</a>",
        "<span class=\"k\">pub</span>",
    ] {
        assert!(page.contains(shown), "{shown}\n{page}");
    }
    let remarks: Vec<String> = made
        .remarks
        .iter()
        .map(|remark| format!("{}:{} {}", remark.path, remark.line, remark.what))
        .collect();
    assert!(
        remarks.iter().any(|remark| remark.contains("img/none.png")),
        "{remarks:?}"
    );
    assert!(
        remarks.iter().any(|remark| remark.starts_with(
            "chapters/ch01.md:43 `source/none.rs` does not point to a published page"
        )),
        "{remarks:?}"
    );
}

#[test]
fn places_in_the_source_lead_to_their_lines() {
    let mut book = english();
    let text = "# A\n\n`journal.rs:5-8` and `source/journal.rs:99`, `source/gone.rs:1`, `other.rs:1`, `a:1`, [a link](source/journal.rs#L12).\n\n\
        source/journal.rs:3\n\n```rust\nx\n```\n";
    book.chapters[0].text = text.into();
    book.withheld.insert(
        "source/other.rs".into(),
        "`source/other.rs` is not text".into(),
    );
    assert_eq!(
        sources_of(&book.chapters[0], "source")
            .iter()
            .filter(|path| !path.starts_with("source/source"))
            .collect::<Vec<_>>(),
        [
            "source/a",
            "source/gone.rs",
            "source/journal.rs",
            "source/other.rs"
        ]
    );
    let made = publish(&book);
    let page = text_of(&made, "publish/ch01.html");
    for shown in [
        "<a class=\"place\" href=\"source/journal.rs.html#L5\"><code>journal.rs:5-8</code></a>",
        "<a class=\"place\" href=\"source/journal.rs.html\"><code>source/journal.rs:99</code></a>",
        "<code>source/gone.rs:1</code>, <code>other.rs:1</code>, <code>a:1</code>",
        "<a href=\"source/journal.rs.html#L12\">a link</a>",
        "<p><a href=\"source/journal.rs.html#L3\">source/journal.rs:3</a></p>",
    ] {
        assert!(page.contains(shown), "{shown}\n{page}");
    }
    let remarks: Vec<String> = made
        .remarks
        .iter()
        .map(|remark| format!("{}:{} {}", remark.path, remark.line, remark.what))
        .collect();
    for said in [
        "chapters/ch01.md:3 `source/journal.rs:99` is past the end of `source/journal.rs`; the link points to the file",
        "chapters/ch01.md:3 `source/gone.rs:1` is published without a link: file `source/gone.rs` does not exist",
        "chapters/ch01.md:3 `other.rs:1` is published without a link: `source/other.rs` is not text",
    ] {
        assert!(
            remarks.iter().any(|remark| remark == said),
            "{said}\n{remarks:#?}"
        );
    }
    let source = without_own_script(
        text_of(&made, "publish/source/journal.rs.html"),
        Language::En,
    );
    assert!(
        source.contains("<span class=\"line\" id=\"L4\"><a href=\"#L4\">4</a><span class=\"c\">   of two lines */</span></span>"),
        "{source}"
    );
    assert!(
        source.contains("id=\"L13\"")
            && !source.contains("id=\"L14\"")
            && !source.contains("<script"),
        "{source}"
    );
}

#[test]
fn terms_and_references_are_published() {
    for (book, glossary, also, by) in [
        (
            english(),
            "<h1>Glossary</h1>",
            "<h2>See also</h2>",
            "<h2>Chapters that refer to this one</h2>",
        ),
        (
            chinese(),
            "<h1>术语表</h1>",
            "<h2>参见</h2>",
            "<h2>提到本章的章节</h2>",
        ),
    ] {
        let made = publish(&book);
        let page = text_of(&made, "publish/glossary.html");
        let first = page
            .find("<dfn>Append <code>lock</code></dfn>")
            .expect("by the alphabet");
        assert!(
            page.contains(glossary)
                && first
                    < page
                        .find("<dt id=\"journal\"><dfn>journal</dfn></dt>")
                        .unwrap(),
            "{page}"
        );
        assert!(
            page.contains(
                "<dd>the <em>file</em> that only grows <a class=\"from\" href=\"ch01.html\">"
            ),
            "{page}"
        );
        let chapter = text_of(&made, "publish/ch01.html");
        let after = chapter.split("</article>").nth(1).unwrap();
        assert!(
            after.contains(also)
                && after.contains(by)
                && after.contains("who holds the journal</li>"),
            "{after}"
        );
        assert!(text_of(&made, "publish/index.html").contains("<a href=\"glossary.html\">"));
    }
    let mut book = english();
    book.references.push(refer("ch01", "ch07", "later"));
    let said = "`ch07` is not a published chapter; this cross-reference is left out";
    assert!(
        publish(&book)
            .remarks
            .iter()
            .any(|remark| remark.what == said && remark.line == 5)
    );
    (book.terms, book.references) = (Vec::new(), Vec::new());
    let made = publish(&book);
    assert!(
        !made.files.contains_key("publish/glossary.html")
            && !text_of(&made, "publish/index.html").contains("glossary.html")
    );
}

#[test]
fn the_search_page_holds_every_section() {
    let made = publish(&chinese());
    let page = text_of(&made, "publish/search.html");
    assert_eq!(
        (
            page.matches("<script").count(),
            page.matches("</script>").count()
        ),
        (3, 3)
    );
    assert!(
        page.contains("[\"ch01.html#%E6%97%A5%E5%BF%97\",\"绳与结\",\"日志\","),
        "{page}"
    );
    let allowed = |path: &str| {
        let page = text_of(&made, path);
        page.split("script-src ")
            .nth(1)
            .unwrap()
            .split(';')
            .next()
            .unwrap()
            .matches("'sha256-")
            .count()
    };
    assert_eq!(
        (allowed("publish/search.html"), allowed("publish/ch01.html")),
        (2, 1)
    );
    assert!(
        text_of(&made, "publish/ch01.html")
            .contains("<form role=\"search\" action=\"search.html\">")
    );
}

#[test]
fn chapters_stand_in_a_numbered_list_beside_each() {
    let mut book = english();
    book.chapters[1].number = 3;
    let made = publish(&book);
    let page = text_of(&made, "publish/ch02.html");
    for shown in [
        "<p class=\"number\">Chapter 3</p>\n<article>",
        "<li value=\"1\"><a href=\"ch01.html\">Cords and knots</a></li>\n<li value=\"3\"><a href=\"ch02.html\" aria-current=\"page\">Leases</a></li>",
        "<li><a href=\"glossary.html\">Glossary</a></li>",
        "<li><a href=\"print.html\">The whole book on one page, for printing</a></li>",
    ] {
        assert!(page.contains(shown), "{shown}\n{page}");
    }
    // A title with a number of its own gets no second one.
    for title in ["Chapter 3: Leases", "3. Leases", "第三章 租约"] {
        book.chapters[1].text = format!("# {title}\n\nText.\n");
        let made = publish(&book);
        let page = text_of(&made, "publish/ch02.html");
        assert!(
            !page.contains("class=\"number\"") && page.contains("<li class=\"own\">"),
            "{page}"
        );
    }
    book.chapters[1].text = "# 1984 and after\n\nText.\n".into();
    assert!(text_of(&publish(&book), "publish/ch02.html").contains("Chapter 3</p>"));
}

#[test]
fn one_page_holds_the_whole_book_and_its_links_stay_there() {
    let made = publish(&english());
    let page = text_of(&made, "publish/print.html");
    for shown in [
        "<li value=\"2\"><a href=\"#c2-text\">Leases</a></li>",
        "<div class=\"chapter\" id=\"c2-text\">\n<p class=\"number\">Chapter 2</p>\n<article>",
        "<a href=\"#c2-leases\">the second chapter</a>",
        "<a href=\"#c2-text\">a wikilink</a>",
    ] {
        assert!(page.contains(shown), "{shown}\n{page}");
    }
    let ids: Vec<&str> = page
        .split(" id=\"")
        .skip(1)
        .filter_map(|rest| rest.split('"').next())
        .collect();
    for target in page
        .split("href=\"#")
        .skip(1)
        .filter_map(|rest| rest.split('"').next())
    {
        assert!(
            ids.iter().any(|id| *id == target || target.contains('%')),
            "{target}"
        );
    }
    assert_eq!(
        ids.len(),
        ids.iter().collect::<std::collections::HashSet<_>>().len()
    );
}

#[test]
fn contents_lead_to_every_chapter_and_section() {
    let made = publish(&chinese());
    let contents = text_of(&made, "publish/index.html");
    assert!(contents.contains("<html lang=\"zh-Hans\">"));
    for shown in [
        "<a href=\"ch01.html\">绳与结</a>",
        "<a href=\"ch01.html#%E6%97%A5%E5%BF%97\">日志</a>",
        "<a href=\"book.epub\">本书的 EPUB 版</a>",
    ] {
        assert!(contents.contains(shown), "{shown}\n{contents}");
    }
    assert!(text_of(&made, "publish/ch01.html").contains("<p lang=\"en\">This paragraph"));
}

#[test]
fn hostile_texts_do_no_harm() {
    let made = publish(&hostile());
    for (path, bytes) in made
        .files
        .iter()
        .filter(|(path, _)| path.ends_with(".html"))
    {
        let page = without_own_script(&String::from_utf8_lossy(bytes), Language::En).to_lowercase();
        let page = match path.ends_with("search.html") {
            true => page
                .replacen("<script type=\"application/json\"", "", 1)
                .replacen("<script>'use strict'", "", 1),
            false => page,
        };
        for harm in [
            "<script",
            "<iframe",
            "<img src=x",
            "href=\"javascript",
            "href=\"data",
            "href=\"vbscript",
            "<b>",
        ] {
            assert!(!page.contains(harm), "{path}: {harm}");
        }
    }
    assert!(
        !made
            .files
            .contains_key("publish/media/chapters-img-text.png")
    );
}

#[test]
fn a_chapter_names_its_images() {
    assert_eq!(
        images_of(&english().chapters[0]),
        [
            "chapters/img/knots.png",
            "chapters/img/none.png",
            "img/knots.png",
            "img/none.png"
        ]
    );
}

#[test]
fn diagrams_are_pictures_or_readable_code() {
    let mut book = english();
    book.chapters[0].text = "# A\n\n```mermaid\ngraph TD\n  A --> B\n```\n\n```mermaid\nbad\n```\n\n```mermaid\nnew <b>\n```\n".into();
    assert_eq!(
        diagrams_of(&book.chapters[0]),
        ["graph TD\n  A --> B\n", "bad\n", "new <b>\n"]
    );
    let made = publish(&book);
    let page = text_of(&made, "publish/ch01.html");
    let name = drawing_name("graph TD\n  A --> B\n");
    assert!(made.files[&format!("publish/media/{name}")] == PIXEL);
    for shown in [
        &format!("<img src=\"media/{name}\" alt=\"Diagram\">\n<details>"),
        "graph TD\n  A --&gt; B</code></pre>\n</details>",
        "new &lt;b&gt;</code></pre>\n<figcaption>Source of the diagram (Mermaid)</figcaption>",
    ] {
        assert!(page.contains(shown), "{shown}\n{page}");
    }
    let said: Vec<(usize, &str)> = made
        .remarks
        .iter()
        .filter(|r| r.path == "chapters/ch01.md")
        .map(|r| (r.line, r.what.as_str()))
        .collect();
    let no = "the Mermaid diagram is published as code: no renderer is configured ([agents.mermaid] in quipu.toml)";
    assert_eq!(
        said,
        [
            (8, "the Mermaid diagram is published as code: <no>"),
            (12, no)
        ]
    );
}
