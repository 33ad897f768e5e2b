//! A table: its attributes, its partitions, its dictionaries. What is asked of it goes to the partition that it concerns.
//!
//! Invariants:
//! - a row longer than [`Table::record_bytes_max`] never reaches a page: its longest values lie in large-value pages;
//! - all values of one body have the same pages. Each reads all rows as it describes them.

use super::attributes::{Method, TableAttributes};
use super::dictionary::{Changed, DictionarySet, Round, Standing, Watch};
use super::layouts::{KnownLayouts, Layouts};
use super::partition::{Partition, Partitions};
use super::range_of::range_key_layout;
use super::row_gate::RowGate;
use super::writers::Writers;
use crate::core::{Core, Lifetime};
use crate::data_set::{DataSet, DataSetAttributes};
use crate::frames::{Counters, add};
use crate::index::Index;
use crate::pool::{BufferManager, MiniTransaction};
use crate::transaction::Snapshot;
use crate::{Error, Result, spans};
use pagefold_format::catalog::Notes;
use pagefold_format::data::forms::{RecordDecoder, RecordEncoder};
use pagefold_format::data::{self, AWAY_OVERHEAD, Body, ColumnBuilder, forms};
use pagefold_format::data_set_header::ObjectKind;
use pagefold_types::{CompactLayout, KeyLayout, PARTITION_MAX, Rid, RowLayout, SchemaError};
use parking_lot::{Mutex, RwLock};
use std::ops::Deref;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

/// An open table, as it is called and described between two commits. What it has of pages and of those who use it is its `TableBody`.
#[derive(Debug)]
pub struct Table {
    pub(crate) lifetime: Lifetime,
    pub(crate) attributes: TableAttributes,
    pub(crate) layout: RowLayout,
    /// How a row's key of ranges is made, of a range partition.
    pub(super) range_key: Option<KeyLayout>,
    pub(super) decoder: RecordDecoder,
    /// What records are stored with that no dictionary is for.
    pub(super) own_encoder: Option<RecordEncoder>,
    /// What pages are rebuilt with, under the method `page`: one for each thread that is at it.
    pub(super) builders: Mutex<Vec<ColumnBuilder>>,
    /// What is said of it at present, as it is called and described here.
    notes: RwLock<Arc<Notes>>,
    body: Arc<TableBody>,
}

/// What stays the same when a table is called or described in another way: its pages, and what goes on with them.
#[derive(Debug)]
pub struct TableBody {
    pub(crate) core: Arc<Core>,
    pub(crate) object_id: u32,
    pub(super) partitions: Partitions,
    /// Turns of those that start a change of rows over.
    pub(super) rounds: Mutex<()>,
    /// Its live indexes, by name. Only a change of tables and indexes puts another list here.
    indexes: RwLock<Arc<[Arc<Index>]>>,
    /// Those that are damaged, by name: nobody reads or keeps them.
    damaged_indexes: RwLock<Arc<[Arc<Index>]>>,
    /// There are some.
    has_damaged: AtomicBool,
    /// It cannot be used, and is open to be dropped.
    damage: OnceLock<Error>,
    /// Rows are changed by transactions inside it.
    pub(crate) gate: RowGate,
    /// Those transactions.
    pub(crate) writers: Arc<Writers>,
    /// The transaction that builds an index beside them, or writes the table anew, and what it says that it does.
    builder: Mutex<Option<(u64, String)>>,
    /// All layouts that rows may have, those too of changes that were taken back.
    layouts: Arc<RwLock<Layouts>>,
    /// How often a running transaction has altered it.
    altering: AtomicU64,
    /// Changes of rows since its statistics were gathered, or it was opened.
    rows_changed: AtomicU64,
    /// The last commit that dropped or replaced one of them.
    index_lost: AtomicU64,
    pub(crate) dictionaries: DictionarySet,
    /// Where the method has a dictionary: what comes in, and how well the newest does.
    pub(super) watch: Option<Watch>,
    pub(super) standing: Mutex<Standing>,
    pub(super) changed: Changed,
    pub(super) round: Mutex<Option<Round>>,
    /// Held by who looks at the dictionaries: one at a time.
    pub(crate) renewing: Mutex<()>,
    /// Pages built anew by column, also to find out only whether they fit.
    pub(super) images: AtomicU64,
}

impl Deref for Table {
    type Target = TableBody;
    #[inline]
    fn deref(&self) -> &TableBody {
        &self.body
    }
}

impl Table {
    /// A new table without a data set.
    ///
    /// # Errors
    /// When an attribute is out of range, or the rows of the schema cannot fit a page.
    pub(crate) fn create(core: Arc<Core>, object_id: u32, attributes: TableAttributes) -> Result<Table> {
        let body = TableBody {
            core,
            object_id,
            partitions: Partitions::default(),
            rounds: Mutex::default(),
            indexes: RwLock::default(),
            damaged_indexes: RwLock::default(),
            has_damaged: AtomicBool::new(false),
            damage: OnceLock::new(),
            gate: RowGate::default(),
            writers: Arc::default(),
            builder: Mutex::default(),
            layouts: Arc::new(RwLock::new(attributes.layouts.clone())),
            altering: AtomicU64::new(0),
            rows_changed: AtomicU64::new(0),
            index_lost: AtomicU64::new(0),
            dictionaries: DictionarySet::default(),
            watch: attributes.method.dictionary_type().map(|_| Watch::default()),
            standing: Mutex::default(),
            changed: Changed::default(),
            round: Mutex::default(),
            renewing: Mutex::default(),
            images: AtomicU64::new(0),
        };
        Table::with_body(Arc::new(body), attributes)
    }

    /// The same table under other attributes: its pages stay as they are.
    ///
    /// # Errors
    /// When an attribute is out of range, or pages would have to change for it.
    pub(crate) fn altered(&self, attributes: TableAttributes) -> Result<Table> {
        if let Some(what) = self.attributes.needs_other_pages(&attributes) {
            return Err(Error::Parameter(format!("{}: {what} changes only when its rows are written anew", self.object())));
        }
        Table::with_body(Arc::clone(&self.body), attributes)
    }

    /// Is it the same table, perhaps under other attributes?
    pub(crate) fn is_same(&self, other: &Table) -> bool {
        Arc::ptr_eq(&self.body, &other.body)
    }

    fn with_body(body: Arc<TableBody>, attributes: TableAttributes) -> Result<Table> {
        attributes.check()?;
        let refused = |e: SchemaError| Error::Parameter(format!("table \"{}\": {e}", attributes.name));
        let layout = RowLayout::new(&attributes.schema).map_err(refused)?;
        let number = attributes.layouts.number();
        let own_encoder = match attributes.method {
            Method::Row | Method::Page => Some(RecordEncoder::compact(CompactLayout::new(layout.clone())).of_layout(number)),
            // What is stored without a form is a record of layout 0.
            _ => (number > 0).then(|| RecordEncoder::records().of_layout(number)),
        };
        let table = Table {
            lifetime: Lifetime::default(),
            range_key: attributes.range.as_ref().map(|range| range_key_layout(&attributes.name, &attributes.schema, &range.columns)),
            decoder: KnownLayouts::decoder(&body.layouts, number, &attributes.schema, attributes.page_bytes).map_err(refused)?,
            own_encoder,
            builders: Mutex::default(),
            notes: RwLock::new(Arc::new(attributes.notes.clone())),
            layout,
            attributes,
            body,
        };
        if table.layout.fixed_len() > table.record_bytes_max() {
            return Err(Error::Parameter(format!(
                "table \"{}\": the fixed-width columns take {} bytes, a page of {} holds rows of at most {}",
                table.attributes.name,
                table.layout.fixed_len(),
                table.attributes.page_bytes,
                table.record_bytes_max()
            )));
        }
        Ok(table)
    }

    /// Adds a data set that exists already. Its dictionaries are loaded when nothing more is to be redone.
    pub(crate) fn attach(&self, data_set: Arc<DataSet>) -> Result<()> {
        let mut count = self.partitions.adding();
        if data_set.attributes.partition != *count {
            return Err(data_set.corrupt(0, format!("partition {} where {count} comes next", data_set.attributes.partition)));
        }
        self.put_partition(&mut count, data_set).map(drop)
    }

    fn put_partition(&self, count: &mut u16, data_set: Arc<DataSet>) -> Result<&Partition> {
        self.partitions.push(count, data_set).ok_or_else(|| self.has_all(PARTITION_MAX + 1))
    }

    fn has_all(&self, count: u16) -> Error {
        Error::Parameter(format!("{} has all {count} partitions it can have", self.object()))
    }

    /// Adds the next partition. Its file comes with the first page.
    pub(crate) fn add_partition(&self) -> Result<&Partition> {
        self.make_partition(&mut self.partitions.adding())
    }

    /// Makes the next partition. That of a table which the catalog names is in the log before anybody can use it.
    fn make_partition(&self, count: &mut u16) -> Result<&Partition> {
        if *count > PARTITION_MAX {
            return Err(self.has_all(*count));
        }
        let data_set = self.core.create_data_set(self.data_set_attributes(*count), &self.attributes.pool)?;
        if self.partitions().any(|partition| partition.is_logged()) {
            if self.core.log().is_none() {
                return Err(Error::Parameter(format!("{} needs a further partition, which only a transaction can add", self.object())));
            }
            data_set.set_logged();
            let mut mtr = MiniTransaction::begin(&self.core.manager);
            mtr.add_partition(&data_set, self.object_id, *count);
            mtr.commit()?;
        }
        self.put_partition(count, data_set)
    }

    /// Redo of adding a partition. `None` when the table has it, or another one would be missing before it.
    pub(crate) fn redo_partition(&self, file_id: u32, partition: u16) -> Result<Option<Arc<DataSet>>> {
        let mut count = self.partitions.adding();
        if partition != *count {
            return Ok(None);
        }
        self.core.see_file_id(file_id);
        let attributes = DataSetAttributes { file_id, ..self.data_set_attributes(partition) };
        let data_set = self.core.open_data_set(attributes, &self.attributes.pool, None)?;
        data_set.set_unrecorded();
        self.put_partition(&mut count, Arc::clone(&data_set)).map(|_| Some(data_set))
    }

    /// The partition after `last`, the first for `None`: a new one, unless another thread has just added it.
    pub(super) fn partition_after(&self, last: Option<u16>) -> Result<&Partition> {
        let mut count = self.partitions.adding();
        let wanted = last.map_or(0, |last| last + 1);
        if wanted < *count {
            return self.partition(wanted);
        }
        self.make_partition(&mut count)
    }

    /// All partitions, those too whose record is in the log and which nobody can use yet.
    pub(crate) fn all_partitions(&self) -> Vec<Arc<DataSet>> {
        let _none_is_added = self.partitions.adding();
        self.data_sets().cloned().collect()
    }

    /// The partition that takes so many new pages: the last one; when that is full, one of those to which as many were given back; or another one.
    pub(super) fn growing_partition(&self, pages: u32) -> Result<&Partition> {
        let last = self.last_partition()?;
        let has_pages = |partition: &Partition| partition.space().free_pages() >= pages;
        if !self.partition_is_full(last) || has_pages(last) {
            return Ok(last);
        }
        if let Some(before) = self.partitions.before(last).find(|partition| has_pages(partition)) {
            self.partitions.found_room_in(before);
            return Ok(before);
        }
        self.partition_after(Some(last.number()))
    }

    /// What the data set of a partition is.
    pub(crate) fn data_set_attributes(&self, partition: u16) -> DataSetAttributes {
        DataSetAttributes {
            file_id: 0,
            object_id: self.object_id,
            kind: ObjectKind::Table,
            partition,
            page_bytes: self.attributes.page_bytes,
            leaf_bytes: self.attributes.page_bytes,
            extents: self.attributes.extents,
            object: if partition == 0 { self.object() } else { format!("{}, partition {partition}", self.object()) },
        }
    }

    /// What errors call it.
    pub(crate) fn object(&self) -> String {
        format!("table \"{}\"", self.attributes.name)
    }

    /// Its attributes.
    #[must_use]
    pub fn attributes(&self) -> &TableAttributes {
        &self.attributes
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.attributes.name
    }

    /// What is said of it that the engine does not act on: comments, defaults of columns, constraints and the like, as last committed.
    #[must_use]
    pub fn notes(&self) -> Arc<Notes> {
        Arc::clone(&self.notes.read())
    }

    /// This is said of it from now on.
    pub(crate) fn set_notes(&self, notes: Notes) {
        *self.notes.write() = Arc::new(notes);
    }

    /// A row was inserted, updated or deleted.
    #[inline]
    pub(crate) fn count_changed_row(&self) {
        self.rows_changed.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts what was done to a row.
    #[inline]
    pub(crate) fn count(&self, rid: Rid, counter: impl Fn(&Counters) -> &AtomicU64) -> Result<()> {
        self.count_many(rid.partition(), 1, counter)
    }

    /// The same for rows of a partition.
    pub(crate) fn count_many(&self, partition: u16, rows: u64, counter: impl Fn(&Counters) -> &AtomicU64) -> Result<()> {
        add(counter(&self.partition(partition)?.counters), rows);
        Ok(())
    }

    /// How often rows were inserted, updated or deleted since its statistics were gathered, or else since it was opened. What was taken back counts, too.
    #[must_use]
    pub fn rows_changed(&self) -> u64 {
        self.rows_changed.load(Ordering::Relaxed)
    }

    /// Statistics have so many of the changes.
    pub(crate) fn forget_changed_rows(&self, covered: u64) {
        self.rows_changed.fetch_sub(covered.min(self.rows_changed()), Ordering::Relaxed);
    }

    /// Its attributes with what is said of it at present, and all layouts that its rows may have.
    #[must_use]
    pub fn attributes_now(&self) -> TableAttributes {
        let layouts = self.layouts.read().of_table(&self.attributes.schema, self.attributes.layouts.number());
        TableAttributes { notes: Notes::clone(&self.notes.read()), layouts, ..self.attributes.clone() }
    }

    /// Its rows may have these layouts from now on. The log says so.
    pub(crate) fn set_layouts(&self, layouts: Layouts) {
        *self.layouts.write() = layouts;
    }

    /// Its indexes, by name, of those that the catalog names and that can be used.
    #[must_use]
    pub fn indexes(&self) -> Arc<[Arc<Index>]> {
        Arc::clone(&self.indexes.read())
    }

    /// A data set of it cannot be used.
    pub(crate) fn set_damaged(&self, error: Error) {
        spans::damage(&self.object(), &error);
        let _ = self.damage.set(error);
    }

    /// Refuses a table of which a data set cannot be used.
    ///
    /// # Errors
    /// What is wrong with that.
    pub(crate) fn check_usable(&self) -> Result<()> {
        self.damage.get().map_or(Ok(()), |error| Err(error.clone()))
    }

    /// Those of its indexes that are damaged, by name.
    #[must_use]
    pub fn damaged_indexes(&self) -> Arc<[Arc<Index>]> {
        if self.has_damaged_indexes() { Arc::clone(&self.damaged_indexes.read()) } else { Arc::default() }
    }

    /// Are there some?
    #[inline]
    pub(crate) fn has_damaged_indexes(&self) -> bool {
        self.has_damaged.load(Ordering::Acquire)
    }

    /// Its indexes, by name, the damaged ones too.
    #[must_use]
    pub fn all_indexes(&self) -> Vec<Arc<Index>> {
        let mut all: Vec<Arc<Index>> = self.indexes().iter().chain(self.damaged_indexes().iter()).cloned().collect();
        all.sort_unstable_by(|a, b| a.name().cmp(b.name()));
        all
    }

    /// These are its indexes from now on; damaged ones are told from the others.
    pub(crate) fn set_all_indexes(&self, mut indexes: Vec<Arc<Index>>) {
        indexes.sort_unstable_by(|a, b| a.name().cmp(b.name()));
        let (damaged, usable): (Vec<_>, Vec<_>) = indexes.into_iter().partition(|index| index.damage().is_some());
        self.has_damaged.store(!damaged.is_empty(), Ordering::Release);
        *self.damaged_indexes.write() = damaged.into();
        self.set_indexes(usable);
    }

    /// These are the ones that can be used.
    fn set_indexes(&self, indexes: Vec<Arc<Index>>) {
        *self.indexes.write() = indexes.into();
    }

    /// One more of its indexes, which its transaction alone uses so far. Whoever calls this, or the next, has locked the table as a whole, or has closed its gate, or builds that index.
    pub(crate) fn add_index(&self, index: &Arc<Index>) {
        let mut indexes = self.indexes().to_vec();
        indexes.insert(indexes.partition_point(|other| other.name() < index.name()), Arc::clone(index));
        self.set_indexes(indexes);
    }

    /// One that was never there for others is none of its indexes any more.
    pub(crate) fn remove_index(&self, index: &Arc<Index>) {
        self.set_indexes(self.indexes().iter().filter(|other| !Arc::ptr_eq(other, index)).cloned().collect());
    }

    /// A transaction is about to build something beside those that change rows: one at a time. `what` it does is for those who are refused.
    ///
    /// # Errors
    /// When another one is at it.
    pub(crate) fn begin_build(&self, transaction: u64, what: String) -> Result<()> {
        let mut builder = self.builder.lock();
        refuse_beside(&builder, 0)?;
        *builder = Some((transaction, what));
        Ok(())
    }

    /// The build is over.
    pub(crate) fn end_build(&self, transaction: u64) {
        self.builder.lock().take_if(|(builder, _)| *builder == transaction);
    }

    /// Refuses who would wait for the end of a build, and keep all others waiting behind him; not the one who builds.
    pub(crate) fn check_no_build(&self, transaction: u64) -> Result<()> {
        refuse_beside(&self.builder.lock(), transaction)
    }

    /// One of its indexes goes with the commit of this timestamp.
    pub(crate) fn loses_an_index(&self, timestamp: u64) {
        self.index_lost.fetch_max(timestamp, Ordering::Release);
    }

    /// Was one of its indexes dropped or replaced after the snapshot of this timestamp?
    #[inline]
    pub(crate) fn lost_an_index_after(&self, timestamp: u64) -> bool {
        self.index_lost.load(Ordering::Acquire) > timestamp
    }

    /// How its records are laid out.
    #[must_use]
    pub fn layout(&self) -> &RowLayout {
        &self.layout
    }

    /// The longest record that goes on a page, wherever it moves.
    #[must_use]
    pub fn record_bytes_max(&self) -> usize {
        data::largest_row(self.attributes.page_bytes) - AWAY_OVERHEAD
    }

    /// May a row of this layout be brought into its own? Of a later one that is taken back, or will be; not while somebody writes it.
    pub(super) fn takes_layout(&self, layout: u8) -> bool {
        layout <= self.decoder.layout() || self.takes_later_layouts()
    }

    /// May rows of later layouts be brought into its own?
    pub(super) fn takes_later_layouts(&self) -> bool {
        self.altering.load(Ordering::Acquire) == 0
    }

    /// A transaction writes rows as it will be, or does so no more.
    pub(crate) fn count_altering(&self, more: bool) {
        if more {
            self.altering.fetch_add(1, Ordering::AcqRel);
        } else {
            self.altering.fetch_sub(1, Ordering::AcqRel);
        }
    }

    /// A record of its layout, as it is.
    pub(super) fn record_body<'r>(&self, record: &'r [u8]) -> Body<'r> {
        forms::record_body(self.attributes.layouts.number(), record)
    }

    /// Its partitions, in order.
    pub fn partitions(&self) -> impl Iterator<Item = &Partition> {
        self.partitions.iter()
    }

    /// The same, from one of them on.
    pub(super) fn partitions_from(&self, number: u16) -> impl Iterator<Item = &Partition> {
        self.partitions.iter().skip(number.into())
    }

    /// Their data sets.
    pub fn data_sets(&self) -> impl Iterator<Item = &Arc<DataSet>> {
        self.partitions().map(Partition::data_set)
    }

    #[inline]
    pub(crate) fn partition(&self, number: u16) -> Result<&Partition> {
        let missing = || Error::corrupt(self.object(), 0, format!("a RID names partition {number}, which does not exist"));
        self.partitions.get(number).ok_or_else(missing)
    }

    /// Data set and page of a row.
    #[inline]
    pub(super) fn place(&self, rid: Rid) -> Result<(&Arc<DataSet>, u32)> {
        Ok((self.partition(rid.partition())?.data_set(), rid.page()))
    }

    /// The partition that takes new rows.
    pub(super) fn last_partition(&self) -> Result<&Partition> {
        self.partitions.last().map_or_else(|| self.partition_after(None), Ok)
    }

    pub(super) fn partition_is_full(&self, partition: &Partition) -> bool {
        partition.is_full(self.attributes.partition_bytes)
    }

    /// Rows in all partitions.
    #[must_use]
    pub fn row_count(&self) -> u64 {
        self.partitions().map(|p| p.facts().rows).sum()
    }

    /// How many rows a snapshot sees, if that is what the headers count.
    pub(crate) fn rows_seen(&self, snapshot: &Snapshot) -> Option<u64> {
        let began = self.writers.all_seen_by(snapshot)?;
        let rows = {
            let _still = self.core.manager.moving_counts().read();
            self.row_count()
        };
        self.writers.are_as_then(began).then_some(rows)
    }

    /// The buffer manager.
    #[must_use]
    pub fn manager(&self) -> &BufferManager {
        &self.core.manager
    }
}

/// Refuses whoever is not the one that builds something of a table, if there is one.
fn refuse_beside(builder: &Option<(u64, String)>, transaction: u64) -> Result<()> {
    match builder {
        Some((builder, what)) if *builder != transaction => Err(Error::Busy(format!("{what}; wait for it, or stop it"))),
        _ => Ok(()),
    }
}
