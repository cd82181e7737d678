//! Encodes records for the commit log and decodes them: JSON without the bytes, and the bytes
//! beside it.
//!
//! Each entry has a hash, so that a journal can be compared with the log.

use quipu_contract::{ProjectPath, quotable};
use quipu_store::{
    Body, ChainHash, FORMAT, Kind, LeaseEvent, LogHash, Record, RecordOp, Version, Who, parse_time,
    render_time,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use quipu_store::OpKind;

/// The boot id of a lease that expires by the database's clock.
const BOOT: &str = "shared";

#[derive(Serialize, Deserialize)]
struct FileHead {
    v: u32,
    kind: Kind,
    who: Who,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    why: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    key: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    request: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    note: Option<Value>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    ops: Vec<BodyOp>,
}

#[derive(Serialize, Deserialize)]
struct BodyOp {
    op: OpKind,
    path: String,
    class: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    base: Option<Version>,
    version: Version,
    len: u64,
    #[serde(default, skip_serializing_if = "is_zero")]
    deltas: u32,
    /// The bytes are a difference, encoded as JSON.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    splice: bool,
    /// The bytes were dropped; this was their hash in the original journal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    dropped: Option<ChainHash>,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference"
)]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// The bytes of an operation as the log stores them.
fn bytes_of(body: &Body) -> Option<Vec<u8>> {
    match body {
        Body::None | Body::Dropped => None,
        Body::Splice { cuts, .. } => {
            Some(serde_json::to_vec(cuts).expect("cuts are strings and numbers"))
        }
        other => Some(other.bytes().to_vec()),
    }
}

fn body_of(op: &BodyOp, bytes: Option<Vec<u8>>) -> Body {
    match bytes {
        // Bytes that are not a valid difference are kept unchanged. They do not match the version,
        // and `verify` reports the file.
        Some(bytes) if op.splice => match serde_json::from_slice(&bytes) {
            Ok(cuts) => Body::Splice { cuts, whole: None },
            Err(_) => Body::of(bytes),
        },
        Some(bytes) if op.op != OpKind::Remove => Body::of(bytes),
        _ if op.dropped.is_some() => Body::Dropped,
        _ => Body::None,
    }
}

/// A revision of the log as a working copy takes it over. The log is append-only: a record that
/// made its readers fail would do so forever. A record that cannot be parsed, or that names an
/// invalid path, therefore becomes a note without operations.
struct TakenOver {
    head: FileHead,
    is_held_back: bool,
}

impl TakenOver {
    fn of(rev: i64, body: &str) -> Result<TakenOver, String> {
        #[derive(Deserialize)]
        struct Format {
            v: u32,
        }
        // Format 1 had no differences; the rest of it is unchanged.
        if let Ok(Format { v }) = serde_json::from_str(body)
            && !(1..=FORMAT).contains(&v)
        {
            return Err(format!(
                "revision {rev} has format {v}; this version of Quipu reads {FORMAT}"
            ));
        }
        let why = match serde_json::from_str::<FileHead>(body) {
            Ok(head) => match head
                .ops
                .iter()
                .find(|op| op.op != OpKind::Keep && !is_name(&op.path))
            {
                None => {
                    return Ok(TakenOver {
                        head,
                        is_held_back: false,
                    });
                }
                Some(op) => format!("`{}` is not a valid file name", quotable(&op.path)),
            },
            Err(_) => "it is not a record".to_owned(),
        };
        let who = Who {
            kind: "unknown".into(),
            ..Who::default()
        };
        let hash: String = Sha256::digest(body)
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        let note = json!({quipu_store::HELD_BACK: why, "sha256": hash});
        let why = Some(format!(
            "a record of the shared commit log was held back: {why}"
        ));
        let head = FileHead {
            v: FORMAT,
            kind: Kind::Note,
            who,
            why,
            key: None,
            request: None,
            note: Some(note),
            ops: Vec::new(),
        };
        Ok(TakenOver {
            head,
            is_held_back: true,
        })
    }
}

fn is_name(path: &str) -> bool {
    ProjectPath::parse(path).is_ok_and(|parsed| parsed.as_str() == path)
}

/// The body of a record, and the bytes of its operations.
pub(crate) fn take_apart(record: &Record) -> (String, Vec<Option<Vec<u8>>>) {
    let op = |o: &RecordOp| BodyOp {
        op: o.op,
        path: o.path.clone(),
        class: o.class.to_string(),
        base: o.base.clone(),
        version: o.version.clone(),
        len: o.len,
        deltas: o.deltas,
        splice: matches!(o.body, Body::Splice { .. }),
        dropped: o.hash.filter(|_| o.body == Body::Dropped),
    };
    let body = FileHead {
        v: record.v,
        kind: record.kind,
        who: record.who.clone(),
        why: record.why.clone(),
        key: record.key.clone(),
        request: record.request.clone(),
        note: record.note.clone(),
        ops: record.ops.iter().map(op).collect(),
    };
    let bytes = record.ops.iter().map(|o| bytes_of(&o.body)).collect();
    (
        serde_json::to_string(&body).expect("a record has only strings and numbers"),
        bytes,
    )
}

/// Decodes a record of the log. The error describes what cannot be parsed.
pub(crate) fn put_together(
    rev: i64,
    id: String,
    at_us: i64,
    body: &str,
    lease: Option<&str>,
    bytes: Vec<Option<Vec<u8>>>,
) -> Result<Record, String> {
    let body = TakenOver::of(rev, body)?.head;
    let lease = happened_in(rev, lease)?;
    let mut bytes = bytes.into_iter();
    let ops = body.ops.into_iter().map(|o| {
        let body = body_of(&o, bytes.next().flatten());
        RecordOp {
            op: o.op,
            path: o.path,
            class: o.class.into(),
            base: o.base,
            version: o.version,
            len: o.len,
            last: None,
            deltas: o.deltas,
            hash: o.dropped,
            body,
        }
    });
    let ops = ops.collect();
    Ok(Record {
        v: FORMAT,
        seq: rev.unsigned_abs(),
        id,
        at: render_time(at_us),
        kind: body.kind,
        who: body.who,
        why: body.why,
        key: body.key,
        request: body.request,
        note: body.note,
        ops,
        lease,
        synced: None,
        elsewhere: true,
        prev: quipu_store::ChainHash::new(),
        hash: quipu_store::ChainHash::new(),
    })
}

/// A record of this copy as the log accepted it, with the fields that the log added.
pub(crate) fn put_in_order(
    record: &Record,
    rev: i64,
    at_us: i64,
    lease: Option<&str>,
) -> Result<Record, String> {
    let lease = happened_in(rev, lease)?;
    let mut record = Record {
        seq: rev.unsigned_abs(),
        at: render_time(at_us),
        lease,
        elsewhere: true,
        ..record.clone()
    };
    record.ops.iter_mut().for_each(|op| op.last = None);
    Ok(record)
}

fn happened_in(rev: i64, lease: Option<&str>) -> Result<Option<LeaseEvent>, String> {
    let lease = lease
        .map(serde_json::from_str::<Happened>)
        .transpose()
        .map_err(|e| format!("the lease of revision {rev}: {e}"))?;
    Ok(lease.map(Happened::event))
}

/// A lease event as the log stores it.
#[derive(Serialize, Deserialize)]
struct Happened {
    act: String,
    id: String,
    paths: Vec<String>,
    fence: u64,
    until_us: i64,
}

impl Happened {
    fn event(self) -> LeaseEvent {
        LeaseEvent {
            act: self.act,
            id: self.id,
            paths: self.paths,
            fence: self.fence,
            until: render_time(self.until_us),
            boot: BOOT.into(),
            boot_until_us: 0,
            length_us: 0,
        }
    }
}

/// A lease event of a local journal, in the log's format.
pub(crate) fn happened(event: &LeaseEvent) -> String {
    let until_us = parse_time(&event.until).unwrap_or(0);
    json!({"act": event.act, "id": event.id, "paths": event.paths, "fence": event.fence, "until_us": until_us}).to_string()
}

/// A requested lease event. The database assigns its fence and its expiry.
pub(crate) fn wanted(event: &LeaseEvent) -> String {
    let wishes = [json!({"id": event.id, "paths": event.paths})];
    json!({"act": event.act, "fence": event.fence, "length_us": event.length_us, "wishes": wishes})
        .to_string()
}

/// The hash of an entry of the log. Every part is preceded by its length.
fn entry_hash(
    id: &str,
    at_us: i64,
    body: &str,
    lease: Option<&str>,
    texts: &[Option<Vec<u8>>],
) -> [u8; 32] {
    let at = at_us.to_string();
    let mut hasher = Sha256::new();
    let parts = [
        Some(id.as_bytes()),
        Some(at.as_bytes()),
        Some(body.as_bytes()),
        lease.map(str::as_bytes),
    ];
    for part in parts.into_iter().chain(texts.iter().map(Option::as_deref)) {
        hasher.update(
            part.map_or(-1, |part| i64::try_from(part.len()).unwrap_or(i64::MAX))
                .to_be_bytes(),
        );
        hasher.update(part.unwrap_or_default());
    }
    hasher.finalize().into()
}

/// The log entry of a journal record.
pub(crate) fn entry_of(record: &Record) -> LogHash {
    let (body, bytes) = take_apart(record);
    let texts: Vec<Option<Vec<u8>>> = bytes
        .into_iter()
        .map(|text| Some(Sha256::digest(text?).to_vec()))
        .collect();
    let lease = record.lease.as_ref().map(happened);
    let hash = entry_hash(
        &record.id,
        parse_time(&record.at).unwrap_or(0),
        &body,
        lease.as_deref(),
        &texts,
    );
    LogHash {
        rev: record.seq,
        hash,
    }
}

/// An entry as the log holds it. It is parsed and encoded again, so that the formatting of its JSON
/// does not count.
pub(crate) fn entry(
    rev: i64,
    id: &str,
    at_us: i64,
    body: &str,
    lease: Option<&str>,
    texts: &[Option<Vec<u8>>],
) -> Result<LogHash, String> {
    let TakenOver {
        mut head,
        is_held_back,
    } = TakenOver::of(rev, body)?;
    head.v = FORMAT;
    let texts = if is_held_back { &[] } else { texts };
    let body = serde_json::to_string(&head).expect("a record has only strings and numbers");
    let lease = happened_in(rev, lease)?.as_ref().map(happened);
    Ok(LogHash {
        rev: rev.unsigned_abs(),
        hash: entry_hash(id, at_us, &body, lease.as_deref(), texts),
    })
}

/// Whether two records have the same content, on any machine and at any position of its journal.
pub(crate) fn same(a: &Record, b: &Record) -> bool {
    let lease = |r: &Record| r.lease.as_ref().map(happened);
    a.seq == b.seq
        && a.id == b.id
        && parse_time(&a.at) == parse_time(&b.at)
        && take_apart(a) == take_apart(b)
        && lease(a) == lease(b)
}
