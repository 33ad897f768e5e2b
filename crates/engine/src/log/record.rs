//! The frame of a record, and the Flush record that each group write begins with.
//!
//! Layout: `docs/file-format.md`, "Log".
//!
//! Invariants:
//!
//! - A frame is valid at one position of one database only: its checksum is seeded with both.
//! - Zeros are not a valid frame.

use xxhash_rust::xxh3::xxh3_64_with_seed;

/// A position in the stream of log records, in bytes. 0 stands for none: no record starts there.
pub type Lsn = u64;

const CHECKSUM: usize = 0;
const LENGTH: usize = CHECKSUM + 8;
const KIND: usize = LENGTH + 4;
const BODY: usize = KIND + 1;

/// Bytes of a frame before its body.
pub const FRAME_HEADER_BYTES: usize = BODY;
const _: () = assert!(FRAME_HEADER_BYTES == 13);

/// The longest body of a record.
pub const BODY_BYTES_MAX: usize = 64 << 20;

/// The kind of Flush records, which only the log itself writes.
pub const FLUSH_KIND: u8 = 255;
const FLUSH_MARK: [u8; 3] = *b"pfl";
const FLUSH_DURABLE: usize = BODY + FLUSH_MARK.len();
/// Bytes of a Flush record.
pub const FLUSH_BYTES: usize = FLUSH_DURABLE + 8;
const _: () = assert!(FLUSH_BYTES == 24);

/// A record, read back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Where it starts.
    pub start: Lsn,
    /// Where it ends: what pages are stamped with.
    pub end: Lsn,
    /// What its body is: the caller's.
    pub kind: u8,
    /// The caller's bytes.
    pub body: Vec<u8>,
}

/// A record in the buffer of a reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordRef<'a> {
    /// Where it starts.
    pub start: Lsn,
    /// Where it ends: what pages are stamped with.
    pub end: Lsn,
    /// What its body is: the caller's.
    pub kind: u8,
    /// The caller's bytes.
    pub body: &'a [u8],
}

impl RecordRef<'_> {
    /// The same with a body of its own.
    #[must_use]
    pub fn to_record(&self) -> Record {
        Record { start: self.start, end: self.end, kind: self.kind, body: self.body.to_vec() }
    }
}

/// Makes and checks the frames of one database.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frames {
    seed: u64,
}

/// The length of the whole frame that begins with these bytes, at least [`FRAME_HEADER_BYTES`] of them; `None` when no frame has it.
pub(super) fn frame_bytes(header: &[u8]) -> Option<usize> {
    let length = u32::from_le_bytes(header.get(LENGTH..KIND)?.try_into().ok()?);
    let length = usize::try_from(length).ok()?;
    (FRAME_HEADER_BYTES..=FRAME_HEADER_BYTES + BODY_BYTES_MAX).contains(&length).then_some(length)
}

/// Kind and body of a frame that has been checked.
pub(super) fn parts(frame: &[u8]) -> (u8, &[u8]) {
    (frame[KIND], &frame[BODY..])
}

impl Frames {
    pub(super) fn new(log_id: u128) -> Frames {
        Frames { seed: xxh3_64_with_seed(&log_id.to_le_bytes(), 0) }
    }

    fn checksum(self, start: Lsn, frame: &[u8]) -> u64 {
        xxh3_64_with_seed(&frame[LENGTH..], xxh3_64_with_seed(&start.to_le_bytes(), self.seed))
    }

    /// Appends the frame of a record that starts at `start`. The caller has checked the length of the body.
    pub(super) fn put(self, out: &mut Vec<u8>, start: Lsn, kind: u8, body: &[&[u8]]) {
        let at = out.len();
        let length = FRAME_HEADER_BYTES + body.iter().map(|part| part.len()).sum::<usize>();
        out.reserve(length);
        out.extend_from_slice(&[0; 8]);
        out.extend_from_slice(&u32::try_from(length).expect("a body of at most 64 MB").to_le_bytes());
        out.push(kind);
        for part in body {
            out.extend_from_slice(part);
        }
        let checksum = self.checksum(start, &out[at..]);
        out[at..at + LENGTH].copy_from_slice(&checksum.to_le_bytes());
    }

    /// Whether the bytes are the whole frame of a record that starts at `start`. At least [`FRAME_HEADER_BYTES`] of them.
    pub(super) fn is_valid(self, start: Lsn, frame: &[u8]) -> bool {
        frame_bytes(frame) == Some(frame.len()) && frame[CHECKSUM..LENGTH] == self.checksum(start, frame).to_le_bytes()
    }

    /// A Flush record that starts at `start`: before the write that it begins was issued, the log was durable up to `durable`.
    pub(super) fn flush(self, start: Lsn, durable: Lsn) -> [u8; FLUSH_BYTES] {
        let mut frame = Vec::with_capacity(FLUSH_BYTES);
        self.put(&mut frame, start, FLUSH_KIND, &[&FLUSH_MARK, &durable.to_le_bytes()]);
        frame.try_into().expect("a Flush record has a fixed length")
    }

    /// The Flush records that lie wholly in `bytes`, which start at position `start`: where each starts and the position it names.
    /// Looked for byte by byte, since the record before may be the one that is damaged.
    pub(super) fn find_flushes(self, start: Lsn, bytes: &[u8]) -> impl Iterator<Item = (Lsn, Lsn)> {
        const LOOK: u64 = {
            let length = (FLUSH_BYTES as u32).to_le_bytes();
            u64::from_le_bytes([length[0], length[1], length[2], length[3], FLUSH_KIND, FLUSH_MARK[0], FLUSH_MARK[1], FLUSH_MARK[2]])
        };
        /// Places that are looked at together: most of a log that is new are zeros, and have no kind.
        const TOGETHER: usize = 64;
        let places = (bytes.len() + 1).saturating_sub(FLUSH_BYTES);
        let end_of = move |from: usize| (from + TOGETHER).min(places);
        let has_kind =
            move |from: &usize| bytes[from + KIND..end_of(*from) + KIND].iter().fold(false, |has, byte| has | (*byte == FLUSH_KIND));
        let near = (0..places).step_by(TOGETHER).filter(has_kind).flat_map(move |from| from..end_of(from));
        near.filter_map(move |place| {
            let (frame, at) = (&bytes[place..place + FLUSH_BYTES], start + place as u64);
            let look = u64::from_le_bytes(frame[LENGTH..LENGTH + 8].try_into().ok()?);
            if look != LOOK || !self.is_valid(at, frame) {
                return None;
            }
            let durable = u64::from_le_bytes(frame[FLUSH_DURABLE..].try_into().ok()?);
            (durable <= at).then_some((at, durable))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_is_valid_in_its_place_only_and_every_bit_flip_is_found() {
        let frames = Frames::new(7);
        let mut frame = Vec::new();
        frames.put(&mut frame, 1000, 3, &[b"ab", b"", b"cde"]);
        assert!(frames.is_valid(1000, &frame));
        assert_eq!((frame.len(), parts(&frame)), (18, (3, &b"abcde"[..])));
        assert!(!frames.is_valid(1001, &frame) && !Frames::new(8).is_valid(1000, &frame));
        for bit in 0..frame.len() * 8 {
            frame[bit / 8] ^= 1 << (bit % 8);
            assert!(!frames.is_valid(1000, &frame), "bit {bit}");
            frame[bit / 8] ^= 1 << (bit % 8);
        }
        for length in 0..100 {
            assert!(!frames.is_valid(1000, &vec![0; FRAME_HEADER_BYTES + length]));
        }
    }

    #[test]
    fn hostile_lengths_are_refused() {
        for length in [0, 12, FRAME_HEADER_BYTES as u32 + (64 << 20) + 1, u32::MAX] {
            let mut header = [0; FRAME_HEADER_BYTES];
            header[LENGTH..KIND].copy_from_slice(&length.to_le_bytes());
            assert_eq!(frame_bytes(&header), None);
        }
        assert_eq!(frame_bytes(&[1; 11]), None);
    }

    #[test]
    fn flush_records_are_found_where_they_are_valid() {
        let frames = Frames::new(7);
        let mut bytes = vec![5; 100];
        bytes[10..34].copy_from_slice(&frames.flush(510, 400));
        bytes[40..64].copy_from_slice(&frames.flush(541, 400));
        bytes[76..].copy_from_slice(&frames.flush(576, 501));
        assert_eq!(frames.find_flushes(500, &bytes).collect::<Vec<_>>(), [(510, 400), (576, 501)]);
        assert_eq!(frames.find_flushes(500, &bytes[..99]).collect::<Vec<_>>(), [(510, 400)]);
    }

    #[test]
    fn flush_records_are_found_wherever_they_lie() {
        let frames = Frames::new(7);
        for fill in [0, FLUSH_KIND] {
            for place in 0..200 {
                let mut bytes = vec![fill; 200 + FLUSH_BYTES];
                bytes[place..place + FLUSH_BYTES].copy_from_slice(&frames.flush(1000 + place as Lsn, 900));
                let found: Vec<_> = frames.find_flushes(1000, &bytes[..place + FLUSH_BYTES]).collect();
                assert_eq!(found, [(1000 + place as Lsn, 900)], "{fill} {place}");
                assert_eq!(frames.find_flushes(1000, &bytes).count(), 1);
                assert_eq!(frames.find_flushes(1000, &bytes[..place + FLUSH_BYTES - 1]).count(), 0);
            }
        }
    }
}
