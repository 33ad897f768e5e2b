//! Where the rows of a table have come to in the table that is written anew of it.
//!
//! Both tables are gone through page by page, and most slots of a page follow each other: so runs of rows are kept, one or two for each
//! page, and not each row. What is put in and taken out afterwards is kept by itself.
//!
//! Invariants:
//! - runs do not overlap; when they are [sorted](RowPlaces::sort), they are in ascending order of the old RIDs;
//! - what is known of a row by itself counts before the runs.

use crate::hash::FastMap;
use pagefold_types::Rid;
use std::mem::size_of;

/// Rows whose RIDs follow each other, in both tables.
#[derive(Clone, Copy, Debug)]
struct Run {
    old: u64,
    new: u64,
    rows: u32,
}

const _: () = assert!(size_of::<Run>() == 24);

/// From RIDs of a table to those of the one that is written anew.
#[derive(Debug, Default)]
pub(crate) struct RowPlaces {
    runs: Vec<Run>,
    changed: FastMap<Rid, Option<Rid>>,
}

impl RowPlaces {
    /// One more row, whose old RID is none of the others'.
    pub(crate) fn push(&mut self, old: Rid, new: Rid) {
        let (old, new) = (old.to_u64(), new.to_u64());
        match self.runs.last_mut() {
            Some(last) if (last.old + u64::from(last.rows), last.new + u64::from(last.rows)) == (old, new) => last.rows += 1,
            _ => self.runs.push(Run { old, new, rows: 1 }),
        }
    }

    /// When all have come, before the first is asked for.
    pub(crate) fn sort(&mut self) {
        self.runs.sort_unstable_by_key(|run| run.old);
        self.runs.shrink_to_fit();
    }

    /// Where a row is, if it is there.
    pub(crate) fn get(&self, old: Rid) -> Option<Rid> {
        if let Some(known) = self.changed.get(&old) {
            return *known;
        }
        let old = old.to_u64();
        let run = self.runs[..self.runs.partition_point(|run| run.old <= old)].last()?;
        let behind = old - run.old;
        (behind < u64::from(run.rows)).then(|| Rid::from_u64(run.new + behind)).flatten()
    }

    /// From now on a row is there, or is there no more.
    pub(crate) fn set(&mut self, old: Rid, new: Option<Rid>) {
        self.changed.insert(old, new);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn rows_are_found_where_they_were_put() {
        let mut places = RowPlaces::default();
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
        places.sort();
        assert!(places.runs.len() < 700, "{} runs of {} rows", places.runs.len(), expected.len());
        let all = (0..42_u32).flat_map(|page| (0..100_u16).map(move |slot| Rid::new((page / 16) as u16, page, slot)));
        for rid in all.clone() {
            assert_eq!(places.get(rid), expected.get(&rid).copied(), "{rid}");
        }
        for (number, rid) in all.clone().enumerate().filter(|(number, _)| number % 5 == 0) {
            let new = (number % 2 == 0).then(|| Rid::new(1, number as u32, 3));
            places.set(rid, new);
            match new {
                Some(new) => expected.insert(rid, new),
                None => expected.remove(&rid),
            };
        }
        for rid in all {
            assert_eq!(places.get(rid), expected.get(&rid).copied(), "{rid}");
        }
    }
}
