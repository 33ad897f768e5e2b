//! One data set as it lies in its file: header page, space map, and whatever holds for a page of any type.
//!
//! Checked here: the header against the catalog; map pages against the header; of each page that is loaded its checksum (bound to database, file and page
//! number), its page number, its type, and its write counter against the space map: a lost, stale or misplaced write.
//!
//! Memory: five bytes a page.

use super::files::PageReader;
use super::findings::Context;
use pagefold_engine::data_set_path;
use pagefold_format::data_set_header::{DataSetHeader, ObjectKind};
use pagefold_format::page::{self, PageIdentity, PageType};
use pagefold_format::space_map::{self, CLASS_NO_ROWS, CLASS_UNALLOCATED, SpaceWord, is_map_page, words_per_page};
use pagefold_io::{OpenOptions, Storage};
use std::collections::BTreeSet;
use std::path::Path;

/// What the catalog says of a data set.
#[derive(Clone, Debug)]
pub(crate) struct Expected {
    /// What errors call it.
    pub(crate) object: String,
    pub(crate) file_id: u32,
    pub(crate) object_id: u32,
    pub(crate) kind: ObjectKind,
    pub(crate) partition: u16,
    pub(crate) page_bytes: usize,
    pub(crate) leaf_bytes: usize,
    /// Write counter of its header page.
    pub(crate) header_writes: u32,
}

/// Loaded before: counted.
const LOADED: u8 = 1;
/// Something is wrong with it, and was reported.
const DAMAGED: u8 = 2;
/// Something names it.
const REACHED: u8 = 4;

/// A data set that is being read.
pub(crate) struct DataSetFile {
    pub(crate) object: String,
    pub(crate) page_bytes: usize,
    /// `None` when it is damaged.
    pub(crate) header: Option<DataSetHeader>,
    /// Pages in use.
    pub(crate) page_count: u32,
    /// Anything damaged, or not known?
    pub(crate) damaged: bool,
    /// Whatever pages there are is looked for, also where header and map know of none.
    pub(crate) salvaged: bool,
    database_id: u128,
    file_id: u32,
    reader: PageReader,
    words: Vec<SpaceWord>,
    /// Map pages that could not be read.
    lost_maps: BTreeSet<u32>,
    marks: Vec<u8>,
}

impl DataSetFile {
    /// Opens the file, checks header page and space map. `None` when there is no file to read.
    pub(crate) fn open(
        storage: &dyn Storage,
        directory: &Path,
        database_id: u128,
        expected: &Expected,
        context: &mut Context<'_>,
    ) -> Option<DataSetFile> {
        let path = data_set_path(directory, expected.file_id);
        let opened = storage.open(&path, &OpenOptions::read_only()).and_then(|file| file.len().map(|length| (file, length)));
        let (file, length) = match opened {
            Ok(opened) => opened,
            Err(error) => {
                context.error(&expected.object, 0, error);
                return None;
            }
        };
        let mut set = DataSetFile {
            object: expected.object.clone(),
            page_bytes: expected.page_bytes,
            header: None,
            page_count: 1,
            damaged: false,
            salvaged: false,
            database_id,
            file_id: expected.file_id,
            reader: PageReader::new(file, expected.page_bytes, length),
            words: vec![SpaceWord::new(CLASS_NO_ROWS, 0)],
            lost_maps: BTreeSet::new(),
            marks: vec![0],
        };
        set.read_header(expected, length, context);
        set.read_space_map(context);
        Some(set)
    }

    pub(crate) fn identity(&self, page_number: u32) -> PageIdentity {
        PageIdentity { database_id: self.database_id, file_id: self.file_id, page_number }
    }

    fn read_header(&mut self, expected: &Expected, length: u64, context: &mut Context<'_>) {
        let mut bytes = Vec::new();
        let parsed = match self.load(0, &mut bytes, context) {
            Some(PageType::Header) => DataSetHeader::parse(&bytes).map_err(|e| e.to_string()),
            Some(other) => Err(format!("a page of type {other:?} where the header page should be")),
            None => Err(String::new()),
        };
        let pages = self.reader.pages().min(u64::from(u32::MAX)) as u32;
        let header = match parsed {
            Ok(header) => header,
            Err(reason) => {
                self.damage(0, reason, context);
                // As many pages as the file can have; the map pages say how many there are.
                self.grow(pages);
                return;
            }
        };
        let found = (header.file_id, header.object_id, header.kind, header.partition);
        if found != (expected.file_id, expected.object_id, expected.kind, expected.partition) {
            self.fault(0, "the header describes another data set than the catalog", context);
        }
        if (header.page_bytes as usize, header.leaf_bytes as usize) != (expected.page_bytes, expected.leaf_bytes) {
            self.fault(0, "the header and the catalog disagree on the page size", context);
        }
        let writes = page::write_counter(&bytes);
        // With a log it may be newer: a checkpoint that was not completed has written it, and whoever opens the database finds that.
        if writes < expected.header_writes || writes != expected.header_writes && context.wants_exact_headers() {
            let reason = format!("write counter {writes}, the catalog has {}: a lost or misplaced write", expected.header_writes);
            self.fault(0, reason, context);
        }
        if u64::from(header.page_count) > u64::from(pages) {
            self.fault(0, format!("{} pages in a file of {length} bytes: it is cut off", header.page_count), context);
        }
        if header.page_count == 0 {
            self.fault(0, "no page, not even this one", context);
        }
        self.grow(header.page_count.clamp(1, pages.max(1)));
        self.header = Some(header);
    }

    fn grow(&mut self, pages: u32) {
        self.page_count = pages.max(1);
        self.words.resize(self.page_count as usize, SpaceWord::default());
        self.marks.resize(self.page_count as usize, 0);
    }

    fn read_space_map(&mut self, context: &mut Context<'_>) {
        let step = words_per_page(self.page_bytes);
        let mut writes = 0u64;
        let mut map = 1;
        let mut bytes = Vec::new();
        while map < self.page_count {
            let expected = step.min(self.page_count - map);
            self.marks[map as usize] |= REACHED;
            match self.read_map_page(map, &mut bytes, context) {
                Some(words) => {
                    let found = words.len() as u32;
                    writes += u64::from(words.first().map_or(0, |word| word.write_counter()));
                    let own = words.first().copied().unwrap_or_default();
                    let ahead = own.page_ahead(page::write_counter(&bytes));
                    if ahead < 0 || ahead > 0 && !context.lacks_log() || own.class() != CLASS_NO_ROWS {
                        self.fault(map, "its own word does not describe it: a lost write", context);
                    }
                    for (at, word) in (map as usize..).zip(&words).take(expected as usize) {
                        self.words[at] = *word;
                    }
                    if self.header.is_none() && found < step {
                        // The last map page tells where the data set ends.
                        self.grow((map + found).min(self.page_count));
                    } else if found != expected {
                        self.fault(map, format!("describes {found} pages, not {expected}"), context);
                        self.lost_maps.insert(map);
                    }
                }
                None => drop(self.lost_maps.insert(map)),
            }
            map = match map.checked_add(step) {
                Some(next) => next,
                None => break,
            };
        }
        if let Some(header) = &self.header
            && self.lost_maps.is_empty()
            && (writes < header.space_map_writes || writes > header.space_map_writes && !context.lacks_log())
        {
            let reason = format!("space-map pages were written {writes} times, the header says {}: a lost write", header.space_map_writes);
            self.fault(0, reason, context);
        }
    }

    fn read_map_page(&mut self, map: u32, bytes: &mut Vec<u8>, context: &mut Context<'_>) -> Option<Vec<SpaceWord>> {
        let found = self.load_unmapped(map, bytes, context)?;
        if found != PageType::SpaceMap {
            self.damage(map, format!("a page of type {found:?} where a space-map page should be"), context);
            return None;
        }
        match space_map::words(bytes) {
            Ok(words) => Some(words.collect()),
            Err(error) => {
                self.damage(map, error, context);
                None
            }
        }
    }

    /// Reads a page and checks what holds for all pages. `None` when it is damaged: reported then, once.
    pub(crate) fn load(&mut self, number: u32, bytes: &mut Vec<u8>, context: &mut Context<'_>) -> Option<PageType> {
        let found = self.load_unmapped(number, bytes, context)?;
        if number == 0 || !self.is_mapped(number) {
            return Some(found);
        }
        let counter = page::write_counter(bytes);
        let ahead = self.word(number).page_ahead(counter);
        if ahead < 0 || ahead > 0 && !context.lacks_log() || counter > 0xFF_FFFF {
            let reason = format!("write counter {counter} is {ahead:+} from what the space map has: a lost or misplaced write");
            self.damage(number, reason, context);
            return None;
        }
        Some(found)
    }

    /// From now on all pages that the file has are looked at.
    pub(crate) fn salvage(&mut self) {
        self.salvaged = true;
        self.grow(self.page_count.max(self.reader.pages().min(u64::from(u32::MAX)) as u32));
    }

    /// Reads a page, and says nothing when it is damaged.
    pub(crate) fn peek(&mut self, number: u32, bytes: &mut Vec<u8>) -> Option<PageType> {
        self.reader.read(number, bytes).ok()?;
        page::verify(bytes, &self.identity(number)).ok()
    }

    /// Reads a page that may hold rows, whatever header and map have to say: these may be older than it is. A page that is older than the map is none of the state there was.
    pub(crate) fn load_to_salvage(&mut self, number: u32, bytes: &mut Vec<u8>, context: &mut Context<'_>) -> Option<PageType> {
        if self.is_free(number) {
            // What was there before it was given back is nothing that is missing, and may be anything.
            let found = self.peek(number, bytes)?;
            return (self.word(number).page_ahead(page::write_counter(bytes)) > 0).then_some(found);
        }
        let found = self.load_unmapped(number, bytes, context)?;
        let ahead = if self.is_mapped(number) { self.word(number).page_ahead(page::write_counter(bytes)) } else { 0 };
        if ahead < 0 {
            self.damage(number, format!("it is {} writes behind the space map: an older content", -ahead), context);
            return None;
        }
        Some(found)
    }

    fn load_unmapped(&mut self, number: u32, bytes: &mut Vec<u8>, context: &mut Context<'_>) -> Option<PageType> {
        if let Some(mark) = self.marks.get_mut(number as usize)
            && *mark & LOADED == 0
        {
            *mark |= LOADED;
            context.count_page();
        }
        let read = self.reader.read(number, bytes).map_err(|e| e.to_string());
        match read.and_then(|()| page::verify(bytes, &self.identity(number)).map_err(|e| e.to_string())) {
            Ok(found) => Some(found),
            Err(reason) => {
                self.damage(number, reason, context);
                None
            }
        }
    }

    /// Reads a page as it is, whatever it is.
    pub(crate) fn read_raw(&mut self, number: u32, bytes: &mut Vec<u8>) -> std::io::Result<()> {
        self.reader.read(number, bytes)
    }

    /// Notes that a page is damaged, unless that is known.
    pub(crate) fn damage(&mut self, number: u32, reason: impl ToString, context: &mut Context<'_>) {
        if !self.is_damaged(number) {
            self.fault(number, reason, context);
        }
    }

    /// Notes something wrong with a page.
    pub(crate) fn fault(&mut self, number: u32, reason: impl ToString, context: &mut Context<'_>) {
        if let Some(mark) = self.marks.get_mut(number as usize) {
            *mark |= DAMAGED;
        }
        self.damaged = true;
        context.error(&self.object, number, reason);
    }

    pub(crate) fn is_damaged(&self, number: u32) -> bool {
        self.marks.get(number as usize).is_some_and(|mark| mark & DAMAGED != 0)
    }

    /// Is the page's word known?
    pub(crate) fn is_mapped(&self, number: u32) -> bool {
        number > 0 && !self.lost_maps.contains(&space_map::locate(number, self.page_bytes).0)
    }

    /// Was every map page readable?
    pub(crate) fn map_is_whole(&self) -> bool {
        self.lost_maps.is_empty()
    }

    pub(crate) fn word(&self, number: u32) -> SpaceWord {
        self.words.get(number as usize).copied().unwrap_or_default()
    }

    /// Pages given back and not used again.
    pub(crate) fn is_free(&self, number: u32) -> bool {
        self.is_mapped(number) && self.word(number).class() == CLASS_UNALLOCATED
    }

    /// All pages but header, map and free ones.
    pub(crate) fn used_pages(&self) -> impl Iterator<Item = u32> + use<'_> {
        (1..self.page_count).filter(|number| !is_map_page(*number, self.page_bytes) && !self.is_free(*number))
    }

    /// Something names this page. False when it was named before, or is no page that could be named: that is reported.
    pub(crate) fn reach(&mut self, number: u32, by: &str, context: &mut Context<'_>) -> bool {
        if number == 0 || number >= self.page_count || is_map_page(number, self.page_bytes) {
            context.error(&self.object, number, format!("{by} names this page, which cannot be"));
            self.damaged = true;
            return false;
        }
        if self.is_free(number) {
            self.damage(number, format!("{by} names this page, which the space map has as free"), context);
            return false;
        }
        if self.marks[number as usize] & REACHED != 0 {
            self.fault(number, format!("{by} names this page, which something else names too"), context);
            return false;
        }
        self.marks[number as usize] |= REACHED;
        true
    }

    pub(crate) fn is_reached(&self, number: u32) -> bool {
        self.marks.get(number as usize).is_some_and(|mark| mark & REACHED != 0)
    }

    /// In an interval of which the map page is lost, pages that were never written are zeros; they may be free.
    pub(crate) fn may_be_unwritten(&mut self, number: u32, bytes: &mut Vec<u8>) -> bool {
        !self.is_mapped(number) && self.reader.read(number, bytes).is_ok() && bytes.iter().all(|b| *b == 0)
    }

    /// Pages that are in use by the space map, but that nothing names: reported, when all that could name them was readable.
    pub(crate) fn report_leaks(&mut self, context: &mut Context<'_>) {
        let leaked: Vec<u32> =
            self.used_pages().filter(|n| self.is_mapped(*n) && self.word(*n).class() == CLASS_NO_ROWS && !self.is_reached(*n)).collect();
        for number in leaked {
            if !self.is_damaged(number) {
                self.fault(number, "in use by the space map, but nothing names it: leaked space", context);
            }
        }
    }
}
