//! The state of one file within a change that is being validated.
//!
//! It begins with the newest journalled state, or with an external edit that the change adopts, and
//! each operation of the change advances it. Texts are read only if an operation needs them.

use quipu_contract::{Class, ProjectPath};

use crate::error::{Result, StoreError};
use crate::files::tree::FileStat;
use crate::index::file_index::FileHead;
use crate::journal::delta::Delta;
use crate::journal::record::{OpKind, RecordOp};
use crate::rules::flag::Flag;
use crate::store::Store;
use crate::version::Version;

/// How much of a file's last line is read: no credential is longer.
const LAST_LINE: u64 = 4096;

pub(crate) struct FileState {
    pub class: Class,
    pub head: Option<FileHead>,
    /// The newest journalled entry, before this change.
    pub journalled: Option<FileHead>,
    /// The whole text, if it was read or if this change wrote it.
    pub content: Option<Vec<u8>>,
    /// The text that this change appends to the journalled text; empty if `content` is set.
    pub appended: Vec<u8>,
    /// The flag of disallowed bytes on disk.
    pub flagged: Option<(Flag, Option<FileStat>)>,
    /// A write based on an older version was merged into this one.
    pub merged: bool,
    /// The length before this change, including adopted edits.
    pub len_before: u64,
    /// This change replaced the text, so that some may be lost.
    pub replaced: bool,
}

impl FileState {
    pub fn new(class: Class, head: Option<FileHead>) -> FileState {
        FileState {
            class,
            len_before: head.as_ref().filter(|h| !h.gone).map_or(0, |h| h.len),
            journalled: head.clone(),
            head,
            content: None,
            appended: Vec::new(),
            flagged: None,
            merged: false,
            replaced: false,
        }
    }

    /// The state after an external edit that the change adopts.
    pub fn adopted(self, op: &RecordOp, content: Option<Vec<u8>>) -> FileState {
        let head = FileHead::unjournalled(op);
        FileState {
            content,
            len_before: if head.gone { 0 } else { head.len },
            head: Some(head),
            ..self
        }
    }

    pub fn exists(&self) -> bool {
        self.head.as_ref().is_some_and(|h| !h.gone)
    }

    pub fn version(&self) -> Option<&Version> {
        self.head.as_ref().filter(|h| !h.gone).map(|h| &h.version)
    }

    /// The newest journalled entry, if it has a record and the file exists.
    pub fn newest_version(&self) -> Option<&FileHead> {
        self.journalled.as_ref().filter(|h| !h.gone && h.seq > 0)
    }

    /// The whole text; empty if the file does not exist.
    pub fn text(&mut self, store: &Store, path: &ProjectPath) -> Result<Vec<u8>> {
        if self.content.is_none() {
            let exists = self.exists();
            let mut content = match self.journalled.as_ref().filter(|h| !h.gone && exists) {
                Some(head) => store.texts.content(path, head)?,
                None => Vec::new(),
            };
            content.append(&mut self.appended);
            self.content = Some(content);
        }
        Ok(self.content.clone().unwrap_or_default())
    }

    /// The whole text, if the file exists.
    pub fn text_if_any(&mut self, store: &Store, path: &ProjectPath) -> Result<Option<Vec<u8>>> {
        if self.exists() {
            self.text(store, path).map(Some)
        } else {
            Ok(None)
        }
    }

    /// Whether the end of the text is in memory; for other text the disk has to be read.
    pub fn has_end(&self) -> bool {
        self.content.is_some() || !self.appended.is_empty()
    }

    /// The unterminated last line: the text after its last newline, up to a limit.
    pub fn last_line(&self, store: &Store, path: &ProjectPath) -> Result<Vec<u8>> {
        let written = self.content.as_deref().unwrap_or(&self.appended);
        let line = last_line(written);
        let is_whole = self.content.is_some() || line.len() < written.len();
        let Some(head) = self.journalled.as_ref().filter(|h| !is_whole && !h.gone) else {
            return Ok(line.to_vec());
        };
        let found = store
            .tree
            .read_before(path, head.len, LAST_LINE)
            .map_err(StoreError::io(format!("cannot read `{path}`")))?;
        // A shorter file has not been written yet.
        let before = found.unwrap_or_else(|| line_in_journal(store, path, head));
        Ok([last_line(&before), line].concat())
    }

    /// The difference of a new text to the newest journalled one, if this change has not touched the
    /// file before.
    pub fn delta(&self, store: &Store, path: &ProjectPath, bytes: &[u8]) -> Option<Delta> {
        let head = self
            .head
            .as_ref()
            .filter(|head| self.journalled.as_ref() == Some(head))?;
        let known = store.texts.content(path, head).ok();
        store.texts.delta(path, Some(head), known, bytes)
    }

    /// The record of an append; also updates this state to the one after it.
    pub fn append(&mut self, path: &ProjectPath, bytes: Vec<u8>) -> RecordOp {
        let version = match self.version() {
            Some(base) => base.extended(&bytes),
            None => Version::of(&bytes),
        };
        let before = self.head.as_ref().filter(|h| !h.gone).map_or(0, |h| h.len);
        let len = before + bytes.len() as u64;
        let op = self.next_op(path, OpKind::Append, version, len);
        match &mut self.content {
            Some(content) => content.extend_from_slice(&bytes),
            None => self.appended.extend_from_slice(&bytes),
        }
        self.head = Some(FileHead::unjournalled(&op));
        op.with_bytes(bytes)
    }

    /// The record of a whole text; also updates this state to the one after it.
    pub fn write(
        &mut self,
        path: &ProjectPath,
        version: Version,
        bytes: Vec<u8>,
        delta: Option<Delta>,
    ) -> RecordOp {
        let op = self.next_op(path, OpKind::Write, version, bytes.len() as u64);
        self.content = Some(bytes.clone());
        self.head = Some(FileHead::unjournalled(&op));
        op.with_text(bytes, delta)
    }

    /// The record of a removal; also updates this state to the one after it.
    pub fn remove(&mut self, path: &ProjectPath) -> RecordOp {
        let op = self.next_op(path, OpKind::Remove, Version::of(b""), 0);
        self.content = Some(Vec::new());
        self.head = Some(FileHead::unjournalled(&op));
        op
    }

    /// The record that keeps bytes which are about to be replaced.
    pub fn keep(&self, path: &ProjectPath, bytes: Vec<u8>) -> RecordOp {
        RecordOp {
            base: self.version().cloned(),
            ..RecordOp::keep(path.as_str(), self.class.as_str(), bytes)
        }
    }

    fn next_op(&self, path: &ProjectPath, op: OpKind, version: Version, len: u64) -> RecordOp {
        RecordOp {
            base: self.version().cloned(),
            last: self.head.as_ref().and_then(FileHead::place),
            ..RecordOp::new(op, path.as_str(), self.class.as_str(), version, len)
        }
    }
}

/// The text after the last newline.
fn last_line(text: &[u8]) -> &[u8] {
    &text[memchr::memrchr(b'\n', text).map_or(0, |newline| newline + 1)..]
}

/// The last line of a file from its newest records, as far as they are readable.
fn line_in_journal(store: &Store, path: &ProjectPath, head: &FileHead) -> Vec<u8> {
    let (mut line, mut needs_text) = (Vec::new(), false);
    let _ = store.texts.walk(path, head.at, &mut |_, op| {
        needs_text = op.op == OpKind::Write && !op.edit().is_start();
        let end = last_line(op.content());
        line = [end, &line].concat();
        let is_whole = op.op != OpKind::Append || end.len() < op.content().len();
        !is_whole && line.len() as u64 <= LAST_LINE
    });
    if needs_text {
        let text = store.texts.plain_content(path, head).unwrap_or_default();
        return last_line(&text).to_vec();
    }
    line
}
