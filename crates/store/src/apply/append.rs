//! Appends to a file while another program appends to it.
//!
//! The journalled text comes first and the text that was appended by hand follows it, where the
//! next comparison adopts it as an append. The file is never replaced for this: a program that has
//! it open continues to write to the same file.

use std::io;
use std::path::Path;

use quipu_contract::ProjectPath;

use crate::apply::applier::Applier;
use crate::files::tree::Appended;

/// How often an append is retried while another program keeps writing to the file.
const TRIES: usize = 16;

/// A partial write ends at a page boundary of the file.
const PAGE: usize = 4096;
/// Matching bytes beyond this length come from the journal and not from an edit by hand.
const SURELY: usize = 256;

/// Whether the file already contains the text to append.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AppendState {
    /// Nobody has written the text yet: an equal text in the file came from an external edit.
    Nowhere,
    /// A process that has ended may have written it, as whole lines.
    Perhaps,
    /// It was just written, perhaps after an external edit and not at the start of a line.
    Begun,
}

/// The length of a partial `text` that a full disk or a kill left, with other text after it. Such a
/// write ends at a page boundary of the file.
fn torn_at(base: usize, text: &[u8], rest: &[u8]) -> Option<usize> {
    let alike = text.iter().zip(rest).take_while(|(a, b)| a == b).count();
    let torn = ((base + alike) / PAGE * PAGE).checked_sub(base)?;
    (torn >= SURELY && torn < text.len() && torn < rest.len()).then_some(torn)
}

fn forget(copy: &Path) -> io::Result<()> {
    match std::fs::remove_file(copy) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()), // another process has journalled it
        other => other,
    }
}

/// The offset of `text` as whole lines in `rest`, which follows the journalled text.
fn place_of(text: &[u8], rest: &[u8]) -> Option<usize> {
    let whole = |at: usize| {
        (at == 0 || rest[at - 1] == b'\n')
            && (text.ends_with(b"\n") || at + text.len() == rest.len())
    };
    memchr::memmem::find_iter(rest, text).find(|at| whole(*at))
}

impl Applier {
    /// Changes a file that holds `base`, and perhaps more, to `base`, `text` and the text that was
    /// appended by hand. Does nothing if the file does not begin with `base`, has a second hard
    /// link, or keeps changing.
    pub(crate) fn append_beside(
        &self,
        path: &ProjectPath,
        base: &[u8],
        text: &[u8],
        state: AppendState,
    ) -> io::Result<Appended> {
        // How many bytes followed `base` when the text was appended. The text comes after them.
        let mut written_behind = (state == AppendState::Begun).then_some(0);
        for _ in 0..TRIES {
            let Some((found, file_stat)) = self.tree.read(path)? else {
                break;
            };
            let Some(rest) = found.strip_prefix(base) else {
                break;
            };
            let is_new = state == AppendState::Nowhere && written_behind.is_none();
            if let Some(by_hand) = rest.strip_prefix(text).filter(|_| !is_new) {
                return Ok(Appended::Done(by_hand.is_empty().then_some(file_stat)));
            }
            if !rest.is_empty() && rest.iter().all(|b| *b == 0) {
                break; // the state after a power cut
            }
            if let Some(torn) = torn_at(base.len(), text, rest)
                .filter(|_| state == AppendState::Perhaps && written_behind.is_none())
            {
                let (there, missing) = text.split_at(torn);
                return self.append_beside(path, &[base, there].concat(), missing, state);
            }
            // Complete a partial text that a crash left.
            let missing = text
                .strip_prefix(rest)
                .filter(|_| !is_new || rest.is_empty());
            let place = match written_behind {
                _ if missing.is_some() || is_new => None,
                Some(before) => match rest
                    .get(before..)
                    .and_then(|behind| memchr::memmem::find(behind, text))
                {
                    Some(place) => Some(before + place),
                    None => break, // more than the end was edited
                },
                None => place_of(text, rest),
            };
            if let Some(place) = place {
                self.move_behind(path, base.len() as u64, &rest[..place], text)?;
                continue;
            }
            match self.tree.append(
                path,
                missing.unwrap_or(text),
                Some(file_stat),
                file_stat.size,
            )? {
                Appended::Done(Some(file_stat)) if missing.is_some() => {
                    return Ok(Appended::Done(Some(file_stat)));
                }
                Appended::Done(_) if missing.is_none() || is_new => {
                    written_behind = Some(rest.len())
                }
                Appended::Done(_) | Appended::Other => {}
                Appended::Linked => return Ok(Appended::Linked),
            }
        }
        Ok(Appended::Other)
    }

    /// Whether other text follows `base`: neither the beginning of `text`, nor a text that begins
    /// with `text`.
    pub(crate) fn is_mingled(
        &self,
        path: &ProjectPath,
        base: &[u8],
        text: &[u8],
    ) -> io::Result<bool> {
        let found = self.tree.read(path)?;
        let rest = found
            .as_ref()
            .and_then(|(bytes, _)| bytes.strip_prefix(base));
        Ok(rest.is_some_and(|rest| !rest.starts_with(text) && !text.starts_with(rest)))
    }

    /// Swaps two neighbouring parts of a file: the text added by hand and the journalled text after
    /// it.
    fn move_behind(
        &self,
        path: &ProjectPath,
        at: u64,
        by_hand: &[u8],
        text: &[u8],
    ) -> io::Result<()> {
        // A power cut may tear the write. Then this copy is journalled.
        let copy = self.copies.save_conflict_copy(path, by_hand)?;
        self.tree.rewrite(
            path,
            at,
            &[by_hand, text].concat(),
            &[text, by_hand].concat(),
        )?;
        forget(&copy)
    }
}
