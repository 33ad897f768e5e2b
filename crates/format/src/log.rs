//! What log records say. Their frames (length, checksum, place) are the engine's; here are their bodies.
//!
//! Layout: `docs/file-format.md`, "Log records".
//!
//! Invariants:
//! - a record read back is untrusted: every field is checked when it is decoded, every op again when it is applied;
//! - changes are in the order in which they were made, so redo is applying them in order.

use crate::FormatError;
use crate::data_set_header::DictionaryRoot;
use crate::op::PageOp;
use crate::wire::{Reader, is_in_bits, put_bytes, put_splice, put_varint, read_splice};
use pagefold_codec::splice::Splice;
use pagefold_types::{LARGE_VALUE_REF_BYTES, LargeValueRef, RID_BYTES, Rid, SLOT_MAX};

/// A position in the stream of log records, in bytes from its start; 0 stands for none.
pub type Lsn = u64;

/// Kinds of records with a body described here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum RecordKind {
    /// A mini-transaction: [`Action`].
    Action = 16,
    /// A transaction is committed: [`Commit`].
    Commit = 17,
    /// A transaction is rolled back wholly: its id.
    RolledBack = 18,
    /// A checkpoint: [`Checkpoint`].
    Checkpoint = 19,
}

impl RecordKind {
    /// The kind of this number.
    #[must_use]
    pub fn from_u8(number: u8) -> Option<RecordKind> {
        [RecordKind::Action, RecordKind::Commit, RecordKind::RolledBack, RecordKind::Checkpoint]
            .into_iter()
            .find(|kind| *kind as u8 == number)
    }
}

/// A change of a data set that is not one of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DataSetOp {
    /// A page is in use from now on.
    Allocate {
        /// Its class in the space map.
        class: u8,
    },
    /// A page is free from now on.
    Free,
    /// The root of an index; its page is the one of the change.
    Root {
        /// Levels of the tree.
        levels: u16,
    },
    /// The counts of the header change by this much.
    Count(Counts),
    /// A dictionary is there from now on; its first page is the one of the change.
    Dictionary {
        /// Its version.
        version: u16,
        /// Bytes of its chain.
        bytes: u32,
    },
    /// A dictionary is not there any more.
    DropDictionary {
        /// Its version.
        version: u16,
    },
    /// The ghost of a row of this page is gone, wherever it lay: the slot may have another row from now on.
    GhostGone {
        /// The slot of its RID.
        slot: u16,
    },
    /// The data set is a partition of a table from now on. Comes before everything else about it.
    Partition {
        /// The table.
        object_id: u32,
        /// Which one.
        partition: u16,
    },
}

/// Differences of the counts that a data set's header keeps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Rows, or RIDs of an index.
    pub rows: i64,
    /// Pages with rows, or leaves.
    pub data_pages: i64,
    /// Distinct keys of an index.
    pub keys: i64,
}

/// One change: of a page, or of what its data set knows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Change<'a> {
    /// Of a page.
    Page(PageOp<'a>),
    /// Of the data set.
    DataSet(DataSetOp),
}

const TAG_DATA_SET: u8 = 32;

fn put_signed(out: &mut Vec<u8>, number: i64) {
    put_varint(out, ((number << 1) ^ (number >> 63)) as u64);
}

fn signed(reader: &mut Reader<'_>) -> Result<i64, FormatError> {
    let zigzag = reader.varint()?;
    Ok((zigzag >> 1) as i64 ^ -((zigzag & 1) as i64))
}

/// Appends one change of a page of a data set.
pub fn put_change(out: &mut Vec<u8>, file_id: u32, page: u32, change: &Change<'_>) {
    put_varint(out, file_id.into());
    put_varint(out, page.into());
    let op = match change {
        Change::Page(op) => return op.encode(out),
        Change::DataSet(op) => op,
    };
    match *op {
        DataSetOp::Allocate { class } => out.extend_from_slice(&[TAG_DATA_SET, class]),
        DataSetOp::Free => out.push(TAG_DATA_SET + 1),
        DataSetOp::Root { levels } => {
            out.push(TAG_DATA_SET + 2);
            put_varint(out, levels.into());
        }
        DataSetOp::Count(counts) => {
            out.push(TAG_DATA_SET + 3);
            [counts.rows, counts.data_pages, counts.keys].into_iter().for_each(|n| put_signed(out, n));
        }
        DataSetOp::Dictionary { version, bytes } => {
            out.push(TAG_DATA_SET + 4);
            put_varint(out, version.into());
            put_varint(out, bytes.into());
        }
        DataSetOp::Partition { object_id, partition } => {
            out.push(TAG_DATA_SET + 5);
            put_varint(out, object_id.into());
            put_varint(out, partition.into());
        }
        DataSetOp::DropDictionary { version } => {
            out.push(TAG_DATA_SET + 6);
            put_varint(out, version.into());
        }
        DataSetOp::GhostGone { slot } => {
            out.push(TAG_DATA_SET + 7);
            put_varint(out, slot.into());
        }
    }
}

/// The next change, with its file id and page number.
///
/// # Errors
/// When the bytes are no change.
pub fn next_change<'a>(reader: &mut Reader<'a>) -> Result<(u32, u32, Change<'a>), FormatError> {
    let (file_id, page) = (reader.varint32()?, reader.varint32()?);
    let mut ahead = *reader;
    let tag = ahead.u8()?;
    if tag < TAG_DATA_SET {
        return Ok((file_id, page, Change::Page(PageOp::decode(reader)?)));
    }
    *reader = ahead;
    let op = match tag - TAG_DATA_SET {
        0 => DataSetOp::Allocate { class: reader.u8()? },
        1 => DataSetOp::Free,
        2 => DataSetOp::Root { levels: reader.varint16()? },
        3 => DataSetOp::Count(Counts { rows: signed(reader)?, data_pages: signed(reader)?, keys: signed(reader)? }),
        4 => DataSetOp::Dictionary { version: reader.varint16()?, bytes: reader.varint32()? },
        5 => DataSetOp::Partition { object_id: reader.varint32()?, partition: reader.varint16()? },
        6 => DataSetOp::DropDictionary { version: reader.varint16()? },
        7 => DataSetOp::GhostGone { slot: reader.varint16()? },
        _ => return Err(FormatError::new(format!("unknown change {tag}"))),
    };
    Ok((file_id, page, Change::DataSet(op)))
}

impl DataSetOp {
    /// The root of a dictionary that this op adds.
    #[must_use]
    pub fn dictionary(self, page: u32) -> Option<DictionaryRoot> {
        match self {
            DataSetOp::Dictionary { version, bytes } => Some(DictionaryRoot { version, first_page: page, bytes }),
            _ => None,
        }
    }
}

/// Ids of transactions are below this, so that the next one is a number, too.
const TRANSACTION_ID_END: u64 = 1 << 62;

fn transaction_id(reader: &mut Reader<'_>) -> Result<u64, FormatError> {
    let id = reader.varint()?;
    if id < TRANSACTION_ID_END { Ok(id) } else { Err(FormatError::new(format!("transaction {id}: no database has so many"))) }
}

/// What a stored row was before a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Earlier<'a> {
    /// The same form, with another piece.
    Spliced(Splice<'a>),
    /// The record, with another piece, whatever form it has by then.
    Record(Splice<'a>),
    /// Another form.
    Whole {
        /// Dictionary version; 0: a plain record.
        version: u16,
        /// The record or its codes.
        bytes: &'a [u8],
    },
}

/// What takes an action back, logically: pages may have split or rows moved since.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Undo<'a> {
    /// Take this row out.
    InsertedRow {
        /// The table.
        object_id: u32,
        /// The row.
        rid: Rid,
    },
    /// Take these rows out, the last one first. After a crash some of the last may be out already.
    InsertedRows {
        /// The table.
        object_id: u32,
        /// The first of them.
        rid: Rid,
        /// How many: in the slots from there on.
        count: u16,
    },
    /// Make the ghost a row again.
    DeletedRow {
        /// The table.
        object_id: u32,
        /// The row.
        rid: Rid,
        /// Kind bits of its home slot.
        kind: u8,
    },
    /// Put the stored row as it was.
    UpdatedRow {
        /// The table.
        object_id: u32,
        /// The row.
        rid: Rid,
        /// What it was.
        before: Earlier<'a>,
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
    /// Take these entries out, the last one first. After a crash some of the last may be out already.
    InsertedEntries {
        /// The index.
        object_id: u32,
        /// Keys and rows.
        entries: EntryList<'a>,
    },
    /// Give the page back.
    AllocatedPage {
        /// The data set.
        file_id: u32,
        /// The page.
        page: u32,
    },
    /// Nothing: the entry stays for older snapshots, and goes after the commit.
    KeptEntry {
        /// The index.
        object_id: u32,
        /// The key.
        key: &'a [u8],
        /// The row.
        rid: Rid,
    },
    /// Nothing: the pages of a large value stay for older snapshots, and go after the commit.
    KeptLargeValue {
        /// The table.
        object_id: u32,
        /// The value.
        value: LargeValueRef,
    },
    /// Nothing: a table or index comes or goes with the commit, and not before.
    Definition {
        /// The table or index.
        object_id: u32,
        /// What the catalog says of one that comes: its rows, each with its length before it. `None`: it goes.
        rows: Option<&'a [u8]>,
    },
}

/// What a committed transaction leaves for older snapshots, until they are gone. In the order in which they go: the entries of a row before its slot.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Leftover {
    /// An index entry of a row that has another key by now.
    Entry {
        /// The index.
        object_id: u32,
        /// The key.
        key: Vec<u8>,
        /// The row.
        rid: Rid,
    },
    /// A large value that no row names any more.
    LargeValue {
        /// The table.
        object_id: u32,
        /// The value.
        value: LargeValueRef,
    },
    /// A deleted row that its page keeps.
    Ghost {
        /// The table.
        object_id: u32,
        /// The row.
        rid: Rid,
        /// Kind bits of its home slot.
        kind: u8,
    },
}

impl Leftover {
    fn as_undo(&self) -> Undo<'_> {
        match self {
            Leftover::Ghost { object_id, rid, kind } => Undo::DeletedRow { object_id: *object_id, rid: *rid, kind: *kind },
            Leftover::Entry { object_id, key, rid } => Undo::KeptEntry { object_id: *object_id, key, rid: *rid },
            Leftover::LargeValue { object_id, value } => Undo::KeptLargeValue { object_id: *object_id, value: *value },
        }
    }
}

impl<'a> Undo<'a> {
    /// What the action leaves when its transaction commits.
    #[must_use]
    pub fn leaves(&self) -> Option<Leftover> {
        Some(match *self {
            Undo::DeletedRow { object_id, rid, kind } => Leftover::Ghost { object_id, rid, kind },
            Undo::KeptEntry { object_id, key, rid } => Leftover::Entry { object_id, key: key.to_vec(), rid },
            Undo::KeptLargeValue { object_id, value } => Leftover::LargeValue { object_id, value },
            _ => return None,
        })
    }

    fn encode(&self, out: &mut Vec<u8>) {
        let mut head = |tag: u8, object: u32, rid: Rid| {
            out.push(tag);
            put_varint(out, object.into());
            out.extend_from_slice(&rid.to_bytes());
        };
        match *self {
            Undo::InsertedRow { object_id, rid } => head(0, object_id, rid),
            Undo::InsertedRows { object_id, rid, count } => {
                head(12, object_id, rid);
                put_varint(out, count.into());
            }
            Undo::DeletedRow { object_id, rid, kind } => {
                head(1, object_id, rid);
                out.push(kind);
            }
            Undo::UpdatedRow { object_id, rid, before: Earlier::Spliced(splice) } => {
                head(if is_in_bits(&splice) { 11 } else { 2 }, object_id, rid);
                put_splice(out, splice);
            }
            Undo::UpdatedRow { object_id, rid, before: Earlier::Record(splice) } => {
                head(8, object_id, rid);
                put_splice(out, splice);
            }
            Undo::UpdatedRow { object_id, rid, before: Earlier::Whole { version, bytes } } => {
                head(7, object_id, rid);
                put_varint(out, version.into());
                put_bytes(out, bytes);
            }
            Undo::InsertedEntry { object_id, key, rid } => {
                head(3, object_id, rid);
                put_bytes(out, key);
            }
            Undo::InsertedEntries { object_id, entries } => {
                out.push(13);
                put_varint(out, object_id.into());
                put_varint(out, entries.0.len() as u64);
                out.extend_from_slice(entries.0);
            }
            Undo::AllocatedPage { file_id, page } => {
                out.push(4);
                put_varint(out, file_id.into());
                put_varint(out, page.into());
            }
            Undo::KeptEntry { object_id, key, rid } => {
                head(5, object_id, rid);
                put_bytes(out, key);
            }
            Undo::KeptLargeValue { object_id, value } => {
                out.push(6);
                put_varint(out, object_id.into());
                out.extend_from_slice(&value.to_bytes());
            }
            Undo::Definition { object_id, rows } => {
                out.push(if rows.is_some() { 9 } else { 10 });
                put_varint(out, object_id.into());
                if let Some(rows) = rows {
                    put_varint(out, rows.len() as u64);
                    out.extend_from_slice(rows);
                }
            }
        }
    }

    fn decode(reader: &mut Reader<'a>) -> Result<Undo<'a>, FormatError> {
        let tag = reader.u8()?;
        let object_id = reader.varint32()?;
        if tag == 4 {
            return Ok(Undo::AllocatedPage { file_id: object_id, page: reader.varint32()? });
        }
        if tag == 6 {
            let value = LargeValueRef::from_bytes(reader.take(LARGE_VALUE_REF_BYTES)?);
            return Ok(Undo::KeptLargeValue { object_id, value: value.ok_or_else(|| FormatError::new("no reference to a large value"))? });
        }
        if tag == 9 || tag == 10 {
            let rows = if tag == 9 {
                let length = reader.varint32()?;
                Some(reader.take(length as usize)?)
            } else {
                None
            };
            return Ok(Undo::Definition { object_id, rows });
        }
        if tag == 13 {
            let length = reader.varint32()?;
            return Ok(Undo::InsertedEntries { object_id, entries: EntryList::parse(reader.take(length as usize)?)? });
        }
        let rid = read_rid(reader)?;
        Ok(match tag {
            0 => Undo::InsertedRow { object_id, rid },
            1 => Undo::DeletedRow { object_id, rid, kind: reader.u8()? },
            2 | 11 => Undo::UpdatedRow { object_id, rid, before: Earlier::Spliced(read_splice(reader, tag == 11)?) },
            7 => {
                let before = Earlier::Whole { version: reader.varint16()?, bytes: reader.bytes()? };
                Undo::UpdatedRow { object_id, rid, before }
            }
            8 => Undo::UpdatedRow { object_id, rid, before: Earlier::Record(read_splice(reader, false)?) },
            3 => Undo::InsertedEntry { object_id, key: reader.bytes()?, rid },
            5 => Undo::KeptEntry { object_id, key: reader.bytes()?, rid },
            12 => {
                let count = reader.varint16()?;
                if count == 0 || usize::from(rid.slot()) + usize::from(count) > usize::from(SLOT_MAX) + 1 {
                    return Err(FormatError::new(format!("{count} rows from slot {} on", rid.slot())));
                }
                Undo::InsertedRows { object_id, rid, count }
            }
            _ => return Err(FormatError::new(format!("unknown undo {tag}"))),
        })
    }
}

fn read_rid(reader: &mut Reader<'_>) -> Result<Rid, FormatError> {
    let mut bytes = [0; RID_BYTES];
    bytes.copy_from_slice(reader.take(RID_BYTES)?);
    Ok(Rid::from_bytes(bytes))
}

/// Entries of an index as the log has them: of each its RID and its key. There is at least one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EntryList<'a>(&'a [u8]);

impl<'a> EntryList<'a> {
    /// Appends an entry to the bytes of a list.
    pub fn push(bytes: &mut Vec<u8>, key: &[u8], rid: Rid) {
        bytes.extend_from_slice(&rid.to_bytes());
        put_bytes(bytes, key);
    }

    /// The list with these bytes.
    ///
    /// # Errors
    /// When they are not the bytes of a list, or there is no entry.
    pub fn parse(bytes: &'a [u8]) -> Result<EntryList<'a>, FormatError> {
        let mut reader = Reader::new(bytes);
        loop {
            read_rid(&mut reader)?;
            reader.bytes()?;
            if reader.is_empty() {
                return Ok(EntryList(bytes));
            }
        }
    }

    /// Its entries, in their order.
    pub fn iter(self) -> impl Iterator<Item = (&'a [u8], Rid)> {
        let mut reader = Reader::new(self.0);
        std::iter::from_fn(move || {
            let rid = read_rid(&mut reader).ok()?;
            reader.bytes().ok().map(|key| (key, rid))
        })
    }
}

/// How an action belongs to a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role<'a> {
    /// To none: a structure modification, or work that no transaction takes back.
    Structure,
    /// It can be taken back.
    Undoable {
        /// The transaction.
        transaction: u64,
        /// Start of its record before.
        previous: Lsn,
        /// What takes it back.
        undo: Undo<'a>,
    },
    /// It has taken an action back (ARIES: a compensation record).
    Compensation {
        /// The transaction.
        transaction: u64,
        /// Start of the next record to take back; 0 when there is none.
        next: Lsn,
    },
}

/// A mini-transaction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Action<'a> {
    /// How it belongs to a transaction.
    pub role: Role<'a>,
    /// Its changes, each as [`put_change`] writes it.
    pub changes: &'a [u8],
}

impl<'a> Action<'a> {
    /// Appends everything but the changes.
    pub fn encode_head(role: &Role<'_>, out: &mut Vec<u8>) {
        match role {
            Role::Structure => out.push(0),
            Role::Undoable { transaction, previous, undo } => {
                out.push(1);
                put_varint(out, *transaction);
                put_varint(out, *previous);
                undo.encode(out);
            }
            Role::Compensation { transaction, next } => {
                out.push(2);
                put_varint(out, *transaction);
                put_varint(out, *next);
            }
        }
    }

    /// Reads the body of an action record. The changes are checked when they are read.
    ///
    /// # Errors
    /// When the bytes are none.
    pub fn decode(bytes: &'a [u8]) -> Result<Action<'a>, FormatError> {
        let mut reader = Reader::new(bytes);
        let role = match reader.u8()? {
            0 => Role::Structure,
            1 => {
                let (transaction, previous) = (transaction_id(&mut reader)?, reader.varint()?);
                Role::Undoable { transaction, previous, undo: Undo::decode(&mut reader)? }
            }
            2 => Role::Compensation { transaction: transaction_id(&mut reader)?, next: reader.varint()? },
            other => return Err(FormatError::new(format!("unknown action {other}"))),
        };
        Ok(Action { role, changes: reader.rest() })
    }
}

/// A commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Commit {
    /// The transaction.
    pub transaction: u64,
    /// When, in nanoseconds since 1970-01-01 UTC; for recovery to a point in time.
    pub unix_time_ns: u64,
}

impl Commit {
    /// Appends the body.
    pub fn encode(&self, out: &mut Vec<u8>) {
        put_varint(out, self.transaction);
        out.extend_from_slice(&self.unix_time_ns.to_le_bytes());
    }

    /// Reads the body.
    ///
    /// # Errors
    /// When the bytes are none.
    pub fn decode(bytes: &[u8]) -> Result<Commit, FormatError> {
        let mut reader = Reader::new(bytes);
        Ok(Commit { transaction: transaction_id(&mut reader)?, unix_time_ns: reader.u64()? })
    }
}

/// A data set at a checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DataSetState {
    /// Its file id.
    pub file_id: u32,
    /// Write counter of its header page; 0: none was written yet, and the log has all of it.
    pub header_writes: u32,
    /// Table or index it belongs to.
    pub object_id: u32,
    /// Partition number. The catalog may not have it yet.
    pub partition: u16,
}

/// A transaction that ran at a checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunningTransaction {
    /// Its id.
    pub id: u64,
    /// Start of its first record.
    pub first: Lsn,
    /// Start of its latest record.
    pub last: Lsn,
}

/// A checkpoint: everything that records before `redo` changed is on disk.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Checkpoint {
    /// Redo starts here.
    pub redo: Lsn,
    /// The lowest transaction id never used.
    pub next_transaction: u64,
    /// Transactions that had written something at `redo` and were not ended.
    pub transactions: Vec<RunningTransaction>,
    /// Data sets that are not in the catalog, or whose header page was written since the catalog was.
    pub data_sets: Vec<DataSetState>,
    /// What transactions had left by `redo` and nobody had removed, and what running ones would leave.
    pub leftovers: Vec<CheckpointLeftover>,
    /// What running transactions had defined by `redo`, in the order of their records.
    pub definitions: Vec<CheckpointDefinition>,
    /// Objects that were committed by `redo` and are not as the catalog says: their definitions; `None` for those that are gone.
    pub committed: Vec<(u32, Option<Vec<u8>>)>,
}

/// A definition of a running transaction, as a checkpoint keeps it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckpointDefinition {
    /// The transaction.
    pub transaction: u64,
    /// Start of its record before.
    pub after: Lsn,
    /// The table or index.
    pub object_id: u32,
    /// As in [`Undo::Definition`].
    pub rows: Option<Vec<u8>>,
}

/// Something left, as a checkpoint keeps it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckpointLeftover {
    /// The transaction; 0 when it is committed.
    pub transaction: u64,
    /// Start of its record before the one that leaves this.
    pub after: Lsn,
    /// What is left.
    pub left: Leftover,
}

impl Checkpoint {
    /// Recovery from this checkpoint reads no record before this one: where redo starts, or a transaction that ran.
    #[must_use]
    pub fn oldest(&self) -> Lsn {
        self.transactions.iter().map(|transaction| transaction.first).fold(self.redo, Lsn::min)
    }

    /// The partitions of a table that are not known from elsewhere, in their order.
    pub fn added_partitions(&self, object_id: u32, known: impl Fn(u32) -> bool) -> Vec<&DataSetState> {
        let of_table = self.data_sets.iter().filter(|state| state.object_id == object_id);
        let mut added: Vec<_> = of_table.filter(|state| !known(state.file_id)).collect();
        added.sort_unstable_by_key(|state| state.partition);
        added
    }

    /// Appends the body.
    pub fn encode(&self, out: &mut Vec<u8>) {
        put_varint(out, self.redo);
        put_varint(out, self.next_transaction);
        put_varint(out, self.transactions.len() as u64);
        for transaction in &self.transactions {
            [transaction.id, transaction.first, transaction.last].into_iter().for_each(|n| put_varint(out, n));
        }
        put_varint(out, self.data_sets.len() as u64);
        for data_set in &self.data_sets {
            let DataSetState { file_id, header_writes, object_id, partition } = *data_set;
            [file_id, header_writes, object_id, partition.into()].into_iter().for_each(|n| put_varint(out, n.into()));
        }
        put_varint(out, self.leftovers.len() as u64);
        for leftover in &self.leftovers {
            put_varint(out, leftover.transaction);
            put_varint(out, leftover.after);
            leftover.left.as_undo().encode(out);
        }
        put_varint(out, self.definitions.len() as u64);
        for definition in &self.definitions {
            put_varint(out, definition.transaction);
            put_varint(out, definition.after);
            Undo::Definition { object_id: definition.object_id, rows: definition.rows.as_deref() }.encode(out);
        }
        put_varint(out, self.committed.len() as u64);
        for (object_id, rows) in &self.committed {
            Undo::Definition { object_id: *object_id, rows: rows.as_deref() }.encode(out);
        }
    }

    /// Reads the body.
    ///
    /// # Errors
    /// When the bytes are none.
    pub fn decode(bytes: &[u8]) -> Result<Checkpoint, FormatError> {
        let mut reader = Reader::new(bytes);
        let mut checkpoint = Checkpoint { redo: reader.varint()?, next_transaction: transaction_id(&mut reader)?, ..Checkpoint::default() };
        // Each takes a byte at least, so a hostile count ends with the bytes.
        for _ in 0..reader.varint()? {
            checkpoint.transactions.push(RunningTransaction {
                id: transaction_id(&mut reader)?,
                first: reader.varint()?,
                last: reader.varint()?,
            });
        }
        for _ in 0..reader.varint()? {
            let (file_id, header_writes, object_id) = (reader.varint32()?, reader.varint32()?, reader.varint32()?);
            checkpoint.data_sets.push(DataSetState { file_id, header_writes, object_id, partition: reader.varint16()? });
        }
        for _ in 0..reader.varint()? {
            let (transaction, after) = (transaction_id(&mut reader)?, reader.varint()?);
            let left = Undo::decode(&mut reader)?.leaves().ok_or_else(|| FormatError::new("a leftover that is none"))?;
            checkpoint.leftovers.push(CheckpointLeftover { transaction, after, left });
        }
        for _ in 0..reader.varint()? {
            let (transaction, after) = (transaction_id(&mut reader)?, reader.varint()?);
            let Undo::Definition { object_id, rows } = Undo::decode(&mut reader)? else {
                return Err(FormatError::new("a definition that is none"));
            };
            checkpoint.definitions.push(CheckpointDefinition { transaction, after, object_id, rows: rows.map(<[u8]>::to_vec) });
        }
        for _ in 0..reader.varint()? {
            let Undo::Definition { object_id, rows } = Undo::decode(&mut reader)? else {
                return Err(FormatError::new("a definition that is none"));
            };
            checkpoint.committed.push((object_id, rows.map(<[u8]>::to_vec)));
        }
        if !reader.is_empty() {
            return Err(FormatError::new("bytes behind the end of a checkpoint"));
        }
        Ok(checkpoint)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::DataOp;
    use pagefold_codec::splice::Unit;

    #[test]
    fn everything_comes_back() {
        let rid = Rid::new(3, 70_000, 9);
        let mut entries = Vec::new();
        EntryList::push(&mut entries, b"first", rid);
        EntryList::push(&mut entries, b"", Rid::MIN);
        let entries = EntryList::parse(&entries).unwrap();
        assert_eq!(entries.iter().collect::<Vec<_>>(), [(&b"first"[..], rid), (b"", Rid::MIN)]);
        // Cut anywhere but behind an entry it is none.
        let first_bytes = RID_BYTES + 2 + b"first".len();
        assert!((0..entries.0.len()).all(|length| EntryList::parse(&entries.0[..length]).is_ok() == (length == first_bytes)));
        let undos = [
            Undo::InsertedEntries { object_id: 70_000, entries },
            Undo::InsertedRow { object_id: 1, rid },
            Undo::InsertedRows { object_id: 1, rid, count: SLOT_MAX + 1 - rid.slot() },
            Undo::DeletedRow { object_id: u32::MAX, rid, kind: 3 },
            Undo::UpdatedRow { object_id: 300, rid, before: Earlier::Spliced(Splice::of_bytes(500, 0, b"before")) },
            Undo::UpdatedRow {
                object_id: 300,
                rid,
                before: Earlier::Spliced(Splice { unit: Unit::Codes, at: 9, removed: 4, inserted: 3, bytes: b"codes" }),
            },
            Undo::UpdatedRow {
                object_id: 300,
                rid,
                before: Earlier::Spliced(Splice { unit: Unit::Bits, at: 900, removed: 4, inserted: 13, bytes: b"bi" }),
            },
            Undo::UpdatedRow {
                object_id: 300,
                rid,
                before: Earlier::Spliced(Splice { unit: Unit::BitsCut, at: 0, removed: 400, inserted: 0, bytes: b"" }),
            },
            Undo::UpdatedRow { object_id: 300, rid, before: Earlier::Whole { version: 2, bytes: b"before" } },
            Undo::UpdatedRow { object_id: 300, rid, before: Earlier::Record(Splice::of_bytes(7, 2, b"before")) },
            Undo::InsertedEntry { object_id: 4, key: b"key", rid },
            Undo::AllocatedPage { file_id: 9, page: u32::MAX },
            Undo::KeptEntry { object_id: 4, key: b"", rid },
            Undo::KeptLargeValue { object_id: 4, value: LargeValueRef { first_page: 1, raw_bytes: 2, tag: 3, partition: 4 } },
            Undo::Definition { object_id: 70_000, rows: Some(b"rows") },
            Undo::Definition { object_id: 7, rows: None },
        ];
        let changes = [
            Change::Page(PageOp::Data(DataOp::Splice { slot: 700, splice: Splice::of_bytes(1, 2, b"xyz") })),
            Change::Page(PageOp::Data(DataOp::Splice {
                slot: 7,
                splice: Splice { unit: Unit::BitsCut, at: 9, removed: 2, inserted: 8, bytes: b"x" },
            })),
            Change::DataSet(DataSetOp::Allocate { class: 200 }),
            Change::DataSet(DataSetOp::Free),
            Change::DataSet(DataSetOp::Root { levels: 4 }),
            Change::DataSet(DataSetOp::Count(Counts { rows: -1, data_pages: i64::MIN, keys: i64::MAX })),
            Change::DataSet(DataSetOp::Dictionary { version: 2, bytes: 70_000 }),
            Change::DataSet(DataSetOp::Partition { object_id: 80_000, partition: 4095 }),
            Change::DataSet(DataSetOp::DropDictionary { version: 32_000 }),
            Change::DataSet(DataSetOp::GhostGone { slot: 4095 }),
        ];
        let roles = undos.map(|undo| Role::Undoable { transaction: 1 << 40, previous: u64::MAX, undo });
        for role in roles.into_iter().chain([Role::Structure, Role::Compensation { transaction: 5, next: 0 }]) {
            let mut bytes = Vec::new();
            Action::encode_head(&role, &mut bytes);
            for (i, change) in changes.iter().enumerate() {
                put_change(&mut bytes, 1 << i, 77_777 >> i, change);
            }
            let action = Action::decode(&bytes).unwrap();
            assert_eq!(action.role, role);
            let mut reader = Reader::new(action.changes);
            for (i, change) in changes.iter().enumerate() {
                assert_eq!(next_change(&mut reader).unwrap(), (1 << i, 77_777 >> i, *change));
            }
            assert!(reader.is_empty());
            for length in 0..bytes.len() {
                // Cut anywhere, it is an error or fewer changes, never a panic.
                if let Ok(action) = Action::decode(&bytes[..length]) {
                    let mut reader = Reader::new(action.changes);
                    while !reader.is_empty() && next_change(&mut reader).is_ok() {}
                }
            }
        }
        let checkpoint = Checkpoint {
            redo: 1 << 50,
            next_transaction: 8,
            transactions: vec![RunningTransaction { id: 7, first: 10, last: 1 << 33 }],
            data_sets: vec![
                DataSetState { file_id: 1, header_writes: 2, object_id: 3, partition: 4 },
                DataSetState { file_id: u32::MAX, header_writes: u32::MAX, object_id: u32::MAX, partition: u16::MAX },
            ],
            leftovers: undos
                .iter()
                .filter_map(Undo::leaves)
                .map(|left| CheckpointLeftover { transaction: 5, after: 1 << 34, left })
                .collect(),
            committed: vec![(9, Some(b"definition".to_vec())), (1 << 20, None)],
            definitions: vec![
                CheckpointDefinition { transaction: 6, after: 1 << 35, object_id: 1 << 20, rows: Some(b"rows".to_vec()) },
                CheckpointDefinition { transaction: 6, after: 1 << 36, object_id: 3, rows: None },
            ],
        };
        let mut bytes = Vec::new();
        checkpoint.encode(&mut bytes);
        assert_eq!(Checkpoint::decode(&bytes).unwrap(), checkpoint);
        assert!((0..bytes.len()).all(|length| Checkpoint::decode(&bytes[..length]).is_err()));
        let commit = Commit { transaction: 300, unix_time_ns: 1 << 60 };
        bytes.clear();
        commit.encode(&mut bytes);
        assert_eq!(Commit::decode(&bytes).unwrap(), commit);
    }
}
