//! The control file: two slots, each whole or ignored.
//!
//! Layout: `docs/file-format.md`, "Control file".
//!
//! Invariant: a commit writes the slot that does not hold the current state, so a torn write leaves the state before it.

use crate::FormatError;
use crate::page::{get_u64, put_u64};
use crate::wire::Reader;
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// Bytes of a slot.
pub const CONTROL_SLOT_BYTES: usize = 4096;
/// Slots in the file.
pub const CONTROL_SLOTS: usize = 2;
/// Version of the whole database format.
pub const DATABASE_VERSION: u32 = 1;

const MAGIC: &[u8; 8] = b"pgfoldcf";

/// The state of a database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ControlSlot {
    /// Grows by one with each commit; its parity is the slot's number.
    pub sequence: u64,
    /// The database.
    pub database_id: u128,
    /// Data set of the catalog.
    pub catalog_file_id: u32,
    /// Write counter of the catalog's header page.
    pub catalog_writes: u32,
    /// The lowest file id that was never used.
    pub next_file_id: u32,
    /// The lowest object id that was never used.
    pub next_object_id: u32,
    /// Start of the record of the last checkpoint; 0 while the database has no log.
    pub checkpoint: u64,
    /// Whose log it is: the database's own id, or the one it got when it was made from a copy. So the logs of databases that were one once are told apart.
    pub log_id: u128,
}

/// What a slot's bytes are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SlotState {
    /// Never written: all zeros.
    Empty,
    /// Whole.
    Valid(ControlSlot),
    /// Damaged or torn.
    Damaged(FormatError),
    /// Whole, but of a format version this program does not know.
    Newer(u32),
}

impl ControlSlot {
    /// The slot a state belongs into.
    #[must_use]
    pub fn slot_number(sequence: u64) -> usize {
        (sequence % CONTROL_SLOTS as u64) as usize
    }

    /// The slot's bytes.
    #[must_use]
    pub fn build(&self) -> [u8; CONTROL_SLOT_BYTES] {
        let mut slot = [0u8; CONTROL_SLOT_BYTES];
        let mut out = Vec::with_capacity(64);
        out.extend_from_slice(MAGIC);
        out.extend_from_slice(&DATABASE_VERSION.to_le_bytes());
        out.extend_from_slice(&[0; 4]);
        out.extend_from_slice(&self.sequence.to_le_bytes());
        out.extend_from_slice(&self.database_id.to_le_bytes());
        out.extend_from_slice(&self.catalog_file_id.to_le_bytes());
        out.extend_from_slice(&self.catalog_writes.to_le_bytes());
        out.extend_from_slice(&self.next_file_id.to_le_bytes());
        out.extend_from_slice(&self.next_object_id.to_le_bytes());
        out.extend_from_slice(&self.checkpoint.to_le_bytes());
        out.extend_from_slice(&self.log_id.to_le_bytes());
        slot[8..8 + out.len()].copy_from_slice(&out);
        let sum = xxh3_64_with_seed(&slot[8..], ControlSlot::slot_number(self.sequence) as u64);
        put_u64(&mut slot, 0, sum);
        slot
    }

    /// Reads slot `number`.
    #[must_use]
    pub fn parse(slot: &[u8], number: usize) -> SlotState {
        if slot.len() != CONTROL_SLOT_BYTES {
            return SlotState::Damaged(FormatError::new(format!("control slot of {} bytes", slot.len())));
        }
        if slot.iter().all(|b| *b == 0) {
            return SlotState::Empty;
        }
        if get_u64(slot, 0) != xxh3_64_with_seed(&slot[8..], number as u64) {
            return SlotState::Damaged(FormatError::new("checksum does not match"));
        }
        match ControlSlot::parse_fields(&slot[8..], number) {
            Ok(state) => state,
            Err(error) => SlotState::Damaged(error),
        }
    }

    fn parse_fields(fields: &[u8], number: usize) -> Result<SlotState, FormatError> {
        let mut reader = Reader::new(fields);
        if reader.take(8)? != MAGIC {
            return Err(FormatError::new("not a pagefold control file"));
        }
        let version = reader.u32()?;
        if version != DATABASE_VERSION {
            return Ok(SlotState::Newer(version));
        }
        reader.take(4)?;
        let mut slot = ControlSlot {
            sequence: reader.u64()?,
            database_id: reader.u128()?,
            catalog_file_id: reader.u32()?,
            catalog_writes: reader.u32()?,
            next_file_id: reader.u32()?,
            next_object_id: reader.u32()?,
            checkpoint: reader.u64()?,
            log_id: reader.u128()?,
        };
        if slot.log_id == 0 {
            slot.log_id = slot.database_id;
        }
        if ControlSlot::slot_number(slot.sequence) != number {
            return Err(FormatError::new(format!("sequence {} in slot {number}", slot.sequence)));
        }
        Ok(SlotState::Valid(slot))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_bit_flip_is_found() {
        let state = ControlSlot {
            sequence: 41,
            database_id: 0x0123_4567_89AB_CDEF_0123_4567_89AB_CDEF,
            catalog_file_id: 5,
            catalog_writes: 1,
            next_file_id: 6,
            next_object_id: 9,
            checkpoint: 1 << 40,
            log_id: 0x0123_4567_89AB_CDEF_0123_4567_89AB_CDF0,
        };
        let mut slot = state.build();
        assert_eq!(ControlSlot::parse(&slot, 1), SlotState::Valid(state));
        assert!(matches!(ControlSlot::parse(&slot, 0), SlotState::Damaged(_)));
        for bit in 0..slot.len() * 8 {
            slot[bit / 8] ^= 1 << (bit % 8);
            assert!(matches!(ControlSlot::parse(&slot, 1), SlotState::Damaged(_)), "bit {bit}");
            slot[bit / 8] ^= 1 << (bit % 8);
        }
        assert_eq!(ControlSlot::parse(&[0; CONTROL_SLOT_BYTES], 0), SlotState::Empty);
    }
}
