//! Learning: a question that memory (L1) cannot answer is searched in the manuscripts (L2), offered
//! as a fact, and becomes memory when it is accepted.
//!
//! Only an acceptance changes memory. Until then the fact is in the file of proposals.

use quipu_claims::{
    Asked, ClosedFact, Memory, Page, Passages, Place, PlaceError, Proposal, Question,
    best_sentence, cut_claims, has_ended, read_offers, read_proposals, speaks_of,
};
use quipu_contract::{Actor, BadPath, Form, ProjectPath};
use quipu_recall::{Damage, Error, Tier};
use quipu_store::{Change, Expect, LeaseToken, Receipt, StoreError, Version};
use quipu_text::{Document, Level};
use thiserror::Error;

use crate::files::read::{ReadError, may_read_whole};
use crate::novel::check::file_of;
use crate::novel::memory_files::{MemoryError, MemoryFiles};
use crate::novel::tier_counts::note_asked;
use crate::project::open::Project;
use crate::view::pages::{gather, gather_memory};

/// The number of bytes before and after a sentence in which its person may be named.
const NEAR: usize = 160;
/// The number of passages searched for the answer.
const PASSAGES: usize = 8;

#[derive(Debug, Error)]
pub enum LearnError {
    #[error("not found in memory or in the manuscripts")]
    Unknown,
    #[error("unknown proposal `{0}`")]
    NoProposal(String),
    #[error("the fact cannot be added there: {why}")]
    Place {
        why: PlaceError,
        fact: Box<Proposal>,
    },
    #[error("`{0}` is not UTF-8: a fact cannot be added without changing its bytes")]
    NotText(ProjectPath),
    #[error(transparent)]
    Path(#[from] BadPath),
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("the manuscripts cannot be searched: {0}")]
    Search(#[from] Damage),
    #[error("the manuscripts cannot be searched: {0}")]
    Recall(#[from] Error),
}

/// The fact to learn.
pub struct Wanted<'a> {
    pub question: &'a str,
    /// `path#section` of the memory file for the fact.
    pub to: &'a str,
    pub level: Level,
    /// The fact in the caller's words. Default: the sentence that was found.
    pub text: Option<&'a str>,
}

#[derive(Debug)]
pub enum Learned {
    /// Memory already has the answer.
    Known { text: String, at: Place },
    /// A manuscript has the answer; the fact is offered.
    Proposed {
        proposal: Proposal,
        sentence: String,
        at: Place,
        receipt: Box<Receipt>,
    },
}

/// Searches memory for an answer, then the manuscripts.
pub fn learn(
    project: &Project,
    actor: &Actor,
    wanted: &Wanted<'_>,
    lease: Option<LeaseToken>,
) -> Result<Learned, LearnError> {
    let pages = gather(project, actor)?.pages;
    if let Some(KnownLine { text, at, .. }) = find_in_memory(&pages, wanted.question) {
        note_asked(project, &[(Asked::Hit, Asked::No)]);
        return Ok(Learned::Known { text, at });
    }
    let Some((sentence, at)) = find_in_manuscripts(&pages, wanted.question)? else {
        note_asked(project, &[(Asked::Miss, Asked::Miss)]);
        return Err(LearnError::Unknown);
    };
    note_asked(project, &[(Asked::Miss, Asked::Hit)]);
    let source = section_of(&pages, &at);
    let proposal = Proposal::new(
        wanted.text.unwrap_or(&sentence),
        wanted.level,
        &source,
        wanted.to,
    );
    let path = proposal_file(project);
    let ((), receipt) = commit_anew(project, || {
        let before = own_text_of(project, &path)?;
        let text = before.as_ref().map_or("# Learned\n\n", |(text, _)| text);
        let is_known = read_proposals(text)
            .iter()
            .any(|other| other.id == proposal.id);
        let text = if is_known {
            text.to_owned()
        } else {
            text.to_owned() + &proposal.render()
        };
        let mut change = Change::by(actor);
        change.lease = lease.clone();
        change = match before {
            Some((_, version)) => change.write(&path, text, Expect::Version(version)),
            None => change.create(&path, text),
        };
        Ok(((), change))
    })?;
    Ok(Learned::Proposed {
        proposal,
        sentence,
        at,
        receipt: Box::new(receipt),
    })
}

/// A question with the names that memory knows.
pub struct PosedQuestion<'q> {
    pub question: Question,
    text: &'q str,
    pages: Vec<Page>,
}

impl PosedQuestion<'_> {
    /// Finds the line of memory that answers it.
    pub fn find_in_memory(&self) -> Option<KnownLine> {
        find_in_memory(&self.pages, self.text)
    }
}

/// Reads a question with the names that memory knows.
pub fn question_of<'q>(
    project: &Project,
    actor: &Actor,
    text: &'q str,
) -> Result<PosedQuestion<'q>, ReadError> {
    let pages = gather_memory(project, actor)?;
    Ok(PosedQuestion {
        question: Question::of(text, &Memory::of(&pages).entities),
        text,
        pages,
    })
}

/// A line of memory that answers a question.
#[derive(Debug, Clone)]
pub struct KnownLine {
    pub text: String,
    /// The heading above it.
    pub of: String,
    pub at: Place,
}

/// Finds the line of memory that answers a question, rather one that has not ended.
fn find_in_memory(pages: &[Page], question: &str) -> Option<KnownLine> {
    let asked = Question::of(question, &Memory::of(pages).entities);
    let memory = pages.iter().filter(|page| page.states_facts());
    let all: Vec<KnownLine> = memory
        .flat_map(|page| {
            let document = Document::parse(&page.text);
            let heading = |line: usize| {
                let range = document.lines().range(line, page.text.len());
                let section = document.section_at(range.map_or(0, |range| range.start));
                section.title.clone()
            };
            let lines = cut_claims(&page.text).into_iter();
            let known = lines.filter(|line| !line.italic).filter_map(|line| {
                let of = heading(line.line);
                asked.is_answered_by(&line.text, &of).then(|| KnownLine {
                    at: Place::new(&page.path, line.line),
                    text: line.text,
                    of,
                })
            });
            known.collect::<Vec<_>>()
        })
        .collect();
    let open = all.iter().find(|known| !has_ended(&known.text));
    open.or(all.first()).cloned()
}

/// Commits a change built from the current texts. Builds it again if another commit came first.
fn commit_anew<T>(
    project: &Project,
    make: impl Fn() -> Result<(T, Change), LearnError>,
) -> Result<(T, Receipt), LearnError> {
    const TRIES: usize = 64;
    let mut tried = 0;
    loop {
        let (told, change) = make()?;
        let news: Vec<ProjectPath> = change
            .ops
            .iter()
            .filter(|op| matches!(op, quipu_store::Op::Create { .. }))
            .map(|op| op.path().clone())
            .collect();
        tried += 1;
        match project
            .validate(change)
            .and_then(quipu_store::Validated::publish)
        {
            Err(StoreError::Stale { .. }) if tried < TRIES => {}
            Err(StoreError::Refused(_)) if tried < TRIES && made_meanwhile(project, &news)? => {}
            other => return Ok((told, other?)),
        }
    }
}

fn made_meanwhile(project: &Project, news: &[ProjectPath]) -> Result<bool, StoreError> {
    for path in news {
        if project.store.read(path)?.is_some() {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Finds the sentence in the manuscripts that answers, with its place.
pub(crate) fn find_in_manuscripts(
    pages: &[Page],
    question: &str,
) -> Result<Option<(String, Place)>, LearnError> {
    let passages = Passages::of(pages.iter().filter(|page| page.tier == Tier::L2))?;
    let asked = Question::of(question, &Memory::of(pages).entities);
    let mut best: Option<(String, Place)> = None;
    for (passage, _) in passages.nearest(question, PASSAGES)? {
        let page = Page {
            path: passage.at.path.clone(),
            tier: Tier::L2,
            is_memory: true,
            form: None,
            text: passage.text.clone(),
        };
        if let Some((sentence, at)) = best_sentence(&page, question) {
            let line = passage
                .lines
                .get(at.line - 1)
                .copied()
                .unwrap_or(passage.at.line);
            let place = Place::new(&passage.at.path, line);
            if !asked.is_answered_by(&sentence, around(&passage.text, &sentence)) {
                continue;
            }
            if speaks_of(&sentence, question) {
                return Ok(Some((sentence, place)));
            }
            best.get_or_insert((sentence, place));
        }
    }
    Ok(best)
}

/// The text before and after a sentence: prose names its person there, and says `she` in the sentence.
fn around<'t>(text: &'t str, sentence: &str) -> &'t str {
    let Some(at) = text.find(sentence) else {
        return "";
    };
    let start = text.floor_char_boundary(at.saturating_sub(NEAR));
    let end = text.ceil_char_boundary((at + sentence.len() + NEAR).min(text.len()));
    &text[start..end]
}

/// `path#section` of a place.
fn section_of(pages: &[Page], at: &Place) -> String {
    let Some(page) = pages.iter().find(|page| page.path == at.path) else {
        return at.path.clone();
    };
    let document = Document::parse(&page.text);
    let offset = document
        .lines()
        .range(at.line, page.text.len())
        .map_or(0, |range| range.start);
    match document.anchor_of(document.section_at(offset)) {
        "" => at.path.clone(),
        anchor => format!("{}#{anchor}", at.path),
    }
}

fn proposal_file(project: &Project) -> ProjectPath {
    file_of(project, Form::Facts, "learned.md")
}

/// The text and version of a file that will be rewritten.
fn own_text_of(
    project: &Project,
    path: &ProjectPath,
) -> Result<Option<(String, Version)>, LearnError> {
    let Some((bytes, version)) = project.store.read(path)? else {
        return Ok(None);
    };
    let text = String::from_utf8(bytes).map_err(|_| LearnError::NotText(path.clone()))?;
    Ok(Some((text, version)))
}

fn text_of(project: &Project, path: &ProjectPath) -> Result<Option<String>, StoreError> {
    Ok(project
        .store
        .read(path)?
        .map(|(bytes, _)| String::from_utf8_lossy(&bytes).into_owned()))
}

/// The facts that wait for acceptance, from files that the actor may read: facts learnt from
/// questions and facts extracted from a final chapter.
pub fn proposals(project: &Project, actor: &Actor) -> Result<Vec<Proposal>, LearnError> {
    let seen = offered(project)?
        .into_iter()
        .filter(|file| may_read_whole(project, actor, &file.path).is_ok());
    Ok(seen.flat_map(|file| file.waiting).collect())
}

/// Returns why a fact cannot be placed as it is, so that only a person can add it.
pub fn find_obstacle(project: &Project, fact: &Proposal) -> Option<LearnError> {
    let place = || -> Result<(), LearnError> {
        let path = ProjectPath::parse(fact.file())?;
        let mut memory = MemoryFiles::read(project).map_err(|error| refused(error, fact))?;
        let placed = memory.place(&path, fact.section(), &fact.entry);
        placed.map(drop).map_err(|error| refused(error, fact))
    };
    place().err()
}

/// A file of offers, and its facts that memory does not contain yet.
struct Offered {
    path: ProjectPath,
    text: String,
    version: Version,
    waiting: Vec<Proposal>,
}

fn offered(project: &Project) -> Result<Vec<Offered>, LearnError> {
    let mut found = Vec::new();
    let own = proposal_file(project);
    let is_offers = |path: &ProjectPath| {
        *path == own || project.contract.rule(path).and_then(|rule| rule.form) == Some(Form::Facts)
    };
    for path in project.store.list()?.into_iter().filter(is_offers) {
        let Some((text, version)) = own_text_of(project, &path)? else {
            continue;
        };
        let mut waiting = Vec::new();
        for offer in read_proposals(&text).into_iter().chain(read_offers(&text)) {
            let memory = ProjectPath::parse(offer.file())
                .ok()
                .map(|file| text_of(project, &file))
                .transpose()?
                .flatten();
            if !memory.is_some_and(|memory| offer.stands_in(&memory)) {
                waiting.push(offer);
            }
        }
        found.push(Offered {
            path,
            text,
            version,
            waiting,
        });
    }
    Ok(found)
}

/// A fact that became memory.
pub struct AcceptedFact {
    pub proposal: Proposal,
    /// The entries that it closed.
    pub closed: Vec<ClosedFact>,
}

/// Adds a fact to memory, closes the one that it follows and removes it from the list, in one
/// commit.
pub fn accept_proposal(
    project: &Project,
    actor: &Actor,
    id: &str,
    lease: Option<LeaseToken>,
) -> Result<(AcceptedFact, Receipt), LearnError> {
    commit_anew(project, || {
        let (proposal, mut change) = taken_off(project, actor, id)?;
        change.lease = lease.clone();
        let path = ProjectPath::parse(proposal.file())?;
        let refused = |error| refused(error, &proposal);
        let mut memory = MemoryFiles::read(project).map_err(refused)?;
        let placed = memory.place(&path, proposal.section(), &proposal.entry);
        let closed = placed.map_err(refused)?;
        change.ops.extend(memory.into_ops());
        let accepted = AcceptedFact { proposal, closed };
        Ok((accepted, change.why(format!("learnt {id}"))))
    })
}

fn refused(error: MemoryError, fact: &Proposal) -> LearnError {
    match error {
        MemoryError::Place(why) => LearnError::Place {
            why,
            fact: Box::new(fact.clone()),
        },
        MemoryError::NotText(path) => LearnError::NotText(path),
        MemoryError::Read(error) => LearnError::Read(error),
    }
}

/// Removes a fact from the list.
pub fn reject_proposal(
    project: &Project,
    actor: &Actor,
    id: &str,
    lease: Option<LeaseToken>,
) -> Result<(Proposal, Receipt), LearnError> {
    commit_anew(project, || {
        let (proposal, mut change) = taken_off(project, actor, id)?;
        change.lease = lease.clone();
        Ok((proposal, change.why(format!("rejected {id}"))))
    })
}

fn taken_off(project: &Project, actor: &Actor, id: &str) -> Result<(Proposal, Change), LearnError> {
    let waits = |file: Offered| {
        let proposal = file.waiting.iter().find(|offer| offer.id == id)?.clone();
        Some((file, proposal))
    };
    let taken = offered(project)?.into_iter().find_map(waits);
    let (
        Offered {
            path,
            text,
            version,
            ..
        },
        proposal,
    ) = taken.ok_or_else(|| LearnError::NoProposal(id.to_owned()))?;
    let its = proposal.line..proposal.line + proposal.lines;
    let kept: String = text
        .split_inclusive('\n')
        .enumerate()
        .filter(|(nth, _)| !its.contains(&(nth + 1)))
        .map(|(_, line)| line)
        .collect();
    let mut change = Change::by(actor).write(&path, kept, Expect::Version(version));
    change.force = true;
    Ok((proposal, change))
}
