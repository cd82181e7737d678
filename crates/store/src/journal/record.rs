//! Journal records: JSON lines, chained by hash.
//!
//! A line has two parts. The chained part ends in `,"hash":"…"`: a hash over the hash of the record
//! before and every byte of the line before it. Behind it, `,"bodies":[…]` holds the bytes of each
//! operation. The chained part names the hash of each body. So the chain covers the bodies, and it
//! still verifies completely where one was dropped.

use std::collections::BTreeSet;

use quipu_contract::{Actor, is_taken};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use smol_str::SmolStr;

use crate::error::StoreError;
use crate::journal::body::Body;
use crate::version::Version;

/// The version of the record format.
pub const FORMAT: u32 = 3;
/// The first bytes of every line of this format, before the number of the record.
const LINE_START: &[u8] = b"{\"v\":3,\"seq\":";
/// The hash that the first record is chained to.
pub(crate) const ROOT_HASH: &str = "00000000000000000000000000000000";

/// A hash in hexadecimal digits, of a record or of a body.
pub type ChainHash = arrayvec::ArrayString<{ ROOT_HASH.len() }>;

/// Parses a hash. An invalid one equals no hash of a record.
pub(crate) fn parse_hash(text: &str) -> ChainHash {
    ChainHash::from(text).unwrap_or_default()
}

/// Why a record was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// A change that the contract allowed.
    Commit,
    /// An external edit that the contract allows.
    Adopt,
    /// A person changed what is sealed.
    Amend,
    /// An older version was brought back.
    Restore,
    /// Bytes that an external edit left and a commit replaced: kept, not current.
    ConflictCopy,
    /// A lease was taken, renewed or released.
    Lease,
    /// Something happened that changed no file; its note says what.
    Note,
    /// A kind of a later version of Quipu.
    #[serde(other)]
    Unknown,
}

impl Kind {
    pub fn as_str(self) -> &'static str {
        match self {
            Kind::Commit => "commit",
            Kind::Adopt => "adopt",
            Kind::Amend => "amend",
            Kind::Restore => "restore",
            Kind::ConflictCopy => "conflict-copy",
            Kind::Lease => "lease",
            Kind::Note => "note",
            Kind::Unknown => "unknown",
        }
    }
}

/// The author of a record.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Who {
    /// `person`, `agent`, `quipu`, or `external` for an edit that did not come through Quipu.
    pub kind: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unit: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// The door through which a person acted, where it is not the command line: `page`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub via: Option<String>,
}

/// The same actor is the same through every door: a lease or a session that was begun through one
/// can be ended through another.
impl PartialEq for Who {
    fn eq(&self, other: &Who) -> bool {
        let Who {
            kind,
            role,
            unit,
            agent,
            via: _,
        } = self;
        (kind, role, unit, agent) == (&other.kind, &other.role, &other.unit, &other.agent)
    }
}

impl Eq for Who {}

impl Who {
    pub fn external() -> Who {
        Who::of_kind("external")
    }

    /// The author of a record that cannot be read.
    pub(crate) fn unknown() -> Who {
        Who::of_kind("unknown")
    }

    fn of_kind(kind: &str) -> Who {
        Who {
            kind: kind.into(),
            ..Who::default()
        }
    }
}

impl From<&Actor> for Who {
    fn from(actor: &Actor) -> Who {
        let kind = match actor {
            Actor::Person => "person",
            Actor::Agent { .. } => "agent",
            Actor::Runtime => "quipu",
        };
        Who {
            kind: kind.into(),
            role: actor.role().map(ToString::to_string),
            unit: actor.unit().map(ToString::to_string),
            agent: actor.agent().map(ToString::to_string),
            via: None,
        }
    }
}

/// `writer/ch05 (otto)`, `person`, `person via page`, `external`.
impl std::fmt::Display for Who {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let name = self.role.as_deref().or(self.agent.as_deref());
        // An older journal may hold an agent with such a name.
        if self.kind == "agent" && name.is_some_and(is_taken) {
            f.write_str("agent ")?;
        }
        f.write_str(name.unwrap_or(&self.kind))?;
        if let Some(unit) = &self.unit {
            write!(f, "/{unit}")?;
        }
        if let (Some(_), Some(agent)) = (&self.role, &self.agent) {
            write!(f, " ({agent})")?;
        }
        self.via
            .as_ref()
            .map_or(Ok(()), |via| write!(f, " via {via}"))
    }
}

/// The action of a record on a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OpKind {
    /// The file has a new text: the record holds it, or how it differs from the version before.
    Write,
    /// The record holds what was added at the end.
    Append,
    /// The file is gone.
    Remove,
    /// The record holds bytes that are not current.
    Keep,
}

/// The change of one file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordOp {
    pub op: OpKind,
    pub path: String,
    pub class: SmolStr,
    /// The version it was based on; none for a new file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<Version>,
    pub version: Version,
    /// The length of the file afterwards.
    pub len: u64,
    /// The position of the previous record about this file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last: Option<SmolStr>,
    /// How much of this file is stored as differences since its last whole text (see `delta`).
    #[serde(default, skip_serializing_if = "is_zero")]
    pub deltas: u32,
    /// The hash of the body as the line has it; `Record::encode` sets it.
    #[serde(default, rename = "body", skip_serializing_if = "Option::is_none")]
    pub hash: Option<ChainHash>,
    #[serde(skip)]
    pub body: Body,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference"
)]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

impl RecordOp {
    /// An operation without bytes, on a file without an earlier record.
    pub(crate) fn new(op: OpKind, path: &str, class: &str, version: Version, len: u64) -> RecordOp {
        RecordOp {
            op,
            path: path.to_owned(),
            class: class.into(),
            base: None,
            version,
            len,
            last: None,
            deltas: 0,
            hash: None,
            body: Body::None,
        }
    }

    /// Bytes that are not current.
    pub(crate) fn keep(path: &str, class: &str, bytes: Vec<u8>) -> RecordOp {
        let (version, len) = (Version::of(&bytes), bytes.len() as u64);
        RecordOp::new(OpKind::Keep, path, class, version, len).with_bytes(bytes)
    }

    /// The bytes that were added or kept, or the whole text.
    ///
    /// A text that is stored as a difference is known only to the process that wrote it; for any
    /// other process it is empty.
    pub fn content(&self) -> &[u8] {
        self.body.bytes()
    }

    /// With these bytes: as text if they are UTF-8.
    pub fn with_bytes(mut self, bytes: Vec<u8>) -> RecordOp {
        self.body = Body::of(bytes);
        self
    }
}

/// The content of a lease record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeaseEvent {
    /// `take`, `renew` or `release`.
    pub act: String,
    pub id: String,
    #[serde(default)]
    pub paths: Vec<String>,
    pub fence: u64,
    /// When it ends, by the wall clock.
    pub until: String,
    /// The boot it was taken in, and when it ends by that boot's clock.
    pub boot: String,
    pub boot_until_us: i64,
    /// The requested length: a shared commit log computes the end by its own clock.
    #[serde(skip)]
    pub length_us: i64,
}

/// One line of the journal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    pub v: u32,
    pub seq: u64,
    pub id: String,
    pub at: String,
    pub kind: Kind,
    pub who: Who,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// A digest of the change with that key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<String>,
    /// A note of the writer; the store does not read it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<serde_json::Value>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ops: Vec<RecordOp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease: Option<LeaseEvent>,
    /// How far the journal was synced when this was written: proof, after a power cut, that damage
    /// before that place is damage and not a tail that was never written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub synced: Option<SmolStr>,
    /// It was made in another working copy: what it adopted there is not on this disk.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub elsewhere: bool,
    pub prev: ChainHash,
    #[serde(skip)]
    pub hash: ChainHash,
}

impl Record {
    /// The line, newline included. Sets its hash, and the hash of each body.
    pub(crate) fn encode(&mut self) -> Vec<u8> {
        let mut bodies = Vec::new();
        for op in &mut self.ops {
            bodies.push(if bodies.is_empty() { b'[' } else { b',' });
            let begin = bodies.len();
            op.body.write_to(&mut bodies);
            match op.body {
                // The chain still needs the hash of what was dropped.
                Body::Dropped => {}
                Body::None => op.hash = None,
                _ => op.hash = Some(as_hash(&blake3::hash(&bodies[begin..]))),
            }
        }
        let mut bytes = Vec::with_capacity(512 + 256 * self.ops.len() + bodies.len());
        serde_json::to_writer(&mut bytes, self).expect("a record has only strings and numbers");
        bytes.pop();
        self.hash = chain_hash(&self.prev, &bytes);
        bytes.extend_from_slice(HASH);
        bytes.extend_from_slice(self.hash.as_bytes());
        bytes.push(b'"');
        if self.ops.iter().any(|op| op.hash.is_some()) {
            bytes.extend_from_slice(BODIES);
            bytes.extend_from_slice(&bodies);
            bytes.push(b']');
        }
        bytes.extend_from_slice(b"}\n");
        bytes
    }

    /// The operations that change files. Bytes that were only kept are not a state of a file.
    pub(crate) fn changes(&self) -> impl DoubleEndedIterator<Item = &RecordOp> {
        self.ops.iter().filter(|op| op.op != OpKind::Keep)
    }

    /// Reads a line without its newline; says what is wrong with it otherwise.
    pub(crate) fn decode(line: &[u8]) -> std::result::Result<Record, Unread> {
        #[cfg(test)]
        DECODED.with(|bytes| bytes.set(bytes.get() + line.len()));
        let Some(parts) = Parts::of(line) else {
            return Err(not_a_record(line));
        };
        let mut record: Record = match serde_json::from_slice(&parts.closed()) {
            Ok(record) => record,
            // Its hash matches, and it cannot be parsed: a newer Quipu wrote it.
            Err(error) => {
                return Err(match serde_json::from_slice::<Envelope>(&parts.closed()) {
                    Ok(envelope) if parts.follow(&envelope.prev) => {
                        Unread::OtherFormat(OtherFormat::unknown(envelope.seq, &error))
                    }
                    _ => Unread::Damaged(format!("not a record: {error}")),
                });
            }
        };
        let unsound = || Unread::Damaged(format!("record {} does not match its hash", record.seq));
        if !parts.follow(&record.prev) {
            return Err(unsound());
        }
        if record.v != FORMAT {
            return Err(Unread::OtherFormat(OtherFormat::of(record.seq, record.v)));
        }
        let bodies = parts
            .bodies(record.ops.iter().map(|op| op.hash.as_ref()))
            .ok_or_else(unsound)?;
        let read: Option<Vec<Body>> = bodies.into_iter().map(Body::read).collect();
        let read = read.ok_or_else(unsound)?;
        for (op, body) in record.ops.iter_mut().zip(read) {
            op.body = if body == Body::None && op.hash.is_some() {
                Body::Dropped
            } else {
                body
            };
        }
        record.hash = parse_hash(parts.hash);
        Ok(record)
    }
}

#[cfg(test)]
thread_local! {
    /// How many bytes of lines this thread has decoded: tests compare work, not time.
    pub(crate) static DECODED: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

const HASH: &[u8] = b",\"hash\":\"";
const BODIES: &[u8] = b",\"bodies\":";

/// The parts of a line.
struct Parts<'l> {
    /// The bytes that the hash covers.
    chained: &'l [u8],
    hash: &'l str,
    /// The list of bodies as the line has it; none if there is no such list.
    bodies: Option<&'l [u8]>,
}

impl<'l> Parts<'l> {
    fn of(line: &'l [u8]) -> Option<Parts<'l>> {
        // A quote inside a JSON string is escaped, so the last of these is the field and no text of
        // a body.
        let at = memchr::memmem::rfind(line, HASH)?;
        let (hash, rest) = line[at + HASH.len()..].split_at_checked(ROOT_HASH.len())?;
        let rest = rest.strip_prefix(b"\"")?.strip_suffix(b"}")?;
        let bodies = if rest.is_empty() {
            None
        } else {
            Some(rest.strip_prefix(BODIES)?)
        };
        Some(Parts {
            chained: &line[..at],
            hash: std::str::from_utf8(hash).ok()?,
            bodies,
        })
    }

    /// The chained part as a JSON object.
    fn closed(&self) -> Vec<u8> {
        [self.chained, b"}"].concat()
    }

    /// Whether the record follows the one with the hash `prev`.
    fn follow(&self, prev: &str) -> bool {
        chain_hash(prev, self.chained) == *self.hash
    }

    /// The bodies, not yet parsed; none unless each has the hash that its operation names. A body
    /// that was dropped is missing.
    fn bodies<'h>(
        &self,
        hashes: impl Iterator<Item = Option<&'h ChainHash>>,
    ) -> Option<Vec<Option<&'l RawValue>>> {
        let bodies: Vec<Option<&'l RawValue>> = match self.bodies {
            Some(bodies) => serde_json::from_slice(bodies).ok()?,
            None => Vec::new(),
        };
        let (mut count, mut any) = (0, false);
        for (index, hash) in hashes.enumerate() {
            let body = bodies.get(index).copied().flatten();
            any |= hash.is_some();
            count += 1;
            let is_sound = match (hash, body) {
                (Some(hash), Some(body)) => as_hash(&blake3::hash(body.get().as_bytes())) == *hash,
                (None, Some(_)) => false,
                (_, None) => true,
            };
            if !is_sound {
                return None;
            }
        }
        // Without the list of bodies nothing says that they were dropped: the line is cut.
        if any && bodies.len() != count || !any && !bodies.is_empty() {
            return None;
        }
        Some(if any { bodies } else { vec![None; count] })
    }
}

/// The number of a record, from its first bytes: cheaper than decoding it.
pub(crate) fn seq_of(line: &[u8]) -> Option<u64> {
    let rest = line.strip_prefix(LINE_START)?;
    let digits = rest.iter().position(|b| !b.is_ascii_digit())?;
    std::str::from_utf8(&rest[..digits]).ok()?.parse().ok()
}

/// Why a line without the fields of this format is not a record. Other formats name their fields
/// differently, so a whole line that states another format is not damaged.
fn not_a_record(line: &[u8]) -> Unread {
    match serde_json::from_slice::<Stated>(line) {
        Ok(stated) if stated.v != FORMAT => {
            Unread::OtherFormat(OtherFormat::of(stated.seq, stated.v))
        }
        Ok(_) => Unread::Damaged("not a record: it has no hash".into()),
        Err(error) => Unread::Damaged(format!("not a record: {error}")),
    }
}

/// Overwrites some bodies of a line with `null` and spaces: the line keeps its length and its hash.
/// A body that is no longer than `null` stays.
pub(crate) fn blank_bodies(line: &mut [u8], ops: &BTreeSet<usize>) {
    const NULL: &[u8] = b"null";
    let bodies = Parts::of(line).and_then(|parts| parts.bodies);
    let Some(Ok(bodies)) = bodies.map(serde_json::from_slice::<Vec<Option<&RawValue>>>) else {
        return;
    };
    let start = line.as_ptr().addr();
    let wanted = bodies
        .iter()
        .enumerate()
        .filter(|(index, _)| ops.contains(index))
        .filter_map(|(_, body)| body.map(RawValue::get));
    let ranges: Vec<_> = wanted
        .map(|body| body.as_ptr().addr() - start..body.as_ptr().addr() - start + body.len())
        .collect();
    for range in ranges.into_iter().filter(|range| range.len() >= NULL.len()) {
        let (null, spaces) = line[range].split_at_mut(NULL.len());
        null.copy_from_slice(NULL);
        spaces.fill(b' ');
    }
}

/// A line that is whole and that this version of Quipu does not read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OtherFormat {
    what: String,
    remedy: &'static str,
}

impl OtherFormat {
    fn of(seq: u64, format: u32) -> OtherFormat {
        let what = format!(
            "record {seq} of the journal has format {format}; this version of Quipu reads format {FORMAT}"
        );
        let earlier = "mv .quipu .quipu-old     (keeps the old history there; a new journal \
            starts with the files on disk)";
        OtherFormat {
            what,
            remedy: if format < FORMAT { earlier } else { LATER },
        }
    }

    fn unknown(seq: u64, error: &serde_json::Error) -> OtherFormat {
        OtherFormat {
            what: format!(
                "record {seq} of the journal has a kind that this version of Quipu does not \
                 support: {error}"
            ),
            remedy: LATER,
        }
    }

    pub fn refusal(&self) -> StoreError {
        StoreError::refused(self.what.clone(), self.remedy)
    }
}

const LATER: &str = "use the version of Quipu that wrote it, or a newer one";

impl std::fmt::Display for OtherFormat {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.what)
    }
}

/// Why a line is not a record for this Quipu.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Unread {
    Damaged(String),
    /// Whole, but of another format. It must be neither skipped nor cut off.
    OtherFormat(OtherFormat),
}

impl std::fmt::Display for Unread {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Unread::Damaged(what) => f.write_str(what),
            Unread::OtherFormat(other) => other.fmt(f),
        }
    }
}

/// The fields that every format has.
#[derive(Deserialize)]
struct Envelope {
    seq: u64,
    prev: String,
}

/// The fields that records of every format have.
#[derive(Deserialize)]
struct Stated {
    v: u32,
    seq: u64,
}

fn chain_hash(prev: &str, body: &[u8]) -> ChainHash {
    let mut hasher = blake3::Hasher::new();
    hasher.update(prev.as_bytes());
    hasher.update(body);
    as_hash(&hasher.finalize())
}

fn as_hash(hash: &blake3::Hash) -> ChainHash {
    parse_hash(&hash.to_hex()[..ROOT_HASH.len()])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record() -> Record {
        let op = RecordOp {
            op: OpKind::Append,
            path: "meta/术语.md".into(),
            class: "append".into(),
            base: None,
            version: Version::of(b"x"),
            len: 1,
            last: None,
            deltas: 0,
            hash: None,
            body: Body::None,
        };
        let removed = RecordOp {
            op: OpKind::Remove,
            ..op.clone()
        };
        let cuts = vec![
            (3, 5, "\"新\",\"hash\":\"".to_owned()),
            (9, 0, "\n".to_owned()),
        ];
        let spliced = RecordOp {
            op: OpKind::Write,
            deltas: 2,
            body: Body::Splice { cuts, whole: None },
            ..op.clone()
        };
        Record {
            v: FORMAT,
            seq: 7,
            id: "i".into(),
            at: "t".into(),
            kind: Kind::Commit,
            who: Who::external(),
            why: None,
            key: None,
            request: None,
            note: Some(serde_json::json!({"run": "r1", "hash": "of nothing", "bodies": []})),
            ops: vec![
                op.clone().with_bytes("行一\n\"quoted\"".into()),
                op.with_bytes(vec![0xff, 0]),
                removed,
                spliced,
            ],
            lease: None,
            synced: None,
            elsewhere: false,
            prev: parse_hash(ROOT_HASH),
            hash: ChainHash::new(),
        }
    }

    fn line(mut record: Record) -> Vec<u8> {
        record.encode().strip_suffix(b"\n").unwrap().to_vec()
    }

    #[test]
    fn a_record_survives_its_line() {
        let mut written = record();
        let line = written.encode().strip_suffix(b"\n").unwrap().to_vec();
        let read = Record::decode(&line).unwrap();
        assert_eq!(read, written);
        assert_eq!(read.ops[0].content(), "行一\n\"quoted\"".as_bytes());
        assert_eq!(read.ops[1].content(), [0xff, 0]);
    }

    #[test]
    fn every_flipped_byte_is_noticed() {
        let line = line(record());
        for index in 0..line.len() {
            for bit in 0..8 {
                let mut flipped = line.clone();
                flipped[index] ^= 1 << bit;
                assert!(
                    Record::decode(&flipped).is_err(),
                    "bit {bit} of byte {index}"
                );
            }
        }
        for cut in 0..line.len() {
            assert!(Record::decode(&line[..cut]).is_err(), "cut at {cut}");
        }
    }

    #[test]
    fn a_dropped_body_leaves_the_sum_as_it_was() {
        let mut whole = record();
        whole.encode();
        let mut dropped = whole.clone();
        dropped.ops[0].body = Body::Dropped;
        let shorter = line(dropped);
        let read = Record::decode(&shorter).unwrap();
        assert_eq!((read.hash, &read.ops[0].body), (whole.hash, &Body::Dropped));
        assert_eq!(read.ops[1].content(), [0xff, 0]);
        // Blanked in place, the line keeps its length.
        let whole_line = line(record());
        let mut blanked = whole_line.clone();
        blank_bodies(&mut blanked, &BTreeSet::from([0, 3]));
        let read = Record::decode(&blanked).unwrap();
        assert_eq!((read.hash, blanked.len()), (whole.hash, whole_line.len()));
        let dropped: Vec<bool> = read.ops.iter().map(|op| op.body == Body::Dropped).collect();
        assert_eq!(dropped, [true, false, false, true]);
        // A line without its list of bodies is damaged: nothing says that they were dropped.
        let text = String::from_utf8(line(record())).unwrap();
        let cut = format!("{}}}", &text[..text.rfind(",\"bodies\"").unwrap()]);
        assert!(matches!(
            Record::decode(cut.as_bytes()),
            Err(Unread::Damaged(_))
        ));
    }

    #[test]
    fn fields_of_later_versions_are_ignored() {
        let mut chained = serde_json::to_vec(&Record {
            ops: Vec::new(),
            ..record()
        })
        .unwrap();
        chained.pop();
        chained.extend_from_slice(b",\"colour\":\"red\"");
        let hash = chain_hash(ROOT_HASH, &chained);
        chained.extend_from_slice(format!(",\"hash\":\"{hash}\"}}").as_bytes());
        assert_eq!(Record::decode(&chained).unwrap().seq, 7);
    }

    #[test]
    fn a_line_starts_with_its_format_and_number() {
        let start = format!("{{\"v\":{FORMAT},\"seq\":");
        assert_eq!(LINE_START, start.as_bytes());
        assert!(record().encode().starts_with(LINE_START));
    }

    #[test]
    fn another_format_is_not_damage() {
        for (old, new) in [
            ("\"v\":3", "\"v\":4"),
            ("\"v\":3", "\"v\":2"),
            ("\"op\":\"append\"", "\"op\":\"braid\""),
        ] {
            let mut body = serde_json::to_string(&record()).unwrap().replace(old, new);
            body.pop();
            let hash = chain_hash(ROOT_HASH, body.as_bytes());
            let line = format!("{body},\"hash\":\"{hash}\"}}");
            assert!(
                matches!(Record::decode(line.as_bytes()), Err(Unread::OtherFormat(_))),
                "{new}"
            );
        }
    }
}
