//! Where the rows of a table have come to in the table that is written anew of it.
//!
//! Both tables are gone through page by page, and most slots of a page follow each other: so runs of rows are kept, one or two for each
//! page, and not each row. What is put in and taken out afterwards is kept by itself, in parts that are locked one by one.
//!
//! Invariants:
//! - runs do not overlap, and are in ascending order of the old RIDs;
//! - what is known of a row by itself counts before the runs;
//! - who has a row's place has its part locked: nobody else makes that row what it is in the old table meanwhile.

use crate::hash::{self, FastMap};
use pagefold_types::Rid;
use parking_lot::{Mutex, MutexGuard};
use std::mem::size_of;

/// Rows whose RIDs follow each other, in both tables.
#[derive(Clone, Copy, Debug)]
struct Run {
    old: u64,
    new: u64,
    rows: u32,
}

const _: () = assert!(size_of::<Run>() == 24);

/// Rows that have not all come yet.
#[derive(Debug, Default)]
pub(crate) struct PlacedRows(Vec<Run>);

impl PlacedRows {
    /// One more row, whose old RID is none of the others'.
    pub(crate) fn push(&mut self, old: Rid, new: Rid) {
        let (old, new) = (old.to_u64(), new.to_u64());
        match self.0.last_mut() {
            Some(last) if (last.old + u64::from(last.rows), last.new + u64::from(last.rows)) == (old, new) => last.rows += 1,
            _ => self.0.push(Run { old, new, rows: 1 }),
        }
    }
}

/// Parts of what is known of single rows.
const PARTS: usize = 256;

type Changed = FastMap<Rid, Option<Rid>>;

/// From RIDs of a table to those of the one that is written anew.
#[derive(Debug)]
pub(crate) struct RowPlaces {
    runs: Vec<Run>,
    changed: Box<[Mutex<Changed>]>,
}

/// The place of a row, which nobody else looks at or changes.
#[derive(Debug)]
pub(crate) struct RowPlace<'p> {
    old: Rid,
    /// Where it is, if it is there.
    pub(crate) new: Option<Rid>,
    changed: MutexGuard<'p, Changed>,
}

impl RowPlace<'_> {
    /// From now on the row is there, or is there no more.
    pub(crate) fn set(mut self, new: Option<Rid>) {
        self.changed.insert(self.old, new);
    }
}

impl RowPlaces {
    pub(crate) fn new(placed: PlacedRows) -> RowPlaces {
        let mut runs = placed.0;
        runs.sort_unstable_by_key(|run| run.old);
        runs.shrink_to_fit();
        RowPlaces { runs, changed: (0..PARTS).map(|_| Mutex::default()).collect() }
    }

    /// The place of a row. Waits for who has it.
    pub(crate) fn of(&self, old: Rid) -> RowPlace<'_> {
        let part = hash::of_pair(0, old.to_u64()) >> 40;
        let changed = self.changed[part as usize % PARTS].lock();
        let new = changed.get(&old).copied().unwrap_or_else(|| self.in_runs(old.to_u64()));
        RowPlace { old, new, changed }
    }

    fn in_runs(&self, old: u64) -> Option<Rid> {
        let run = self.runs[..self.runs.partition_point(|run| run.old <= old)].last()?;
        let behind = old - run.old;
        (behind < u64::from(run.rows)).then(|| Rid::from_u64(run.new + behind)).flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn rows_are_found_where_they_were_put() {
        let mut places = PlacedRows::default();
        let mut expected = BTreeMap::new();
        // Full pages, pages with holes, another page size: 90 rows a page here, 70 there.
        let old = (0..40_u32).flat_map(|page| (0..90_u16).map(move |slot| Rid::new((page / 16) as u16, page, slot)));
        let old = old.filter(|rid| !(rid.page() % 3 == 1 && rid.slot() % 7 == 2));
        // Rows that have moved come behind the others of their page.
        let mut old: Vec<Rid> = old.collect();
        old.sort_by_key(|rid| (rid.partition(), rid.page(), rid.slot() % 30 == 4, rid.slot()));
        for (number, old) in old.into_iter().enumerate() {
            let new = Rid::new(0, (number / 70) as u32, (number % 70) as u16);
            places.push(old, new);
            expected.insert(old, new);
        }
        let places = RowPlaces::new(places);
        assert!(places.runs.len() < 700, "{} runs of {} rows", places.runs.len(), expected.len());
        let all = (0..42_u32).flat_map(|page| (0..100_u16).map(move |slot| Rid::new((page / 16) as u16, page, slot)));
        for rid in all.clone() {
            assert_eq!(places.of(rid).new, expected.get(&rid).copied(), "{rid}");
        }
        for (number, rid) in all.clone().enumerate().filter(|(number, _)| number % 5 == 0) {
            let new = (number % 2 == 0).then(|| Rid::new(1, number as u32, 3));
            places.of(rid).set(new);
            match new {
                Some(new) => expected.insert(rid, new),
                None => expected.remove(&rid),
            };
        }
        for rid in all {
            assert_eq!(places.of(rid).new, expected.get(&rid).copied(), "{rid}");
        }
    }
}
