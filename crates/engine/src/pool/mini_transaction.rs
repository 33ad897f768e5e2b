//! Mini-transactions: the one door through which pages change.
//!
//! A mini-transaction latches pages exclusively, applies page ops to them, and at commit hands its record to the log, stamps the pages with the LSN it got and
//! lets go of them. It is atomic with respect to crashes. It may belong to a transaction and carry one logical undo; without one it is a structure modification, never undone.
//!
//! What a data set knows beside its pages (which are in use, root, counts, dictionaries) changes with the mini-transaction too: at commit, in the moment in which the record gets its place in
//! the log. So at any point of the log these facts are exactly what the records before it say.
//!
//! Invariants:
//! - no page changes but by an op: [`MiniTransaction::apply`], or what the op was worked out to before: [`MiniTransaction::apply_leaf`];
//! - latches are kept until commit, so no page reaches the disk before the record of its change has an LSN;
//! - page changes cannot be taken back, so callers check first that ops fit and allocate first; one that is dropped with changes, after an error, poisons the
//!   data sets it changed: nothing of them is written any more; its transaction can neither be committed nor taken back;
//! - changes of data sets that are being built, and that the log does not define yet, are not logged: they are on disk before it does.

use super::guard::ExclusivePage;
use super::manager::BufferManager;
use super::reserve::Turn;
use crate::Result;
use crate::data_set::DataSet;
use crate::log::{Appended, Log};
use crate::transaction::TransactionState;
use pagefold_format::FormatError;
use pagefold_format::index::ops::LeafOp;
use pagefold_format::log::{Action, Change, Counts, DataSetOp, Lsn, RecordKind, Role, Undo, put_change};
use pagefold_format::op::PageOp;
use pagefold_format::page;
use pagefold_types::Rid;
use std::fmt::Debug;
use std::sync::Arc;

/// Where the records of mini-transactions go.
pub trait LogSink: Send + Sync + Debug {
    /// Takes a record. `publish` is called when the record has its place and before the next one can get one.
    ///
    /// # Errors
    /// When the log cannot take more; `publish` was not called then.
    fn append(&self, kind: RecordKind, body: &[&[u8]], publish: &mut dyn FnMut(Appended)) -> Result<Appended>;

    /// Returns when all records before `lsn` are durable.
    ///
    /// # Errors
    /// When they cannot be made so.
    fn make_durable(&self, lsn: Lsn) -> Result<()>;

    /// Calls `f` with the end of the log while nobody can append.
    fn cut(&self, f: &mut dyn FnMut(Lsn));

    /// Makes room for the records to come, so that none of them is refused when pages have changed already.
    ///
    /// # Errors
    /// When there is no room: nothing has happened then.
    fn prepare(&self) -> Result<()>;

    /// As [`Self::prepare`], for records of what frees space: on a full device they get what is kept back from all others.
    ///
    /// # Errors
    /// When that is used up, too.
    fn prepare_to_free(&self, what: Frees) -> Result<()> {
        let _ = what;
        self.prepare()
    }

    /// From now on [`Self::prepare`] makes room for so many bytes more (or fewer): what running transactions need to be taken back.
    fn keep_for_undo(&self, bytes: i64);

    /// Is there room for so many bytes beside that?
    fn has_spare(&self, bytes: u64) -> bool;
}

/// What frees space. Whatever else is logged needs the segment behind the one in which the log ends ([`Log::prepare_next`]), or three quarters of a segment; when there is no room for that, most of the
/// last is left for these.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Frees {
    /// Rows are deleted, and what they leave is removed.
    Rows,
    /// Tables and indexes are dropped. Some is left for this when deleting has used up what it gets.
    Objects,
}

impl Frees {
    /// What has to be left in the log: for a mini-transaction, and for the checkpoint and the drops that come after it.
    fn margin_bytes(self, segment_bytes: u64) -> u64 {
        match self {
            Frees::Rows => (segment_bytes / 8).max(256 << 10),
            Frees::Objects => (segment_bytes / 32).max(64 << 10),
        }
    }
}

impl LogSink for Log {
    fn append(&self, kind: RecordKind, body: &[&[u8]], publish: &mut dyn FnMut(Appended)) -> Result<Appended> {
        Log::append(self, kind as u8, body, publish)
    }

    fn make_durable(&self, lsn: Lsn) -> Result<()> {
        Log::make_durable(self, lsn)
    }

    fn cut(&self, f: &mut dyn FnMut(Lsn)) {
        Log::cut(self, f);
    }

    fn prepare(&self) -> Result<()> {
        // Where the log has just come to the last segment that there is room for, it goes on into it: only then the one before can be given back.
        Log::prepare_next_or_spare(self, self.segment_bytes() / 4 * 3)
    }

    fn prepare_to_free(&self, what: Frees) -> Result<()> {
        Log::prepare_next_or_spare(self, what.margin_bytes(self.segment_bytes()))
    }

    fn keep_for_undo(&self, bytes: i64) {
        Log::keep_for_undo(self, bytes);
    }

    fn has_spare(&self, bytes: u64) -> bool {
        Log::has_spare(self, bytes)
    }
}

/// Most records are no longer.
const RECORD_BYTES: usize = 512;

/// Bytes of the log that taking a record back takes at most: what it changed is changed to and fro.
fn undo_bytes(record: Appended, undo: Option<Undo<'_>>) -> u64 {
    const MORE: u64 = 128;
    let steps = match undo {
        Some(Undo::InsertedRows { count, .. }) => count.into(),
        Some(Undo::InsertedEntries { entries, .. }) => entries.iter().count() as u64,
        _ => 1,
    };
    2 * (record.end - record.start) + steps * MORE
}

/// For whom something is changed.
#[derive(Clone, Copy, Debug, Default)]
pub enum By<'a> {
    /// For nobody who might take it back.
    #[default]
    Nobody,
    /// For a transaction.
    Transaction(&'a Arc<TransactionState>),
    /// To take back what a transaction did; `next` is its next record to be taken back.
    Undo(&'a TransactionState, Lsn),
}

/// A page of a mini-transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageHandle(usize);

struct MtrPage<'a> {
    page: ExclusivePage<'a>,
    changed: bool,
    /// To be made anew: the first op finds zeros.
    fresh: bool,
    /// Class of a page that this mini-transaction took from the space map.
    allocated: Option<u8>,
}

/// An atomic group of page changes.
pub struct MiniTransaction<'a> {
    manager: &'a BufferManager,
    pages: Vec<Option<MtrPage<'a>>>,
    /// The changes in their log form.
    record: Vec<u8>,
    /// What becomes of the data sets at commit.
    effects: Vec<(&'a DataSet, u32, DataSetOp)>,
    by: By<'a>,
    undo: Option<Undo<'a>>,
    changes: u32,
}

impl<'a> MiniTransaction<'a> {
    /// An empty one.
    #[must_use]
    pub fn begin(manager: &'a BufferManager) -> MiniTransaction<'a> {
        MiniTransaction {
            manager,
            pages: Vec::with_capacity(4),
            record: Vec::with_capacity(RECORD_BYTES),
            effects: Vec::new(),
            by: By::Nobody,
            undo: None,
            changes: 0,
        }
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
        self.take(page, false, None)
    }

    /// Takes over a page that [`BufferManager::create`] gave, to be made anew.
    pub(crate) fn adopt_fresh(&mut self, page: ExclusivePage<'a>) -> PageHandle {
        self.take(page, true, None)
    }

    fn take(&mut self, page: ExclusivePage<'a>, fresh: bool, allocated: Option<u8>) -> PageHandle {
        self.pages.push(Some(MtrPage { page, changed: false, fresh, allocated }));
        PageHandle(self.pages.len() - 1)
    }

    /// A new page of the data set; the first op formats it. `leaf` tells which of the two pools of a folded index it goes to. When it is not changed before the commit, it is free again.
    ///
    /// # Errors
    /// When the data set cannot grow.
    pub fn create(&mut self, data_set: &'a DataSet, class: u8, leaf: bool) -> Result<PageHandle> {
        self.create_in(None, data_set, class, leaf)
    }

    /// As [`Self::create`], with a frame of the reserve in a turn.
    ///
    /// # Errors
    /// As `create`.
    pub(crate) fn create_in(&mut self, turn: Option<&Turn<'_>>, data_set: &'a DataSet, class: u8, leaf: bool) -> Result<PageHandle> {
        let number = data_set.allocate_page(class)?;
        let page = self.manager.create(turn, data_set, number, leaf).inspect_err(|_| data_set.give_back(number))?;
        Ok(self.take(page, true, Some(class)))
    }

    /// As [`Self::create`], with a page that was reserved.
    ///
    /// # Errors
    /// When no frame can be had.
    pub(crate) fn create_reserved(&mut self, data_set: &'a DataSet, class: u8) -> Result<PageHandle> {
        let number = data_set.allocate_reserved(class)?;
        self.create_at(data_set, number, class, true).inspect_err(|_| data_set.give_back(number))
    }

    /// As [`Self::create`], with a page that [`DataSet::allocate_page`] gave with this class.
    ///
    /// # Errors
    /// When no frame can be had; the page is still the caller's then.
    pub(crate) fn create_at(&mut self, data_set: &'a DataSet, number: u32, class: u8, leaf: bool) -> Result<PageHandle> {
        let page = self.manager.create(None, data_set, number, leaf)?;
        Ok(self.take(page, true, Some(class)))
    }

    fn entry(&self, handle: PageHandle) -> &MtrPage<'a> {
        self.pages[handle.0].as_ref().expect("the handle of a page that was let go")
    }

    /// The handle of a page that it has latched.
    pub(crate) fn handle_of(&self, data_set: &DataSet, number: u32) -> Option<PageHandle> {
        let is_it = |page: &Option<MtrPage<'_>>| {
            page.as_ref().is_some_and(|page| std::ptr::eq(page.page.data_set(), data_set) && page.page.number() == number)
        };
        self.pages.iter().position(is_it).map(PageHandle)
    }

    /// The page's bytes.
    #[must_use]
    pub fn bytes(&self, handle: PageHandle) -> &[u8] {
        &self.entry(handle).page
    }

    /// The page's data set.
    #[must_use]
    pub(crate) fn data_set(&self, handle: PageHandle) -> &'a DataSet {
        self.entry(handle).page.data_set()
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
        self.change(handle, op, |bytes| op.apply(bytes))
    }

    /// Changes a leaf by what has been worked out for it as it is, so that the op need not do so again: `change` does what the op does.
    ///
    /// # Errors
    /// As [`Self::apply`].
    pub fn apply_leaf(
        &mut self,
        handle: PageHandle,
        op: LeafOp<'_>,
        change: impl FnOnce(&mut [u8]) -> std::result::Result<(), FormatError>,
    ) -> Result<()> {
        let expected = cfg!(debug_assertions).then(|| {
            let mut page = self.bytes(handle).to_vec();
            op.apply(&mut page).map(|()| page)
        });
        self.change(handle, PageOp::Leaf(op), change)?;
        debug_assert!(expected.is_none_or(|expected| expected.is_ok_and(|page| page == self.bytes(handle))), "not what the op does");
        Ok(())
    }

    fn change(
        &mut self,
        handle: PageHandle,
        op: PageOp<'_>,
        change: impl FnOnce(&mut [u8]) -> std::result::Result<(), FormatError>,
    ) -> Result<()> {
        let entry = self.pages[handle.0].as_mut().expect("the handle of a page that was let go");
        let (number, data_set) = (entry.page.number(), entry.page.data_set());
        let fresh = std::mem::take(&mut entry.fresh);
        if fresh {
            entry.page.bytes_mut().fill(0);
        }
        if let Err(reason) = change(entry.page.bytes_mut()) {
            let error = data_set.corrupt(number, reason);
            // What it was before is not there any more, and must not be written as zeros.
            if fresh {
                data_set.poison(&error);
            }
            return Err(error);
        }
        entry.changed = true;
        self.changes += 1;
        if entry.page.mark_dirty() {
            self.manager.became_dirty(data_set, number);
        }
        let allocated = entry.allocated.take();
        if let Some(class) = allocated {
            self.note(data_set, number, DataSetOp::Allocate { class });
        }
        if data_set.is_logged() {
            put_change(&mut self.record, data_set.file_id(), number, &Change::Page(op));
        }
        Ok(())
    }

    /// At commit, this becomes of a data set.
    fn note(&mut self, data_set: &'a DataSet, page: u32, op: DataSetOp) {
        if data_set.is_logged() {
            put_change(&mut self.record, data_set.file_id(), page, &Change::DataSet(op));
        }
        self.effects.push((data_set, page, op));
    }

    /// At commit, the counts in the header change by this much.
    pub fn count(&mut self, data_set: &'a DataSet, counts: Counts) {
        self.note(data_set, 0, DataSetOp::Count(counts));
    }

    /// At commit, the page is free. Nobody but this mini-transaction can get at it, or it is latched here.
    pub fn free(&mut self, data_set: &'a DataSet, page: u32) {
        self.note(data_set, page, DataSetOp::Free);
    }

    /// At commit, the index has another root. The old one is latched here.
    pub fn set_root(&mut self, data_set: &'a DataSet, page: u32, levels: u16) {
        self.note(data_set, page, DataSetOp::Root { levels });
    }

    /// At commit, the data set has this dictionary.
    pub fn add_dictionary(&mut self, data_set: &'a DataSet, version: u16, first_page: u32, bytes: u32) {
        self.note(data_set, first_page, DataSetOp::Dictionary { version, bytes });
    }

    /// The ghost of a row is gone, wherever it lay; its home is in this data set.
    pub(crate) fn ghost_gone(&mut self, home: &'a DataSet, rid: Rid) {
        self.note(home, rid.page(), DataSetOp::GhostGone { slot: rid.slot() });
    }

    /// From this commit on the data set does not have this dictionary. Its pages are to be freed, too.
    pub fn drop_dictionary(&mut self, data_set: &'a DataSet, version: u16) {
        self.note(data_set, 0, DataSetOp::DropDictionary { version });
    }

    /// From this commit on the data set is a partition of a table.
    pub fn add_partition(&mut self, data_set: &'a DataSet, object_id: u32, partition: u16) {
        self.note(data_set, 0, DataSetOp::Partition { object_id, partition });
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
        self.effects.append(&mut other.effects);
        self.changes += std::mem::take(&mut other.changes);
    }

    /// Sets for whom this is done. Without [`Self::set_undo`] it is done for a rollback, or for nobody.
    pub fn set_by(&mut self, by: By<'a>) {
        self.by = by;
    }

    /// Sets for whom this is done, and what takes it back.
    pub fn set_undo(&mut self, by: By<'a>, undo: Undo<'a>) {
        self.by = by;
        self.undo = Some(undo);
    }

    /// Lets go of a page that was not changed.
    ///
    /// # Panics
    /// When it was changed.
    pub fn release(&mut self, handle: PageHandle) {
        let entry = self.pages[handle.0].take();
        assert!(entry.as_ref().is_none_or(|e| !e.changed), "a changed page is released by commit only");
        entry.into_iter().for_each(give_back_unused);
    }

    /// Stamps the pages with the LSN of the record that was redone, and lets go of them.
    pub(crate) fn redone(mut self, lsn: Lsn) {
        for entry in self.pages.iter_mut().flatten().filter(|e| e.changed) {
            page::set_lsn(entry.page.bytes_mut(), lsn);
        }
        self.changes = 0;
    }

    /// Hands the record over, stamps the pages, lets go of them. Returns the end of the record in the log, 0 when there is none.
    ///
    /// # Errors
    /// When the log refuses.
    pub fn commit(mut self) -> Result<Lsn> {
        let lsn = match self.manager.log() {
            Some(log) if !self.record.is_empty() || self.by_transaction() => self.append(log)?,
            _ => {
                self.publish();
                0
            }
        };
        for entry in self.pages.iter_mut().flatten().filter(|e| e.changed && lsn != 0) {
            page::set_lsn(entry.page.bytes_mut(), lsn);
        }
        self.changes = 0;
        Ok(lsn)
    }

    /// Is there something to take back, or has something been taken back, even if no page changes?
    fn by_transaction(&self) -> bool {
        match self.by {
            By::Transaction(_) => self.undo.is_some(),
            By::Undo(..) => true,
            By::Nobody => false,
        }
    }

    fn append(&mut self, log: &dyn LogSink) -> Result<Lsn> {
        let (role, state) = match (self.by, self.undo) {
            (By::Transaction(state), Some(undo)) => {
                (Role::Undoable { transaction: state.id(), previous: state.last_lsn(), undo }, Some(&**state))
            }
            (By::Undo(state, next), _) => (Role::Compensation { transaction: state.id(), next }, Some(state)),
            _ => (Role::Structure, None),
        };
        let mut head = Vec::with_capacity(64);
        Action::encode_head(&role, &mut head);
        let appended = log.append(RecordKind::Action, &[&head, &self.record], &mut |place| {
            self.publish();
            if let Some(state) = state {
                state.logged(place.start);
            }
        })?;
        if let By::Transaction(state) = self.by {
            keep_for_undo(log, state, undo_bytes(appended, self.undo));
        }
        Ok(appended.end)
    }

    fn publish(&self) {
        // Who adds them up is to find the same rows in one place, and not in two.
        let counts_rows = |op: &DataSetOp| matches!(op, DataSetOp::Count(counts) if counts.rows != 0);
        let moves = self.effects.iter().filter(|(_, _, op)| counts_rows(op)).nth(1).is_some();
        let _moving = moves.then(|| self.manager.moving_counts().write());
        for (data_set, page, op) in &self.effects {
            data_set.apply(*page, *op);
        }
    }
}

/// Keeps room in the log for taking back what a transaction has done, until that ends.
pub(crate) fn keep_for_undo(log: &dyn LogSink, state: &TransactionState, bytes: u64) {
    state.note_undo_bytes(bytes);
    log.keep_for_undo(bytes as i64);
}

/// A page that was made and then not needed is free again.
fn give_back_unused(entry: MtrPage<'_>) {
    let number = entry.page.number();
    if entry.allocated.is_some() {
        let data_set = entry.page.data_set();
        drop(entry);
        data_set.give_back(number);
    }
}

impl Drop for MiniTransaction<'_> {
    fn drop(&mut self) {
        if self.changes > 0 {
            for entry in self.pages.iter().flatten().filter(|e| e.changed) {
                entry.page.data_set().poison("a change was cut short");
            }
            if let By::Transaction(state) = self.by {
                state.note_cut_short();
            }
        }
        self.pages.drain(..).flatten().for_each(give_back_unused);
    }
}
