//! Reading pages from a file, and the slots of the control file, without an open database.
//!
//! Invariant: a page that cannot be read does not keep others from being read.

use super::findings::Context;
use crate::Result;
use pagefold_engine::directory::control_path;
use pagefold_engine::{DATA_DIRECTORY, file_id_of};
use pagefold_format::control::{CONTROL_SLOT_BYTES, CONTROL_SLOTS, ControlSlot, DATABASE_VERSION, SlotState};
use pagefold_io::{File, OpenOptions, Storage, read_exact_at};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Bytes read at once when pages are asked for in order.
const CLUSTER_BYTES: usize = 256 * 1024;

/// Reads pages; ahead when they are asked for in order.
pub(crate) struct PageReader {
    file: Arc<dyn File>,
    page_bytes: usize,
    /// Whole pages in the file.
    pages: u64,
    buffer: Vec<u8>,
    /// First page in the buffer, and how many.
    first: u64,
    count: u64,
    /// The page asked for last.
    last: u64,
}

impl PageReader {
    pub(crate) fn new(file: Arc<dyn File>, page_bytes: usize, length: u64) -> PageReader {
        let pages = length / page_bytes as u64;
        PageReader { file, page_bytes, pages, buffer: Vec::new(), first: 0, count: 0, last: u64::MAX - 1 }
    }

    /// Whole pages in the file.
    pub(crate) fn pages(&self) -> u64 {
        self.pages
    }

    /// Reads a page into `page`, which gets its size.
    pub(crate) fn read(&mut self, number: u32, page: &mut Vec<u8>) -> std::io::Result<()> {
        let number = u64::from(number);
        page.resize(self.page_bytes, 0);
        if number < self.first || number >= self.first + self.count {
            let ahead = if number == self.last + 1 { (CLUSTER_BYTES / self.page_bytes) as u64 } else { 1 };
            self.fill(number, ahead.min(self.pages.saturating_sub(number)).max(1))?;
        }
        self.last = number;
        let at = (number - self.first) as usize * self.page_bytes;
        page.copy_from_slice(&self.buffer[at..at + self.page_bytes]);
        Ok(())
    }

    fn fill(&mut self, first: u64, count: u64) -> std::io::Result<()> {
        self.count = 0;
        self.buffer.resize(count as usize * self.page_bytes, 0);
        let offset = first * self.page_bytes as u64;
        let mut count = count;
        if let Err(error) = read_exact_at(self.file.as_ref(), &mut self.buffer, offset) {
            if count == 1 {
                return Err(error);
            }
            // One page of the cluster may be unreadable: this one alone, then.
            count = 1;
            read_exact_at(self.file.as_ref(), &mut self.buffer[..self.page_bytes], offset)?;
        }
        (self.first, self.count) = (first, count);
        Ok(())
    }
}

/// What errors call the control file.
const CONTROL: &str = "control file";

/// The slots of the control file.
pub(crate) struct ControlSlots {
    /// The state that counts; `None` when no slot is whole.
    pub(crate) current: Option<ControlSlot>,
    /// Every slot.
    pub(crate) slots: Vec<SlotState>,
}

/// Reads and checks both slots.
///
/// # Errors
/// When the directory has no control file, it cannot be read, or it is of a newer format.
pub(crate) fn read_control_slots(storage: &dyn Storage, directory: &Path, context: &mut Context<'_>) -> Result<ControlSlots> {
    let path = control_path(directory);
    if !storage.exists(&path)? {
        return Err(pagefold_engine::Error::NotADatabase(directory.display().to_string()).into());
    }
    let file = storage.open(&path, &OpenOptions::read_only())?;
    let expected = (CONTROL_SLOTS * CONTROL_SLOT_BYTES) as u64;
    let length = file.len()?;
    if length != expected {
        context.error(CONTROL, 0, format!("{length} bytes long, not {expected}"));
    }
    let mut slots = Vec::new();
    for number in 0..CONTROL_SLOTS {
        context.count_page();
        let mut bytes = vec![0; CONTROL_SLOT_BYTES];
        let offset = (number * CONTROL_SLOT_BYTES) as u64;
        let state = match read_exact_at(file.as_ref(), &mut bytes, offset) {
            Ok(()) => ControlSlot::parse(&bytes, number),
            // That is said already.
            Err(_) if length < expected => SlotState::Damaged(pagefold_format::FormatError::new("it is cut off")),
            Err(error) => SlotState::Damaged(pagefold_format::FormatError::new(error.to_string())),
        };
        match &state {
            SlotState::Newer(found) => {
                let path = path.display().to_string();
                return Err(pagefold_engine::Error::NewerFormat { path, found: *found, known: DATABASE_VERSION }.into());
            }
            SlotState::Damaged(reason) => context.error(CONTROL, number as u32, format!("slot {number}: {reason}")),
            SlotState::Empty | SlotState::Valid(_) => {}
        }
        slots.push(state);
    }
    let valid = || slots.iter().filter_map(|s| if let SlotState::Valid(slot) = s { Some(*slot) } else { None });
    let current = valid().max_by_key(|slot| slot.sequence);
    let oldest = valid().min_by_key(|slot| slot.sequence);
    match (oldest, current) {
        (Some(old), Some(new)) if old.sequence != new.sequence => {
            let number = ControlSlot::slot_number(old.sequence) as u32;
            if old.database_id != new.database_id {
                context.error(CONTROL, number, format!("slot {number} is that of another database"));
            }
            if old.sequence + 1 != new.sequence {
                let (old, new) = (old.sequence, new.sequence);
                context.error(CONTROL, number, format!("slot {number} has sequence {old}, the other {new}: a lost write"));
            }
        }
        // An empty slot is one that was never written, or that a writer emptied because it was damaged.
        (None, _) => context.error(CONTROL, 0, "no slot is whole: the state of the database is not known"),
        _ => {}
    }
    Ok(ControlSlots { current, slots })
}

/// Files in the data directory with their file ids, if they have one.
pub(crate) fn files_on_disk(storage: &dyn Storage, directory: &Path) -> Result<Vec<(PathBuf, Option<u32>)>> {
    let data = directory.join(DATA_DIRECTORY);
    if !storage.exists(&data)? {
        return Ok(Vec::new());
    }
    let files = storage.list(&data)?.into_iter().map(|path| {
        let file_id = file_id_of(&path);
        (path, file_id)
    });
    Ok(files.collect())
}
