//! Traces: what the newest records make of their files, in short, for processes that follow each
//! other.
//!
//! Where many write, each needs to know of the records of the others only whether they touch its
//! few files, and what they make of them. Whoever writes a record leaves a trace of it, in
//! `.quipu/live` behind its lines; there is room for the newest of them. A trace is found by its
//! record's number, so that a record without one is noticed.

use quipu_contract::Class;

use crate::heads::Head;
use crate::journal::Position;
use crate::record::{OpKind, Record};
use crate::version::Version;

/// So many are kept; who is further behind reads the records themselves.
pub(crate) const ROOM: u64 = 256;
/// The form of traces: another one has another number.
pub(crate) const FORM: u32 = 1;

/// What the paths of a trace are told by. Short enough to copy, and too long to be hit by design.
pub(crate) type Mark = [u8; 16];

pub(crate) fn mark_of(path: &str) -> Mark {
    let mut mark = [0; 16];
    mark.copy_from_slice(&blake3::hash(path.as_bytes()).as_bytes()[..16]);
    mark
}

/// As it stands in `.quipu/live`: check, number and place of the record, and of each file its mark,
/// version, length, and a byte that says of which class it is. All numbers are little-endian.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Trace([u8; Trace::SIZE]);

/// What a trace says of a file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Told {
    Nothing,
    Head(Head),
    /// The record itself has to be asked.
    Ask,
}

/// Where each part begins.
const SEQ: usize = 4;
const AT: usize = SEQ + 8;
const FILES: usize = AT + 8;
/// Within a file. The highest byte of its length is never needed, and says what kind it is of.
const VERSION: usize = 16;
const LEN: usize = VERSION + 8;
const KIND: usize = LEN + 7;
const FILE: usize = KIND + 1;

/// Kinds of a file are codes of classes, and of one that is gone the code and this.
const GONE: u8 = 128;
/// Instead of a kind: the record has to be asked.
const ASK: u8 = 255;

impl Trace {
    const ROOM_FOR: usize = 5;
    pub const SIZE: usize = FILES + Trace::ROOM_FOR * FILE;

    pub fn of(record: &Record, at: Position) -> Trace {
        let mut bytes = [0; Trace::SIZE];
        bytes[SEQ..AT].copy_from_slice(&record.seq.to_le_bytes());
        bytes[AT..FILES].copy_from_slice(&at.offset.to_le_bytes());
        let mut files = bytes[FILES..].chunks_exact_mut(FILE);
        let mut fits = true;
        for op in record.ops.iter().filter(|op| op.op != OpKind::Keep) {
            let (Some(file), Some(version)) = (files.next(), op.version.bits()) else {
                fits = false;
                break;
            };
            file[..VERSION].copy_from_slice(&mark_of(&op.path));
            file[VERSION..LEN].copy_from_slice(&version.to_le_bytes());
            file[LEN..].copy_from_slice(&op.len.to_le_bytes());
            let class = code_of(Class::parse(&op.class).unwrap_or(Class::Free));
            file[KIND] = if op.op == OpKind::Remove {
                class | GONE
            } else {
                class
            };
        }
        if !fits {
            bytes[FILES + KIND] = ASK;
        }
        let check = check_of(&bytes);
        bytes[..SEQ].copy_from_slice(&check);
        Trace(bytes)
    }

    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// None if it is damaged.
    pub fn from_bytes(bytes: &[u8]) -> Option<Trace> {
        let trace = Trace(bytes.try_into().ok()?);
        (trace.0[..SEQ] == check_of(&trace.0)).then_some(trace)
    }

    fn number(&self, at: usize) -> u64 {
        self.0[at..]
            .first_chunk()
            .map_or(0, |bytes| u64::from_le_bytes(*bytes))
    }

    pub fn seq(&self) -> u64 {
        self.number(SEQ)
    }

    /// Where the record begins in its segment.
    pub fn at(&self) -> u64 {
        self.number(AT)
    }

    /// What the record makes of the file with a mark.
    pub fn tell(&self, mark: &Mark, segment: u32) -> Told {
        if self.0[FILES + KIND] == ASK {
            return Told::Ask;
        }
        let starts = (FILES..Trace::SIZE)
            .step_by(FILE)
            .take_while(|start| self.0[start + KIND] != 0);
        let Some(start) = starts
            .filter(|start| self.0[*start..].starts_with(mark))
            .last()
        else {
            return Told::Nothing;
        };
        let kind = self.0[start + KIND];
        let Some(class) = CLASSES
            .into_iter()
            .find(|class| code_of(*class) == kind & !GONE)
        else {
            return Told::Ask;
        };
        Told::Head(Head {
            class,
            version: Version::of_bits(self.number(start + VERSION)),
            len: self.number(start + LEN) & (u64::MAX >> 8),
            at: Position {
                segment,
                offset: self.at(),
            },
            seq: self.seq(),
            gone: kind & GONE != 0,
            stamp: None,
            flag: None,
        })
    }
}

const CLASSES: [Class; 7] = [
    Class::Sealed,
    Class::Append,
    Class::Record,
    Class::Overwrite,
    Class::State,
    Class::Derived,
    Class::Free,
];

fn code_of(class: Class) -> u8 {
    match class {
        Class::Sealed => 1,
        Class::Append => 2,
        Class::Record => 3,
        Class::Overwrite => 4,
        Class::State => 5,
        Class::Derived => 6,
        Class::Free => 7,
    }
}

/// Of everything behind the check itself. Every trace that is read is checked, and most say nothing
/// of the file in question: it has to be quick.
fn check_of(bytes: &[u8; Trace::SIZE]) -> [u8; SEQ] {
    let mut crc = flate2::Crc::new();
    crc.update(&bytes[SEQ..]);
    crc.sum().to_le_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::body::Body;
    use crate::record::{FORMAT, Kind, RecordOp, Sum, Who};

    fn record(ops: Vec<(OpKind, &str, Version)>) -> Record {
        let op = |(op, path, version): (OpKind, &str, Version)| RecordOp {
            op,
            path: path.into(),
            class: "state".into(),
            base: None,
            version,
            len: 1 << 40,
            last: None,
            deltas: 0,
            hash: None,
            body: Body::None,
        };
        Record {
            v: FORMAT,
            seq: 300,
            id: "i".into(),
            at: "t".into(),
            kind: Kind::Commit,
            who: Who::outside(),
            why: None,
            key: None,
            asked: None,
            note: None,
            ops: ops.into_iter().map(op).collect(),
            lease: None,
            synced: None,
            elsewhere: false,
            prev: Sum::new(),
            sum: Sum::new(),
        }
    }

    const PLACE: Position = Position {
        segment: 2,
        offset: 77,
    };

    #[test]
    fn a_trace_says_what_its_record_says() {
        let (one, two) = (Version::of(b"1"), Version::of(b"2"));
        let ops = vec![
            (OpKind::Append, "a.md", one.clone()),
            (OpKind::Keep, "kept.md", one.clone()),
            (OpKind::Remove, "术语.md", Version::of(b"")),
            (OpKind::Write, "a.md", two.clone()),
        ];
        let record = record(ops);
        let trace = Trace::from_bytes(Trace::of(&record, PLACE).bytes()).unwrap();
        assert_eq!(trace, Trace::of(&record, PLACE));
        let head = |index: usize| Told::Head(Head::after(&record.ops[index], PLACE, 300));
        assert_eq!(trace.tell(&mark_of("a.md"), 2), head(3));
        assert_eq!(trace.tell(&mark_of("术语.md"), 2), head(2));
        assert_eq!(trace.tell(&mark_of("kept.md"), 2), Told::Nothing);
        for class in CLASSES {
            let mut classed = record.clone();
            classed.ops[0].class = class.as_str().into();
            classed.ops.truncate(1);
            let Told::Head(head) = Trace::from_bytes(Trace::of(&classed, PLACE).bytes())
                .unwrap()
                .tell(&mark_of("a.md"), 2)
            else {
                panic!("{class:?}")
            };
            assert_eq!(head.class, class);
        }
    }

    #[test]
    fn a_record_that_does_not_fit_has_to_be_asked() {
        let paths = ["1", "2", "3", "4", "5", "6"];
        let each = |path: &&'static str| (OpKind::Write, *path, Version::of(b"x"));
        let tell = |record: &Record| {
            Trace::from_bytes(Trace::of(record, PLACE).bytes())
                .unwrap()
                .tell(&mark_of("other"), 2)
        };
        assert_eq!(
            tell(&record(paths[..5].iter().map(each).collect())),
            Told::Nothing
        );
        assert_eq!(tell(&record(paths.iter().map(each).collect())), Told::Ask);
        assert_eq!(
            tell(&record(vec![(
                OpKind::Write,
                "a",
                Version::parse("of another kind")
            )])),
            Told::Ask
        );
    }

    #[test]
    fn every_flipped_byte_of_a_trace_is_noticed() {
        let trace = Trace::of(
            &record(vec![(OpKind::Write, "a.md", Version::of(b"x"))]),
            PLACE,
        );
        let bytes = trace.bytes();
        for index in 0..bytes.len() {
            let mut flipped = bytes.to_vec();
            flipped[index] ^= 1;
            assert_eq!(Trace::from_bytes(&flipped), None, "byte {index}");
        }
        assert_eq!(Trace::from_bytes(&[0; Trace::SIZE]), None);
    }
}
