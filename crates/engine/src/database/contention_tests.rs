//! Threads that meet on the same pages: who holds a latch for how long, by counts.

use super::read_view::PageWalk;
use super::reading::Reading;
use super::*;
use crate::pool::PoolSettings;
use crate::table_space::{DataPages, RowBuffer, RowSink, TableAttributes};
use pagefold_io::{MemoryStorage, SimulatedClock, Storage};
use pagefold_types::{Column, DataType, Rid, Schema, ValueRef};
use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// A database with a table of so many rows, on pages of 8 KB.
fn with_rows(rows: i64) -> (Database, Vec<Rid>) {
    let pools = PoolSettings { memory_bytes: 16 << 20, background_threads: 0, ..PoolSettings::default() };
    let clock = Arc::new(SimulatedClock::new(Duration::from_secs(1)));
    let storage: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
    let settings = Settings { pools, ..Settings::default() };
    let database = Database::open(storage, clock, Path::new("db"), OpenMode::Create, settings).unwrap();
    let columns = vec![Column::new("n", DataType::BigInt, false), Column::new("t", DataType::Varchar(None), false)];
    let mut change = database.change();
    change.create_table(TableAttributes::new("t", Schema::new(columns).unwrap())).unwrap();
    change.commit().unwrap();
    let table = database.table("t").unwrap();
    let text = "text ".repeat(40);
    let mut t = database.begin(TransactionOptions::default());
    let rids = (0..rows).map(|n| t.insert(&table, &[ValueRef::Int(n), ValueRef::Text(&text)]).unwrap()).collect();
    t.commit().unwrap();
    (database, rids)
}

/// Is handed rows while their page is latched, unless it was copied.
struct Visitor<F>(F);

impl<F: FnMut(Rid)> RowSink<crate::Error> for Visitor<F> {
    fn row(&mut self, rid: Rid, _: &[u8]) -> crate::Result<ControlFlow<()>> {
        (self.0)(rid);
        Ok(ControlFlow::Continue(()))
    }
}

#[test]
fn a_scan_delivers_copies_once_others_have_slept_for_a_latch() {
    let (database, _) = with_rows(1000);
    let table = database.table("t").unwrap();
    let data_set = Arc::clone(table.data_sets().next().unwrap());
    let update = |rid: Rid| {
        let mut t = database.begin(TransactionOptions::default());
        assert!(t.update(&table, rid, &[(0, ValueRef::Int(-1))]).unwrap());
        t.commit().unwrap();
    };
    let (mut visited, mut latched) = (BTreeSet::new(), BTreeSet::new());
    std::thread::scope(|scope| {
        let snapshot = database.core.transactions.snapshot(0);
        let reading = Reading { core: &database.core, transaction: 0, serializable: None, read: None, snapshot: &snapshot };
        let mut sink = Visitor(|rid: Rid| {
            if visited.is_empty() {
                scope.spawn(move || update(rid));
                while data_set.counters().latch_sleeps == 0 {
                    std::thread::yield_now();
                }
            }
            visited.insert(rid.page());
            if database.core.manager.exclusive_unless_busy(&data_set, rid.page()).unwrap().is_none() {
                latched.insert(rid.page());
            }
        });
        let (mut walk, mut buffer) = (PageWalk::of(DataPages::of(&table)), RowBuffer::default());
        while walk.step(&reading, &table, &mut buffer, &mut sink).unwrap() {}
    });
    assert!(visited.len() > 20, "{visited:?}");
    // Before, all of them.
    assert_eq!(latched, visited.iter().take(1).copied().collect(), "pages that nobody could change while they were visited");
}
