//! Journal heads recorded outside the journal, and their comparison with it.
//!
//! `finish` writes the head into its git commit, and signs it if the user has a key. An attacker
//! who rewrites the journal and recomputes its hashes passes every check of the journal alone;
//! these records reveal it.

use std::path::Path;

use quipu_protocol::UntrustedRepository;
use quipu_store::{
    ExpectedHead, HeadFound, HeadsFound, JournalHead, Store, StoreError, parse_time,
};
use serde::Serialize;

use crate::head_key;

/// The trailers of a git commit: `Quipu-Head: SEQ:HASH JOURNAL [FOLDER]`, and a signature of it.
const TRAILER: &str = "Quipu-Head";
const SIGNATURE: &str = "Quipu-Head-Signature";
/// Maximum number of commits with a head to compare, newest first, and of reflog entries to read.
const MOST_COMMITS: &str = "--max-count=500";
/// The file of signed heads, below `.quipu/`.
pub const SIGNED: &str = "signed-heads";

/// The place where a head was recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Noted {
    /// In a commit; `local` if the reflog shows that this clone made it.
    Git {
        commit: String,
        time: i64,
        local: bool,
        folder: String,
    },
    /// In the file of signed heads.
    File { line: usize },
}

#[derive(Debug, Clone)]
struct NotedHead {
    noted: Noted,
    head: ExpectedHead,
    journal: String,
    /// Public key and signature.
    signature: Option<(String, String)>,
}

/// The result of the comparison.
#[derive(Debug, Default, Serialize)]
pub struct Compared {
    /// Number of recorded heads, in git commits and in the file of signed heads, that the journal
    /// contains.
    pub agree: usize,
    /// Number of these that are signed with the user's key.
    pub signed: usize,
    /// Heads of other journals: of other clones, or of a journal before this one.
    pub of_other_journals: usize,
    /// Signatures by other keys; they are not checked.
    pub by_other_keys: usize,
    /// Place, problem, remedy.
    #[serde(skip)]
    pub problems: Vec<(String, String, String)>,
    /// Whether any head was recorded.
    #[serde(skip)]
    pub any: bool,
}

/// Compares the journal with every recorded head that can be found without a network.
pub fn compare(store: &Store) -> Result<Compared, StoreError> {
    let folder = folder_in_repository(store.root()).unwrap_or_default();
    let mut noted = heads_in_git(store.root());
    noted.extend(heads_in_file(store.root()));
    let expected: Vec<ExpectedHead> = noted.iter().map(|note| note.head.clone()).collect();
    let mut compared = Compared {
        any: !noted.is_empty(),
        ..Compared::default()
    };
    if noted.is_empty() {
        return Ok(compared);
    }
    let found = store.find_heads(&expected)?;
    let own_key = head_key::public_key();
    for (note, is) in noted.iter().zip(&found.found) {
        if !is_of(
            note,
            &found,
            &folder,
            own_key.as_deref(),
            store.commit_log().is_some(),
        ) {
            compared.of_other_journals += 1;
            continue;
        }
        let place = match &note.noted {
            Noted::Git { commit, .. } => {
                format!("git commit {}", commit.get(..12).unwrap_or(commit))
            }
            Noted::File { line } => format!(".quipu/{SIGNED}:{line}"),
        };
        let signed = match &note.signature {
            Some((key, signature)) if own_key.as_ref() == Some(key) => {
                if !head_key::verifies(key, signature, &signed_text(&note.head, &note.journal)) {
                    let what = format!(
                        "the signature of head {} is not by your key: the line was changed",
                        note.head
                    );
                    compared.problems.push((
                        place,
                        what,
                        "compare the file with a backup, and the \
                        journal with a head that you saved elsewhere: quipu verify --expect \
                        SEQ:HASH"
                            .into(),
                    ));
                    continue;
                }
                true
            }
            Some(_) => {
                compared.by_other_keys += 1;
                false
            }
            None => false,
        };
        if *is == HeadFound::Same {
            compared.agree += 1;
            compared.signed += usize::from(signed);
        } else {
            compared.problems.push((
                place,
                differs(&note.head, is, found.newest),
                AFTER_DIFFERENCE.into(),
            ));
        }
    }
    Ok(compared)
}

/// Compares the journal with one head that the caller supplies.
pub fn compare_one(
    store: &Store,
    head: &ExpectedHead,
) -> Result<Option<(String, String)>, StoreError> {
    let found = store.find_heads(std::slice::from_ref(head))?;
    let is = found.found.first().unwrap_or(&HeadFound::Missing);
    Ok((*is != HeadFound::Same)
        .then(|| (differs(head, is, found.newest), AFTER_DIFFERENCE.to_owned())))
}

/// Compares a working copy's journal with the shared store. Returns a report line, its JSON, and a
/// problem.
pub fn compare_shared(store: &Store) -> Result<Option<ComparedShared>, StoreError> {
    let Some(order) = store.commit_log() else {
        return Ok(None);
    };
    let about = order.describe();
    let place = format!("`{}` at {}", about.project, about.address);
    let log = match store.compare_log() {
        Ok(Some(log)) => log,
        Ok(None) => return Ok(None),
        Err(StoreError::Unreachable { what, .. }) => {
            return Ok(Some(ComparedShared::not_asked(&place, &what)));
        }
        Err(StoreError::Refused(refused)) => {
            return Ok(Some(ComparedShared::not_asked(&place, &refused.what)));
        }
        Err(error) => return Err(error),
    };
    let problem = log.differing.first().map(|first| {
        let others = if log.differ > 1 {
            format!(" and {} more", log.differ - 1)
        } else {
            String::new()
        };
        let what = format!(
            "record {first}{others} of this journal differs from the shared store: \
            the local journal was rewritten, or the database was replaced"
        );
        let remedy = format!(
            "quipu checkout '{}' --project '{}' NEW-FOLDER     (creates a working copy from the \
             shared store; keep this folder for comparison)",
            log.address, log.project
        );
        (place.clone(), what, remedy)
    });
    let newest = log.agree + log.differ;
    let report = format!(
        "revision {newest} of {place}: {} of {newest} records agree with the shared store\n",
        log.agree
    );
    Ok(Some(ComparedShared {
        report,
        json: serde_json::json!(log),
        problem,
    }))
}

/// The comparison of a working copy's journal with its shared store.
pub struct ComparedShared {
    pub report: String,
    pub json: serde_json::Value,
    pub problem: Option<(String, String, String)>,
}

impl ComparedShared {
    fn not_asked(place: &str, why: &str) -> ComparedShared {
        let report = format!("not compared with {place}: {why}\n");
        ComparedShared {
            report,
            json: serde_json::json!({"not_compared": why}),
            problem: None,
        }
    }
}

const AFTER_DIFFERENCE: &str = "the journal was rewritten, truncated or replaced by an older copy \
    after that head was recorded; compare it with a backup of `.quipu/journal`";

fn differs(head: &ExpectedHead, is: &HeadFound, newest: u64) -> String {
    match is {
        HeadFound::Other { hash } => {
            let seq = head.seq.unwrap_or_default();
            format!("head {head} is not in the journal: record {seq} is {seq}:{hash}")
        }
        _ if head.seq.is_some_and(|seq| seq > newest) => {
            format!("head {head} is not in the journal, which ends at record {newest}")
        }
        _ => format!("head {head} is not in the journal"),
    }
}

/// Whether a head must be in this journal. It must if it carries the journal's name, or if the
/// reflog shows that this clone made the commit in a later second than the journal's first record
/// (commit times have whole seconds). The second rule matters if the first record was rewritten as
/// well. In a working copy of a shared store each checkout has its own journal, so only the name
/// counts.
fn is_of(
    note: &NotedHead,
    found: &HeadsFound,
    own_folder: &str,
    own_key: Option<&str>,
    is_shared: bool,
) -> bool {
    let Some((journal, began)) = &found.journal else {
        return true;
    };
    let began = parse_time(began).unwrap_or(i64::MAX).div_euclid(1_000_000);
    match &note.noted {
        _ if note.journal == *journal => true,
        Noted::Git {
            time,
            local,
            folder,
            ..
        } => *local && !is_shared && folder == own_folder && *time > began,
        // The file lies beside the journal and is deleted with it, so a legitimate new journal has
        // no file of an older one.
        Noted::File { .. } => {
            !is_shared
                && note
                    .signature
                    .as_ref()
                    .is_some_and(|(key, _)| Some(key.as_str()) == own_key)
        }
    }
}

/// The text that is signed.
fn signed_text(head: &ExpectedHead, journal: &str) -> String {
    format!("quipu head 1\n{head}\n{journal}\n")
}

/// Returns the trailers for a git commit with this head.
pub fn trailers(root: &Path, head: &JournalHead) -> String {
    let folder = folder_in_repository(root).unwrap_or_default();
    let line = format!("{TRAILER}: {head} {} {folder}", head.journal);
    let signature = sign(head)
        .map(|(key, signature)| format!("\n{SIGNATURE}: {key} {signature}"))
        .unwrap_or_default();
    format!("{}{signature}", line.trim_end())
}

/// Signs a head with the user's key; `None` without a key.
fn sign(head: &JournalHead) -> Option<(String, String)> {
    let expected = ExpectedHead {
        seq: Some(head.seq),
        hash: head.hash.clone(),
    };
    head_key::sign(&signed_text(&expected, &head.journal))
}

/// Appends the head to the file of signed heads. Returns false without a key.
pub fn note_signed(root: &Path, head: &JournalHead) -> std::io::Result<bool> {
    use std::io::Write;
    let Some((key, signature)) = sign(head) else {
        return Ok(false);
    };
    let file = root.join(".quipu").join(SIGNED);
    let mut file = std::fs::OpenOptions::new()
        .create(true)
        .append(true)
        .open(file)?;
    file.write_all(format!("{head} {} {key} {signature}\n", head.journal).as_bytes())?;
    Ok(true)
}

fn heads_in_file(root: &Path) -> Vec<NotedHead> {
    let text =
        quipu_store::read_regular_text(&root.join(".quipu").join(SIGNED)).unwrap_or_default();
    let head = |(line, text): (usize, &str)| {
        let [head, journal, key, signature] = text.split(' ').collect::<Vec<_>>()[..] else {
            return None;
        };
        let signature = Some((key.to_owned(), signature.to_owned()));
        Some(NotedHead {
            noted: Noted::File { line },
            head: ExpectedHead::parse(head)?,
            journal: journal.to_owned(),
            signature,
        })
    };
    (1..).zip(text.lines()).filter_map(head).collect()
}

/// Returns the project's folder in its repository, because several projects may share one.
fn folder_in_repository(root: &Path) -> Option<String> {
    let prefix = UntrustedRepository::find(root)?.prefix(root)?;
    Some(
        prefix
            .chars()
            .map(|c| if c.is_control() { '?' } else { c })
            .collect(),
    )
}

/// Returns the heads in commits that are reachable from HEAD or listed in its reflog.
fn heads_in_git(root: &Path) -> Vec<NotedHead> {
    let trailer = |key: &str| format!("%(trailers:key={key},valueonly,separator=%x1f)");
    let format = format!(
        "--format=%H%x1e%ct%x1e%gs%x1e{}%x1e{}%x1d",
        trailer(TRAILER),
        trailer(SIGNATURE)
    );
    let wanted = format!("--grep=^{TRAILER}: ");
    let mut heads: Vec<NotedHead> = Vec::new();
    let Some(repository) =
        UntrustedRepository::find(root).and_then(|repository| repository.stand_in())
    else {
        return heads;
    };
    for from in [&["log", "--walk-reflogs"][..], &["log"][..]] {
        let arguments = [
            from,
            &[
                MOST_COMMITS,
                &wanted,
                "--no-show-signature",
                "--no-notes",
                "-s",
                &format,
                "HEAD",
                "--",
            ],
        ]
        .concat();
        let text = repository
            .read_history(root, &arguments)
            .unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        for entry in text.split('\x1d').filter_map(parse_commit) {
            let is_known = |known: &NotedHead| {
                known.noted_in() == entry.noted_in() && known.head == entry.head
            };
            if !heads.iter().any(is_known) {
                heads.push(entry);
            }
        }
    }
    heads
}

impl NotedHead {
    fn noted_in(&self) -> Option<&str> {
        match &self.noted {
            Noted::Git { commit, .. } => Some(commit),
            Noted::File { .. } => None,
        }
    }
}

fn parse_commit(entry: &str) -> Option<NotedHead> {
    let [commit, time, action, heads, signatures] =
        entry.trim_start().split('\x1e').collect::<Vec<_>>()[..]
    else {
        return None;
    };
    // Only the last trailer counts, because a squashed commit contains those of several.
    let value = heads.split('\x1f').next_back()?.trim();
    let mut parts = value.splitn(3, ' ');
    let (head, journal, folder) = (
        ExpectedHead::parse(parts.next()?)?,
        parts.next()?.to_owned(),
        parts.next().unwrap_or_default().to_owned(),
    );
    let signature = signatures
        .split('\x1f')
        .next_back()
        .and_then(|text| text.trim().split_once(' '));
    let signature = signature.map(|(key, signature)| (key.to_owned(), signature.to_owned()));
    let local = action.starts_with("commit: ") || action.starts_with("commit (initial): ");
    let noted = Noted::Git {
        commit: commit.to_owned(),
        time: time.parse().ok()?,
        local,
        folder,
    };
    Some(NotedHead {
        noted,
        head,
        journal,
        signature,
    })
}
