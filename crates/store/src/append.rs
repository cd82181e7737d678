//! Appending to a file to which someone else appends meanwhile.
//!
//! The journal's text comes first and what came by hand stands behind it, where the next look
//! adopts it as an append. The file is never replaced for that: a program that has it open goes on
//! writing to the same file.

use std::io;
use std::path::Path;

use quipu_contract::ProjectPath;

use crate::store::Store;
use crate::tree::Appended;

/// How often an append is tried again while someone else keeps writing to the file.
const TRIES: usize = 16;

/// A write that is cut short ends where a page of the file does.
const PAGE: usize = 4096;
/// Nobody writes so many bytes by hand that happen to be those of the journal.
const SURELY: usize = 256;

/// Whether the text to append stands in the file already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Standing {
    /// Nobody has written it yet: whatever reads the same came by hand.
    Nowhere,
    /// A program that is gone may have written it, as whole lines.
    Perhaps,
    /// It was just written, perhaps behind what came by hand and not on a line of its own.
    Begun,
}

impl Store {
    /// Brings a file that holds `base`, and perhaps more, to `base`, `text` and whatever was
    /// appended by hand. Nothing is done to a file that does not begin with `base`, has a second
    /// name, or never comes to rest.
    pub(crate) fn append_beside(
        &self,
        path: &ProjectPath,
        base: &[u8],
        text: &[u8],
        standing: Standing,
    ) -> io::Result<Appended> {
        // How much of the file's rest was there when the text was appended: it stands behind that.
        let mut written_behind = (standing == Standing::Begun).then_some(0);
        for _ in 0..TRIES {
            let Some((found, stamp)) = self.tree.read(path)? else {
                break;
            };
            let Some(rest) = found.strip_prefix(base) else {
                break;
            };
            let is_new = standing == Standing::Nowhere && written_behind.is_none();
            if let Some(by_hand) = rest.strip_prefix(text).filter(|_| !is_new) {
                return Ok(Appended::Done(by_hand.is_empty().then_some(stamp)));
            }
            if !rest.is_empty() && rest.iter().all(|b| *b == 0) {
                break; // what a power cut leaves
            }
            if let Some(torn) = torn_at(base.len(), text, rest)
                .filter(|_| standing == Standing::Perhaps && written_behind.is_none())
            {
                let (there, missing) = text.split_at(torn);
                return self.append_beside(path, &[base, there].concat(), missing, standing);
            }
            // A beginning of the text, as a crash leaves it, is completed.
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
                    None => break, // someone has edited more than the end
                },
                None => place_of(text, rest),
            };
            if let Some(place) = place {
                self.move_behind(path, base.len() as u64, &rest[..place], text)?;
                continue;
            }
            match self
                .tree
                .append(path, missing.unwrap_or(text), Some(stamp), stamp.size)?
            {
                Appended::Done(Some(stamp)) if missing.is_some() => {
                    return Ok(Appended::Done(Some(stamp)));
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

    /// Whether something stands behind `base` that is neither the beginning of `text` nor begins
    /// with it.
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

    /// Exchanges two neighbours in a file: what was written by hand and the text behind it.
    fn move_behind(
        &self,
        path: &ProjectPath,
        at: u64,
        by_hand: &[u8],
        text: &[u8],
    ) -> io::Result<()> {
        // A power cut may tear the write: then this copy is journalled.
        let copy = self.set_aside(path, by_hand)?;
        self.tree.rewrite(
            path,
            at,
            &[by_hand, text].concat(),
            &[text, by_hand].concat(),
        )?;
        forget(&copy)
    }
}

/// How much of a text stands there as a full disk or a kill in the middle of its write leaves it,
/// with something else behind it. Such a write ends with a page of the file.
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

/// Where a text stands in what follows the journalled text, as whole lines.
fn place_of(text: &[u8], rest: &[u8]) -> Option<usize> {
    let whole = |at: usize| {
        (at == 0 || rest[at - 1] == b'\n')
            && (text.ends_with(b"\n") || at + text.len() == rest.len())
    };
    memchr::memmem::find_iter(rest, text).find(|at| whole(*at))
}
