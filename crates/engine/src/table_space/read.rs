//! Reading one row by its RID.
//!
//! Invariants:
//! - a row is found with at most one hop from its home, or from the page that hosts it;
//! - what comes out has passed the checksum of its page, but the record itself is not trusted: readers check it.

use super::attributes::Method;
use super::table::Table;
use crate::data_set::DataSet;
use crate::pool::{Access, MiniTransaction, PageHandle, SharedPage};
use crate::{Error, Result};
use pagefold_codec::row::RowDictionary;
use pagefold_format::FormatError;
use pagefold_format::data::forms::{RecordDecoder, WantedColumns};
use pagefold_format::data::{Body, DataPage, Stored};
use pagefold_format::page::{self, PageType};
use pagefold_types::Rid;

/// Where compressed rows are decoded to; reused from row to row. Takes memory with the first of them.
#[derive(Debug, Default)]
pub struct RowBuffer {
    bytes: Vec<u8>,
    wanted: Option<WantedColumns>,
    /// How many columns are wanted; `None`: all.
    columns: Option<usize>,
}

impl RowBuffer {
    /// For reading only these columns of a table's rows, which can be much faster: records are then to be read there only, and mean nothing elsewhere.
    #[must_use]
    pub fn for_columns(table: &Table, columns: &[usize]) -> RowBuffer {
        // Rows that lie as their records are not decoded, but for those from before the table was altered.
        let wanted = if table.attributes.method == Method::None { None } else { table.decoder.wanted(columns) };
        RowBuffer { bytes: Vec::new(), wanted, columns: Some(columns.len()) }
    }
}

impl RowBuffer {
    /// How many columns of this table are wanted.
    #[inline]
    pub(super) fn column_count(&self, table: &Table) -> usize {
        let all = table.layout.column_count();
        self.columns.map_or(all, |columns| columns.min(all))
    }

    /// Keeps a record; gives its length.
    pub(super) fn hold(&mut self, record: &[u8]) -> usize {
        self.bytes.clear();
        self.bytes.extend_from_slice(record);
        record.len()
    }

    /// Decodes a row that is no plain record to the beginning of the buffer; gives its length.
    #[inline]
    pub(super) fn decode(
        &mut self,
        decoder: &RecordDecoder,
        body: Body<'_>,
        dictionary: Option<&RowDictionary>,
    ) -> std::result::Result<usize, FormatError> {
        decoder.decode_columns(body, dictionary, self.wanted.as_ref(), &mut self.bytes).map(<[u8]>::len)
    }

    /// Its memory: the record that was decoded, or kept, last lies at the beginning.
    #[inline]
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

impl Table {
    /// Calls `visit` with the record of a row. `None` when there is no such row.
    ///
    /// # Errors
    /// When a page is damaged.
    #[inline]
    pub fn read<R>(&self, rid: Rid, buffer: &mut RowBuffer, visit: impl FnOnce(&[u8]) -> R) -> Result<Option<R>> {
        let data_set = self.partition(rid.partition())?;
        let Some(page) = self.data_page(data_set, rid.page(), Access::Random)? else { return Ok(None) };
        let view = DataPage::new(&page);
        let Some(row) = view.row(rid.slot()) else { return Ok(None) };
        let stored = Stored::parse(row, view.dictionary_version()).map_err(|e| data_set.corrupt(rid.page(), e))?;
        match stored {
            Stored::Home(body) => self.decode(data_set, rid.page(), body, buffer, visit).map(Some),
            // The home stays latched: else the row could go on meanwhile.
            Stored::Forward(target) => self.read_away(rid, target, buffer, visit),
            Stored::Forwarded(target) => self.read_hosted(rid, target, buffer, visit),
            // The slot belongs to another row: a RID that was never given out.
            Stored::Away { .. } | Stored::Hosted { .. } | Stored::HostedForward { .. } => Ok(None),
        }
    }

    /// Reads a row that another page hosts; its home page is latched. `None` when there is no such row.
    #[cold]
    pub(super) fn read_hosted<R>(
        &self,
        home: Rid,
        target: Rid,
        buffer: &mut RowBuffer,
        visit: impl FnOnce(&[u8]) -> R,
    ) -> Result<Option<R>> {
        let data_set = self.partition(target.partition())?;
        let page = self.pointed_page(data_set, target.page())?;
        self.expect_hosted(&page, home, target.slot())?;
        let view = DataPage::new(&page);
        let Some(row) = view.row(target.slot()) else { return Ok(None) };
        match Stored::parse(row, view.dictionary_version()).map_err(|e| data_set.corrupt(target.page(), e))? {
            Stored::Hosted { body, .. } => self.decode(data_set, target.page(), body, buffer, visit).map(Some),
            // It has moved on by itself. Both pages stay latched.
            Stored::HostedForward { target, .. } => self.read_away(home, target, buffer, visit),
            _ => Err(data_set.corrupt(target.page(), format!("slot {} is to host the row {home}, and does not", target.slot()))),
        }
    }

    #[cold]
    pub(super) fn read_away<R>(&self, home: Rid, target: Rid, buffer: &mut RowBuffer, visit: impl FnOnce(&[u8]) -> R) -> Result<Option<R>> {
        let data_set = self.partition(target.partition())?;
        let page = self.pointed_page(data_set, target.page())?;
        let view = DataPage::new(&page);
        let stored = view.row(target.slot()).map(|row| Stored::parse(row, view.dictionary_version()));
        match stored {
            Some(Ok(Stored::Away { home: found, body })) if found == home => {
                self.decode(data_set, target.page(), body, buffer, visit).map(Some)
            }
            Some(Err(error)) => Err(data_set.corrupt(target.page(), error)),
            _ => Err(data_set.corrupt(target.page(), format!("row {home} is said to be in slot {}, but is not", target.slot()))),
        }
    }

    /// The record of a row, copied. `None` when there is no such row.
    ///
    /// # Errors
    /// When a page is damaged.
    pub fn get(&self, rid: Rid) -> Result<Option<Vec<u8>>> {
        self.read(rid, &mut RowBuffer::default(), <[u8]>::to_vec)
    }

    /// A data page, latched. `None` when the page has been given back since its number was found (`empty_pages.rs`): none of the rows is there that were on it.
    ///
    /// # Errors
    /// When a page that is to have rows is damaged, or cannot be read.
    #[inline]
    pub fn data_page<'a>(&self, data_set: &'a DataSet, number: u32, access: Access) -> Result<Option<SharedPage<'a>>> {
        match self.core.manager.shared(data_set, number, access) {
            Ok(page) if is_data_page(&page) => Ok(Some(page)),
            _ => self.look_again(data_set, number, access),
        }
    }

    #[cold]
    fn look_again<'a>(&self, data_set: &'a DataSet, number: u32, access: Access) -> Result<Option<SharedPage<'a>>> {
        if data_set.is_given_back(number) {
            return Ok(None);
        }
        // Given back, and taken again for rows between the two looks, or damaged.
        let page = self.core.manager.shared(data_set, number, access)?;
        check_type(data_set, number, &page)?;
        Ok(Some(page))
    }

    /// The data page that a latched page points to: so it has rows.
    #[inline]
    pub(super) fn pointed_page<'a>(&self, data_set: &'a DataSet, number: u32) -> Result<SharedPage<'a>> {
        let page = self.core.manager.shared(data_set, number, Access::Random)?;
        check_type(data_set, number, &page)?;
        Ok(page)
    }

    /// Latches a page for change that had rows when its number was found. `None` when it has been given back since, as for [`data_page`](Self::data_page).
    pub(super) fn latch_home<'a>(&self, mtr: &mut MiniTransaction<'a>, data_set: &'a DataSet, number: u32) -> Result<Option<PageHandle>> {
        match mtr.latch(data_set, number) {
            // One without slots may have been given back, and lie in memory as it was.
            Ok(handle) if is_data_page(mtr.bytes(handle)) && DataPage::new(mtr.bytes(handle)).slot_count() > 0 => Ok(Some(handle)),
            _ if data_set.is_given_back(number) => Ok(None),
            latched => {
                let handle = latched?;
                check_type(data_set, number, mtr.bytes(handle)).map(|()| Some(handle))
            }
        }
    }

    #[inline]
    pub(super) fn decode<R>(
        &self,
        data_set: &DataSet,
        page: u32,
        body: Body<'_>,
        buffer: &mut RowBuffer,
        visit: impl FnOnce(&[u8]) -> R,
    ) -> Result<R> {
        if let Body::Plain(record) = body
            && self.decoder.layout() == 0
        {
            return Ok(visit(record));
        }
        let dictionary = body.dictionary().and_then(|version| self.dictionaries.tokens_of(version));
        match buffer.decode(&self.decoder, body, dictionary) {
            Ok(length) => Ok(visit(&buffer.bytes[..length])),
            Err(error) => Err(self.undecodable(data_set, page, body.dictionary(), error)),
        }
    }

    /// Why rows of a page cannot be decoded that need the dictionary of this version: because that is damaged, or as the decoder says.
    #[cold]
    pub(super) fn undecodable(&self, data_set: &DataSet, page: u32, version: Option<u16>, reason: impl std::fmt::Display) -> Error {
        match self.dictionaries.damage() {
            Some(damage) if version.is_some_and(|version| self.dictionaries.get(version).is_none()) => damage.clone(),
            _ => data_set.corrupt(page, reason),
        }
    }
}

#[inline]
fn is_data_page(bytes: &[u8]) -> bool {
    page::page_type(bytes) == Some(PageType::Data)
}

#[inline]
pub(super) fn check_type(data_set: &DataSet, number: u32, bytes: &[u8]) -> Result<()> {
    if is_data_page(bytes) { Ok(()) } else { Err(data_set.corrupt(number, "not a data page")) }
}
