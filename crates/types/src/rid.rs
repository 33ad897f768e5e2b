//! Row identifiers.
//!
//! Invariant: the packed form orders like (partition, page, slot), and so do its seven big-endian bytes.

use std::fmt;

/// Bytes a RID takes inside a page.
pub const RID_BYTES: usize = 7;

/// The largest slot number: slots are 12 bits.
pub const SLOT_MAX: u16 = 0x0FFF;

/// The largest partition number: partitions are 12 bits.
pub const PARTITION_MAX: u16 = 0x0FFF;

/// Address of a row: partition (12 bits), page (32 bits), slot (12 bits).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Rid(u64);

impl Rid {
    /// The RID that orders before every other.
    pub const MIN: Rid = Rid(0);
    /// The RID that orders after every other.
    pub const MAX: Rid = Rid((1 << 56) - 1);

    /// Packs a RID.
    ///
    /// # Panics
    /// When `partition` or `slot` is above 4,095: the caller has checked them.
    #[inline]
    #[must_use]
    pub fn new(partition: u16, page: u32, slot: u16) -> Rid {
        assert!(partition <= PARTITION_MAX && slot <= SLOT_MAX);
        Rid(u64::from(partition) << 44 | u64::from(page) << 12 | u64::from(slot))
    }

    /// The packed form, below 2^56.
    #[inline]
    #[must_use]
    pub fn to_u64(self) -> u64 {
        self.0
    }

    /// From the packed form; `None` when it is not below 2^56.
    #[inline]
    #[must_use]
    pub fn from_u64(packed: u64) -> Option<Rid> {
        (packed < 1 << 56).then_some(Rid(packed))
    }

    /// Seven bytes, big-endian: they compare like the RIDs.
    #[inline]
    #[must_use]
    pub fn to_bytes(self) -> [u8; RID_BYTES] {
        let b = self.0.to_be_bytes();
        [b[1], b[2], b[3], b[4], b[5], b[6], b[7]]
    }

    /// From seven big-endian bytes; every value is a RID.
    #[inline]
    #[must_use]
    pub fn from_bytes(b: [u8; RID_BYTES]) -> Rid {
        Rid(u64::from_be_bytes([0, b[0], b[1], b[2], b[3], b[4], b[5], b[6]]))
    }

    /// Partition number.
    #[inline]
    #[must_use]
    pub fn partition(self) -> u16 {
        (self.0 >> 44) as u16
    }

    /// Page number within the partition's data set.
    #[inline]
    #[must_use]
    pub fn page(self) -> u32 {
        (self.0 >> 12) as u32
    }

    /// Slot number within the page.
    #[inline]
    #[must_use]
    pub fn slot(self) -> u16 {
        (self.0 & 0xFFF) as u16
    }
}

impl fmt::Display for Rid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.partition(), self.page(), self.slot())
    }
}

impl fmt::Debug for Rid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_order_like_rids_and_round_trip() {
        let rids = [Rid::MIN, Rid::new(0, 0, 1), Rid::new(0, 1, 0), Rid::new(0, u32::MAX, SLOT_MAX), Rid::new(1, 0, 0), Rid::MAX];
        for pair in rids.windows(2) {
            assert!(pair[0] < pair[1] && pair[0].to_bytes() < pair[1].to_bytes());
        }
        for rid in rids {
            assert_eq!(Rid::from_bytes(rid.to_bytes()), rid);
            assert_eq!(Rid::from_u64(rid.to_u64()), Some(rid));
            assert_eq!(Rid::new(rid.partition(), rid.page(), rid.slot()), rid);
        }
        assert_eq!(Rid::from_u64(1 << 56), None);
    }
}
