//! Pools far too small for what goes through them; and redo: what the log sink got, applied to empty pages, gives the same pages.

use super::*;
use crate::Result;
use crate::database::{Database, OpenMode, ScanRequest, Settings};
use crate::frames::CHUNK_BYTES;
use crate::index::{IndexAttributes, IndexFormat};
use crate::log::Appended;
use crate::table_space::{RowBuffer, Table, TableAttributes};
use pagefold_format::log::{Action, Change, DataSetOp, RecordKind, next_change};
use pagefold_format::page::HEADER_BYTES;
use pagefold_format::space_map::CLASS_NO_ROWS;
use pagefold_format::wire::Reader;
use pagefold_io::{Clock, MemoryStorage, SimulatedClock, Storage};
use pagefold_types::{Column, DataType, Direction, Rid, Schema, ValueRef};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Keeps all records.
#[derive(Debug, Default)]
struct KeepingSink(Arc<Mutex<Vec<Vec<u8>>>>);

impl LogSink for KeepingSink {
    fn append(&self, kind: RecordKind, body: &[&[u8]], publish: &mut dyn FnMut(Appended)) -> Result<Appended> {
        assert_eq!(kind, RecordKind::Action);
        let mut records = self.0.lock();
        records.push(body.concat());
        let end = records.len() as u64;
        publish(Appended { start: end - 1, end });
        Ok(Appended { start: end - 1, end })
    }
    fn make_durable(&self, _lsn: u64) -> Result<()> {
        Ok(())
    }
    fn cut(&self, f: &mut dyn FnMut(u64)) {
        f(self.0.lock().len() as u64);
    }
    fn prepare(&self) -> Result<()> {
        Ok(())
    }
    fn keep_for_undo(&self, _bytes: i64) {}
    fn has_spare(&self, _bytes: u64) -> bool {
        true
    }
}

fn open(settings: PoolSettings) -> Database {
    let storage: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
    let clock: Arc<dyn Clock> = Arc::new(SimulatedClock::new(Duration::from_secs(1)));
    let manager = BufferManager::new(settings, Arc::clone(&clock)).unwrap();
    let settings = Settings { pools: settings, ..Settings::default() };
    Database::open_with(storage, clock.as_ref(), Path::new("db"), OpenMode::Create, settings, manager).unwrap()
}

fn schema() -> Schema {
    Schema::new(vec![Column::new("n", DataType::BigInt, false), Column::new("t", DataType::Varchar(None), false)]).unwrap()
}

fn number(table: &Table, rid: Rid) -> i64 {
    let mut buffer = RowBuffer::default();
    table.read(rid, &mut buffer, |record| table.layout().int_at(record, 0).unwrap().unwrap()).unwrap().unwrap()
}

#[test]
fn redo_gives_the_same_pages() {
    let records = Arc::new(Mutex::new(Vec::new()));
    let sink = KeepingSink(Arc::clone(&records));
    let database = open(PoolSettings { memory_bytes: 8 << 20, background_threads: 0, ..PoolSettings::default() });
    let storage = MemoryStorage::new();
    let double_write = double_write::DoubleWrite::create_or_open(&storage, Path::new("doublewrite"), 1, 1 << 20, false).unwrap();
    database.manager().set_protection(Protection { log: Arc::new(sink), double_write: Some(double_write) });
    let mut change = database.change();
    let table = change.create_table(TableAttributes::new("t", schema()).with_page_bytes(4096)).unwrap();
    table.add_partition().unwrap().set_logged();
    let mut rids = Vec::new();
    for n in 0..2000i64 {
        let text = "word ".repeat(n as usize % 30);
        rids.push(table.insert(&[ValueRef::Int(n), ValueRef::Text(&text)]).unwrap());
        if n % 3 == 0 {
            let longer = "longer ".repeat(n as usize % 90);
            table.update(rids[n as usize / 2], &[(1, ValueRef::Text(&longer))]).unwrap();
        }
        if n % 7 == 0 {
            table.delete(rids[n as usize / 3]).unwrap();
        }
    }
    let data_set = Arc::clone(table.data_sets().next().unwrap());
    let mut pages: HashMap<u32, Vec<u8>> = HashMap::new();
    let mut rows = 0;
    for (lsn, record) in records.lock().iter().enumerate() {
        let mut reader = Reader::new(Action::decode(record).unwrap().changes);
        while !reader.is_empty() {
            let (file, number, change) = next_change(&mut reader).unwrap();
            assert_eq!(file, data_set.file_id());
            let op = match change {
                Change::Page(op) => op,
                Change::DataSet(DataSetOp::Count(counts)) => {
                    rows += counts.rows;
                    continue;
                }
                Change::DataSet(_) => continue,
            };
            let page = pages.entry(number).or_insert_with(|| vec![0; 4096]);
            op.apply(page).unwrap();
            pagefold_format::page::set_lsn(page, lsn as u64 + 1);
        }
    }
    assert!(pages.len() > 20);
    assert_eq!(rows as u64, data_set.facts().rows);
    for (number, redone) in &pages {
        let page = database.manager().shared(&data_set, *number, Access::Random).unwrap();
        assert_eq!(page[HEADER_BYTES..], redone[HEADER_BYTES..], "page {number}");
        assert_eq!(pagefold_format::page::lsn(&page), pagefold_format::page::lsn(redone), "page {number}");
    }
}

#[test]
fn pools_of_all_sizes_share_little_memory() {
    // Two chunks a pool on average; the tables together are twenty times as large.
    let database = open(PoolSettings { memory_bytes: 4 << 20, ..PoolSettings::default() });
    let mut change = database.change();
    let tables: Vec<Arc<Table>> =
        (1..=16).map(|k| change.create_table(TableAttributes::new(format!("t{k}"), schema()).with_page_bytes(2048 * k)).unwrap()).collect();
    let text = "x".repeat(900);
    let mut rids = Vec::new();
    for n in 0..6000i64 {
        for table in &tables {
            let rid = table.insert(&[ValueRef::Int(n), ValueRef::Text(&text)]).unwrap();
            if n % 100 == 0 {
                rids.push((Arc::clone(table), rid, n));
            }
        }
    }
    change.commit().unwrap();
    for (table, rid, n) in &rids {
        assert_eq!(number(table, *rid), *n);
    }
    let used: usize = database.manager().pools().iter().map(|pool| pool.used_bytes()).sum();
    assert!(used <= 4 << 20, "{used} bytes of frames");
    for table in &tables {
        assert_eq!(database.read_view().scan(table, &ScanRequest::default()).unwrap().into_rows().map(Result::unwrap).count(), 6000);
    }
}

/// A pool without memory of its own takes the last of another one's.
#[test]
fn more_pools_than_chunks() {
    let database = open(PoolSettings { memory_bytes: 8 * CHUNK_BYTES, background_threads: 0, ..PoolSettings::default() });
    let mut change = database.change();
    let mut table = |k: usize| change.create_table(TableAttributes::new(format!("t{k}"), schema()).with_page_bytes(2048 * k)).unwrap();
    let tables: Vec<Arc<Table>> = (1..=16).map(&mut table).collect();
    let text = "x".repeat(900);
    let rows: Vec<Vec<Rid>> =
        (0..60).map(|n| tables.iter().map(|table| table.insert(&[ValueRef::Int(n), ValueRef::Text(&text)]).unwrap()).collect()).collect();
    for (n, rids) in rows.iter().enumerate() {
        tables.iter().zip(rids).for_each(|(table, rid)| assert_eq!(number(table, *rid), n as i64));
    }
}

#[test]
fn a_scan_does_not_flush_the_pool() {
    let database = open(PoolSettings { memory_bytes: 4 << 20, background_threads: 1, ..PoolSettings::default() });
    let mut change = database.change();
    let [hot, cold] = ["hot", "cold"].map(|name| change.create_table(TableAttributes::new(name, schema())).unwrap());
    let text = "x".repeat(700);
    let fill = |table: &Table, rows: i64| -> Vec<Rid> {
        (0..rows).map(|n| table.insert(&[ValueRef::Int(n), ValueRef::Text(&text)]).unwrap()).collect()
    };
    let hot_rids = fill(&hot, 2000);
    fill(&cold, 40_000);
    change.commit().unwrap();
    for _ in 0..4 {
        for rid in &hot_rids {
            number(&hot, *rid);
        }
    }
    for _ in 0..3 {
        assert_eq!(database.read_view().scan(&cold, &ScanRequest::default()).unwrap().into_rows().map(Result::unwrap).count(), 40_000);
    }
    let hot_set = hot.data_sets().next().unwrap();
    let before = hot_set.counters().synchronous_reads;
    for rid in &hot_rids {
        number(&hot, *rid);
    }
    let again = hot_set.counters().synchronous_reads - before;
    let pages = u64::from(hot_set.facts().data_pages);
    assert!(again * 10 <= pages, "{again} of {pages} hot pages were read again after scans of a table ten times the pool");
}

#[test]
fn threads_read_and_write_through_a_small_pool() {
    let database = open(PoolSettings { memory_bytes: 2 << 20, ..PoolSettings::default() });
    let mut change = database.change();
    let table = change.create_table(TableAttributes::new("t", schema()).with_page_bytes(4096)).unwrap();
    let text = "x".repeat(400);
    let rows = if cfg!(miri) { 15 } else { 3000 };
    std::thread::scope(|scope| {
        for thread in 0..4i64 {
            let (table, text) = (&table, &text);
            scope.spawn(move || {
                let mut mine = Vec::new();
                for n in 0..rows {
                    let value = thread * 1_000_000 + n;
                    mine.push((table.insert(&[ValueRef::Int(value), ValueRef::Text(text)]).unwrap(), value));
                    let (rid, expected) = mine[(n * 7919 % (n + 1)) as usize];
                    assert_eq!(number(table, rid), expected);
                    if n % 5 == 0 {
                        let (rid, value) = &mut mine[n as usize / 2];
                        *value += 500_000;
                        assert!(table.update(*rid, &[(0, ValueRef::Int(*value))]).unwrap());
                    }
                }
                for (rid, expected) in mine {
                    assert_eq!(number(table, rid), expected);
                }
            });
        }
    });
    change.commit().unwrap();
    assert_eq!(table.row_count(), 4 * rows as u64);
}

/// A page that was changed and given back is not written yet. Who makes a page of this number, and has not changed it, must not keep that from the disk: recovery repeats what happened to it before
/// it was given back. For the same pool and for the other one of a folded index.
#[test]
fn a_page_to_be_made_anew_stays_what_it_was_until_it_is() {
    let database = open(PoolSettings { memory_bytes: 4 << 20, background_threads: 0, ..PoolSettings::default() });
    let manager = database.manager();
    let mut change = database.change();
    let table = change.create_table(TableAttributes::new("t", schema())).unwrap();
    let attributes = IndexAttributes::new("i", vec![(0, Direction::Ascending)], false).with_format(IndexFormat::Fold, 8192);
    let index = change.create_index(&table, attributes).unwrap();
    let insert = |slot| index.tree().insert(b"01234567", Rid::new(0, 1, slot)).unwrap();
    insert(1);
    let data_set = &*index.data_set;
    assert!(data_set.is_folded());
    let (number, mut on_disk) = (data_set.facts().root_page, vec![0; data_set.page_bytes()]);
    for leaf in [true, false] {
        insert(2 + u16::from(leaf));
        let before = manager.shared(data_set, number, Access::Random).unwrap().to_vec();
        data_set.give_back(number);
        let mut mtr = MiniTransaction::begin(manager);
        let handle = mtr.create(data_set, CLASS_NO_ROWS, leaf).unwrap();
        assert_eq!(mtr.number(handle), number);
        // A flush that comes by waits for it, or has written it.
        let done = manager.write_dirty(data_set).unwrap();
        assert_eq!(done, !leaf);
        drop(mtr);
        manager.flush_pages(data_set).unwrap();
        data_set.read_raw(number, &mut on_disk).unwrap();
        let mut frame = vec![0; before.len()];
        leaf_io::into_frame(data_set, number, &on_disk, &mut frame).unwrap();
        assert_eq!(frame[HEADER_BYTES..], before[HEADER_BYTES..]);
        data_set.allocate_page(CLASS_NO_ROWS).unwrap();
    }
}
