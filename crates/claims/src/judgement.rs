//! Conflicts that a model has found, as list items of a file.
//!
//! A report of a checking agent and the file of kept answers have the same form: two places, who
//! judged, and both texts in quotation marks. A finding holds as long as its scene and its evidence
//! are unchanged. An item that cannot be read is no finding.

use std::collections::{BTreeMap, BTreeSet};

use quipu_contract::Form;
use quipu_recall::Tier;
use quipu_text::Document;

use crate::claim::{Claim, cut_claims};
use crate::memory::plain;
use crate::page::{Page, Place};
use crate::period::without_period;
use crate::pool::entry_parts;
use crate::scene::{Scene, cut_scenes};
use crate::threads::chapter_number;
use crate::waiver::{conflict_id, hash};
use crate::words::has_han;

/// A conflict as it was written down.
#[derive(Debug, Clone, PartialEq)]
pub struct Judgement {
    /// The place of the sentence at that time.
    pub at: Place,
    pub against: Place,
    /// The sentence, or a part of it.
    pub claim: String,
    /// The line of evidence, or a part of it.
    pub evidence: String,
    pub why: String,
    pub confidence: f32,
    pub judge: String,
    /// The place of the item.
    pub kept: Place,
    /// The scene as it was judged. A report of an agent names none.
    pub scene: Option<String>,
}

/// A kept conflict of a text.
#[derive(Debug, Clone)]
pub struct KeptConflict {
    pub id: String,
    /// The sentence of the text.
    pub claim: Claim,
    /// The place of the evidence now.
    pub against: Place,
    pub judgement: Judgement,
    /// True if the scene has changed since. The sentence and the evidence have not.
    pub is_old: bool,
}

/// The kept judgements about one text.
#[derive(Debug, Default)]
pub struct KeptJudgements {
    pub conflicts: Vec<KeptConflict>,
    /// The numbers of its scenes that were judged as they are now, with the judge.
    pub judged: BTreeMap<usize, String>,
    /// The numbers of its scenes that no model has judged as they are. None if the chapter has a
    /// report of its own, which names no scenes.
    pub unjudged: Vec<usize>,
}

/// Returns the ID of a scene: it changes with every sentence.
pub fn scene_id(claims: &[Claim]) -> String {
    let sentences = claims.iter().flat_map(|claim| ["\n", claim.text.as_str()]);
    format!("s{:010x}", hash(sentences) >> 24)
}

/// Returns the scenes of a text with their IDs.
fn scenes_of(text: &str, claims: &[Claim]) -> Vec<(Scene, String)> {
    let scenes = cut_scenes(text, claims).into_iter();
    scenes
        .map(|scene| {
            let id = scene_id(&claims[scene.claims.clone()]);
            (scene, id)
        })
        .collect()
}

/// Writes the line that says that a scene was judged. Its conflicts follow.
pub fn render_judged_scene(
    here: &str,
    (first, last): (usize, usize),
    id: &str,
    judge: &str,
) -> String {
    format!(
        "- {here}:{first}-{last} · scene {id} · judged by {}\n",
        in_one_line(judge)
    )
}

/// Writes the item of a conflict: both places, both texts, the reason.
pub fn render_judgement(
    [at, against]: [&str; 2],
    [claim, evidence]: [&str; 2],
    why: &str,
    confidence: f32,
    judge: &str,
) -> String {
    let [claim, evidence, why] = [claim, evidence, why].map(in_one_line);
    format!(
        "- {at} ⇄ {against} · confidence {confidence:.2} · judged by {}\n  \"{claim}\" / \
         \"{evidence}\": {why}\n",
        in_one_line(judge)
    )
}

fn in_one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The judgements of all pages, in order.
#[derive(Default)]
struct Judgements {
    found: Vec<Judgement>,
    /// The judge whose answer about a scene is the newest.
    judges: BTreeMap<String, String>,
}

impl Judgements {
    fn of(pages: &[Page]) -> Judgements {
        let mut all = Judgements::default();
        let is_judged = |page: &&Page| page.form == Some(Form::Judgements);
        pages
            .iter()
            .filter(is_judged)
            .for_each(|page| all.read(page));
        all
    }

    /// Reads the items below headings about conflicts.
    fn read(&mut self, page: &Page) {
        let mut scene = None::<String>;
        for (line, item) in items_of(&page.text) {
            if let Some((id, judge)) = read_judged_scene(&item) {
                // A later answer about the same scene replaces an earlier one.
                self.found.retain(|one| one.scene.as_ref() != Some(&id));
                self.judges.insert(id.clone(), judge);
                scene = Some(id);
            } else {
                let kept = Place::new(&page.path, line);
                self.found.extend(read_item(&item, kept, scene.clone()));
            }
        }
    }
}

/// The list items below headings about conflicts, with their lines. An item goes on on indented
/// lines.
fn items_of(text: &str) -> Vec<(usize, String)> {
    let document = Document::parse(text);
    let (mut end, mut items) = (0, Vec::new());
    let mut lines = text.split_inclusive('\n').enumerate().peekable();
    while let Some((nth, line)) = lines.next() {
        let begin = end;
        end += line.len();
        let mut item = line.trim_end().to_owned();
        while let Some((_, next)) = lines.next_if(|(_, next)| next.starts_with([' ', '\t'])) {
            end += next.len();
            item.push(' ');
            item.push_str(next.trim());
        }
        if let Some(item) = item.strip_prefix("- ")
            && is_about_conflicts(&document.section_at(begin).title)
        {
            items.push((nth + 1, item.to_owned()));
        }
    }
    items
}

/// Returns the items of a report that name a conflict and cannot be read as one, with their lines:
/// a place or a quotation is missing.
pub fn find_unreadable(text: &str) -> Vec<(usize, String)> {
    let mut items = items_of(text);
    items.retain(|(_, item)| {
        read_judged_scene(item).is_none()
            && read_item(item, Place::new("", 0), None).is_none()
            && !says_none(item)
    });
    items
}

fn says_none(item: &str) -> bool {
    let said = item
        .trim_start_matches(['*', '_', '(', '（'])
        .to_lowercase();
    ["none", "no conflict", "无", "没有"]
        .iter()
        .any(|none| said.starts_with(none))
}

fn is_about_conflicts(title: &str) -> bool {
    title.to_lowercase().starts_with("conflicts") || title.contains("冲突")
}

fn read_judged_scene(item: &str) -> Option<(String, String)> {
    let mut parts = item.trim().split(" · ");
    parts.next()?;
    let id = parts.next()?.strip_prefix("scene ")?;
    let judge = parts.next()?.strip_prefix("judged by ")?;
    Some((id.to_owned(), judge.to_owned()))
}

/// Reads an item: both places, who judged, and both texts.
fn read_item(item: &str, kept: Place, scene: Option<String>) -> Option<Judgement> {
    let (at, after) = item.split_once('⇄')?;
    let (head, texts) = after.split_at(after.find(['"', '“'])?);
    let mut parts = head.split('·').map(str::trim);
    let against = parse_place(parts.next()?)?;
    let (mut judge, mut confidence) = (String::new(), 0.0);
    for part in parts {
        let after = |names: [&str; 2]| names.iter().find_map(|name| part.strip_prefix(name));
        if let Some(said) = after(["judged by ", "判定者："]) {
            judge = said.trim().to_owned();
        } else if let Some(said) = after(["confidence ", "把握"]) {
            confidence = said.trim().parse().unwrap_or_default();
        }
    }
    let (claim, evidence, why) = read_quotations(texts.trim())?;
    Some(Judgement {
        at: parse_place(at)?,
        against,
        claim,
        evidence,
        why,
        confidence,
        judge,
        kept,
        scene,
    })
}

fn parse_place(text: &str) -> Option<Place> {
    let text = text.trim().trim_matches('`');
    let (path, lines) = text.rsplit_once(':')?;
    let first = lines.split(['-', '–']).next()?;
    Some(Place::new(path, first.trim().parse().ok()?))
}

/// How both texts are quoted: the opening mark, what is between them, and what ends them.
const QUOTED: [(char, &str, &str); 5] = [
    ('"', "\" / \"", "\":"),
    ('"', "\" / \"", "\"："),
    ('“', "”／“", "”："),
    ('“', "” / “", "”："),
    ('“', "” / “", "”:"),
];

/// Reads `"claim" / "evidence": reason`.
fn read_quotations(text: &str) -> Option<(String, String, String)> {
    QUOTED.iter().find_map(|(open, between, end)| {
        let (claim, rest) = text.strip_prefix(*open)?.split_once(between)?;
        let (evidence, why) = rest.split_once(end)?;
        Some((claim.to_owned(), evidence.to_owned(), why.trim().to_owned()))
    })
}

/// The text of a comparison: without white space and Markdown marks.
fn bare(text: &str) -> String {
    text.chars()
        .filter(|c| !c.is_whitespace() && !"*_`".contains(*c))
        .collect()
}

/// The least that identifies a sentence or a line, in characters.
const SHORTEST: usize = 4;
const SHORTEST_HAN: usize = 2;

/// Returns what models have found in a text, as far as its sentence and the evidence still exist.
/// Judgements about an earlier version of the same chapter count too.
pub fn kept_judgements(pages: &[Page], path: &str, text: &str, claims: &[Claim]) -> KeptJudgements {
    let all = Judgements::of(pages);
    let mut kept = KeptJudgements::default();
    let scenes = scenes_of(text, claims);
    let is_report = |page: &Page| {
        let chapter = chapter_number(&page.path);
        page.form == Some(Form::Judgements) && chapter.is_some() && is_same_text(&page.path, path)
    };
    if !pages.iter().any(is_report) {
        let unjudged = scenes.iter().filter(|(_, id)| !all.judges.contains_key(id));
        kept.unjudged = unjudged.map(|(scene, _)| scene.number).collect();
    }
    if all.found.is_empty() && all.judges.is_empty() {
        return kept;
    }
    for (scene, id) in &scenes {
        if let Some(judge) = all.judges.get(id) {
            kept.judged.insert(scene.number, judge.clone());
        }
    }
    let bare_claims: Vec<String> = claims.iter().map(|claim| bare(&claim.text)).collect();
    let mut seen = BTreeSet::new();
    let about = |one: &&Judgement| is_same_text(&one.at.path, path);
    for judgement in all.found.iter().filter(about) {
        let Some(nth) = find_claim(judgement, path, claims, &bare_claims) else {
            continue;
        };
        let is_here = |page: &&Page| page.path == judgement.against.path;
        let source = pages.iter().find(is_here);
        let Some((line, evidence)) = source.and_then(|page| find_evidence(page, judgement)) else {
            continue;
        };
        let here = scenes.iter().find(|(scene, _)| scene.claims.contains(&nth));
        let is_old = match (&judgement.scene, here) {
            (Some(judged), Some((_, id))) => judged != id,
            (None, Some((_, id))) if judgement.at.path != path => {
                !judged_scenes(pages, judgement).contains(id)
            }
            _ => false,
        };
        let id = conflict_id(&claims[nth].text, &evidence);
        if seen.insert(id.clone()) {
            kept.conflicts.push(KeptConflict {
                id,
                claim: claims[nth].clone(),
                against: Place::new(&judgement.against.path, line),
                judgement: judgement.clone(),
                is_old,
            });
        }
    }
    kept
}

fn is_same_text(one: &str, other: &str) -> bool {
    let chapter = chapter_number(one);
    one == other || chapter.is_some() && chapter == chapter_number(other)
}

/// Finds the sentence of a judgement: the nearest with these words.
fn find_claim(
    judgement: &Judgement,
    path: &str,
    claims: &[Claim],
    bare_claims: &[String],
) -> Option<usize> {
    let found = (0..claims.len()).filter(|nth| contains(&bare_claims[*nth], &judgement.claim));
    let is_here = judgement.at.path == path;
    found.min_by_key(|nth| {
        let line = claims[*nth].line;
        is_here.then(|| line.abs_diff(judgement.at.line))
    })
}

/// Finds the line of evidence that a judgement quotes, the nearest with these words: its number, and
/// its text as it is shown to a judge. A waiver is for that line, however much of it is quoted.
fn find_evidence(page: &Page, judgement: &Judgement) -> Option<(usize, String)> {
    let quoted = without_period(&judgement.evidence);
    if !contains(&bare(&without_periods(&page.text)), &quoted) {
        return None;
    }
    let line_of = judgement.against.line;
    let sentences: Vec<(usize, String)> = match page.tier {
        Tier::L2 => cut_claims(&page.text)
            .into_iter()
            .map(|claim| (claim.line, claim.text))
            .collect(),
        _ => page
            .text
            .lines()
            .zip(1..)
            .flat_map(|(line, nth)| {
                entry_parts(&plain(line))
                    .into_iter()
                    .map(move |part| (nth, part))
            })
            .collect(),
    };
    let says = |(_, text): &&(usize, String)| contains(&bare(&without_period(text)), &quoted);
    let found = sentences.iter().filter(says);
    let nearest = found.min_by_key(|(nth, _)| nth.abs_diff(line_of)).cloned();
    // A quotation of several lines.
    nearest.or_else(|| Some((line_of, judgement.evidence.clone())))
}

fn without_periods(text: &str) -> String {
    text.lines()
        .map(|line| without_period(line) + "\n")
        .collect()
}

/// The scenes of the text that a report is about, as it is now.
fn judged_scenes(pages: &[Page], judgement: &Judgement) -> Vec<String> {
    let page = pages.iter().find(|page| page.path == judgement.at.path);
    let Some(page) = page else {
        return Vec::new();
    };
    let scenes = scenes_of(&page.text, &cut_claims(&page.text));
    scenes.into_iter().map(|(_, id)| id).collect()
}

/// Whether a text, without its white space and marks, contains a quotation.
fn contains(bare_text: &str, quotation: &str) -> bool {
    let wanted = bare(quotation);
    let least = if has_han(&wanted) {
        SHORTEST_HAN
    } else {
        SHORTEST
    };
    wanted.chars().count() >= least && bare_text.contains(&wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(path: &str, form: Option<Form>, text: &str) -> Page {
        Page {
            path: path.into(),
            tier: Tier::L1,
            is_memory: form.is_none(),
            form,
            text: text.into(),
        }
    }

    const DRAFT: &str =
        "# Five\n\nMara came in.\nShe signed with her right hand.\n\n## Later\n\nShe slept.\n";
    const REPORT: &str = "# Check\n\n## Conflicts\n- drafts/ch05-draft.md:4 ⇄ characters.md:4 · L1 · [premise] · confidence 0.9 · judged by checker\n  \"signed with her right hand\" / \"handed: left\": cannot both hold.\n\n## Unknown\n- drafts/ch05-draft.md:8 ⇄ characters.md:4\n  \"She slept\" / \"handed: left\": who knows\n";

    fn kept(report: &str, draft: &str, path: &str, text: &str, memory: &str) -> KeptJudgements {
        let pages = [
            page("characters.md", None, memory),
            page("checks/ch05-check.md", Some(Form::Judgements), report),
            page("drafts/ch05-draft.md", None, draft),
        ];
        kept_judgements(&pages, path, text, &cut_claims(text))
    }

    const MEMORY: &str = "# C\n\n## Mara\n- [arc] handed: **left**\n";

    #[test]
    fn a_finding_holds_while_its_scene_and_evidence_are_unchanged() {
        let found = kept(REPORT, DRAFT, "manuscripts/ch05.md", DRAFT, MEMORY);
        let [one] = found.conflicts.as_slice() else {
            panic!("{found:?}");
        };
        assert_eq!((one.claim.line, one.is_old), (4, false));
        assert_eq!(one.judgement.judge, "checker");
        assert_eq!(one.judgement.kept, Place::new("checks/ch05-check.md", 4));
        assert_eq!(one.judgement.why, "cannot both hold.");

        let later = DRAFT.replace("slept", "woke");
        let found = kept(REPORT, DRAFT, "manuscripts/ch05.md", &later, MEMORY);
        assert!(!found.conflicts[0].is_old, "another scene");
        let before = DRAFT.replace("came in", "hid her left hand");
        let found = kept(REPORT, DRAFT, "manuscripts/ch05.md", &before, MEMORY);
        assert!(found.conflicts[0].is_old, "a sentence of the scene");

        for (path, text, memory) in [
            ("manuscripts/ch06.md", DRAFT, MEMORY),
            (
                "manuscripts/ch05.md",
                "She signed with her left hand.",
                MEMORY,
            ),
            ("manuscripts/ch05.md", DRAFT, "## Mara\n- handed: right\n"),
        ] {
            assert!(kept(REPORT, DRAFT, path, text, memory).conflicts.is_empty());
        }
    }

    /// A waiver is for the sentence and the line, however a report quotes them, and whether or not
    /// the fact has ended since.
    #[test]
    fn the_same_pair_of_lines_has_one_id() {
        let id = |evidence: &str, memory: &str| {
            let report = format!(
                "## 冲突\n- drafts/ch05-draft.md:1 ⇄ characters.md:2 · 判定者：checker\n  “左手攥紧缆绳”／“{evidence}”：不能并存。\n"
            );
            let draft = "他左手攥紧缆绳。\n";
            let found = kept(&report, draft, "drafts/ch05-draft.md", draft, memory);
            found.conflicts[0].id.clone()
        };
        let memory = "## 沈砚\n- 伤势：左腕烧伤，手指合不拢 [→ manuscripts/ch02.md#火炉]\n";
        let ended = "## 沈砚\n- 伤势：左腕烧伤，手指合不拢（自 ch02，至 ch04） [→ manuscripts/ch02.md#火炉]\n";
        let whole = id("伤势：左腕烧伤，手指合不拢", memory);
        assert_eq!(id("左腕烧伤，手指合不拢", memory), whole);
        assert_eq!(id("手指合不拢", ended), whole);
        assert_eq!(id("伤势：左腕烧伤，手指合不拢（自 ch02）", ended), whole);
        assert_eq!(
            whole,
            conflict_id("他左手攥紧缆绳。", "伤势：左腕烧伤，手指合不拢")
        );
    }

    #[test]
    fn chinese_reports_have_their_own_marks() {
        let report = "## 冲突\n- drafts/ch05-draft.md:1 ⇄ characters.md:2 · L1 · 把握 0.8 · 判定者：checker\n  “右手签了名”／“惯用手：左”：不能并存。\n";
        let draft = "沈砚用右手签了名。\n";
        let memory = "## 沈砚\n- 惯用手：左\n";
        let found = kept(report, draft, "drafts/ch05-edited.md", draft, memory);
        let one = &found.conflicts[0].judgement;
        assert_eq!(
            (one.judge.as_str(), one.confidence, one.why.as_str()),
            ("checker", 0.8, "不能并存。")
        );
    }

    #[test]
    fn what_is_written_is_read_again_and_a_later_answer_replaces_it() {
        let claims = cut_claims(DRAFT);
        let (scene, id) = &scenes_of(DRAFT, &claims)[0];
        let lines = (scene.first_line, scene.last_line);
        let head = |judge: &str| render_judged_scene("drafts/ch05-draft.md", lines, id, judge);
        let one = Judgement {
            at: Place::new("drafts/ch05-draft.md", 4),
            against: Place::new("characters.md", 4),
            claim: claims[1].text.clone(),
            evidence: "handed: left".into(),
            why: "one · \"hand\": another".into(),
            confidence: 0.9,
            judge: "codex".into(),
            kept: Place::new("checks/ch05-check.md", 4),
            scene: Some(id.clone()),
        };
        let item = |one: &Judgement| {
            let [at, against] = [&one.at, &one.against].map(Place::to_string);
            render_judgement(
                [&at, &against],
                [&one.claim, &one.evidence],
                &one.why,
                one.confidence,
                &one.judge,
            )
        };
        let mut text = format!("# Conflicts\n\n{}{}", head("codex"), item(&one));
        let found = kept(&text, DRAFT, "drafts/ch05-draft.md", DRAFT, MEMORY);
        assert_eq!(found.conflicts[0].judgement, one);
        assert_eq!(found.judged, [(1, "codex".to_owned())].into());
        assert_eq!(
            found.conflicts[0].id,
            conflict_id(&claims[1].text, "handed: left")
        );

        text.push_str(&head("claude"));
        let found = kept(&text, DRAFT, "drafts/ch05-draft.md", DRAFT, MEMORY);
        assert!(found.conflicts.is_empty());
        assert_eq!(found.judged, [(1, "claude".to_owned())].into());
    }

    #[test]
    fn an_item_that_cannot_be_read_is_named() {
        let good =
            "- a.md:4 ⇄ b.md:4 · judged by checker\n  \"right hand\" / \"handed: left\": no.";
        for (item, is_bad) in [
            (good, false),
            ("- none", false),
            ("- (None.)", false),
            ("- 无", false),
            ("- a.md:4-9 · scene s1 · judged by x", false),
            (
                "- a.md:4 ⇄ b.md:4 · judged by checker\n  \"right hand\": not left",
                true,
            ),
            (
                "- a.md ⇄ b.md:4 \"right hand\" / \"handed: left\": no",
                true,
            ),
            ("- She signs with the right hand.", true),
        ] {
            let report = format!("## Conflicts\n\n{item}\n\n## Unknown\n- who knows\n");
            let lines: Vec<usize> = find_unreadable(&report).iter().map(|one| one.0).collect();
            assert_eq!(lines, if is_bad { vec![3] } else { vec![] }, "{item}");
        }
    }
}
