//! A page copied as it lies: a scan that delivers records takes its rows apart one by one when nothing is latched any more.
//!
//! One copy of a page costs less than one of each of its records.
//!
//! Invariant: only pages by row that have no versions are copied: what is on them is the same for every snapshot, and stays readable, as dictionaries stay in memory.

use super::dictionary::Compressor;
use super::read::RowBuffer;
use super::table::Table;
use crate::Result;
use pagefold_format::FormatError;
use pagefold_format::data::{Body, DataPage, Stored, StoredKind, StoredRow, forms};
use pagefold_types::Rid;
use std::ops::Range;
use std::sync::Arc;

/// A page, and a row of it.
#[derive(Debug, Default)]
pub(crate) struct PageCopy {
    bytes: Vec<u8>,
    partition: u16,
    number: u32,
    slots: u16,
    /// The dictionary of the page's form, and its version.
    dictionary: Option<(u16, Arc<Compressor>)>,
    /// Slot behind the row.
    next: u16,
    row: CopiedRow,
    /// Where its record is: in the copy, or in the buffer.
    span: Range<usize>,
}

/// Where the record of a copied row is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum CopiedRow {
    /// There is none any more.
    #[default]
    None,
    /// In the copy.
    Here,
    /// In the buffer.
    Decoded,
    /// Elsewhere: the row has moved.
    Moved,
}

impl PageCopy {
    /// Copies a page without a column part.
    pub(super) fn take(&mut self, table: &Table, (partition, number): (u16, u32), bytes: &[u8]) {
        self.bytes.clear();
        self.bytes.extend_from_slice(bytes);
        (self.partition, self.number) = (partition, number);
        let view = DataPage::new(bytes);
        (self.next, self.slots) = (0, view.slot_count());
        let version = forms::dictionary_of(view.dictionary_version());
        if version != self.dictionary.as_ref().map(|(version, _)| *version) {
            self.dictionary = version.and_then(|version| Some((version, Arc::clone(table.dictionaries.get(version)?))));
        }
    }

    /// RID and record of the row that was found last, unless it has moved.
    #[inline]
    pub(crate) fn row<'r>(&'r self, buffer: &'r RowBuffer) -> Option<(Rid, &'r [u8])> {
        let bytes = match self.row {
            CopiedRow::Here => &*self.bytes,
            CopiedRow::Decoded => buffer.bytes(),
            CopiedRow::None | CopiedRow::Moved => return None,
        };
        Some((self.rid(), bytes.get(self.span.clone())?))
    }

    /// The RID of the row that was found last.
    #[inline]
    pub(crate) fn rid(&self) -> Rid {
        Rid::new(self.partition, self.number, self.next.saturating_sub(1))
    }

    /// Finds the next row.
    ///
    /// # Errors
    /// When it is damaged.
    #[inline]
    pub(crate) fn next(&mut self, table: &Table, buffer: &mut RowBuffer) -> Result<CopiedRow> {
        let view = DataPage::new(&self.bytes);
        self.row = CopiedRow::None;
        while self.next < self.slots && self.row == CopiedRow::None {
            let slot = self.next;
            self.next += 1;
            let Some((kind, span)) = view.plain_span(slot) else { continue };
            match kind {
                StoredKind::Raw if table.decoder.layout() == 0 => (self.row, self.span) = (CopiedRow::Here, span),
                StoredKind::Raw | StoredKind::Compressed => {
                    let body = match kind {
                        StoredKind::Raw => Body::Plain(&self.bytes[span]),
                        _ => Body::Compressed { version: view.dictionary_version(), codes: &self.bytes[span] },
                    };
                    let dictionary = self.dictionary.as_ref().map(|(_, compressor)| compressor.dictionary());
                    match buffer.decode(&table.decoder, body, dictionary) {
                        Ok(length) => (self.row, self.span) = (CopiedRow::Decoded, 0..length),
                        Err(error) => return Err(self.undecodable(table, body, error)),
                    }
                }
                StoredKind::Special | StoredKind::Column | StoredKind::Forwarded => {
                    (self.row, self.span) = self.special(table, kind, span, buffer)?;
                }
            }
        }
        Ok(self.row)
    }

    #[cold]
    fn undecodable(&self, table: &Table, body: Body<'_>, error: FormatError) -> crate::Error {
        match table.partition(self.partition) {
            Ok(data_set) => table.undecodable(data_set, self.number, body.dictionary(), error),
            Err(error) => error,
        }
    }

    /// A row of a kind that few have; none where it has its home elsewhere.
    #[cold]
    fn special(&self, table: &Table, kind: StoredKind, span: Range<usize>, buffer: &mut RowBuffer) -> Result<(CopiedRow, Range<usize>)> {
        let data_set = table.partition(self.partition)?;
        let version = DataPage::new(&self.bytes).dictionary_version();
        let row = StoredRow { kind, bytes: &self.bytes[span], slot: self.next - 1, area_row: 0, home: None };
        Ok(match Stored::parse(row, version).map_err(|e| data_set.corrupt(self.number, e))? {
            Stored::Home(Body::Plain(record)) if table.decoder.layout() == 0 => (CopiedRow::Decoded, 0..buffer.hold(record)),
            Stored::Home(body) => {
                let dictionary = body.dictionary().and_then(|version| table.dictionaries.tokens_of(version));
                let length = buffer.decode(&table.decoder, body, dictionary).map_err(|error| self.undecodable(table, body, error))?;
                (CopiedRow::Decoded, 0..length)
            }
            Stored::Forward(_) | Stored::Forwarded(_) => (CopiedRow::Moved, 0..0),
            Stored::Away { .. } | Stored::Hosted { .. } | Stored::HostedForward { .. } => (CopiedRow::None, 0..0),
        })
    }
}
