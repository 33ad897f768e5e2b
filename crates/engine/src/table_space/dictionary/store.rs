//! The dictionaries of a table in its partitions: in chains of dictionary pages named in the header page.
//!
//! Invariants:
//! - a version comes into a partition, and goes, with one mini-transaction: never a part of it;
//! - a version is the newest only when all partitions have it. One that a crash kept from some of them is finished later ([`Table::unfinished_dictionary`]);
//! - a partition gets all versions there are before its first row, the newest last.

use super::super::attributes::Method;
use super::super::chain::{build_page, give_back, read_chain, take_pages, walk_chain};
use super::super::table::Table;
use super::set::Compressor;
use crate::data_set::DataSet;
use crate::pool::MiniTransaction;
use crate::{Error, Result};
use pagefold_codec::row::RowDictionary;
use pagefold_format::data::forms::{DICTIONARY_VERSION_MAX, RecordEncoder};
use pagefold_format::op::PageOp;
use pagefold_format::page::PageType;
use pagefold_format::space_map::CLASS_NO_ROWS;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The serial form of a dictionary is never longer.
const DICTIONARY_BYTES_MAX: usize = 128 * 1024;

impl Table {
    /// The newest dictionary, if the table has one.
    #[must_use]
    pub fn dictionary(&self) -> Option<Arc<Compressor>> {
        self.dictionaries.newest().cloned()
    }

    /// The versions of dictionaries that rows may have, ascending.
    #[must_use]
    pub fn dictionary_versions(&self) -> Vec<u16> {
        self.dictionaries.live.lock().clone()
    }

    /// What brings new records into the form of the table; `None` where they are stored as they are.
    #[must_use]
    pub fn encoder(&self) -> Option<&RecordEncoder> {
        let newest = || self.dictionaries.newest().map(|compressor| compressor.encoder(self.attributes.layouts.number()));
        match &self.own_encoder {
            Some(encoder) if matches!(self.attributes.method, Method::Row | Method::Page) => Some(encoder),
            own => newest().or(own.as_ref()),
        }
    }

    /// The form of new pages.
    pub(in crate::table_space) fn page_form(&self) -> u16 {
        self.encoder().map_or(0, RecordEncoder::page_form)
    }

    /// Makes this the dictionary of a table that has none, and no rows.
    ///
    /// # Errors
    /// When there is one.
    pub fn set_dictionary(&self, dictionary: RowDictionary) -> Result<()> {
        let mut live = self.dictionaries.live.lock();
        if !live.is_empty() || !self.dictionaries.put(Arc::new(Compressor::new(1, dictionary))) {
            return Err(Error::Parameter(format!("{} has a dictionary already", self.object())));
        }
        live.push(1);
        if let Some(first) = self.dictionaries.get(1) {
            self.make_newest(first);
        }
        Ok(())
    }

    /// New rows get this dictionary. What takes some milliseconds to make is made here, and not by the first transaction that puts a row in.
    fn make_newest(&self, compressor: &Compressor) {
        if self.by_column() {
            compressor.string_codes();
        } else {
            compressor.encoder(self.attributes.layouts.number());
        }
        self.dictionaries.set_newest(compressor.version());
    }

    /// Makes this the newest dictionary.
    ///
    /// # Errors
    /// When there is no room for it, or the log cannot be written. What has been stored of it by then is finished later.
    pub(crate) fn add_dictionary(&self, dictionary: RowDictionary) -> Result<()> {
        let mut live = self.dictionaries.live.lock();
        let version = live.last().map_or(1, |last| last + 1);
        let full = || Error::Parameter(format!("{} has had all {DICTIONARY_VERSION_MAX} dictionaries it can have", self.object()));
        if !self.dictionaries.put(Arc::new(Compressor::new(version, dictionary))) {
            return Err(full());
        }
        live.push(version);
        self.finish_dictionary_of(&live)
    }

    /// Is the newest version not yet the one that new rows get?
    pub(crate) fn unfinished_dictionary(&self) -> bool {
        let live = self.dictionaries.live.lock();
        live.last().copied().unwrap_or(0) != self.dictionaries.newest().map_or(0, |newest| newest.version())
    }

    /// Stores the newest version where it is missing, and makes it the one that new rows get.
    pub(crate) fn finish_dictionary(&self) -> Result<()> {
        self.finish_dictionary_of(&self.dictionaries.live.lock())
    }

    fn finish_dictionary_of(&self, live: &[u16]) -> Result<()> {
        let Some(newest) = live.last().and_then(|version| self.dictionaries.get(*version)) else { return Ok(()) };
        for data_set in self.all_partitions().iter().filter(|data_set| data_set.is_defined()) {
            self.store_missing(data_set, newest)?;
        }
        self.make_newest(newest);
        Ok(())
    }

    /// Stores all versions in a partition that has not got the newest: one without rows.
    pub(in crate::table_space) fn store_dictionaries(&self, data_set: &DataSet) -> Result<()> {
        let has = |version: u16| data_set.facts().dictionaries.iter().any(|root| root.version == version);
        if self.dictionaries.newest().is_none_or(|newest| has(newest.version())) {
            return Ok(());
        }
        let live = self.dictionaries.live.lock();
        live.iter()
            .filter_map(|version| self.dictionaries.get(*version))
            .try_for_each(|compressor| self.store_missing(data_set, compressor))
    }

    /// Stores a version in a partition that does not have it.
    fn store_missing(&self, data_set: &DataSet, compressor: &Compressor) -> Result<()> {
        let version = compressor.version();
        if data_set.facts().dictionaries.iter().any(|root| root.version == version) {
            return Ok(());
        }
        let bytes = compressor.dictionary().to_bytes();
        let manager = self.manager();
        manager.prepare_log()?;
        let numbers = take_pages(data_set, bytes.len())?;
        let mut mtr = MiniTransaction::begin(manager);
        let mut handles = Vec::with_capacity(numbers.len());
        for (i, number) in numbers.iter().enumerate() {
            match mtr.create_at(data_set, *number, CLASS_NO_ROWS, true) {
                Ok(handle) => handles.push(handle),
                Err(error) => {
                    // The mini-transaction gives back those that it has made.
                    drop(mtr);
                    give_back(data_set, &numbers[i..]);
                    return Err(error);
                }
            }
        }
        let mut image = vec![0; data_set.page_bytes()];
        for (i, handle) in handles.into_iter().enumerate() {
            build_page(&mut image, &numbers, i, PageType::Dictionary, u32::from(version), &bytes);
            mtr.apply(handle, PageOp::Image(&image))?;
        }
        mtr.add_dictionary(data_set, version, numbers[0], bytes.len() as u32);
        mtr.commit().map(drop)
    }

    /// A version goes: nothing refers to it any more.
    ///
    /// # Errors
    /// When it is the one that new rows get, and nothing has gone then; when it is damaged, or the log cannot be written.
    pub(crate) fn drop_dictionary(&self, version: u16) -> Result<()> {
        let mut live = self.dictionaries.live.lock();
        if self.dictionaries.newest().is_none_or(|newest| newest.version() <= version) {
            return Err(Error::Parameter(format!("{}: dictionary version {version} is the one that new rows get", self.object())));
        }
        for data_set in self.all_partitions() {
            let root = data_set.facts().dictionaries.iter().find(|root| root.version == version).copied();
            let Some(root) = root else { continue };
            let mut pages = Vec::new();
            let (owner, length) = (u32::from(version), root.bytes as usize);
            walk_chain(self, &data_set, PageType::Dictionary, root.first_page, owner, length..=length, |page, _| pages.push(page))?;
            let mut mtr = MiniTransaction::begin(self.manager());
            pages.iter().for_each(|page| mtr.free(&data_set, *page));
            mtr.drop_dictionary(&data_set, version);
            mtr.commit()?;
        }
        live.retain(|other| *other != version);
        Ok(())
    }

    /// Reads the dictionaries of all partitions. One that is damaged in all of them is met by who needs it, and by who would change the table: other tables, and rows that
    /// do without it, can be read.
    ///
    /// # Errors
    /// Those of the device.
    pub(crate) fn load_dictionaries(&self) -> Result<()> {
        let mut live = self.dictionaries.live.lock();
        let mut damaged = BTreeMap::new();
        let mut newest = None;
        for data_set in self.data_sets().filter(|data_set| data_set.is_defined()) {
            let roots = data_set.facts().dictionaries.clone();
            for root in &roots {
                if self.dictionaries.get(root.version).is_none() {
                    match self.read_dictionary(data_set, root.version, root.first_page, root.bytes as usize) {
                        Ok(dictionary) => {
                            if !self.dictionaries.put(Arc::new(Compressor::new(root.version, dictionary))) {
                                return Err(data_set.corrupt(0, format!("dictionary version {} is out of range", root.version)));
                            }
                            damaged.remove(&root.version);
                        }
                        Err(error @ Error::Corrupt { .. }) => drop(damaged.entry(root.version).or_insert(error)),
                        Err(error) => return Err(error),
                    }
                }
                if let Err(at) = live.binary_search(&root.version) {
                    live.insert(at, root.version);
                }
            }
            if data_set.facts().data_pages == 0 && roots.is_empty() {
                // It gets them with its first page.
                continue;
            }
            let newest_here = roots.iter().map(|root| root.version).max().unwrap_or(0);
            newest = Some(newest.map_or(newest_here, |newest: u16| newest.min(newest_here)));
        }
        if let Some(newest) = newest {
            self.dictionaries.set_newest(newest);
        }
        if let Some((_, error)) = damaged.pop_first() {
            self.dictionaries.set_damage(error);
        }
        Ok(())
    }

    /// For whoever is about to change the table, or to copy it.
    ///
    /// # Errors
    /// When a dictionary that its rows may need is damaged.
    pub(crate) fn check_dictionaries(&self) -> Result<()> {
        self.dictionaries.damage().map_or(Ok(()), |damage| Err(damage.clone()))
    }

    fn read_dictionary(&self, data_set: &DataSet, version: u16, first_page: u32, length: usize) -> Result<RowDictionary> {
        if length > DICTIONARY_BYTES_MAX {
            return Err(data_set.corrupt(0, format!("a dictionary of {length} bytes; the longest has {DICTIONARY_BYTES_MAX}")));
        }
        let bytes = read_chain(self, data_set, PageType::Dictionary, first_page, u32::from(version), length)?;
        RowDictionary::from_bytes(&bytes).map_err(|e| data_set.corrupt(first_page, format!("dictionary version {version}: {e}")))
    }
}
