//! A key trace: which keys of an index were asked for, in order. A file beside databases, not one of theirs.
//!
//! | Offset | Size | What |
//! |---|---|---|
//! | 0 | 8 | `PFKEYTRC` |
//! | 8 | 2 | version, 1 |
//! | 10 | 2 | bits: 1 recording ended as the trace was full |
//! | 12 | 4 | spans |
//! | 16 | 8 | keys |
//! | 24 | 8 | references |
//! | 32 | 8 | requests while recording was on, those for other keys included |
//! | 40 | 8 | requests in the windows whose references are here |
//! | 48 | 8 | nanoseconds that recording was on |
//! | 56 | 8 | entries of the index when it began |
//! | 64 | | spans: low (length u16, bytes), one byte that is 1 where there is a high, high (the same) |
//! | | | keys: bytes shared with the key before, other bytes (both varints), those bytes |
//! | | | references: numbers of keys (varints) |
//! | end - 8 | 8 | XXH3-64 of all before |
//!
//! Invariants of a trace that was decoded: spans ascend and are apart; keys ascend; each reference is one of a key; no key is longer than [`TRACED_KEY_BYTES_MAX`]. What decoding takes in memory is
//! bounded by [`TRACE_MEMORY_MAX`], whatever the file says.

use crate::FormatError;
use crate::wire::{Reader, put_bytes, put_varint};
use pagefold_codec::bytes::common_prefix;
use xxhash_rust::xxh3::xxh3_64;

const MAGIC: &[u8; 8] = b"PFKEYTRC";
const VERSION: u16 = 1;
const FULL: u16 = 1;
const HEADER_BYTES: usize = 64;
const CHECKSUM_BYTES: usize = 8;
/// The least that a span, and a key, take in memory beside their bytes.
const OBJECT_BYTES: usize = 48;

/// The longest key in a trace; of longer ones so much is kept. The longest key of an index and a RID are shorter.
pub const TRACED_KEY_BYTES_MAX: usize = 2_048;

/// The most memory that the parts of a trace take.
pub const TRACE_MEMORY_MAX: usize = 256 << 20;

/// Keys from the first one, which is included, to the second, which is not; `None`: to the last of all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeySpan {
    /// First bytes.
    pub low: Vec<u8>,
    /// First bytes behind.
    pub high: Option<Vec<u8>>,
}

impl KeySpan {
    /// All keys.
    #[must_use]
    pub fn all() -> KeySpan {
        KeySpan { low: Vec::new(), high: None }
    }

    /// Is the key behind the span?
    #[must_use]
    pub fn ends_before(&self, key: &[u8]) -> bool {
        self.high.as_deref().is_some_and(|high| high <= key)
    }

    /// Is it in the span?
    #[must_use]
    pub fn has(&self, key: &[u8]) -> bool {
        self.low.as_slice() <= key && !self.ends_before(key)
    }
}

/// Is the key in one of these spans, which ascend?
#[must_use]
pub fn spans_have(spans: &[KeySpan], key: &[u8]) -> bool {
    let behind = spans.partition_point(|span| span.low.as_slice() <= key);
    behind > 0 && spans[behind - 1].has(key)
}

/// Which keys were asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeyTrace {
    /// Where all requests were recorded.
    pub spans: Vec<KeySpan>,
    /// The keys, each once, ascending.
    pub keys: Vec<Vec<u8>>,
    /// Numbers of keys, in the order in which they were asked for.
    pub references: Vec<u32>,
    /// Requests while recording was on, for whatever keys.
    pub requests: u64,
    /// Those in the windows of time whose references are here.
    pub requests_seen: u64,
    /// How long it was on.
    pub elapsed_ns: u64,
    /// Entries of the index when it began.
    pub entries: u64,
    /// It ended as the trace was full.
    pub full: bool,
}

impl KeyTrace {
    /// As a file.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(HEADER_BYTES + self.references.len() * 2);
        out.extend_from_slice(MAGIC);
        out.extend_from_slice(&VERSION.to_le_bytes());
        out.extend_from_slice(&if self.full { FULL } else { 0 }.to_le_bytes());
        out.extend_from_slice(&(self.spans.len() as u32).to_le_bytes());
        let counts = [self.keys.len() as u64, self.references.len() as u64];
        for number in counts.into_iter().chain([self.requests, self.requests_seen, self.elapsed_ns, self.entries]) {
            out.extend_from_slice(&number.to_le_bytes());
        }
        for span in &self.spans {
            put_bytes(&mut out, &span.low);
            out.push(u8::from(span.high.is_some()));
            span.high.iter().for_each(|high| put_bytes(&mut out, high));
        }
        let mut before: &[u8] = &[];
        for key in &self.keys {
            let shared = common_prefix(before, key);
            put_varint(&mut out, shared as u64);
            put_varint(&mut out, (key.len() - shared) as u64);
            out.extend_from_slice(&key[shared..]);
            before = key;
        }
        self.references.iter().for_each(|number| put_varint(&mut out, (*number).into()));
        out.extend_from_slice(&xxh3_64(&out).to_le_bytes());
        out
    }

    /// From a file.
    ///
    /// # Errors
    /// When it is none, of a newer version, or damaged.
    pub fn decode(file: &[u8]) -> Result<KeyTrace, FormatError> {
        if file.len() < HEADER_BYTES + CHECKSUM_BYTES || !file.starts_with(MAGIC) {
            return Err(FormatError::new("not a key trace"));
        }
        let (bytes, checksum) = file.split_at(file.len() - CHECKSUM_BYTES);
        let mut reader = Reader::new(&bytes[MAGIC.len()..]);
        let version = reader.u16()?;
        if version != VERSION {
            return Err(FormatError::new(format!("a key trace of version {version}; known is {VERSION}")));
        }
        if xxh3_64(bytes).to_le_bytes() != checksum {
            return Err(FormatError::new("the checksum of the key trace is wrong"));
        }
        let bits = reader.u16()?;
        if bits & !FULL != 0 {
            return Err(FormatError::new("bits of a key trace that are not known"));
        }
        let spans = u64::from(reader.u32()?);
        let (keys, references) = (reader.u64()?, reader.u64()?);
        let mut trace = KeyTrace {
            full: bits & FULL != 0,
            requests: reader.u64()?,
            requests_seen: reader.u64()?,
            elapsed_ns: reader.u64()?,
            entries: reader.u64()?,
            ..KeyTrace::default()
        };
        let mut memory = Memory(TRACE_MEMORY_MAX);
        for _ in 0..spans {
            trace.spans.push(read_span(&mut reader, trace.spans.last(), &mut memory)?);
        }
        for _ in 0..keys {
            trace.keys.push(read_key(&mut reader, trace.keys.last(), &mut memory)?);
        }
        for _ in 0..references {
            memory.take(size_of::<u32>())?;
            let number = reader.varint32()?;
            if number as usize >= trace.keys.len() {
                return Err(FormatError::new(format!("a key trace refers to key {number}; it has {}", trace.keys.len())));
            }
            trace.references.push(number);
        }
        if !reader.is_empty() { Err(FormatError::new("a key trace goes on behind its references")) } else { Ok(trace) }
    }
}

/// Memory that decoding may take still.
struct Memory(usize);

impl Memory {
    fn take(&mut self, bytes: usize) -> Result<(), FormatError> {
        self.0 = self.0.checked_sub(bytes).ok_or_else(|| FormatError::new("a key trace that is too large"))?;
        Ok(())
    }
}

fn read_bound(reader: &mut Reader<'_>, memory: &mut Memory) -> Result<Vec<u8>, FormatError> {
    let bytes = reader.bytes()?;
    if bytes.len() > TRACED_KEY_BYTES_MAX {
        return Err(FormatError::new("a bound of a key trace that is too long"));
    }
    memory.take(bytes.len())?;
    Ok(bytes.to_vec())
}

fn read_span(reader: &mut Reader<'_>, before: Option<&KeySpan>, memory: &mut Memory) -> Result<KeySpan, FormatError> {
    memory.take(OBJECT_BYTES)?;
    let low = read_bound(reader, memory)?;
    let high = match reader.u8()? {
        0 => None,
        1 => Some(read_bound(reader, memory)?),
        _ => return Err(FormatError::new("a span of a key trace with an unknown end")),
    };
    let is_behind = before.is_none_or(|before| before.ends_before(&low));
    if !is_behind || high.as_ref().is_some_and(|high| *high <= low) {
        return Err(FormatError::new("spans of a key trace that do not ascend"));
    }
    Ok(KeySpan { low, high })
}

fn read_key(reader: &mut Reader<'_>, before: Option<&Vec<u8>>, memory: &mut Memory) -> Result<Vec<u8>, FormatError> {
    let (shared, rest) = (reader.varint32()? as usize, reader.varint32()? as usize);
    let length = shared.saturating_add(rest);
    let start = before.map_or(Some(&[][..]), |before| before.get(..shared)).filter(|start| start.len() == shared);
    let Some(start) = start.filter(|_| length <= TRACED_KEY_BYTES_MAX) else {
        return Err(FormatError::new("a key of a key trace that is too long"));
    };
    memory.take(OBJECT_BYTES + length)?;
    let mut key = Vec::with_capacity(length);
    key.extend_from_slice(start);
    key.extend_from_slice(reader.take(rest)?);
    if before.is_some_and(|before| common_prefix(before, &key) != shared) {
        return Err(FormatError::new("a key of a key trace that shares more than it says"));
    }
    if before.is_some_and(|before| *before >= key) {
        return Err(FormatError::new("keys of a key trace that do not ascend"));
    }
    Ok(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trace() -> KeyTrace {
        let key = |n: u32| format!("key {:05}", n * 3).into_bytes();
        KeyTrace {
            spans: vec![
                KeySpan { low: key(0), high: Some(key(40)) },
                KeySpan { low: key(40), high: Some(key(90)) },
                KeySpan { low: key(200), high: None },
            ],
            keys: (0..300).map(key).collect(),
            references: (0..2_000u32).map(|n| n * n % 300).collect(),
            requests: 70_000,
            requests_seen: 9_000,
            elapsed_ns: 5_000_000_000,
            entries: 1_000,
            full: true,
        }
    }

    fn sealed(mut bytes: Vec<u8>) -> Vec<u8> {
        let end = bytes.len() - CHECKSUM_BYTES;
        let sum = xxh3_64(&bytes[..end]);
        bytes[end..].copy_from_slice(&sum.to_le_bytes());
        bytes
    }

    #[test]
    fn what_was_written_is_read() {
        for trace in [trace(), KeyTrace::default(), KeyTrace { spans: vec![KeySpan::all()], ..KeyTrace::default() }] {
            assert_eq!(KeyTrace::decode(&trace.encode()).unwrap(), trace);
        }
        let trace = trace();
        assert!(spans_have(&trace.spans, b"key 00119") && spans_have(&trace.spans, b"key 00120") && spans_have(&trace.spans, b"z"));
        assert!(!spans_have(&trace.spans, b"key") && !spans_have(&trace.spans, b"key 00270") && !spans_have(&[], b"key"));
    }

    #[test]
    fn every_byte_counts() {
        let bytes = trace().encode();
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1 << (at % 8);
            assert!(KeyTrace::decode(&damaged).is_err(), "byte {at}");
            assert!(KeyTrace::decode(&bytes[..at]).is_err(), "{at} bytes");
        }
    }

    #[test]
    fn right_checksums_do_not_make_it_trusted() {
        let bytes = trace().encode();
        for at in 0..bytes.len() - CHECKSUM_BYTES {
            for change in [1u8, 0x80, 0xFF] {
                let mut damaged = bytes.clone();
                damaged[at] ^= change;
                let damaged = sealed(damaged);
                if let Ok(read) = KeyTrace::decode(&damaged) {
                    assert!(read.encode() == damaged, "a trace has one form");
                    assert!(read.keys.is_sorted() && read.references.iter().all(|n| (*n as usize) < read.keys.len()));
                    assert!(read.spans.windows(2).all(|pair| pair[0].ends_before(&pair[1].low)));
                }
            }
        }
        // Counts far beyond the bytes that are there end where these do.
        for at in [12usize, 16, 24] {
            let mut huge = bytes.clone();
            huge[at..at + 4].fill(0xFF);
            assert!(KeyTrace::decode(&sealed(huge)).is_err());
        }
    }

    #[test]
    fn few_bytes_do_not_become_much_memory() {
        // Keys that have all but a byte from the key before.
        let mut bytes = KeyTrace::default().encode();
        bytes.truncate(HEADER_BYTES);
        let keys = (TRACE_MEMORY_MAX / TRACED_KEY_BYTES_MAX + 10) as u64;
        bytes[16..24].copy_from_slice(&keys.to_le_bytes());
        let mut key = vec![1u8; TRACED_KEY_BYTES_MAX];
        put_varint(&mut bytes, 0);
        put_varint(&mut bytes, key.len() as u64);
        bytes.extend_from_slice(&key);
        for n in 1..keys as u32 {
            // A counter in the last four bytes.
            let before = key.clone();
            let counter = key.len() - 4;
            key[counter..].copy_from_slice(&(n + 0x0101_0101).to_be_bytes());
            let shared = common_prefix(&before, &key);
            put_varint(&mut bytes, shared as u64);
            put_varint(&mut bytes, (key.len() - shared) as u64);
            bytes.extend_from_slice(&key[shared..]);
        }
        assert!(bytes.len() < TRACE_MEMORY_MAX / 50);
        bytes.extend_from_slice(&[0; CHECKSUM_BYTES]);
        let error = KeyTrace::decode(&sealed(bytes)).unwrap_err().to_string();
        assert!(error.contains("too large"), "{error}");
    }
}
