//! A segment file: its name, its header, and which positions of the stream lie in it.
//!
//! Layout: `docs/file-format.md`, "Log".
//!
//! Invariant: a file with the name of a segment has its full length and its header, both durable: it gets the name last. So a segment
//! without a valid header is damaged, never half made.

use super::record::Lsn;
use crate::{Error, Result};
use pagefold_format::page::{get_u64, put_u64};
use pagefold_format::wire::Reader;
use pagefold_io::{File, OpenOptions, Storage, read_exact_at};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use xxhash_rust::xxh3::xxh3_64_with_seed;

const MAGIC: &[u8; 8] = b"pgfoldlg";
/// Version of the log's format.
pub const LOG_VERSION: u32 = 1;

/// Bytes of a segment before its part of the stream.
pub const SEGMENT_HEADER_BYTES: usize = 4096;
/// The smallest segment.
pub const SEGMENT_BYTES_MIN: u64 = 16 << 10;
/// The largest segment.
pub const SEGMENT_BYTES_MAX: u64 = 1 << 30;
/// Segments are multiples of this.
pub const SEGMENT_BYTES_STEP: u64 = 4096;

const HEADER: u64 = SEGMENT_HEADER_BYTES as u64;
const _: () = assert!(HEADER.is_multiple_of(SEGMENT_BYTES_STEP) && SEGMENT_BYTES_MIN > HEADER);

/// What a segment's header says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SegmentHeader {
    pub(super) log_id: u128,
    pub(super) number: u64,
    pub(super) segment_bytes: u64,
}

impl SegmentHeader {
    pub(super) fn build(&self) -> [u8; SEGMENT_HEADER_BYTES] {
        let mut fields = Vec::with_capacity(64);
        fields.extend_from_slice(MAGIC);
        fields.extend_from_slice(&LOG_VERSION.to_le_bytes());
        fields.extend_from_slice(&[0; 4]);
        fields.extend_from_slice(&self.segment_bytes.to_le_bytes());
        fields.extend_from_slice(&self.number.to_le_bytes());
        fields.extend_from_slice(&self.log_id.to_le_bytes());
        let mut header = [0; SEGMENT_HEADER_BYTES];
        header[8..8 + fields.len()].copy_from_slice(&fields);
        let checksum = xxh3_64_with_seed(&header[8..], 0);
        put_u64(&mut header, 0, checksum);
        header
    }

    /// Reads the header of the file at `path`, for the errors.
    pub(super) fn parse(header: &[u8; SEGMENT_HEADER_BYTES], path: &Path) -> Result<SegmentHeader> {
        if get_u64(header, 0) != xxh3_64_with_seed(&header[8..], 0) {
            return Err(damaged(path, "the header's checksum does not match"));
        }
        let short = |error: pagefold_format::FormatError| damaged(path, error.to_string());
        let mut reader = Reader::new(&header[8..]);
        if reader.take(8).map_err(short)? != MAGIC {
            return Err(damaged(path, "not a log segment of pagefold"));
        }
        let version = reader.u32().map_err(short)?;
        if version != LOG_VERSION {
            return Err(Error::NewerFormat { path: path.display().to_string(), found: version, known: LOG_VERSION });
        }
        reader.take(4).map_err(short)?;
        let segment_bytes = reader.u64().map_err(short)?;
        let number = reader.u64().map_err(short)?;
        Ok(SegmentHeader { segment_bytes, number, log_id: reader.u128().map_err(short)? })
    }
}

pub(super) fn damaged(path: &Path, reason: impl Into<String>) -> Error {
    Error::Damaged { path: path.display().to_string(), reason: reason.into() }
}

/// Where positions of the stream lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Geometry {
    segment_bytes: u64,
}

impl Geometry {
    /// Segments of this length.
    pub(super) fn new(segment_bytes: u64) -> Result<Geometry> {
        if !(SEGMENT_BYTES_MIN..=SEGMENT_BYTES_MAX).contains(&segment_bytes) || !segment_bytes.is_multiple_of(SEGMENT_BYTES_STEP) {
            return Err(Error::Parameter(format!(
                "log segments of {segment_bytes} bytes: they have {SEGMENT_BYTES_MIN} to {SEGMENT_BYTES_MAX}, in steps of {SEGMENT_BYTES_STEP}"
            )));
        }
        Ok(Geometry { segment_bytes })
    }

    pub(super) fn segment_bytes(self) -> u64 {
        self.segment_bytes
    }

    /// Bytes of the stream in a segment.
    fn capacity(self) -> u64 {
        self.segment_bytes - HEADER
    }

    /// The segment in which a position lies.
    pub(super) fn segment_of(self, at: Lsn) -> u64 {
        at / self.capacity()
    }

    /// The offset of a position in its segment.
    pub(super) fn offset_of(self, at: Lsn) -> u64 {
        HEADER + at % self.capacity()
    }

    /// The first position of a segment whose number [`Self::is_segment`] has accepted.
    pub(super) fn start_of(self, number: u64) -> Lsn {
        number * self.capacity()
    }

    /// The first position behind a segment whose number [`Self::is_segment`] has accepted.
    pub(super) fn end_of(self, number: u64) -> Lsn {
        (number + 1) * self.capacity()
    }

    /// The first position behind what a file of this length has of a segment whose number [`Self::is_segment`] has accepted.
    pub(super) fn end_in(self, number: u64, file_bytes: u64) -> Lsn {
        self.start_of(number) + file_bytes.clamp(HEADER, self.segment_bytes) - HEADER
    }

    /// Whether all positions of the segment with this number are numbers.
    pub(super) fn is_segment(self, number: u64) -> bool {
        number < u64::MAX / self.capacity()
    }

    /// The parts of `[start, start + length)`, segment by segment: number, offset in the segment, bytes.
    pub(super) fn parts(self, start: Lsn, length: usize) -> impl Iterator<Item = (u64, u64, usize)> {
        let mut at = start;
        let mut left = length;
        std::iter::from_fn(move || {
            if left == 0 {
                return None;
            }
            let (number, offset) = (self.segment_of(at), self.offset_of(at));
            let bytes = usize::try_from(self.segment_bytes - offset).map_or(left, |room| room.min(left));
            at += bytes as u64;
            left -= bytes;
            Some((number, offset, bytes))
        })
    }
}

/// Where a segment lies.
pub(crate) fn segment_path(directory: &Path, number: u64) -> PathBuf {
    directory.join(format!("{number:016x}.pfl"))
}

/// The number of a segment by its file's name; `None` for other files.
pub(crate) fn segment_number(path: &Path) -> Option<u64> {
    let digits = path.file_name()?.to_str()?.strip_suffix(".pfl")?;
    let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    (digits.len() == 16 && digits.bytes().all(is_digit)).then(|| u64::from_str_radix(digits, 16).ok())?
}

/// Opens a segment and checks that its header and its length are what they should be.
pub(super) fn open_segment(
    storage: &dyn Storage,
    directory: &Path,
    number: u64,
    log_id: u128,
    expected: Option<Geometry>,
    options: &OpenOptions,
) -> Result<(Arc<dyn File>, Geometry)> {
    let path = segment_path(directory, number);
    let file = storage.open(&path, options).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => damaged(&path, "the segment is missing"),
        _ => Error::from(error),
    })?;
    let length = file.len()?;
    if length < HEADER {
        return Err(damaged(&path, format!("{length} bytes long: it has no header")));
    }
    let mut bytes = [0; SEGMENT_HEADER_BYTES];
    read_exact_at(file.as_ref(), &mut bytes, 0)?;
    let header = SegmentHeader::parse(&bytes, &path)?;
    if header.log_id != log_id {
        return Err(damaged(&path, "a segment of another database's log"));
    }
    if header.number != number {
        return Err(damaged(&path, format!("its header says that it is segment {:016x}", header.number)));
    }
    let geometry = Geometry::new(header.segment_bytes).map_err(|error| damaged(&path, error.to_string()))?;
    if expected.is_some_and(|expected| expected != geometry) {
        return Err(damaged(&path, format!("its header says {} bytes a segment, another's says otherwise", header.segment_bytes)));
    }
    if length != header.segment_bytes {
        return Err(damaged(&path, format!("{length} bytes long, not {}", header.segment_bytes)));
    }
    if !geometry.is_segment(number) {
        return Err(damaged(&path, "no log has so many segments"));
    }
    Ok((file, geometry))
}

/// The numbers of the segments in a directory, ascending, and the length that they have by the first valid header.
pub(super) fn discover(storage: &dyn Storage, directory: &Path, log_id: u128) -> Result<(Vec<u64>, Geometry)> {
    let mut numbers: Vec<u64> = storage.list(directory)?.iter().filter_map(|path| segment_number(path)).collect();
    numbers.sort_unstable();
    let mut first_error = None;
    // From the newest: old ones may be damaged without anybody needing them.
    for &number in numbers.iter().rev() {
        match open_segment(storage, directory, number, log_id, None, &OpenOptions::read_only()) {
            Ok((_, geometry)) => return Ok((numbers, geometry)),
            Err(error @ Error::Io(_)) => return Err(error),
            Err(error) => first_error = first_error.or(Some(error)),
        }
    }
    Err(first_error.unwrap_or_else(|| damaged(directory, "no log segment is there")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_and_segments() {
        let geometry = Geometry::new(16 << 10).unwrap();
        assert_eq!((geometry.segment_of(12_287), geometry.segment_of(12_288)), (0, 1));
        assert_eq!((geometry.offset_of(12_287), geometry.offset_of(12_288)), (16_383, 4096));
        assert_eq!(geometry.parts(12_280, 12_300).collect::<Vec<_>>(), [(0, 16_376, 8), (1, 4096, 12_288), (2, 4096, 4)]);
        assert_eq!((geometry.start_of(2), geometry.end_of(2)), (24_576, 36_864));
        assert!(geometry.is_segment(u64::MAX / 12_288 - 1) && !geometry.is_segment(u64::MAX / 12_288) && !geometry.is_segment(u64::MAX));
        for wrong in [0, 4096, (16 << 10) - 4096, (16 << 10) + 1, u64::MAX] {
            assert!(Geometry::new(wrong).is_err());
        }
    }

    #[test]
    fn names() {
        let path = segment_path(Path::new("log"), 0xAB);
        assert_eq!((path.to_str(), segment_number(&path)), (Some("log/00000000000000ab.pfl"), Some(0xAB)));
        for other in ["00000000000000AB.pfl", "0ab.pfl", "+0000000000000ab.pfl", "00000000000000ab", "spare-00000000000000ab.pfl"] {
            assert_eq!(segment_number(Path::new(other)), None);
        }
    }

    #[test]
    fn every_bit_flip_in_a_header_is_found() {
        let header = SegmentHeader { log_id: 5, number: 6, segment_bytes: 16 << 10 };
        let mut bytes = header.build();
        let path = Path::new("x");
        assert_eq!(SegmentHeader::parse(&bytes, path).unwrap(), header);
        for bit in 0..bytes.len() * 8 {
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert!(SegmentHeader::parse(&bytes, path).is_err(), "bit {bit}");
            bytes[bit / 8] ^= 1 << (bit % 8);
        }
    }
}
