//! Where the rows of a table have come to in the tables that are written anew of it.
//!
//! Where both tables are gone through page by page, most slots of a page follow each other: so runs of rows are kept, one or two for each
//! page, and not each row. Where rows are written in another order, or part of a page's rows goes to each of several tables, there may be as many runs as rows: so they come in the
//! order of their old RIDs, for each new table, and those that are too many go to
//! a scratch file, in blocks of which memory has the first RID. What is put in and taken out afterwards is kept by itself, in parts that are locked one by one.
//!
//! Invariants:
//! - runs do not overlap, and those of one new table are in ascending order of the old RIDs; those in memory come behind those in the file;
//! - the file has no name, so it goes with the process; what is read back is checked by a hash that stays in memory;
//! - what is known of a row by itself counts before the runs;
//! - who has a row's place has its part locked: nobody else makes that row what it is in the old table meanwhile.

use crate::hash::{self, FastMap};
use crate::transaction::OpenScratch;
use crate::{Error, Result};
use pagefold_io::{File, read_exact_at};
use pagefold_types::Rid;
use parking_lot::{Mutex, MutexGuard};
use std::fmt;
use std::io;
use std::mem::size_of;
use std::sync::Arc;
use xxhash_rust::xxh3::xxh3_64;

/// Rows whose RIDs follow each other, in both tables.
#[derive(Clone, Copy, Debug)]
struct Run {
    old: u64,
    new: u64,
    rows: u32,
}

const _: () = assert!(size_of::<Run>() == 24);

/// Of a run in the file: old RID, new RID, rows.
const RUN_BYTES: usize = 20;
/// Runs of a block: about a page of 4 KB is read to find one.
const BLOCK_RUNS: usize = 204;
const BLOCK_BYTES: usize = RUN_BYTES * BLOCK_RUNS;
/// Runs in memory; when there are more, all full blocks of them go to the file with one write.
const RUNS_IN_MEMORY: usize = 16 * BLOCK_RUNS;

impl Run {
    fn takes(&mut self, old: u64, new: u64) -> bool {
        let follows = (self.old + u64::from(self.rows), self.new + u64::from(self.rows)) == (old, new) && self.rows < u32::MAX;
        self.rows += u32::from(follows);
        follows
    }

    fn to_bytes(self) -> [u8; RUN_BYTES] {
        let mut bytes = [0; RUN_BYTES];
        bytes[..8].copy_from_slice(&self.old.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.new.to_le_bytes());
        bytes[16..].copy_from_slice(&self.rows.to_le_bytes());
        bytes
    }

    fn from_bytes(bytes: &[u8; RUN_BYTES]) -> Run {
        let [mut old, mut new, mut rows] = [[0; 8], [0; 8], [0; 8]];
        old.copy_from_slice(&bytes[..8]);
        new.copy_from_slice(&bytes[8..16]);
        rows[..4].copy_from_slice(&bytes[16..]);
        Run { old: u64::from_le_bytes(old), new: u64::from_le_bytes(new), rows: u64::from_le_bytes(rows) as u32 }
    }
}

/// A full block in the file.
#[derive(Clone, Copy, Debug)]
struct Block {
    first: u64,
    checksum: u64,
}

/// One of the tables that take part, by its number, and a row of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RowAt {
    /// Which table, in the order in which they were named.
    pub table: usize,
    /// Where the row is in it.
    pub rid: Rid,
}

/// Rows of one old table that have come to one new table, in the order of their old RIDs, in bounded memory.
pub(crate) struct SortedPlaces {
    open: OpenScratch,
    blocks: Vec<Block>,
    file: Option<Arc<dyn File>>,
    /// The last ones.
    runs: Vec<Run>,
}

impl SortedPlaces {
    pub(crate) fn new(open: OpenScratch) -> SortedPlaces {
        SortedPlaces { open, blocks: Vec::new(), file: None, runs: Vec::new() }
    }

    /// One more row, whose old RID is behind those of the others.
    ///
    /// # Errors
    /// When it is not; when the file cannot be written.
    pub(crate) fn push(&mut self, old: Rid, new: Rid) -> Result<()> {
        let (old, new) = (old.to_u64(), new.to_u64());
        if let Some(last) = self.runs.last_mut() {
            if old < last.old + u64::from(last.rows) {
                return Err(Error::Parameter("rows that were written anew are placed in the order of their old RIDs".into()));
            }
            if last.takes(old, new) {
                return Ok(());
            }
        }
        if self.runs.len() > RUNS_IN_MEMORY {
            self.spill()?;
        }
        self.runs.push(Run { old, new, rows: 1 });
        Ok(())
    }

    /// Writes all blocks but the last run, which may go on.
    fn spill(&mut self) -> Result<()> {
        let file = match &self.file {
            Some(file) => Arc::clone(file),
            None => Arc::clone(self.file.insert((self.open)()?)),
        };
        let bytes: Vec<u8> = self.runs[..RUNS_IN_MEMORY].iter().flat_map(|run| run.to_bytes()).collect();
        file.write_at(&bytes, (self.blocks.len() * BLOCK_BYTES) as u64)?;
        let blocks = self.runs.chunks_exact(BLOCK_RUNS).zip(bytes.chunks_exact(BLOCK_BYTES));
        self.blocks.extend(blocks.map(|(runs, bytes)| Block { first: runs[0].old, checksum: xxh3_64(bytes) }));
        self.runs.drain(..RUNS_IN_MEMORY);
        Ok(())
    }

    fn find(&self, old: u64) -> Result<Option<Rid>> {
        let within = |runs: &[Run]| {
            let run = *runs[..runs.partition_point(|run| run.old <= old)].last()?;
            let behind = old - run.old;
            (behind < u64::from(run.rows)).then(|| Rid::from_u64(run.new + behind)).flatten()
        };
        let before = self.blocks.partition_point(|block| block.first <= old);
        match (&self.file, before.checked_sub(1)) {
            (Some(file), Some(block)) if self.runs.first().is_none_or(|run| old < run.old) => {
                let mut bytes = [0; BLOCK_BYTES];
                read_exact_at(file.as_ref(), &mut bytes, (block * BLOCK_BYTES) as u64)?;
                if xxh3_64(&bytes) != self.blocks[block].checksum {
                    let reason = "the places of rows were read back otherwise than they were written";
                    return Err(io::Error::new(io::ErrorKind::InvalidData, reason).into());
                }
                let runs: Vec<Run> = bytes.as_chunks::<RUN_BYTES>().0.iter().map(Run::from_bytes).collect();
                Ok(within(&runs))
            }
            _ => Ok(within(&self.runs)),
        }
    }
}

/// The same of rows that come page by page: within a page in any order, as those that have moved come behind the others.
pub(crate) struct PagedPlaces {
    sorted: SortedPlaces,
    page: Vec<(Rid, Rid)>,
}

impl PagedPlaces {
    pub(crate) fn new(open: OpenScratch) -> PagedPlaces {
        PagedPlaces { sorted: SortedPlaces::new(open), page: Vec::new() }
    }

    /// One more row, whose old RID is on the page of the last one or behind that.
    ///
    /// # Errors
    /// When it is not; when the file cannot be written.
    pub(crate) fn push(&mut self, old: Rid, new: Rid) -> Result<()> {
        let page = |rid: Rid| (rid.partition(), rid.page());
        if self.page.first().is_some_and(|(first, _)| page(*first) != page(old)) {
            self.end_page()?;
        }
        self.page.push((old, new));
        Ok(())
    }

    fn end_page(&mut self) -> Result<()> {
        self.page.sort_unstable();
        self.page.drain(..).try_for_each(|(old, new)| self.sorted.push(old, new))
    }

    /// All of them.
    ///
    /// # Errors
    /// As [`Self::push`].
    pub(crate) fn finish(mut self) -> Result<SortedPlaces> {
        self.end_page()?;
        Ok(self.sorted)
    }
}

/// Parts of what is known of single rows.
const PARTS: usize = 256;

type Changed = FastMap<Rid, Option<RowAt>>;

/// From RIDs of a table to those of the tables that are written anew of it.
pub(crate) struct RowPlaces {
    /// By the numbers of these tables.
    placed: Vec<SortedPlaces>,
    changed: Box<[Mutex<Changed>]>,
}

impl fmt::Debug for RowPlaces {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let runs: usize = self.placed.iter().map(|placed| placed.blocks.len() * BLOCK_RUNS + placed.runs.len()).sum();
        f.debug_struct("RowPlaces").field("runs", &runs).finish_non_exhaustive()
    }
}

/// The place of a row, which nobody else looks at or changes.
#[derive(Debug)]
pub(crate) struct RowPlace<'p> {
    old: Rid,
    /// Where it is, if it is there.
    pub(crate) new: Option<RowAt>,
    changed: MutexGuard<'p, Changed>,
}

impl RowPlace<'_> {
    /// From now on the row is there, or is there no more.
    pub(crate) fn set(mut self, new: Option<RowAt>) {
        self.changed.insert(self.old, new);
    }
}

impl RowPlaces {
    /// Of the rows that have come to each of the new tables.
    pub(crate) fn new(placed: Vec<SortedPlaces>) -> RowPlaces {
        RowPlaces { placed, changed: (0..PARTS).map(|_| Mutex::default()).collect() }
    }

    /// The place of a row. Waits for who has it.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub(crate) fn of(&self, old: Rid) -> Result<RowPlace<'_>> {
        let part = hash::of_pair(0, old.to_u64()) >> 40;
        let changed = self.changed[part as usize % PARTS].lock();
        let new = match changed.get(&old) {
            Some(new) => *new,
            None => self.in_runs(old.to_u64())?,
        };
        Ok(RowPlace { old, new, changed })
    }

    fn in_runs(&self, old: u64) -> Result<Option<RowAt>> {
        for (table, placed) in self.placed.iter().enumerate() {
            if let Some(rid) = placed.find(old)? {
                return Ok(Some(RowAt { table, rid }));
            }
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn in_memory() -> OpenScratch {
        let storage = pagefold_io::MemoryStorage::new();
        Box::new(move || pagefold_io::Storage::open(&storage, std::path::Path::new("places"), &pagefold_io::OpenOptions::create()))
    }

    #[test]
    fn rows_are_found_where_they_were_put() {
        let runs = placed_in(1);
        assert!(runs < 700, "{runs} runs");
    }

    #[test]
    fn rows_of_a_page_are_found_in_several_tables() {
        let runs = placed_in(3);
        assert!(runs > 2000, "{runs} runs");
    }

    /// Puts rows into so many tables by turns, and looks for each; how many runs that makes.
    fn placed_in(tables: usize) -> usize {
        let mut placed: Vec<PagedPlaces> = (0..tables).map(|_| PagedPlaces::new(in_memory())).collect();
        let mut expected = BTreeMap::new();
        let mut rows = vec![0_u32; tables];
        // Full pages, pages with holes, another page size: 90 rows a page here, 70 there.
        let old = (0..40_u32).flat_map(|page| (0..90_u16).map(move |slot| Rid::new((page / 16) as u16, page, slot)));
        let old = old.filter(|rid| !(rid.page() % 3 == 1 && rid.slot() % 7 == 2));
        // Rows that have moved come behind the others of their page.
        let mut old: Vec<Rid> = old.collect();
        old.sort_by_key(|rid| (rid.partition(), rid.page(), rid.slot() % 30 == 4, rid.slot()));
        for (number, old) in old.into_iter().enumerate() {
            let table = number % tables;
            let new = Rid::new(0, rows[table] / 70, (rows[table] % 70) as u16);
            rows[table] += 1;
            placed[table].push(old, new).unwrap();
            expected.insert(old, RowAt { table, rid: new });
        }
        let places = RowPlaces::new(placed.into_iter().map(|placed| placed.finish().unwrap()).collect());
        let runs = places.placed.iter().map(|placed| placed.blocks.len() * BLOCK_RUNS + placed.runs.len()).sum();
        let all = (0..42_u32).flat_map(|page| (0..100_u16).map(move |slot| Rid::new((page / 16) as u16, page, slot)));
        for rid in all.clone() {
            assert_eq!(places.of(rid).unwrap().new, expected.get(&rid).copied(), "{rid}");
        }
        for (number, rid) in all.clone().enumerate().filter(|(number, _)| number % 5 == 0) {
            let new = (number % 2 == 0).then(|| RowAt { table: 0, rid: Rid::new(1, number as u32, 3) });
            places.of(rid).unwrap().set(new);
            match new {
                Some(new) => expected.insert(rid, new),
                None => expected.remove(&rid),
            };
        }
        for rid in all {
            assert_eq!(places.of(rid).unwrap().new, expected.get(&rid).copied(), "{rid}");
        }
        runs
    }

    fn rid(n: u64) -> Rid {
        Rid::new((n / 50_000) as u16, (n / 50) as u32, (n % 50) as u16)
    }

    fn scattered(rows: u64) -> impl Iterator<Item = (Rid, Rid)> {
        // Every third RID has no row.
        (0..rows).map(move |n| (rid(n / 2 * 3 + n % 2), rid(n * 27_644_437 % rows)))
    }

    fn in_file(rows: u64) -> (RowPlaces, Arc<dyn File>) {
        let mut placed = SortedPlaces::new(in_memory());
        scattered(rows).for_each(|(old, new)| placed.push(old, new).unwrap());
        let first = scattered(1).next().unwrap();
        assert!(placed.push(first.0, first.1).is_err(), "out of order");
        assert!(placed.runs.len() <= RUNS_IN_MEMORY + 1, "{} runs in memory", placed.runs.len());
        let file = placed.file.clone().unwrap();
        (RowPlaces::new(vec![placed]), file)
    }

    #[test]
    fn rows_in_another_order_are_found_in_bounded_memory() {
        for rows in [RUNS_IN_MEMORY as u64 + 2, 50_000] {
            let (places, file) = in_file(rows);
            assert_eq!(places.placed[0].blocks.len() % 16, 0);
            let expected: BTreeMap<Rid, RowAt> = scattered(rows).map(|(old, rid)| (old, RowAt { table: 0, rid })).collect();
            for old in (0..rows * 3 / 2 + 9).map(rid) {
                assert_eq!(places.of(old).unwrap().new, expected.get(&old).copied(), "{old}");
            }
            let (old, _) = scattered(2).nth(1).unwrap();
            places.of(old).unwrap().set(None);
            // What others have written into it is not believed; a row of its own needs no file.
            file.write_at(&[7; 20], 40).unwrap();
            assert!(places.of(rid(0)).is_err());
            assert_eq!(places.of(old).unwrap().new, None);
        }
    }
}
