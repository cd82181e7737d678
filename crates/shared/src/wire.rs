//! Records on their way to the log and back: JSON without bytes, and the bytes beside it.

use quipu_store::{Kind, LeaseEvent, Record, RecordOp, Version, Who, parse_time, render_time};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use quipu_store::OpKind;

/// The boot of a lease that ends by the clock of the database.
const BOOT: &str = "shared";

#[derive(Serialize, Deserialize)]
struct Body {
    v: u32,
    kind: Kind,
    who: Who,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    why: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    key: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    asked: Option<String>,
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
    };
    let body = Body {
        v: record.v,
        kind: record.kind,
        who: record.who.clone(),
        why: record.why.clone(),
        key: record.key.clone(),
        asked: record.asked.clone(),
        note: record.note.clone(),
        ops: record.ops.iter().map(op).collect(),
    };
    let bytes = record.ops.iter().map(|o| (o.op != OpKind::Remove).then(|| o.bytes())).collect();
    (serde_json::to_string(&body).expect("a record has only strings and numbers"), bytes)
}

/// A record of the log; an error says what cannot be read.
pub(crate) fn put_together(
    rev: i64,
    id: String,
    at_us: i64,
    body: &str,
    lease: Option<&str>,
    bytes: Vec<Option<Vec<u8>>>,
) -> Result<Record, String> {
    let body: Body = serde_json::from_str(body).map_err(|e| format!("revision {rev}: {e}"))?;
    if body.v != 1 {
        return Err(format!("revision {rev} has format {}; this Quipu reads 1", body.v));
    }
    let lease = happened_in(rev, lease)?;
    let mut bytes = bytes.into_iter();
    let ops = body.ops.into_iter().map(|o| {
        let record = RecordOp {
            op: o.op,
            path: o.path,
            class: o.class.into(),
            base: o.base,
            version: o.version,
            len: o.len,
            last: None,
            text: None,
            base64: None,
        };
        match bytes.next().flatten() {
            Some(bytes) if record.op != OpKind::Remove => record.with_bytes(bytes),
            _ => record,
        }
    });
    Ok(Record {
        v: body.v,
        seq: rev.unsigned_abs(),
        id,
        at: render_time(at_us),
        kind: body.kind,
        who: body.who,
        why: body.why,
        key: body.key,
        asked: body.asked,
        note: body.note,
        ops: ops.collect(),
        lease,
        synced: None,
        elsewhere: true,
        prev: quipu_store::Sum::new(),
        sum: quipu_store::Sum::new(),
    })
}

/// A record of this copy as the log took it up, with what the log added.
pub(crate) fn put_in_order(record: &Record, rev: i64, at_us: i64, lease: Option<&str>) -> Result<Record, String> {
    let lease = happened_in(rev, lease)?;
    let mut record = Record { seq: rev.unsigned_abs(), at: render_time(at_us), lease, elsewhere: true, ..record.clone() };
    record.ops.iter_mut().for_each(|op| op.last = None);
    Ok(record)
}

fn happened_in(rev: i64, lease: Option<&str>) -> Result<Option<LeaseEvent>, String> {
    let lease = lease.map(serde_json::from_str::<Happened>).transpose().map_err(|e| format!("the lease of revision {rev}: {e}"))?;
    Ok(lease.map(Happened::event))
}

/// What the log says of a lease.
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

/// A lease event of a project's own journal, as the log keeps it.
pub(crate) fn happened(event: &LeaseEvent) -> String {
    let until_us = parse_time(&event.until).unwrap_or(0);
    json!({"act": event.act, "id": event.id, "paths": event.paths, "fence": event.fence, "until_us": until_us}).to_string()
}

/// A lease event that is asked for. The database decides its number and its end.
pub(crate) fn wanted(event: &LeaseEvent, instead: &[(String, Vec<String>)]) -> String {
    let first = json!({"id": event.id, "paths": event.paths});
    let wishes: Vec<Value> = std::iter::once(first).chain(instead.iter().map(|(id, paths)| json!({"id": id, "paths": paths}))).collect();
    json!({"act": event.act, "fence": event.fence, "length_us": event.length_us, "wishes": wishes}).to_string()
}

/// Whether two records say the same, whatever machine wrote them down where.
pub(crate) fn same(a: &Record, b: &Record) -> bool {
    let lease = |r: &Record| r.lease.as_ref().map(happened);
    a.seq == b.seq && a.id == b.id && parse_time(&a.at) == parse_time(&b.at) && take_apart(a) == take_apart(b) && lease(a) == lease(b)
}
