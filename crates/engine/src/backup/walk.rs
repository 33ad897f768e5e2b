//! The pages of a data set in an order in which others may write meanwhile: header, map pages, then all others.
//!
//! Invariants:
//! - every page is verified; one that somebody is writing just now is read again;
//! - a page is never older than its map word: that would be a lost write;
//! - a page that the map counts as never written may be missing: it is in memory, and the log has all of it;
//! - a page that is free comes along if it is good: redo may begin before it was given back, and then needs what it was. One whose blocks were given back is needed by no redo that the copy begins.

use crate::Result;
use crate::data_set::DataSet;
use pagefold_format::data_set_header::DataSetHeader;
use pagefold_format::page::{self, PageType};
use pagefold_format::space_map::{self, CLASS_UNALLOCATED, SpaceWord, is_map_page};
use pagefold_io::{AlignedBuffer, Clock};
use std::time::Duration;

const CLUSTER_BYTES: usize = 1 << 20;
/// A write takes moments.
const ATTEMPTS: u32 = 50;
const WAIT: Duration = Duration::from_millis(2);

/// Who is told about pages.
pub(super) trait Visitor {
    /// Is this page of interest? Header and map pages always are.
    fn wants(&self, page: &[u8]) -> bool;
    /// Consecutive pages from `first` on.
    fn pages(&mut self, first: u32, pages: &[u8]) -> Result<()>;
    /// So many bytes have been looked at.
    fn advance(&mut self, bytes: u64) -> Result<()>;
}

/// Visits all pages of a data set; returns its pages in use.
pub(super) fn walk(data_set: &DataSet, clock: &dyn Clock, visitor: &mut dyn Visitor) -> Result<u32> {
    let page_bytes = data_set.page_bytes();
    let mut buffer = AlignedBuffer::new((CLUSTER_BYTES / page_bytes) * page_bytes, 4096);
    let one = &mut buffer[..page_bytes];
    read_one(data_set, clock, 0, one, Some(PageType::Header), SpaceWord::default())?;
    let header = DataSetHeader::parse(one).map_err(|e| data_set.corrupt(0, e))?;
    visitor.pages(0, one)?;
    let mut words = vec![SpaceWord::default()];
    while words.len() < header.page_count as usize {
        let map_page = words.len() as u32;
        read_one(data_set, clock, map_page, one, Some(PageType::SpaceMap), SpaceWord::default())?;
        words.extend(space_map::words(one).map_err(|e| data_set.corrupt(map_page, e))?);
        if words.len() == map_page as usize {
            return Err(data_set.corrupt(map_page, "describes no page"));
        }
        visitor.pages(map_page, one)?;
    }
    let is_map = |number: usize| is_map_page(number as u32, page_bytes);
    let mut first = 1;
    while first < words.len() {
        if is_map(first) {
            visitor.advance(page_bytes as u64)?;
            first += 1;
            continue;
        }
        let end = words.len().min(first + buffer.len() / page_bytes);
        let end = (first..end).find(|number| is_map(*number)).unwrap_or(end);
        let pages = &mut buffer[..(end - first) * page_bytes];
        data_set.read_raw(first as u32, pages)?;
        let mut wanted = Vec::with_capacity(end - first);
        for (number, page) in (first..end).zip(pages.chunks_exact_mut(page_bytes)) {
            let whole = is_good(data_set, number as u32, page, None, words[number]).is_ok()
                || (!is_hole(page, words[number]) && read_one(data_set, clock, number as u32, page, None, words[number])?);
            wanted.push(whole && visitor.wants(page));
        }
        let mut at = 0;
        for run in wanted.chunk_by(|a, b| a == b) {
            if run[0] {
                visitor.pages((first + at) as u32, &pages[at * page_bytes..(at + run.len()) * page_bytes])?;
            }
            at += run.len();
        }
        visitor.advance(pages.len() as u64)?;
        first = end;
    }
    Ok(words.len() as u32)
}

/// Reads one page until it is good. False when it was never written and need not have been.
fn read_one(
    data_set: &DataSet,
    clock: &dyn Clock,
    number: u32,
    page: &mut [u8],
    expected: Option<PageType>,
    word: SpaceWord,
) -> Result<bool> {
    let mut attempt = 1;
    loop {
        data_set.read_raw(number, page)?;
        match is_good(data_set, number, page, expected, word) {
            Ok(()) => return Ok(true),
            Err(_) if expected.is_none() && is_hole(page, word) => return Ok(false),
            Err(_) if expected.is_none() && attempt > 1 && word.class() == CLASS_UNALLOCATED => return Ok(false),
            Err(error) if attempt == ATTEMPTS => return Err(error),
            Err(_) => {}
        }
        attempt += 1;
        clock.sleep(WAIT);
    }
}

/// Was it never written, or are its blocks those of the file system again? While a copy is taken none goes, so redo from its checkpoint on does not need what a free page was whose blocks are gone.
fn is_hole(page: &[u8], word: SpaceWord) -> bool {
    (word.write_counter() == 0 || word.class() == CLASS_UNALLOCATED) && page.iter().all(|byte| *byte == 0)
}

/// Is it the page it should be, and not older than its map word?
fn is_good(data_set: &DataSet, number: u32, page: &[u8], expected: Option<PageType>, word: SpaceWord) -> Result<()> {
    let found = page::verify(page, &data_set.identity(number)).map_err(|e| data_set.corrupt(number, e))?;
    match expected {
        Some(expected) if expected == found => Ok(()),
        None if !matches!(found, PageType::Header | PageType::SpaceMap) => match word.page_ahead(page::write_counter(page)) {
            behind @ ..0 => Err(data_set.corrupt(number, format!("write counter is {behind} from what the space map has: a lost write"))),
            _ => Ok(()),
        },
        _ => Err(data_set.corrupt(number, format!("a page of type {found:?} is not expected here"))),
    }
}
