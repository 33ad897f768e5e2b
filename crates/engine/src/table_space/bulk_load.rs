//! Filling a table in order: LOAD and REORG.
//!
//! Invariants:
//! - rows get RIDs in ascending order, and pages are filled by [`PagePacker`], which the estimator uses too;
//! - pages are built in memory and written once, past the pool;
//! - nothing of the load is seen before the catalog names the data set.

use super::table::Table;
use super::write::page_room;
use crate::pool::BulkWriter;
use crate::{Error, Result};
use pagefold_format::data::{DataOp, DataPage, PagePacker, Stored, forms};
use pagefold_format::space_map::CLASS_FULL;
use pagefold_types::Rid;

/// Fills a table.
pub struct BulkLoader<'a> {
    table: &'a Table,
    writer: BulkWriter<'a>,
    partition: u16,
    packer: PagePacker,
    image: Vec<u8>,
    number: Option<u32>,
    codes: Vec<u8>,
    stored: Vec<u8>,
    rows: u64,
}

impl<'a> BulkLoader<'a> {
    /// Appends to the last partition of a table. Set its dictionary first, if it is to have one.
    ///
    /// # Errors
    /// When the data set or the dictionary cannot be written.
    pub fn new(table: &'a Table) -> Result<BulkLoader<'a>> {
        let (partition, data_set) = table.last_partition()?;
        table.store_dictionary(data_set)?;
        let attributes = table.attributes();
        debug_assert!(page_room(attributes.page_bytes) >= table.record_bytes_max());
        Ok(BulkLoader {
            table,
            writer: BulkWriter::new(data_set),
            partition,
            packer: PagePacker::new(attributes.page_bytes, attributes.pctfree, attributes.maxrows),
            image: vec![0; attributes.page_bytes],
            number: None,
            codes: Vec::new(),
            stored: Vec::new(),
            rows: 0,
        })
    }

    /// Adds a record of at most [`Table::record_bytes_max`] bytes.
    ///
    /// # Errors
    /// When it is longer, or a write fails.
    pub fn push(&mut self, record: &[u8]) -> Result<Rid> {
        let mut codes = std::mem::take(&mut self.codes);
        codes.clear();
        let form = self.table.encoder().map_or(0, |encoder| encoder.append(record, &mut codes));
        let rid = self.push_encoded(record, form, &codes);
        self.codes = codes;
        rid
    }

    /// Adds a record that the table's encoder has brought into a form: see [`Table::encoder`].
    ///
    /// # Errors
    /// As [`push`](Self::push).
    pub fn push_encoded(&mut self, record: &[u8], form: u16, encoded: &[u8]) -> Result<Rid> {
        let page_form = self.table.page_form();
        let body = forms::body(form, record, encoded);
        if record.len() > self.table.record_bytes_max() {
            return Err(Error::Value(format!("{}: a record of {} bytes", self.table.object(), record.len())));
        }
        let stored = Stored::Home(body);
        self.stored.clear();
        let kind = stored.build(page_form, &mut self.stored);
        if self.packer.push(self.stored.len()) {
            self.finish_page()?;
            self.start_page(page_form)?;
        }
        let number = self.number.unwrap_or_default();
        let slot = DataPage::new(&self.image).slot_count();
        DataOp::Insert { slot, kind, bytes: &self.stored }.apply(&mut self.image).map_err(|e| self.writer.data_set().corrupt(number, e))?;
        self.rows += 1;
        Ok(Rid::new(self.partition, number, slot))
    }

    fn start_page(&mut self, dictionary_version: u16) -> Result<()> {
        if self.table.partition_is_full(self.writer.data_set()) {
            self.writer.flush()?;
            self.book_rows();
            let data_set = self.table.add_partition()?;
            self.partition = data_set.attributes.partition;
            self.table.store_dictionary(data_set)?;
            self.writer = BulkWriter::new(data_set);
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

    /// Writes what is left.
    ///
    /// # Errors
    /// When a write fails.
    pub fn finish(mut self) -> Result<()> {
        self.finish_page()?;
        self.writer.flush()?;
        self.book_rows();
        Ok(())
    }
}
