//! Removal of leftovers beside transactions: nobody's request fails because of it.

use super::*;
use crate::index::IndexAttributes;
use crate::pool::{Access, PoolSettings};
use crate::table_space::TableAttributes;
use crate::transaction::REMOVER;
use pagefold_io::{MemoryStorage, SimulatedClock, Storage};
use pagefold_types::{Column, DataType, Direction, Schema, ValueRef};
use std::path::Path;
use std::sync::Arc;
use std::thread::yield_now;
use std::time::Duration;

/// A row that has had another key, and the remover in the midst of taking that out.
#[test]
fn a_removal_is_waited_for_whatever_the_timeout() {
    let storage: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
    let pools = PoolSettings { memory_bytes: 4 << 20, background_threads: 0, ..PoolSettings::default() };
    let clock = Arc::new(SimulatedClock::new(Duration::from_secs(1)));
    let settings = Settings { pools, ..Settings::default() };
    let database = Database::open(storage, clock, Path::new("db"), OpenMode::Create, settings).unwrap();
    let mut change = database.change();
    let schema = Schema::new(vec![Column::new("n", DataType::BigInt, false)]).unwrap();
    let table = change.create_table(TableAttributes::new("t", schema)).unwrap();
    let index = change.create_index(&table, IndexAttributes::new("i", vec![(0, Direction::Ascending)], true)).unwrap();
    change.commit().unwrap();
    for timeout in [Duration::ZERO, Duration::from_nanos(1)] {
        let mut setup = database.begin(TransactionOptions::default());
        let rid = setup.insert(&table, &[ValueRef::Int(1)]).unwrap();
        setup.commit().unwrap();
        // The old key stays for this one.
        let mut reader = database.begin(TransactionOptions { isolation: Isolation::RepeatableRead, ..TransactionOptions::default() });
        assert!(reader.row(&table, rid).unwrap().is_some());
        let mut changes = database.begin(TransactionOptions::default());
        assert!(changes.update(&table, rid, &[(0, ValueRef::Int(2))]).unwrap());
        changes.commit().unwrap();
        reader.rollback().unwrap();
        let locks = &database.core.locks;
        std::thread::scope(|scope| {
            // With its leaf latched the removal holds the row's lock, and cannot go on.
            let leaf = database.manager().shared(&index.data_set, index.data_set.facts().root_page, Access::Random).unwrap();
            let remover = scope.spawn(|| database.remove_leftovers());
            while locks.held(REMOVER) == 0 {
                yield_now();
            }
            let user = scope.spawn(|| {
                let mut user = database.begin(TransactionOptions { lock_timeout: timeout, ..TransactionOptions::default() });
                let locked = user.lock(&table, rid)?;
                user.delete(&table, rid)?;
                user.commit().map(|()| locked)
            });
            while database.waiting_transactions() == 0 && !user.is_finished() {
                yield_now();
            }
            drop(leaf);
            remover.join().unwrap().unwrap();
            let locked = user.join().unwrap();
            assert!(matches!(locked, Ok(true)), "{timeout:?}: {locked:?}");
        });
        assert!(locks.is_empty());
        database.remove_leftovers().unwrap();
    }
}
