//! The dictionaries of a table, and compressing records with the newest.
//!
//! Invariants:
//! - a dictionary is stored in every partition that has rows of its version, in a chain of dictionary pages named in the header page;
//! - a record that would not get smaller, or smaller than a forward pointer, is stored as it is.

use super::table::Table;
use crate::data_set::DataSet;
use crate::pool::{By, MiniTransaction};
use crate::{Error, Result};
use pagefold_codec::row::RowDictionary;
use pagefold_format::chain::{self, ChainPage};
use pagefold_format::data::forms::RecordEncoder;
use pagefold_format::data_set_header::DICTIONARIES_MAX;
use pagefold_format::log::Undo;
use pagefold_format::op::PageOp;
use pagefold_format::page::PageType;
use pagefold_format::space_map::CLASS_NO_ROWS;
use std::fmt;
use std::sync::{Arc, OnceLock};

/// The serial form of a dictionary is never longer.
const DICTIONARY_BYTES_MAX: usize = 128 * 1024;

/// A dictionary ready to compress with.
pub struct Compressor {
    version: u16,
    dictionary: RowDictionary,
    encoder: OnceLock<RecordEncoder>,
}

impl fmt::Debug for Compressor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Compressor(version {}, {} tokens)", self.version, self.dictionary.token_count())
    }
}

impl Compressor {
    pub(crate) fn new(version: u16, dictionary: RowDictionary) -> Compressor {
        Compressor { version, dictionary, encoder: OnceLock::new() }
    }

    /// Version of the dictionary, from 1.
    #[must_use]
    pub fn version(&self) -> u16 {
        self.version
    }

    /// The dictionary.
    #[must_use]
    pub fn dictionary(&self) -> &RowDictionary {
        &self.dictionary
    }

    fn encoder(&self) -> &RecordEncoder {
        self.encoder.get_or_init(|| RecordEncoder::codes(self.version, &self.dictionary))
    }
}

/// All dictionaries of a table that rows may refer to.
#[derive(Debug, Default)]
pub(crate) struct DictionarySet {
    slots: [OnceLock<Arc<Compressor>>; DICTIONARIES_MAX],
}

impl DictionarySet {
    /// The dictionary of a version.
    #[inline]
    pub(crate) fn get(&self, version: u16) -> Option<&Arc<Compressor>> {
        self.slots.get(usize::from(version).wrapping_sub(1))?.get()
    }

    /// What rows are decoded with that need the dictionary of a version.
    #[inline]
    pub(super) fn tokens_of(&self, version: u16) -> Option<&RowDictionary> {
        self.get(version).map(|compressor| &compressor.dictionary)
    }

    /// The newest one.
    pub(crate) fn newest(&self) -> Option<&Arc<Compressor>> {
        self.slots.iter().rev().find_map(OnceLock::get)
    }

    fn put(&self, compressor: Arc<Compressor>) -> bool {
        self.slots.get(usize::from(compressor.version).wrapping_sub(1)).is_some_and(|slot| slot.set(compressor).is_ok())
    }
}

impl Table {
    /// The newest dictionary, if the table has one.
    #[must_use]
    pub fn dictionary(&self) -> Option<Arc<Compressor>> {
        self.dictionaries.newest().cloned()
    }

    /// What brings new records into the form of the table; `None` where they are stored as they are.
    #[must_use]
    pub fn encoder(&self) -> Option<&RecordEncoder> {
        match &self.compact_encoder {
            Some(encoder) => Some(encoder),
            None => self.dictionaries.newest().map(|compressor| compressor.encoder()),
        }
    }

    /// What brings records into the form in which [`BulkLoader`](super::BulkLoader) takes them; `None`: as they are.
    #[must_use]
    pub fn load_encoder(&self) -> Option<&RecordEncoder> {
        self.encoder().filter(|_| !self.by_column())
    }

    /// The form of new pages.
    pub(super) fn page_form(&self) -> u16 {
        self.encoder().map_or(0, RecordEncoder::page_form)
    }

    /// Makes this the dictionary of a table that has none.
    ///
    /// # Errors
    /// When there is one.
    pub fn set_dictionary(&self, dictionary: RowDictionary) -> Result<()> {
        if self.dictionaries.put(Arc::new(Compressor::new(1, dictionary))) {
            Ok(())
        } else {
            Err(Error::Parameter(format!("{} has a dictionary already", self.object())))
        }
    }

    /// Stores the newest dictionary in a partition that does not have it.
    pub(super) fn store_dictionary(&self, data_set: &DataSet) -> Result<()> {
        let Some(compressor) = self.dictionaries.newest() else { return Ok(()) };
        if data_set.facts().dictionaries.iter().any(|root| root.version == compressor.version) {
            return Ok(());
        }
        let _one_writer = data_set.structure_lock.lock();
        if data_set.facts().dictionaries.iter().any(|root| root.version == compressor.version) {
            return Ok(());
        }
        let bytes = compressor.dictionary.to_bytes();
        let first_page = write_chain(self, By::Nobody, data_set, PageType::Dictionary, u32::from(compressor.version), &bytes)?;
        let mut mtr = MiniTransaction::begin(self.manager());
        mtr.add_dictionary(data_set, compressor.version, first_page, bytes.len() as u32);
        mtr.commit().map(drop)
    }

    /// Reads the dictionaries of a partition.
    pub(crate) fn load_dictionaries(&self, data_set: &DataSet) -> Result<()> {
        let roots = data_set.facts().dictionaries.clone();
        for root in roots {
            if self.dictionaries.get(root.version).is_some() {
                continue;
            }
            let length = root.bytes as usize;
            if length > DICTIONARY_BYTES_MAX {
                return Err(data_set.corrupt(0, format!("a dictionary of {length} bytes; the longest has {DICTIONARY_BYTES_MAX}")));
            }
            let bytes = read_chain(self, data_set, PageType::Dictionary, root.first_page, u32::from(root.version), length)?;
            let dictionary = RowDictionary::from_bytes(&bytes)
                .map_err(|e| data_set.corrupt(root.first_page, format!("dictionary version {}: {e}", root.version)))?;
            if !self.dictionaries.put(Arc::new(Compressor::new(root.version, dictionary))) {
                return Err(data_set.corrupt(0, format!("dictionary version {} is out of range", root.version)));
            }
        }
        Ok(())
    }
}

/// Writes a byte string into a chain of new pages; returns the first. `owner` 0 stands for the first page itself.
pub(super) fn write_chain(table: &Table, by: By<'_>, data_set: &DataSet, page_type: PageType, owner: u32, bytes: &[u8]) -> Result<u32> {
    let count = chain::pages_needed(bytes.len(), data_set.page_bytes()).max(1);
    let mut numbers = Vec::with_capacity(count);
    for _ in 0..count {
        match data_set.allocate_page(CLASS_NO_ROWS) {
            Ok(number) => numbers.push(number),
            Err(error) => {
                numbers.into_iter().for_each(|number| data_set.give_back(number));
                return Err(error);
            }
        }
    }
    let owner = if owner == 0 { numbers[0] } else { owner };
    let mut image = vec![0; data_set.page_bytes()];
    let payload = chain::payload_bytes(data_set.page_bytes());
    for (i, number) in numbers.iter().enumerate() {
        if let Err(error) = table.manager().prepare_log() {
            numbers[i..].iter().for_each(|number| data_set.give_back(*number));
            return Err(error);
        }
        let part = &bytes[(i * payload).min(bytes.len())..((i + 1) * payload).min(bytes.len())];
        let next = numbers.get(i + 1).copied().unwrap_or(0);
        chain::build(&mut image, *number, page_type, next, i as u32, owner, part);
        let mut mtr = MiniTransaction::begin(table.manager());
        let handle = mtr.create_at(data_set, *number, CLASS_NO_ROWS, true)?;
        mtr.apply(handle, PageOp::Image(&image))?;
        mtr.set_undo(by, Undo::AllocatedPage { file_id: data_set.file_id(), page: *number });
        mtr.commit()?;
    }
    Ok(numbers[0])
}

/// Reads a chain; exactly `length` bytes.
pub(super) fn read_chain(table: &Table, data_set: &DataSet, page_type: PageType, first: u32, owner: u32, length: usize) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    walk_chain(table, data_set, page_type, first, owner, length, |_, payload| bytes.extend_from_slice(payload))?;
    Ok(bytes)
}

/// Visits the pages of a chain of exactly `length` bytes.
pub(super) fn walk_chain(
    table: &Table,
    data_set: &DataSet,
    page_type: PageType,
    first: u32,
    owner: u32,
    length: usize,
    mut visit: impl FnMut(u32, &[u8]),
) -> Result<()> {
    let mut seen = 0;
    let mut number = first;
    let pages = chain::pages_needed(length, data_set.page_bytes()).max(1);
    for sequence in 0..pages as u32 {
        let page = table.manager().shared(data_set, number, crate::pool::Access::Scan)?;
        let part = ChainPage::parse(&page, page_type).map_err(|e| data_set.corrupt(number, e))?;
        if part.sequence != sequence || part.owner != owner {
            return Err(data_set.corrupt(number, format!("part {} of {}, expected part {sequence} of {owner}", part.sequence, part.owner)));
        }
        seen += part.payload.len();
        visit(number, part.payload);
        number = part.next;
    }
    if seen != length || number != 0 {
        return Err(data_set.corrupt(first, format!("a chain of {seen} bytes where {length} are expected")));
    }
    Ok(())
}
