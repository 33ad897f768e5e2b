//! The control file: reading the current state, writing the next.
//!
//! Start-up states (`docs/catalog-and-ddl.md`, "The database directory"):
//!
//! | Slots | What happens |
//! |---|---|
//! | two valid | the higher sequence counts |
//! | one valid, one empty | the valid one counts: the first commit |
//! | one valid, one damaged | the valid one counts: a commit was torn, or the slot rotted. `check` reports it; the next writer empties it. If that state's catalog is gone, the damaged slot was the newer one: an error, and nothing is touched |
//! | none valid | an error |
//! | one newer | an error: nothing is touched |

use crate::{Error, Result};
use pagefold_format::control::{CONTROL_SLOT_BYTES, CONTROL_SLOTS, ControlSlot, DATABASE_VERSION, SlotState};
use pagefold_io::{AlignedBuffer, OpenOptions, Storage, parent_directory, read_exact_at};
use std::path::{Path, PathBuf};

/// Name of the control file.
const CONTROL_NAME: &str = "control";
/// Name of one that is being made.
pub(super) const FRESH_CONTROL_NAME: &str = "control.new";

/// What the control file says.
#[derive(Clone, Debug)]
pub struct ControlFile {
    /// The state that counts.
    pub current: ControlSlot,
    /// The state in the other slot, if it is whole.
    pub(crate) other: Option<ControlSlot>,
    /// What is wrong with the other slot, and its number.
    pub damaged: Option<(usize, String)>,
}

/// Where the control file of a database lies.
#[must_use]
pub fn control_path(directory: &Path) -> PathBuf {
    directory.join(CONTROL_NAME)
}

/// Reads the control file of a database directory.
///
/// # Errors
/// When the directory has none, or no slot is valid, or the format is newer.
pub fn read_control(storage: &dyn Storage, directory: &Path) -> Result<ControlFile> {
    let path = control_path(directory);
    if !storage.exists(&path)? {
        return Err(Error::NotADatabase(directory.display().to_string()));
    }
    let damaged = |reason: String| Error::Damaged { path: path.display().to_string(), reason };
    let file = storage.open(&path, &OpenOptions::read_only())?;
    let expected = (CONTROL_SLOTS * CONTROL_SLOT_BYTES) as u64;
    let length = file.len()?;
    if length > expected {
        return Err(damaged(format!("{length} bytes long, not {expected}")));
    }
    // Of a file that was cut off, what is there counts: a slot that is not wholly there is a damaged one.
    let mut bytes = AlignedBuffer::new(expected as usize, 4096);
    let there = length as usize / CONTROL_SLOT_BYTES;
    read_exact_at(file.as_ref(), &mut bytes[..there * CONTROL_SLOT_BYTES], 0)?;
    let mut states: Vec<ControlSlot> = Vec::new();
    let mut broken = None;
    for (number, slot) in bytes.chunks_exact(CONTROL_SLOT_BYTES).enumerate() {
        match ControlSlot::parse(slot, number) {
            _ if number >= there => broken = Some((number, format!("it is cut off: the file is {length} bytes long, not {expected}"))),
            SlotState::Empty => {}
            SlotState::Valid(state) => states.push(state),
            SlotState::Damaged(reason) => broken = Some((number, reason.to_string())),
            SlotState::Newer(found) => {
                return Err(Error::NewerFormat { path: path.display().to_string(), found, known: DATABASE_VERSION });
            }
        }
    }
    states.sort_unstable_by_key(|state| state.sequence);
    match states.pop() {
        Some(current) => Ok(ControlFile { current, other: states.pop(), damaged: broken }),
        None => Err(damaged(broken.map_or_else(|| "both slots are empty".into(), |(n, reason)| format!("slot {n}: {reason}")))),
    }
}

/// Writes a state into its slot and syncs: the moment of commit.
pub(crate) fn write_control(storage: &dyn Storage, directory: &Path, state: &ControlSlot) -> Result<()> {
    let file = storage.open(&control_path(directory), &OpenOptions::read_write())?;
    let mut slot = AlignedBuffer::new(CONTROL_SLOT_BYTES, 4096);
    slot.copy_from_slice(&state.build());
    file.write_at(&slot, (ControlSlot::slot_number(state.sequence) * CONTROL_SLOT_BYTES) as u64)?;
    Ok(file.sync()?)
}

/// Makes the control file durable as it was read, and the names of the files beside it: a process that was stopped may have written and renamed them, and not synced. Names of log segments
/// are the log's, those of data sets that are not named yet a checkpoint's.
pub(crate) fn sync_what_was_found(storage: &dyn Storage, directory: &Path) -> Result<()> {
    storage.open(&control_path(directory), &OpenOptions::read_write())?.sync()?;
    storage.sync_directory(directory)?;
    Ok(storage.sync_directory(parent_directory(directory))?)
}

/// Empties a damaged slot. The state in the other one has been opened, so nothing needs this one: after a crash it may be damaged again, so nothing is synced.
pub(crate) fn empty_slot(storage: &dyn Storage, directory: &Path, number: usize) -> Result<()> {
    let file = storage.open(&control_path(directory), &OpenOptions::read_write())?;
    let zeros = AlignedBuffer::new(CONTROL_SLOT_BYTES, 4096);
    file.write_at(&zeros, (number * CONTROL_SLOT_BYTES) as u64)?;
    Ok(())
}

/// Makes the control file of a new database. It appears with its first state in it or not at all.
pub(crate) fn create_control(storage: &dyn Storage, directory: &Path, state: &ControlSlot) -> Result<()> {
    let path = control_path(directory);
    let fresh = directory.join(FRESH_CONTROL_NAME);
    if storage.exists(&fresh)? {
        storage.remove(&fresh)?;
    }
    let file = storage.open(&fresh, &OpenOptions::create_new())?;
    let mut slots = AlignedBuffer::new(CONTROL_SLOTS * CONTROL_SLOT_BYTES, 4096);
    let at = ControlSlot::slot_number(state.sequence) * CONTROL_SLOT_BYTES;
    slots[at..at + CONTROL_SLOT_BYTES].copy_from_slice(&state.build());
    file.write_at(&slots, 0)?;
    file.sync()?;
    storage.rename(&fresh, &path)?;
    Ok(storage.sync_directory(directory)?)
}
