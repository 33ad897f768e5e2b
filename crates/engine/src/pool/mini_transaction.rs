//! Mini-transactions: the one door through which pages change.
//!
//! A mini-transaction latches pages exclusively, applies page ops to them, and at commit hands its records to the log sink, stamps the pages with the LSN it got and
//! lets go of them. It is atomic with respect to crashes once the sink is a log. It may carry one logical undo; without one it is a structure modification, never undone.
//!
//! Invariants:
//! - no page changes but by [`MiniTransaction::apply`];
//! - latches are kept until commit, so no page reaches the disk before the record of its change has an LSN;
//! - page changes cannot be taken back, so callers check first that ops fit and allocate first; one that is dropped with changes, after an error, poisons the
//!   data sets it changed: nothing of them is written any more.

use super::guard::ExclusivePage;
use super::manager::BufferManager;
use crate::Result;
use crate::data_set::DataSet;
use pagefold_format::op::PageOp;
use pagefold_format::page;
use pagefold_types::Rid;
use std::fmt::Debug;

/// What takes a mini-transaction back, logically: pages may have split or rows moved since.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Undo<'a> {
    /// Delete this row.
    InsertedRow {
        /// The table.
        object_id: u32,
        /// The row.
        rid: Rid,
    },
    /// Insert this row again under its RID.
    DeletedRow {
        /// The table.
        object_id: u32,
        /// The row.
        rid: Rid,
        /// Its record.
        record: &'a [u8],
    },
    /// Put the record as it was.
    UpdatedRow {
        /// The table.
        object_id: u32,
        /// The row.
        rid: Rid,
        /// Its record before.
        before: &'a [u8],
    },
    /// Take the entry out.
    InsertedEntry {
        /// The index.
        object_id: u32,
        /// The key.
        key: &'a [u8],
        /// The row.
        rid: Rid,
    },
    /// Put the entry back.
    DeletedEntry {
        /// The index.
        object_id: u32,
        /// The key.
        key: &'a [u8],
        /// The row.
        rid: Rid,
    },
}

/// Where the records of mini-transactions go.
pub trait LogSink: Send + Sync + Debug {
    /// Does it want records? When not, none are made.
    fn wants_records(&self) -> bool;
    /// Takes the records of one mini-transaction; returns its LSN.
    ///
    /// # Errors
    /// When the log cannot take more.
    fn append(&self, record: &[u8], undo: Option<Undo<'_>>) -> Result<u64>;
}

/// Throws records away: a database without a log.
#[derive(Debug, Default)]
pub struct NullSink;

impl LogSink for NullSink {
    fn wants_records(&self) -> bool {
        false
    }
    fn append(&self, _record: &[u8], _undo: Option<Undo<'_>>) -> Result<u64> {
        Ok(0)
    }
}

/// A page of a mini-transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageHandle(usize);

struct MtrPage<'a> {
    page: ExclusivePage<'a>,
    changed: bool,
}

/// An atomic group of page changes.
pub struct MiniTransaction<'a> {
    manager: &'a BufferManager,
    pages: Vec<Option<MtrPage<'a>>>,
    record: Vec<u8>,
    undo: Option<Undo<'a>>,
    wants_records: bool,
    changes: u32,
}

impl<'a> MiniTransaction<'a> {
    /// An empty one.
    #[must_use]
    pub fn begin(manager: &'a BufferManager) -> MiniTransaction<'a> {
        let wants_records = manager.log().wants_records();
        MiniTransaction { manager, pages: Vec::with_capacity(4), record: Vec::new(), undo: None, wants_records, changes: 0 }
    }

    /// Latches a page of a data set for change.
    ///
    /// # Errors
    /// When the page cannot be read.
    pub fn latch(&mut self, data_set: &'a DataSet, page: u32) -> Result<PageHandle> {
        let page = self.manager.exclusive(data_set, page)?;
        Ok(self.adopt(page))
    }

    /// Takes over a page latched before.
    pub fn adopt(&mut self, page: ExclusivePage<'a>) -> PageHandle {
        self.pages.push(Some(MtrPage { page, changed: false }));
        PageHandle(self.pages.len() - 1)
    }

    /// A new page of the data set, zeroed; the first op formats it. `leaf` tells which of the two pools of a folded index it goes to.
    ///
    /// # Errors
    /// When the data set cannot grow.
    pub fn create(&mut self, data_set: &'a DataSet, class: u8, leaf: bool) -> Result<PageHandle> {
        let number = data_set.allocate_page(class)?;
        let page = self.manager.create(data_set, number, leaf)?;
        Ok(self.adopt(page))
    }

    fn entry(&self, handle: PageHandle) -> &MtrPage<'a> {
        self.pages[handle.0].as_ref().expect("the handle of a page that was let go")
    }

    /// The page's bytes.
    #[must_use]
    pub fn bytes(&self, handle: PageHandle) -> &[u8] {
        &self.entry(handle).page
    }

    /// The page's number.
    #[must_use]
    pub fn number(&self, handle: PageHandle) -> u32 {
        self.entry(handle).page.number()
    }

    /// Changes a page.
    ///
    /// # Errors
    /// When the page cannot take the change: nothing has happened then. That is either damage or a caller that did not ask first whether it fits.
    pub fn apply(&mut self, handle: PageHandle, op: PageOp<'_>) -> Result<()> {
        let entry = self.pages[handle.0].as_mut().expect("the handle of a page that was let go");
        let (number, data_set) = (entry.page.number(), entry.page.data_set());
        op.apply(entry.page.bytes_mut()).map_err(|e| data_set.corrupt(number, e))?;
        entry.changed = true;
        self.changes += 1;
        if entry.page.mark_dirty() {
            self.manager.became_dirty(data_set, number);
        }
        if self.wants_records {
            self.record.extend_from_slice(&data_set.file_id().to_le_bytes());
            self.record.extend_from_slice(&number.to_le_bytes());
            op.encode(&mut self.record);
        }
        Ok(())
    }

    /// Sets the free-space class of a data page in the space map. A hint for inserts: not part of the page, found again by reading it.
    pub fn set_space_class(&mut self, handle: PageHandle, class: u8) {
        let entry = self.entry(handle);
        entry.page.data_set().space().set_class(entry.page.number(), class);
    }

    /// Takes over the pages and records of another mini-transaction, which becomes part of this one. Handles of the other are no longer valid.
    pub fn absorb(&mut self, mut other: MiniTransaction<'a>) {
        self.pages.append(&mut other.pages);
        self.record.append(&mut other.record);
        self.changes += std::mem::take(&mut other.changes);
    }

    /// Sets what takes this mini-transaction back.
    pub fn set_undo(&mut self, undo: Undo<'a>) {
        self.undo = Some(undo);
    }

    /// Lets go of a page that was not changed.
    ///
    /// # Panics
    /// When it was changed.
    pub fn release(&mut self, handle: PageHandle) {
        let entry = self.pages[handle.0].take();
        assert!(entry.is_none_or(|e| !e.changed), "a changed page is released by commit only");
    }

    /// Hands the records over, stamps the pages, lets go of them. Returns the LSN.
    ///
    /// # Errors
    /// When the log refuses.
    pub fn commit(mut self) -> Result<u64> {
        let lsn = if self.changes == 0 { 0 } else { self.manager.log().append(&self.record, self.undo)? };
        if lsn != 0 {
            for entry in self.pages.iter_mut().flatten().filter(|e| e.changed) {
                page::set_lsn(entry.page.bytes_mut(), lsn);
            }
        }
        self.changes = 0;
        self.pages.clear();
        Ok(lsn)
    }
}

impl Drop for MiniTransaction<'_> {
    fn drop(&mut self) {
        if self.changes > 0 {
            for entry in self.pages.iter().flatten().filter(|e| e.changed) {
                entry.page.data_set().poison("a change was cut short");
            }
        }
    }
}
