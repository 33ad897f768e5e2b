//! The file in which the process that writes a database shows what it does: two places, written in turn.
//!
//! Layout: `docs/file-format.md`, "Live view".
//!
//! Invariants:
//! - a place is whole, by its checksum, or ignored: it is written without a sync, while others read it;
//! - a text is no longer than a place has room for, whatever its header says.

use crate::page::{get_u64, put_u64};
use crate::wire::Reader;
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// Bytes of each of the two places.
pub const LIVE_PLACE_BYTES: usize = 128 << 10;
/// Bytes before the text.
pub const LIVE_HEADER_BYTES: usize = 64;
/// The longest text.
pub const LIVE_TEXT_BYTES_MAX: usize = LIVE_PLACE_BYTES - LIVE_HEADER_BYTES;

const MAGIC: &[u8; 8] = b"pgfoldlv";
const VERSION: u32 = 1;
const HEADER_MAGIC: usize = 8;
const HEADER_VERSION: usize = 16;
const HEADER_LENGTH: usize = 20;
const HEADER_SEQUENCE: usize = 24;
const HEADER_OPENING: usize = 32;
const HEADER_TIME: usize = 48;

/// What was shown at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LiveView {
    /// One more than that of the one before.
    pub sequence: u64,
    /// Which opening of the database has written it.
    pub opening: u128,
    /// When, in nanoseconds since 1970-01-01 UTC.
    pub unix_time_ns: u64,
    /// Lines of metrics in the Prometheus text format.
    pub text: String,
}

impl LiveView {
    /// Which of the places it comes to: 0 or 1.
    #[must_use]
    pub fn place(&self) -> u64 {
        self.sequence % 2
    }

    /// Its bytes. Lines that have no room are left out.
    #[must_use]
    pub fn build(&self) -> Vec<u8> {
        let text = match self.text.len() {
            0..=LIVE_TEXT_BYTES_MAX => self.text.as_str(),
            _ => {
                let bytes = &self.text.as_bytes()[..LIVE_TEXT_BYTES_MAX];
                let end = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
                self.text.get(..end).unwrap_or_default()
            }
        };
        let mut bytes = vec![0; LIVE_HEADER_BYTES];
        bytes[HEADER_MAGIC..HEADER_VERSION].copy_from_slice(MAGIC);
        bytes[HEADER_VERSION..HEADER_LENGTH].copy_from_slice(&VERSION.to_le_bytes());
        bytes[HEADER_LENGTH..HEADER_SEQUENCE].copy_from_slice(&(text.len() as u32).to_le_bytes());
        put_u64(&mut bytes, HEADER_SEQUENCE, self.sequence);
        bytes[HEADER_OPENING..HEADER_TIME].copy_from_slice(&self.opening.to_le_bytes());
        put_u64(&mut bytes, HEADER_TIME, self.unix_time_ns);
        bytes.extend_from_slice(text.as_bytes());
        let sum = xxh3_64_with_seed(&bytes[HEADER_MAGIC..], self.place());
        put_u64(&mut bytes, 0, sum);
        bytes
    }

    /// What the bytes of a place say; `None` when they are not whole, or of another format.
    #[must_use]
    pub fn parse(bytes: &[u8], place: u64) -> Option<LiveView> {
        if bytes.get(HEADER_MAGIC..HEADER_VERSION)? != MAGIC {
            return None;
        }
        let mut reader = Reader::new(bytes.get(HEADER_VERSION..)?);
        let (version, length) = (reader.u32().ok()?, reader.u32().ok()? as usize);
        if version != VERSION || length > LIVE_TEXT_BYTES_MAX {
            return None;
        }
        let whole = bytes.get(..LIVE_HEADER_BYTES + length)?;
        if get_u64(whole, 0) != xxh3_64_with_seed(&whole[HEADER_MAGIC..], place) {
            return None;
        }
        let (sequence, opening, unix_time_ns) = (reader.u64().ok()?, reader.u128().ok()?, reader.u64().ok()?);
        let text = std::str::from_utf8(&whole[LIVE_HEADER_BYTES..]).ok()?.to_owned();
        let view = LiveView { sequence, opening, unix_time_ns, text };
        (view.place() == place).then_some(view)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn view(text: &str) -> LiveView {
        LiveView { sequence: 7, opening: 1 << 100, unix_time_ns: 1 << 60, text: text.into() }
    }

    #[test]
    fn everything_comes_back_from_its_own_place_only() {
        for text in ["", "a 1\n", "pagefold_pool_getpages_total{pool=\"8 KB\"} 12\n"] {
            let bytes = view(text).build();
            assert_eq!(LiveView::parse(&bytes, 1), Some(view(text)));
            assert_eq!(LiveView::parse(&bytes, 0), None);
            // What an older, longer one has left behind it does not count.
            assert_eq!(LiveView::parse(&[bytes, vec![9; 100]].concat(), 1), Some(view(text)));
        }
    }

    #[test]
    fn every_bit_flip_and_every_cut_is_found() {
        let mut bytes = view("some text\n").build();
        for bit in 0..bytes.len() * 8 {
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(LiveView::parse(&bytes, 1), None, "bit {bit}");
            bytes[bit / 8] ^= 1 << (bit % 8);
        }
        assert!((0..bytes.len()).all(|length| LiveView::parse(&bytes[..length], 1).is_none()));
        assert!(LiveView::parse(&vec![0; LIVE_PLACE_BYTES], 0).is_none());
        // A length that no place has.
        bytes[HEADER_LENGTH..HEADER_SEQUENCE].copy_from_slice(&u32::MAX.to_le_bytes());
        assert_eq!(LiveView::parse(&bytes, 1), None);
    }

    #[test]
    fn lines_that_have_no_room_are_left_out() {
        let line = "é".repeat(50) + "\n";
        let bytes = view(&line.repeat(2000)).build();
        assert!(bytes.len() <= LIVE_PLACE_BYTES);
        let text = LiveView::parse(&bytes, 1).unwrap().text;
        assert!(text.ends_with('\n') && text.len() > LIVE_TEXT_BYTES_MAX - 200 && text.len().is_multiple_of(line.len()));
        assert_eq!(LiveView::parse(&view(&"x".repeat(1 << 20)).build(), 1).unwrap().text, "");
    }
}
