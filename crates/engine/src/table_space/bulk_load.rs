//! Filling a table in order: LOAD and REORG.
//!
//! Invariants:
//! - rows get RIDs in ascending order, and pages are filled by [`PagePacker`] or [`ColumnPacker`], which the estimator uses too;
//! - pages are built in memory and written once, past the pool;
//! - nothing of the load is seen before the catalog names the data set.

use super::page_search::page_room;
use super::partition::Partition;
use super::table::Table;
use crate::pool::{BULK_WRITE_BYTES, BulkWriter};
use crate::{Error, Result};
use pagefold_codec::page::{PreparedRows, RowPreparer};
use pagefold_format::data::forms::RecordEncoder;
use pagefold_format::data::{ColumnPacker, DataOp, DataPage, PagePacker, Stored, forms};
use pagefold_format::space_map::CLASS_FULL;
use pagefold_types::{CompactLayout, Rid};
use std::sync::Arc;

/// What who fills a table says to a row that has its place.
type Placed<E> = std::result::Result<(), E>;

/// What other threads can do of a load.
#[derive(Debug)]
pub enum LoadEncoder<'a> {
    /// Bring records into the form of the table.
    Records(&'a RecordEncoder),
    /// Take rows apart that come to lie by column.
    Columns(RowPreparer),
}

/// Fills a table. Who fills it is told where each row has come to: at once, or when its page is complete.
pub struct BulkLoader<'a> {
    table: &'a Table,
    writer: BulkWriter<'a>,
    /// Bytes of what it writes at once.
    buffer: usize,
    partition: &'a Partition,
    packer: PagePacker,
    /// Where rows lie by column: those of pages to come.
    columns: Option<Box<ColumnPacker>>,
    image: Vec<u8>,
    number: Option<u32>,
    codes: Vec<u8>,
    stored: Vec<u8>,
    rows: u64,
}

impl Table {
    /// Cuts rows into pages by column, with the newest dictionary; of each `pctfree` percent stay free.
    pub(super) fn column_packer(&self, pctfree: u8) -> ColumnPacker {
        let layouts = (CompactLayout::new(self.layout.clone()), self.decoder.columns().clone());
        let codes = self.dictionary().map(|compressor| (compressor.version(), Arc::clone(compressor.string_codes())));
        let packer = ColumnPacker::new(layouts, codes, self.attributes.page_bytes, pctfree, self.attributes.maxrows);
        packer.of_layout(self.attributes.layouts.number())
    }
}

impl<'a> BulkLoader<'a> {
    /// Appends to the last partition of a table. Set its dictionary first, if it is to have one.
    ///
    /// # Errors
    /// When the data set or the dictionary cannot be written.
    pub fn new(table: &'a Table) -> Result<BulkLoader<'a>> {
        BulkLoader::with_buffer(table, BULK_WRITE_BYTES)
    }

    /// The same, with a buffer of so many bytes for pages that are to be written: for who fills many tables at once.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn with_buffer(table: &'a Table, buffer: usize) -> Result<BulkLoader<'a>> {
        table.check_dictionaries()?;
        let partition = table.last_partition()?;
        table.store_dictionaries(partition)?;
        let attributes = table.attributes();
        debug_assert!(page_room(attributes.page_bytes) >= table.record_bytes_max());
        let columns = table.by_column().then(|| Box::new(table.column_packer(attributes.pctfree)));
        Ok(BulkLoader {
            table,
            writer: BulkWriter::with_buffer(partition, buffer),
            buffer,
            partition,
            packer: PagePacker::new(attributes.page_bytes, attributes.pctfree, attributes.maxrows),
            columns,
            image: vec![0; attributes.page_bytes],
            number: None,
            codes: Vec::new(),
            stored: Vec::new(),
            rows: 0,
        })
    }

    /// What other threads can do before rows come here; `None`: nothing.
    #[must_use]
    pub fn encoder(&self) -> Option<LoadEncoder<'a>> {
        match &self.columns {
            Some(columns) => Some(LoadEncoder::Columns(columns.preparer())),
            None => self.table.encoder().map(LoadEncoder::Records),
        }
    }

    /// Adds a record of at most [`Table::record_bytes_max`] bytes. `placed` gets the rows, in order, whose RIDs are known by now, with their records.
    ///
    /// # Errors
    /// When it is longer, a write fails, or `placed` does.
    pub fn push<E: From<Error>>(&mut self, record: &[u8], mut placed: impl FnMut(Rid, &[u8]) -> Placed<E>) -> Placed<E> {
        self.check_record(record)?;
        if let Some(columns) = &mut self.columns {
            columns.push(record).map_err(|e| Error::Value(format!("{}: {e}", self.table.object())))?;
            return self.put_pages(false, &mut placed);
        }
        let mut codes = std::mem::take(&mut self.codes);
        codes.clear();
        let form = self.table.encoder().map_or(0, |encoder| encoder.append(record, &mut codes));
        let rid = self.put(Stored::Home(forms::body(form, record, &codes)));
        self.codes = codes;
        placed(rid?, record)
    }

    /// Adds a record, of which an [encoder](LoadEncoder::Records) has made a form and what is stored of it; form 0: the record itself.
    ///
    /// # Errors
    /// As [`push`](Self::push).
    pub fn push_encoded<E: From<Error>>(
        &mut self,
        record: &[u8],
        (form, stored): (u16, &[u8]),
        mut placed: impl FnMut(Rid, &[u8]) -> Placed<E>,
    ) -> Placed<E> {
        self.check_record(record)?;
        let rid = self.put(Stored::Home(forms::body(form, record, stored)))?;
        placed(rid, record)
    }

    /// Adds records that were [taken apart](LoadEncoder::Columns), the first as number `first`.
    ///
    /// # Errors
    /// As [`push`](Self::push).
    ///
    /// # Panics
    /// When the table is not by column.
    pub fn push_prepared<E: From<Error>>(
        &mut self,
        mut records: &[&[u8]],
        prepared: &PreparedRows,
        mut first: usize,
        mut placed: impl FnMut(Rid, &[u8]) -> Placed<E>,
    ) -> Placed<E> {
        records.iter().try_for_each(|record| self.check_record(record))?;
        while !records.is_empty() {
            let columns = self.columns.as_mut().expect("rows are taken apart for a table by column");
            let rows =
                columns.push_prepared(records, prepared, first).map_err(|e| Error::Value(format!("{}: {e}", self.table.object())))?;
            (records, first) = (&records[rows..], first + rows);
            self.put_pages(false, &mut placed)?;
        }
        Ok(())
    }

    fn check_record(&self, record: &[u8]) -> Result<()> {
        if record.len() > self.table.record_bytes_max() {
            return Err(Error::Value(format!("{}: a record of {} bytes", self.table.object(), record.len())));
        }
        self.table.check_range(record)
    }

    /// Puts a row by itself behind the others.
    fn put(&mut self, row: Stored<'_>) -> Result<Rid> {
        let page_form = self.table.page_form();
        if self.packer.push(row.len(page_form)) {
            self.finish_page()?;
            self.start_page(page_form)?;
        }
        self.put_on_page(row)
    }

    /// Puts a row by itself onto the page that is being filled, which has room.
    fn put_on_page(&mut self, row: Stored<'_>) -> Result<Rid> {
        self.stored.clear();
        let kind = row.build(self.table.page_form(), &mut self.stored);
        let number = self.number.unwrap_or_default();
        let slot = DataPage::new(&self.image).slot_count();
        DataOp::Insert { slot, kind, bytes: &self.stored }.apply(&mut self.image).map_err(|e| self.writer.data_set().corrupt(number, e))?;
        self.rows += 1;
        Ok(Rid::new(self.partition.number(), number, slot))
    }

    /// Puts the pages together for which there are rows enough; with the last rows, all.
    fn put_pages<E: From<Error>>(&mut self, last: bool, placed: &mut impl FnMut(Rid, &[u8]) -> Placed<E>) -> Placed<E> {
        let Some(mut columns) = self.columns.take() else { return Ok(()) };
        while let Some(page) = columns.next_page(last) {
            self.start_page(self.table.page_form())?;
            let number = self.number.unwrap_or_default();
            if page.columns {
                let op = DataOp::Rebuild(columns.image(page.rows));
                op.apply(&mut self.image).map_err(|e| self.writer.data_set().corrupt(number, e))?;
                self.rows += page.rows as u64;
            }
            for row in 0..page.rows {
                let record = columns.record(row);
                let rid = if page.columns {
                    Rid::new(self.partition.number(), number, row as u16)
                } else {
                    let mut codes = std::mem::take(&mut self.codes);
                    codes.clear();
                    let form = self.table.encoder().map_or(0, |encoder| encoder.append(record, &mut codes));
                    let rid = self.put_on_page(Stored::Home(forms::body(form, record, &codes)))?;
                    self.codes = codes;
                    rid
                };
                placed(rid, record)?;
            }
            self.finish_page()?;
            columns.take(page.rows);
        }
        self.columns = Some(columns);
        Ok(())
    }

    fn start_page(&mut self, dictionary_version: u16) -> Result<()> {
        if self.table.partition_is_full(self.partition) {
            self.writer.flush()?;
            self.book_rows();
            self.partition = self.table.add_partition()?;
            self.table.store_dictionaries(self.partition)?;
            self.writer = BulkWriter::with_buffer(self.partition, self.buffer);
        }
        let number = self.writer.data_set().append_page(CLASS_FULL)?;
        DataOp::Format { page_number: number, dictionary_version }
            .apply(&mut self.image)
            .map_err(|e| self.writer.data_set().corrupt(number, e))?;
        self.number = Some(number);
        Ok(())
    }

    fn finish_page(&mut self) -> Result<()> {
        let Some(number) = self.number.take() else { return Ok(()) };
        let class = self.table.space_class(&self.image);
        self.writer.data_set().space().set_class(number, class);
        self.writer.data_set().facts().data_pages += 1;
        self.writer.push(number, &self.image)
    }

    fn book_rows(&mut self) {
        self.writer.data_set().facts().rows += std::mem::take(&mut self.rows);
    }

    /// Writes what is left. `placed` as for [`push`](Self::push).
    ///
    /// # Errors
    /// When a write fails, or `placed` does.
    pub fn finish<E: From<Error>>(mut self, mut placed: impl FnMut(Rid, &[u8]) -> Placed<E>) -> Placed<E> {
        self.put_pages(true, &mut placed)?;
        self.finish_page()?;
        self.writer.flush()?;
        self.book_rows();
        Ok(())
    }
}
