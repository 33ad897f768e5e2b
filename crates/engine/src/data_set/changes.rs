//! What of a data set is not on disk: dirty pages, and what goes to the map and the header.

use super::DataSet;
use pagefold_format::data_set_header::DataSetHeader;
use pagefold_format::log::Lsn;
use pagefold_format::space_map::SpaceWord;
use std::sync::atomic::Ordering;

/// A map page to be written.
#[derive(Debug)]
pub(crate) struct MapPage {
    pub(crate) page: u32,
    pub(crate) write_counter: u32,
    pub(crate) words: Vec<SpaceWord>,
}

/// What a data set knows beside its pages, at one point of the log.
#[derive(Debug)]
pub(crate) struct MapAndHeader {
    pub(crate) maps: Vec<MapPage>,
    pub(crate) header: DataSetHeader,
    pub(crate) lsn: Lsn,
}

impl DataSet {
    /// Is something of it not on disk?
    pub(crate) fn is_changed(&self) -> bool {
        self.changed.load(Ordering::Relaxed) || !self.dirty.lock().is_empty() || self.space.lock().has_changes()
    }

    /// Whoever looks at what was used finds it.
    #[inline]
    pub(crate) fn enter(&self) {
        self.changed_list.enter(self.attributes.file_id, &self.listed);
    }

    /// It was taken out of the list, and is about to be looked at.
    pub(crate) fn left_list(&self) {
        self.listed.store(false, Ordering::Release);
    }

    pub(super) fn set_changed(&self) {
        self.changed.store(true, Ordering::Relaxed);
        self.enter();
    }

    /// The next checkpoint is to name it, also if nothing of it is to be written.
    pub(crate) fn set_unrecorded(&self) {
        self.unrecorded.store(true, Ordering::Relaxed);
        self.enter();
    }

    /// Is the next checkpoint to name it?
    pub(crate) fn is_unrecorded(&self) -> bool {
        self.unrecorded.load(Ordering::Relaxed)
    }

    /// Is the next checkpoint to name it? It will.
    pub(crate) fn take_unrecorded(&self) -> bool {
        self.unrecorded.swap(false, Ordering::Relaxed)
    }

    /// A page became dirty.
    pub(crate) fn note_dirty(&self, pages: impl IntoIterator<Item = u32>) {
        let mut dirty = self.dirty.lock();
        dirty.extend(pages);
        let any = !dirty.is_empty();
        drop(dirty);
        if any {
            self.enter();
        }
    }

    /// Is something of it not on disk? A flush that follows makes it so.
    pub(crate) fn take_changed(&self) -> bool {
        let dirty = self.dirty.lock();
        let changed = self.changed.swap(false, Ordering::Relaxed) || !dirty.is_empty();
        drop(dirty);
        changed || self.space.lock().has_changes()
    }

    /// Takes the list of dirty pages, to write them. Until a flush, the data set counts as changed.
    pub(crate) fn take_dirty(&self) -> Vec<u32> {
        let mut dirty = self.dirty.lock();
        if !dirty.is_empty() {
            self.set_changed();
        }
        std::mem::take(&mut *dirty)
    }

    /// The map pages to write and the header, as they are now; `lsn` is the end of the log.
    pub(crate) fn map_and_header(&self, lsn: Lsn) -> MapAndHeader {
        let maps = {
            let mut space = self.space.lock();
            let changed = space.take_changed();
            // Its own word counts a map page too, so all are counted before any is written.
            for map_page in &changed {
                space.count_write(*map_page);
            }
            space.take_changed();
            changed
                .into_iter()
                .map(|page| MapPage { page, write_counter: space.word(page).write_counter(), words: space.words_of(page) })
                .collect()
        };
        MapAndHeader { maps, header: self.header(), lsn }
    }

    /// The header as it is to be written.
    pub(crate) fn header(&self) -> DataSetHeader {
        let facts = self.facts.lock().clone();
        let space = self.space.lock();
        DataSetHeader {
            file_id: self.attributes.file_id,
            object_id: self.attributes.object_id,
            kind: self.attributes.kind,
            partition: self.attributes.partition,
            page_bytes: self.attributes.page_bytes as u32,
            leaf_bytes: self.attributes.leaf_bytes as u32,
            page_count: space.page_count(),
            data_pages: facts.data_pages,
            rows: facts.rows,
            root_page: facts.root_page,
            levels: facts.levels,
            keys: facts.keys,
            space_map_writes: space.map_writes(),
            dictionaries: facts.dictionaries,
        }
    }
}
