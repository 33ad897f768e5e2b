//! Whether a table would be better off with another dictionary.
//!
//! What came lately is held against what the newest dictionary did for the rows it was made for. When it does less for these, or when an eighth of the table has come since a dictionary was last tried, one is trained on what has come since rows
//! are like this, and tried on rows that it was not trained on. It has to make them smaller by some percent, and to save more than it takes before half as much as there is has come.
//!
//! There are two versions at rest. The third ends one of the others, whose rows then get the newest's form. Rows that it was not made for may become larger by that, and full pages have no room for larger rows; what that costs counts against it. So
//! the version goes whose rows it suits best. If it suits none, one is tried that is trained on rows of the oldest, too; if that does not pay either, nothing goes, until ending a version costs less than a fourth would save.

use super::super::attributes::Method;
use super::super::table::Table;
use super::LIVE_MAX;
use super::sample::SampledRecords;
use super::saving::Saving;
use super::set::Compressor;
use crate::Result;
use crate::core::Work;
use pagefold_codec::row::RowDictionary;
use std::cmp::Ordering;

/// A first dictionary is trained when a table takes so many bytes.
const FIRST_BYTES: u64 = 256 << 10;
/// Fewer bytes of new rows say nothing.
const RECENT_MIN: usize = 64 << 10;
/// Rows take more than under the newest dictionary at first when they take so much of that.
const WORSE: f64 = 1.05;
/// A new dictionary is to save so much of what newer rows take.
const WORTH: f64 = 0.02;
/// What a row that moves takes, with what is left at its home, of what it takes there.
const MOVED: f64 = 1.4;
/// A dictionary is tried whatever rows take when one in so many parts of the table has come since.
const TRIED_PART: f64 = 8.0;
/// A new dictionary is to save what it takes before so much of the table has come again: one part in so many.
const PAYS_PART: f64 = 2.0;
/// One in so many rows is not trained on.
const JUDGED: usize = 4;
/// Bytes of rows that are trained on, at most.
const TRAINING_BYTES: usize = 4 << 20;

/// So many pages of a table are looked at for rows of before the first dictionary.
const PROBES: usize = 64;

/// What is known of the newest dictionary.
#[derive(Debug, Default)]
pub(in crate::table_space) struct Standing {
    version: u16,
    /// What it made of a byte of the first rows that came after it; 0: not known yet. Those that it was trained on are nearer to it: they came one after another.
    ratio: f64,
    /// Bytes of rows that have come since another was tried.
    untried: u64,
    /// Rows that have come since they are as they are now.
    rows: SampledRecords,
    /// The version that is to go.
    retires: Option<u16>,
    /// No page is from before the first dictionary.
    nothing_plain: bool,
}

impl Table {
    /// Bytes of the pages with rows.
    fn stored_bytes(&self) -> u64 {
        let pages: u64 = self.data_sets().map(|data_set| u64::from(data_set.facts().data_pages)).sum();
        pages * self.attributes.page_bytes as u64
    }

    /// A row has come. Asks for a look when it is time.
    #[inline]
    pub(in crate::table_space) fn watch_row(&self, record: &[u8]) {
        let Some(watch) = &self.watch else { return };
        let first = |bytes: u64| if self.dictionaries.newest().is_none() && bytes >= FIRST_BYTES { 0 } else { bytes };
        if watch.note(record, || first(self.stored_bytes())) {
            self.core.renewal.ask(Work::Dictionary(self.object_id));
        }
    }

    /// A dictionary that makes newer rows smaller than the newest one does; `None` when there is none, or it would not pay, or as many are alive as can be.
    pub(crate) fn better_dictionary(&self) -> Result<Option<RowDictionary>> {
        let Some(watch) = &self.watch else { return Ok(None) };
        let table_bytes = self.stored_bytes();
        let (recent, bytes) = watch.take(table_bytes);
        let method = self.attributes.method;
        let Some(newest) = self.dictionary() else {
            if table_bytes < FIRST_BYTES {
                return Ok(None);
            }
            return Ok(self.sample_records()?.train(method, &self.layout, self.row_count(), self.attributes.page_fill()));
        };
        let mut standing = self.standing.lock();
        standing.untried += bytes;
        if recent.bytes() < RECENT_MIN || standing.retires.is_some() {
            return Ok(None);
        }
        let now = ratio(&recent, method, self, newest.dictionary());
        if standing.version == 0 {
            // Made by LOAD, or before the table was opened.
            let rows = self.sample_records()?.limited(RECENT_MIN * 4);
            standing.ratio = ratio(&rows, method, self, newest.dictionary());
        } else if standing.ratio == 0.0 {
            standing.ratio = now;
        }
        standing.version = newest.version();
        let others_come = now > standing.ratio * WORSE;
        let raw_bytes = table_bytes as f64 / standing.ratio.max(0.01);
        let overdue = standing.untried as f64 >= raw_bytes / TRIED_PART;
        // Tried on rows that came after those it is trained on.
        let before = if others_come { SampledRecords::default() } else { std::mem::take(&mut standing.rows) };
        let (training, judged) = if before.is_empty() { recent.split(JUDGED) } else { (before, recent) };
        let mut verdict = None;
        if others_come || overdue {
            standing.untried = 0;
            verdict = Trial { table: self, newest: &newest, table_bytes, raw_bytes, training: &training, judged: &judged }.verdict()?;
            // Newer rows are like this.
            standing.ratio = now;
        }
        standing.rows = training;
        standing.rows.extend(&judged, TRAINING_BYTES);
        let Some(verdict) = verdict else { return Ok(None) };
        standing.retires = verdict.retires;
        if verdict.dictionary.is_some() {
            standing.ratio = 0.0;
        }
        Ok(verdict.dictionary)
    }

    /// The version whose rows are to come into the form of the newest; 0, which are those of before the first, when there is one. Never the newest itself: rows have its form for ever.
    pub(super) fn version_to_retire(&self) -> Result<Option<u16>> {
        let newest = self.dictionaries.newest().map_or(0, |newest| newest.version());
        let mut standing = self.standing.lock();
        standing.retires = standing.retires.filter(|version| *version < newest);
        if standing.retires.is_some() {
            return Ok(standing.retires);
        }
        drop(standing);
        Ok((self.dictionary_versions().len() == 1 && self.may_have_plain_pages()?).then_some(0))
    }

    /// The oldest version is to go, whatever that costs, when there are as many as can be.
    pub(crate) fn retire_oldest_of_many(&self) {
        let versions = self.dictionary_versions();
        self.standing.lock().retires = versions.first().copied().filter(|_| versions.len() >= LIVE_MAX);
    }

    /// No version is to go any more: it has gone, or what it was to go for has not come.
    pub(crate) fn nothing_retires(&self) {
        self.standing.lock().retires = None;
    }

    /// Has one of a few pages, evenly taken, rows of before the first dictionary?
    fn may_have_plain_pages(&self) -> Result<bool> {
        if self.standing.lock().nothing_plain {
            return Ok(false);
        }
        for data_set in self.data_sets().filter(|data_set| data_set.is_defined()) {
            let pages = data_set.data_page_numbers();
            for number in pages.iter().step_by(pages.len().div_ceil(PROBES).max(1)) {
                if self.has_plain_rows(data_set, *number)? {
                    return Ok(true);
                }
            }
        }
        self.nothing_is_plain();
        Ok(false)
    }

    /// No page is from before the first dictionary.
    pub(super) fn nothing_is_plain(&self) {
        self.standing.lock().nothing_plain = true;
    }
}

/// A dictionary that is tried.
struct Trial<'a> {
    table: &'a Table,
    newest: &'a Compressor,
    /// Bytes of pages with rows, and of the records in them.
    table_bytes: u64,
    raw_bytes: f64,
    training: &'a SampledRecords,
    judged: &'a SampledRecords,
}

/// What is to be done.
struct Verdict {
    dictionary: Option<RowDictionary>,
    /// The version that is to go.
    retires: Option<u16>,
}

impl Trial<'_> {
    fn verdict(&self) -> Result<Option<Verdict>> {
        let Some(for_new) = self.train(self.training) else { return Ok(None) };
        let gain = self.gain(&for_new);
        if gain <= 0.0 {
            return Ok(None);
        }
        let adopt = |dictionary: RowDictionary, retires| Ok(Some(Verdict { dictionary: Some(dictionary), retires }));
        let versions = self.table.dictionary_versions();
        if versions.len() == 1 {
            return adopt(for_new, None);
        }
        let samples = self.table.samples_of(&versions)?;
        let growth = |at: usize, dictionary: &RowDictionary| {
            let (rows, part) = &samples[at];
            let old = self.table.dictionaries.get(versions[at]);
            (old.map_or(f64::MAX, |old| self.growth(rows, *part, old.dictionary(), dictionary)), *part)
        };
        let suits_best = |among: usize, dictionary: &RowDictionary| {
            let costs = (0..among).map(|at| (growth(at, dictionary), at));
            costs.min_by(|a, b| a.0.partial_cmp(&b.0).unwrap_or(Ordering::Equal)).map_or((f64::MAX, 0), |((growth, _), at)| (growth, at))
        };
        if versions.len() >= LIVE_MAX {
            // One has to go before another can come; the table will take more for longer than half of it.
            let (growth, at) = suits_best(versions.len() - 1, self.newest.dictionary());
            return Ok((gain * PAYS_PART > growth).then_some(Verdict { dictionary: None, retires: Some(versions[at]) }));
        }
        let (cost, at) = suits_best(versions.len(), &for_new);
        if gain > cost {
            return adopt(for_new, Some(versions[at]));
        }
        let mut training = self.training.clone();
        training.mix(&samples[0].0);
        match self.train(&training).filter(|dictionary| self.gain(dictionary) > growth(0, dictionary).0) {
            Some(for_both) => adopt(for_both, Some(versions[0])),
            None => adopt(for_new, None),
        }
    }

    fn train(&self, rows: &SampledRecords) -> Option<RowDictionary> {
        rows.train_any(self.table.attributes.method, &self.table.layout)
    }

    /// Bytes of the pages that as many rows as are judged take.
    fn page_bytes(&self, dictionary: &RowDictionary) -> f64 {
        let (attributes, rows) = (&self.table.attributes, self.judged);
        let saving = Saving::new(rows, attributes.method, &self.table.layout, dictionary);
        saving.pages_per_row(attributes.page_fill()) * rows.len() as f64 * attributes.page_bytes as f64
    }

    fn stored(&self, rows: &SampledRecords, dictionary: &RowDictionary) -> f64 {
        rows.stored_bytes(self.table.attributes.method, &self.table.layout, dictionary) as f64
    }

    /// Bytes of pages that a dictionary saves of newer rows, what it takes itself set off, until a part of the table has come again; nothing when that is little of what they take.
    fn gain(&self, dictionary: &RowDictionary) -> f64 {
        let before = self.page_bytes(self.newest.dictionary());
        let saved = before - self.page_bytes(dictionary);
        if saved < before * WORTH {
            return 0.0;
        }
        saved / self.judged.bytes().max(1) as f64 * self.raw_bytes / PAYS_PART - dictionary.to_bytes().len() as f64
    }

    /// Bytes that the rows of a version, which are a part of the table, take more with another dictionary.
    fn growth(&self, rows: &SampledRecords, part: f64, old: &RowDictionary, new: &RowDictionary) -> f64 {
        let (before, after) = (self.stored(rows, old), self.stored(rows, new));
        if rows.is_empty() || after <= before {
            return 0.0;
        }
        let of_table = part * self.table_bytes as f64;
        let grows = after / before - 1.0;
        if self.table.by_column() {
            // A page that is too full is given up: all of its rows move, and lie by themselves then.
            return if grows > 1.0 / super::super::columns::RESERVE as f64 { part * self.raw_bytes } else { 0.0 };
        }
        // Rows that move leave pointers, and lie with theirs.
        of_table * grows * MOVED
    }
}

/// What a dictionary makes of a byte of these rows.
fn ratio(rows: &SampledRecords, method: Method, table: &Table, dictionary: &RowDictionary) -> f64 {
    rows.stored_bytes(method, &table.layout, dictionary) as f64 / rows.bytes().max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::super::Rewritten;
    use super::*;
    use crate::database::{Database, OpenMode, ScanRequest, Settings, TransactionOptions};
    use crate::table_space::TableAttributes;
    use pagefold_io::{MemoryStorage, SimulatedClock, Storage};
    use pagefold_types::{Column, DataType, Schema, Value, ValueRef};
    use std::path::Path;
    use std::sync::Arc;
    use std::time::Duration;

    fn text(n: i64) -> String {
        ["one of the words", "another of the words", "words that come seldom"][(n % 3) as usize].repeat((n % 4) as usize + 1)
    }

    fn insert(database: &Database, from: i64, to: i64) {
        let table = database.table("t").unwrap();
        let mut t = database.begin(TransactionOptions::default());
        for n in from..to {
            t.insert(&table, &[ValueRef::Int(n), ValueRef::Text(&text(n))]).unwrap();
        }
        t.commit().unwrap();
    }

    /// A look has found another dictionary to be better, and that the newest one should go for it. Then the other one did not come, as the table was altered, or the disk was full.
    #[test]
    fn the_newest_dictionary_stays() {
        for method in [Method::Fixed, Method::Huffman, Method::Page] {
            let storage: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
            let open = |mode| {
                let clock = Arc::new(SimulatedClock::new(Duration::from_secs(1)));
                Database::open(Arc::clone(&storage), clock, Path::new("db"), mode, Settings::default()).unwrap()
            };
            let database = open(OpenMode::Create);
            let columns = vec![Column::new("n", DataType::BigInt, false), Column::new("t", DataType::Varchar(None), false)];
            let mut change = database.change();
            change.create_table(TableAttributes { method, ..TableAttributes::new("t", Schema::new(columns).unwrap()) }).unwrap();
            change.commit().unwrap();
            let table = database.table("t").unwrap();
            for turn in 0..3 {
                insert(&database, 2000 * turn, 2000 * (turn + 1));
                if turn < 2 {
                    let dictionary = table.sample_records().unwrap().train_any(method, table.layout()).unwrap();
                    database.use_dictionary("t", dictionary).unwrap();
                }
            }
            let newest = table.dictionary().unwrap().version();
            table.standing.lock().retires = Some(newest);
            for _ in 0..3 {
                database.renew_dictionaries("t").unwrap();
            }
            assert!(table.dictionary_versions().contains(&newest), "{method:?}");
            assert!(table.drop_dictionary(newest).is_err(), "{method:?}");
            drop(table);
            drop(database);
            let database = open(OpenMode::Write);
            let table = database.table("t").unwrap();
            let rows = database.read_view().scan(&table, &ScanRequest::default()).unwrap().into_rows();
            let mut seen: Vec<i64> = rows
                .map(|row| {
                    let (_, values) = row.unwrap();
                    let [Value::Int(n), Value::Text(found)] = values.as_slice() else { panic!("{values:?}") };
                    assert_eq!(*found, text(*n));
                    *n
                })
                .collect();
            seen.sort_unstable();
            assert!(seen.into_iter().eq(0..6000), "{method:?}");
        }
    }

    /// Pages without rows of a version were listed, and given back before their turn came; they lie in memory as they were.
    #[test]
    fn a_page_that_was_given_back_is_not_rewritten() {
        for method in [Method::Fixed, Method::Huffman, Method::Page] {
            let storage: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
            let clock = Arc::new(SimulatedClock::new(Duration::from_secs(1)));
            let database = Database::open(storage, clock, Path::new("db"), OpenMode::Create, Settings::default()).unwrap();
            let columns = vec![Column::new("n", DataType::BigInt, false), Column::new("t", DataType::Varchar(None), false)];
            let mut change = database.change();
            let attributes = TableAttributes::new("t", Schema::new(columns).unwrap()).with_page_bytes(2048);
            change.create_table(TableAttributes { method, ..attributes }).unwrap();
            change.commit().unwrap();
            insert(&database, 0, 2000);
            let table = database.table("t").unwrap();
            let train = || table.sample_records().unwrap().train_any(method, table.layout()).unwrap();
            database.use_dictionary("t", train()).unwrap();
            insert(&database, 2000, 6000);
            let version = table.dictionary().unwrap().version();
            database.use_dictionary("t", train()).unwrap();
            let data_set = table.data_sets().next().unwrap();
            let listed = data_set.data_page_numbers();
            let rows = database.read_view().scan(&table, &ScanRequest::default()).unwrap().into_rows();
            let mut t = database.begin(TransactionOptions::default());
            for row in rows {
                assert!(t.delete(&table, row.unwrap().0).unwrap());
            }
            t.commit().unwrap();
            database.remove_leftovers().unwrap();
            database.checkpoint().unwrap();
            let pages = data_set.facts().data_pages;
            let given_back: Vec<u32> = listed.into_iter().filter(|page| data_set.is_given_back(*page)).collect();
            assert!(given_back.len() > 20, "{method:?}: {given_back:?}");
            for page in &given_back {
                assert_eq!(table.rewrite_page(0, data_set, *page, version).unwrap(), Rewritten::Clean, "{method:?}, page {page}");
            }
            assert!(given_back.iter().all(|page| data_set.is_given_back(*page)), "{method:?}: a page that is free has room for rows");
            insert(&database, 0, 500);
            assert!(data_set.facts().data_pages >= pages, "{method:?}");
        }
    }
}
