//! Journal records: JSON lines, chained by hash.
//!
//! A line ends in `,"sum":"…"}`; the sum is over the sum of the record before and over every byte
//! of the line before it. Readers ignore fields they do not know, and nothing is ever rewritten, so
//! unknown fields survive.

use std::borrow::Cow;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use quipu_contract::Actor;
use serde::{Deserialize, Serialize};
use smol_str::SmolStr;

use crate::version::{Version, digits};

/// The version of the record format.
pub(crate) const FORMAT: u32 = 1;
/// The sum that the first record is chained to.
pub(crate) const ROOT_SUM: &str = "00000000000000000000000000000000";

/// The sum of a record, in hexadecimal digits. Copied with every end of the journal that someone remembers.
pub type Sum = arrayvec::ArrayString<{ ROOT_SUM.len() }>;

/// What a text says; one that is no sum matches none.
pub(crate) fn parse_sum(text: &str) -> Sum {
    Sum::from(text).unwrap_or_default()
}

/// Why a record was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// A change that the contract allowed.
    Commit,
    /// An edit behind Quipu's back that the contract allows.
    Adopt,
    /// A person changed what is sealed.
    Amend,
    /// An older version was brought back.
    Restore,
    /// Bytes that an outside edit left and a commit replaced: kept, not current.
    Aside,
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
            Kind::Aside => "aside",
            Kind::Lease => "lease",
            Kind::Note => "note",
            Kind::Unknown => "unknown",
        }
    }
}

/// Who made a record.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Who {
    /// `person`, `agent`, `quipu`, or `outside` for an edit that did not come through Quipu.
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

/// The same actor is the same through every door: a lease or a session that was begun through one can be ended through another.
impl PartialEq for Who {
    fn eq(&self, other: &Who) -> bool {
        let Who { kind, role, unit, agent, via: _ } = self;
        (kind, role, unit, agent) == (&other.kind, &other.role, &other.unit, &other.agent)
    }
}

impl Eq for Who {}

impl Who {
    pub fn outside() -> Who {
        Who { kind: "outside".into(), ..Who::default() }
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

/// `writer/ch05 (otto)`, `person`, `person via page`, `outside`.
impl std::fmt::Display for Who {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.role.as_deref().or(self.agent.as_deref()).unwrap_or(&self.kind))?;
        if let Some(unit) = &self.unit {
            write!(f, "/{unit}")?;
        }
        if let (Some(_), Some(agent)) = (&self.role, &self.agent) {
            write!(f, " ({agent})")?;
        }
        self.via.as_ref().map_or(Ok(()), |via| write!(f, " via {via}"))
    }
}

/// Another kind needs another form of traces (`trace::FORM`), which only say whether a file is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OpKind {
    /// The record holds the whole file.
    Write,
    /// The record holds what was added at the end.
    Append,
    /// The file is gone.
    Remove,
    /// The record holds bytes that are not current.
    Keep,
}

impl OpKind {
    fn as_str(self) -> &'static str {
        match self {
            OpKind::Write => "write",
            OpKind::Append => "append",
            OpKind::Remove => "remove",
            OpKind::Keep => "keep",
        }
    }
}

/// What happened to one file.
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
    /// Where the journal's record before this one about this file stands.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last: Option<SmolStr>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Bytes that are not UTF-8.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base64: Option<String>,
}

impl RecordOp {
    pub fn bytes(&self) -> Vec<u8> {
        match (&self.text, &self.base64) {
            (Some(text), _) => text.clone().into_bytes(),
            (None, Some(coded)) => STANDARD.decode(coded).unwrap_or_default(),
            (None, None) => Vec::new(),
        }
    }

    /// The same without a copy, where they are text.
    pub fn content(&self) -> Cow<'_, [u8]> {
        match &self.text {
            Some(text) => Cow::Borrowed(text.as_bytes()),
            None => Cow::Owned(self.bytes()),
        }
    }

    fn write_fields(&self, line: &mut Vec<u8>) -> std::io::Result<()> {
        // Every field by name: one that is added and not written does not compile.
        let RecordOp { op, path, class, base, version, len, last, text, base64 } = self;
        line.extend_from_slice(b"{\"op\":\"");
        line.extend_from_slice(op.as_str().as_bytes());
        line.push(b'"');
        write_field(line, "path", path);
        write_field(line, "class", class);
        base.iter().for_each(|base| write_field(line, "base", base.as_str()));
        write_field(line, "version", version.as_str());
        line.extend_from_slice(b",\"len\":");
        write_number(line, *len);
        last.iter().for_each(|last| write_field(line, "last", last));
        text.iter().for_each(|text| write_field(line, "text", text));
        base64.iter().for_each(|coded| write_field(line, "base64", coded));
        line.push(b'}');
        Ok(())
    }

    /// With these bytes: as text if they are UTF-8.
    pub fn with_bytes(mut self, bytes: Vec<u8>) -> RecordOp {
        match String::from_utf8(bytes) {
            Ok(text) => self.text = Some(text),
            Err(error) => self.base64 = Some(STANDARD.encode(error.as_bytes())),
        }
        self
    }
}

/// What a lease record says.
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
    /// How long it was asked for: an order of its own computes the end by its own clock.
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
    /// What the change with that key asked for, in short.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked: Option<String>,
    /// What the writer wanted to be remembered; not read by the store.
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
    pub prev: Sum,
    #[serde(default, skip_serializing)]
    pub sum: Sum,
}

/// A record as it stands in the journal.
pub(crate) struct Encoded {
    bytes: Vec<u8>,
    begin: usize,
    pub sum: Sum,
}

impl Encoded {
    pub fn line(&self) -> &[u8] {
        &self.bytes[self.begin..]
    }
}

impl Record {
    /// The line, newline included, and its sum.
    pub(crate) fn encode(&self) -> Encoded {
        // Room for what nearly all have: more than a kilobyte takes the allocator several times as long.
        let text = |op: &RecordOp| op.text.as_ref().or(op.base64.as_ref()).map_or(0, String::len);
        let payload: usize = self.ops.iter().map(|op| 160 + op.path.len() + text(op) + text(op) / 16).sum();
        let mut bytes = Vec::with_capacity(320 + payload);
        // The sum is made of the sum before it and the line. Where they stand in one piece, several parts of them are hashed at once.
        bytes.extend_from_slice(self.prev.as_bytes());
        let begin = bytes.len();
        self.write_fields(&mut bytes).expect("a record has only strings and numbers");
        let sum = as_sum(&blake3::hash(&bytes));
        bytes.extend_from_slice(b",\"sum\":\"");
        bytes.extend_from_slice(sum.as_bytes());
        bytes.extend_from_slice(b"\"}\n");
        Encoded { bytes, begin, sum }
    }

    /// Everything but the sum and the closing brace, as serde would write it. Each commit waits for this, and what is
    /// general in serde costs several times as much.
    fn write_fields(&self, line: &mut Vec<u8>) -> std::io::Result<()> {
        // Every field by name: one that is added and not written does not compile.
        let Record { v, seq, id, at, kind, who, why, key, asked, note, ops, lease, synced, elsewhere, prev, sum: _ } = self;
        line.extend_from_slice(b"{\"v\":");
        write_number(line, u64::from(*v));
        line.extend_from_slice(b",\"seq\":");
        write_number(line, *seq);
        write_field(line, "id", id);
        write_field(line, "at", at);
        write_field(line, "kind", kind.as_str());
        line.extend_from_slice(b",\"who\":");
        serde_json::to_writer(&mut *line, who)?;
        why.iter().for_each(|why| write_field(line, "why", why));
        key.iter().for_each(|key| write_field(line, "key", key));
        asked.iter().for_each(|asked| write_field(line, "asked", asked));
        if let Some(note) = note {
            line.extend_from_slice(b",\"note\":");
            serde_json::to_writer(&mut *line, note)?;
        }
        for (index, op) in ops.iter().enumerate() {
            line.extend_from_slice(if index == 0 { b",\"ops\":[" } else { b"," });
            op.write_fields(line)?;
        }
        if !ops.is_empty() {
            line.push(b']');
        }
        if let Some(lease) = lease {
            line.extend_from_slice(b",\"lease\":");
            serde_json::to_writer(&mut *line, lease)?;
        }
        synced.iter().for_each(|synced| write_field(line, "synced", synced));
        if *elsewhere {
            line.extend_from_slice(b",\"elsewhere\":true");
        }
        write_field(line, "prev", prev);
        Ok(())
    }

    /// Reads a line without its newline; says what is wrong with it otherwise.
    pub(crate) fn decode(line: &[u8]) -> std::result::Result<Record, Unread> {
        match serde_json::from_slice::<Record>(line) {
            Ok(record) if !is_sound(line, &record.prev, &record.sum) => {
                Err(Unread::Damaged(format!("record {} does not match its sum", record.seq)))
            }
            Ok(record) if record.v != FORMAT => {
                Err(Unread::Later(format!("record {} has format {}; this Quipu reads {FORMAT}", record.seq, record.v)))
            }
            Ok(record) => Ok(record),
            // Whole by its own sum, and yet not understood: someone newer wrote it.
            Err(error) => match serde_json::from_slice::<Envelope>(line) {
                Ok(envelope) if is_sound(line, &envelope.prev, &envelope.sum) => {
                    Err(Unread::Later(format!("record {} is of a kind that this Quipu does not know: {error}", envelope.seq)))
                }
                _ => Err(Unread::Damaged(format!("not a record: {error}"))),
            },
        }
    }
}

/// What a line says of its files, without their texts: nine tenths of a line need not be copied for that.
#[derive(Deserialize)]
pub(crate) struct Glance<'l> {
    v: u32,
    pub seq: u64,
    #[serde(default, borrow)]
    pub ops: Vec<GlanceOp<'l>>,
    #[serde(borrow)]
    prev: Cow<'l, str>,
    #[serde(default, borrow)]
    sum: Cow<'l, str>,
}

#[derive(Deserialize)]
pub(crate) struct GlanceOp<'l> {
    pub op: OpKind,
    #[serde(borrow)]
    pub path: Cow<'l, str>,
    #[serde(borrow)]
    pub class: Cow<'l, str>,
    pub version: Version,
    pub len: u64,
}

impl Glance<'_> {
    /// Believes a line as far as [`Record::decode`] does.
    pub fn at(line: &[u8]) -> std::result::Result<Glance<'_>, Unread> {
        match serde_json::from_slice::<Glance<'_>>(line) {
            Ok(glance) if glance.v == FORMAT && is_sound(line, &glance.prev, &glance.sum) => Ok(glance),
            _ => Err(Record::decode(line).err().unwrap_or_else(|| Unread::Damaged("a record that cannot be read in short".into()))),
        }
    }
}

fn write_number(line: &mut Vec<u8>, number: u64) {
    line.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}

fn write_field(line: &mut Vec<u8>, name: &str, value: &str) {
    line.extend_from_slice(b",\"");
    line.extend_from_slice(name.as_bytes());
    line.extend_from_slice(b"\":\"");
    write_escaped(line, value.as_bytes());
    line.push(b'"');
}

/// The inside of a JSON string. Stretches without anything to escape, which is nearly all of a text, are copied whole.
fn write_escaped(line: &mut Vec<u8>, text: &[u8]) {
    let mut rest = text;
    loop {
        let (plain, behind) = rest.split_at(plain_length(rest));
        line.extend_from_slice(plain);
        let Some((byte, behind)) = behind.split_first() else { return };
        match byte {
            b'"' => line.extend_from_slice(b"\\\""),
            b'\\' => line.extend_from_slice(b"\\\\"),
            b'\n' => line.extend_from_slice(b"\\n"),
            b'\t' => line.extend_from_slice(b"\\t"),
            b'\r' => line.extend_from_slice(b"\\r"),
            0x08 => line.extend_from_slice(b"\\b"),
            0x0c => line.extend_from_slice(b"\\f"),
            byte => {
                let digits = b"0123456789abcdef";
                line.extend_from_slice(b"\\u00");
                line.extend([digits[usize::from(byte >> 4)], digits[usize::from(byte & 15)]]);
            }
        }
        rest = behind;
    }
}

/// How many bytes a text begins with that JSON takes as they are.
fn plain_length(text: &[u8]) -> usize {
    const STRETCH: usize = 32;
    let special = |byte: &u8| *byte < b' ' || *byte == b'"' || *byte == b'\\';
    // Asked of many bytes at once, it needs no step for each.
    let stretches = text.chunks(STRETCH).take_while(|stretch| !stretch.iter().fold(false, |any, byte| any | special(byte)));
    let plain = stretches.map(<[u8]>::len).sum();
    plain + text[plain..].iter().take(STRETCH).position(special).unwrap_or(0)
}

/// Why a line is not a record for this Quipu.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Unread {
    Damaged(String),
    /// Whole, but of a later format. It must be neither skipped nor cut off.
    Later(String),
}

impl std::fmt::Display for Unread {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Unread::Damaged(what) | Unread::Later(what) => f.write_str(what),
        }
    }
}

/// What every format has.
#[derive(Deserialize)]
struct Envelope {
    seq: u64,
    prev: String,
    sum: String,
}

/// Bytes of a line behind what its sum is made of.
const SUM_FIELD: usize = ",\"sum\":\"\"}".len() + ROOT_SUM.len();

fn is_sound(line: &[u8], prev: &str, sum: &str) -> bool {
    line.len().checked_sub(SUM_FIELD).is_some_and(|end| checksum(prev, &line[..end]) == *sum)
}

/// The sum of a line that is whole and follows a record with the sum `prev`. The line need not be read for that.
pub(crate) fn sum_if_sound<'l>(line: &'l [u8], prev: &str) -> Option<&'l str> {
    let (body, field) = line.split_at_checked(line.len().checked_sub(SUM_FIELD)?)?;
    let sum = std::str::from_utf8(field.strip_prefix(b",\"sum\":\"")?.strip_suffix(b"\"}")?).ok()?;
    (checksum(prev, body) == *sum).then_some(sum)
}

/// The sum of a line that says of itself that it follows a record with the sum `prev`. Whether it is whole is not looked at.
pub(crate) fn sum_if_linked<'l>(line: &'l [u8], prev: &str) -> Option<&'l str> {
    let (body, field) = line.split_at_checked(line.len().checked_sub(SUM_FIELD)?)?;
    let linked = body.strip_suffix(b"\"")?.strip_suffix(prev.as_bytes())?.ends_with(b",\"prev\":\"");
    let sum = std::str::from_utf8(field.strip_prefix(b",\"sum\":\"")?.strip_suffix(b"\"}")?).ok()?;
    linked.then_some(sum)
}

fn checksum(prev: &str, body: &[u8]) -> Sum {
    let mut hasher = blake3::Hasher::new();
    hasher.update(prev.as_bytes());
    hasher.update(body);
    as_sum(&hasher.finalize())
}

fn as_sum(hash: &blake3::Hash) -> Sum {
    Sum::from_byte_string(&digits(hash.as_bytes())).unwrap_or_default()
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
            text: None,
            base64: None,
        };
        Record {
            v: FORMAT,
            seq: 7,
            id: "i".into(),
            at: "t".into(),
            kind: Kind::Commit,
            who: Who::outside(),
            why: None,
            key: None,
            asked: None,
            note: Some(serde_json::json!({"run": "r1", "reads": []})),
            ops: vec![op.clone().with_bytes("行一\n\"quoted\"".into()), op.with_bytes(vec![0xff, 0])],
            lease: None,
            synced: None,
            elsewhere: false,
            prev: parse_sum(ROOT_SUM),
            sum: Sum::new(),
        }
    }

    #[test]
    fn a_record_survives_its_line() {
        let encoded = record().encode();
        let read = Record::decode(encoded.line().strip_suffix(b"\n").unwrap()).unwrap();
        assert_eq!(read, Record { sum: encoded.sum, ..record() });
        assert_eq!(read.ops[0].bytes(), "行一\n\"quoted\"".as_bytes());
        assert_eq!(read.ops[1].bytes(), [0xff, 0]);
    }

    #[test]
    fn a_line_is_what_serde_would_write() {
        let every: String = (0..0x180).filter_map(char::from_u32).collect();
        let mut odd = record();
        odd.why = Some(every.clone());
        odd.key = Some("k".repeat(70));
        odd.asked = Some("a\"".into());
        odd.who = Who { kind: "agent".into(), role: Some("写\"".into()), unit: Some("u".into()), agent: None, via: Some("page".into()) };
        odd.lease = Some(LeaseEvent {
            act: "take".into(),
            id: every.clone(),
            paths: vec![every.clone()],
            fence: 3,
            until: "u".into(),
            boot: "b".into(),
            boot_until_us: -4,
            length_us: 9,
        });
        (odd.synced, odd.elsewhere) = (Some("1:2".into()), true);
        for op in [OpKind::Write, OpKind::Remove, OpKind::Keep] {
            let base = RecordOp { op, path: every.clone(), base: Some(Version::of(b"b")), last: Some("1:3".into()), ..odd.ops[0].clone() };
            odd.ops.push(base.with_bytes(every.repeat(3).into_bytes()));
        }
        let bare = Record { note: None, ops: Vec::new(), kind: Kind::Note, ..record() };
        for record in [record(), odd, bare] {
            let mut whole = serde_json::to_vec(&record).unwrap();
            whole.pop();
            let sum = checksum(&record.prev, &whole);
            let written = String::from_utf8(record.encode().line().to_vec()).unwrap();
            assert_eq!(written, format!("{},\"sum\":\"{sum}\"}}\n", String::from_utf8(whole).unwrap()));
        }
    }

    #[test]
    fn every_flipped_byte_is_noticed() {
        let encoded = record().encode();
        let line = encoded.line().strip_suffix(b"\n").unwrap();
        for index in 0..line.len() {
            let mut flipped = line.to_vec();
            flipped[index] ^= 1;
            assert!(Record::decode(&flipped).is_err(), "byte {index}");
        }
        for cut in 0..line.len() {
            assert!(Record::decode(&line[..cut]).is_err(), "cut at {cut}");
        }
    }

    #[test]
    fn fields_of_later_versions_are_ignored() {
        let mut body = serde_json::to_vec(&record()).unwrap();
        body.pop();
        body.extend_from_slice(b",\"colour\":\"red\"");
        let sum = checksum(ROOT_SUM, &body);
        body.extend_from_slice(format!(",\"sum\":\"{sum}\"}}").as_bytes());
        assert_eq!(Record::decode(&body).unwrap().seq, 7);
    }

    #[test]
    fn a_later_format_is_not_damage() {
        for (old, new) in [("\"v\":1", "\"v\":2"), ("\"op\":\"append\"", "\"op\":\"braid\"")] {
            let mut body = serde_json::to_string(&record()).unwrap().replace(old, new);
            body.pop();
            let sum = checksum(ROOT_SUM, body.as_bytes());
            assert!(matches!(Record::decode(format!("{body},\"sum\":\"{sum}\"}}").as_bytes()), Err(Unread::Later(_))), "{new}");
        }
    }
}
