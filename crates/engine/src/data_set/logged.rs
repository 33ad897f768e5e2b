//! What the log says of a data set, when it is written and when it is redone.

use super::DataSet;
use super::file::PAGES_MAX;
use crate::Result;
use pagefold_format::data_set_header::{DICTIONARIES_MAX, DictionaryRoot};
use pagefold_format::log::{DataSetOp, Lsn};
use pagefold_format::{page, space_map};
use pagefold_io::AlignedBuffer;
use std::sync::atomic::Ordering;

impl DataSet {
    /// Are its changes logged?
    #[inline]
    pub(crate) fn is_logged(&self) -> bool {
        self.logged.load(Ordering::Relaxed)
    }

    /// The log is about to define it. Everything of it is on disk.
    pub(crate) fn set_logged(&self) {
        self.logged.store(true, Ordering::Relaxed);
    }

    /// Makes what a mini-transaction did to the data set seen. The log calls this when the record has its place.
    pub(crate) fn apply(&self, page: u32, op: DataSetOp) {
        self.set_changed();
        match op {
            DataSetOp::Allocate { .. } => self.space().settle(page),
            DataSetOp::Free => self.space().free(page),
            DataSetOp::Root { levels } => self.set_root(page, levels),
            DataSetOp::Count(counts) => {
                let mut facts = self.facts.lock();
                facts.rows = facts.rows.saturating_add_signed(counts.rows);
                facts.keys = facts.keys.saturating_add_signed(counts.keys);
                facts.data_pages = i64::from(facts.data_pages).saturating_add(counts.data_pages).clamp(0, u32::MAX.into()) as u32;
            }
            DataSetOp::Dictionary { version, bytes } => {
                let mut facts = self.facts.lock();
                if facts.dictionaries.iter().all(|root| root.version != version) {
                    facts.dictionaries.push(DictionaryRoot { version, first_page: page, bytes });
                }
            }
            DataSetOp::DropDictionary { version } => self.facts.lock().dictionaries.retain(|root| root.version != version),
            // The table says which partitions it has; of ghosts only redo keeps a list.
            DataSetOp::Partition { .. } | DataSetOp::GhostGone { .. } => {}
        }
    }

    fn set_root(&self, page: u32, levels: u16) {
        let mut facts = self.facts.lock();
        (facts.root_page, facts.levels) = (page, levels);
        self.root_cache.store(u64::from(levels) << 32 | u64::from(page), Ordering::Release);
    }

    /// Redo begins: what a crash left may be newer on disk than header and map say.
    pub(crate) fn set_recovering(&self, recovering: bool) {
        self.recovering.store(recovering, Ordering::Relaxed);
        if !recovering {
            self.space.lock().collect_unallocated();
        }
    }

    pub(crate) fn is_recovering(&self) -> bool {
        self.recovering.load(Ordering::Relaxed)
    }

    /// The counts that the header had when it was read are those of all records up to here.
    pub(crate) fn header_lsn(&self) -> Lsn {
        self.header_lsn.load(Ordering::Relaxed)
    }

    /// Has it this dictionary, or fewer than there can be?
    pub(crate) fn has_room_for_dictionary(&self, version: u16) -> bool {
        let facts = self.facts.lock();
        facts.dictionaries.len() < DICTIONARIES_MAX || facts.dictionaries.iter().any(|root| root.version == version)
    }

    /// Redo of taking a page (with its class) or giving it back.
    pub(crate) fn redo_space(&self, page: u32, class: Option<u8>) -> Result<()> {
        if page == 0 || page >= PAGES_MAX || space_map::is_map_page(page, self.attributes.page_bytes) {
            return Err(self.corrupt(page, "the log has it as a page that was taken or given back"));
        }
        self.file()?;
        // The file first: so the device bounds what a damaged log makes of the map.
        self.extend(page + 1)?;
        let may_be_hole = self.space().may_be_hole(page);
        if class.is_some() && may_be_hole {
            // That its blocks were asked for, a crash may have undone.
            self.fill_hole(page)?;
        }
        self.space().redo(page, class.unwrap_or(space_map::CLASS_UNALLOCATED));
        self.extend_to_map()
    }

    /// Redo makes a page anew: if it has been written before, the map is to know how often.
    pub(crate) fn see_write_counter(&self, page: u32) {
        let mut buffer = AlignedBuffer::new(self.attributes.page_bytes, 4096);
        if self.read_raw(page, &mut buffer).is_ok() && page::verify(&buffer, &self.identity(page)).is_ok() {
            self.space().see_write(page, page::write_counter(&buffer));
        }
    }
}
