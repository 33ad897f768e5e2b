//! What statements, rollbacks and opening cost, in steps, beside ever more of what they have nothing to do with.

use super::*;
use crate::Error;
use crate::index::IndexAttributes;
use crate::pool::PoolSettings;
use crate::steps::{assert_grows_by_doubling, steps_of};
use crate::table_space::TableAttributes;
use pagefold_format::log::Leftover;
use pagefold_io::{MemoryStorage, SimulatedClock, Storage};
use pagefold_types::{Column, DataType, Direction, Rid, Schema, ValueRef};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

fn open(storage: &Arc<dyn Storage>, mode: OpenMode) -> Database {
    let pools = PoolSettings { memory_bytes: 16 << 20, background_threads: 0, ..PoolSettings::default() };
    let clock = Arc::new(SimulatedClock::new(Duration::from_secs(1)));
    Database::open(Arc::clone(storage), clock, Path::new("db"), mode, Settings { pools, ..Settings::default() }).unwrap()
}

/// A database with so many tables, each with a unique index and a row.
fn with_tables(storage: &Arc<dyn Storage>, tables: u64) -> Database {
    let database = open(storage, OpenMode::Create);
    let mut change = database.change();
    for i in 0..tables {
        let schema = Schema::new(vec![Column::new("n", DataType::BigInt, false), Column::new("v", DataType::BigInt, false)]).unwrap();
        let table = change.create_table(TableAttributes::new(format!("t{i:05}"), schema)).unwrap();
        change.create_index(&table, IndexAttributes::new(format!("i{i:05}"), vec![(0, Direction::Ascending)], true)).unwrap();
    }
    change.commit().unwrap();
    let mut transaction = database.begin(TransactionOptions::default());
    for table in database.tables().unwrap() {
        transaction.insert(&table, &[ValueRef::Int(0), ValueRef::Int(0)]).unwrap();
    }
    transaction.commit().unwrap();
    database
}

#[test]
fn statements_beside_many_tables() {
    let mut counted = Vec::new();
    for tables in [8, 32, 128] {
        let storage: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
        let database = with_tables(&storage, tables);
        let table = database.table(&format!("t{:05}", tables / 2)).unwrap();
        let row = [ValueRef::Int(1), ValueRef::Int(1)];
        let begin = || database.begin(TransactionOptions::default());
        let (insert, (mut t, rid)) = steps_of(|| {
            let mut t = begin();
            let rid = t.insert(&table, &row).unwrap();
            (t, rid)
        });
        let (failure, _) = steps_of(|| t.insert(&table, &row).unwrap_err());
        let (update, _) = steps_of(|| t.update(&table, rid, &[(0, ValueRef::Int(2))]).unwrap());
        let (rollback, ()) = steps_of(|| t.rollback().unwrap());
        let (removal, ()) = steps_of(|| {
            let mut t = begin();
            let rid = t.insert(&table, &row).unwrap();
            t.commit().unwrap();
            let mut t = begin();
            t.update(&table, rid, &[(0, ValueRef::Int(2))]).unwrap();
            t.delete(&table, rid).unwrap();
            t.commit().unwrap();
            database.remove_leftovers().unwrap();
        });
        assert_eq!(table.row_count(), 1);
        println!("{tables} tables: insert {insert}, failing insert {failure}, update {update}, rollback {rollback}, removal {removal}");
        counted.push((tables, insert.max(failure).max(update).max(rollback).max(removal)));
    }
    assert_grows_by_doubling(&counted, 0);
}

/// Who returns to a savepoint again and again reads what was done since, not all that was taken back before.
#[test]
fn returns_to_one_savepoint() {
    let mut counted = Vec::new();
    for returns in [25, 100, 400] {
        let storage: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
        let database = with_tables(&storage, 1);
        let table = database.table("t00000").unwrap();
        let mut t = database.begin(TransactionOptions::default());
        t.insert(&table, &[ValueRef::Int(1), ValueRef::Int(0)]).unwrap();
        let savepoint = t.savepoint();
        let again = |t: &mut Transaction<'_>| {
            t.insert(&table, &[ValueRef::Int(2), ValueRef::Int(0)]).unwrap();
            t.roll_back_to(savepoint).unwrap();
        };
        (0..returns).for_each(|_| again(&mut t));
        let (last, ()) = steps_of(|| again(&mut t));
        let (rollback, ()) = steps_of(|| t.rollback().unwrap());
        assert_eq!(table.row_count(), 1);
        println!("{returns} returns: the last {last}, the rollback {rollback}");
        counted.push((returns, last + rollback));
    }
    assert_grows_by_doubling(&counted, 0);
}

#[test]
fn failing_statements_of_a_long_transaction() {
    let mut counted = Vec::new();
    for entered in [100, 400, 1600] {
        let storage: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
        let database = with_tables(&storage, 1);
        let table = database.table("t00000").unwrap();
        let mut t = database.begin(TransactionOptions::default());
        for i in 1..=entered {
            let rid = t.insert(&table, &[ValueRef::Int(i), ValueRef::Int(1)]).unwrap();
            // Each leaves an entry of the index, and a ghost.
            t.update(&table, rid, &[(0, ValueRef::Int(-i))]).unwrap();
            t.delete(&table, rid).unwrap();
        }
        let (steps, _) = steps_of(|| t.insert(&table, &[ValueRef::Int(0), ValueRef::Int(1)]).unwrap_err());
        counted.push((entered as u64, steps));
        let savepoint = t.savepoint();
        let rid = t.insert(&table, &[ValueRef::Int(entered + 1), ValueRef::Int(1)]).unwrap();
        t.delete(&table, rid).unwrap();
        t.roll_back_to(savepoint).unwrap();
        t.rollback().unwrap();
        assert!(database.core.leftovers.all(&[]).is_empty());
        assert_eq!(table.row_count(), 1);
    }
    println!("steps of a failing statement: {counted:?}");
    assert_grows_by_doubling(&counted, 0);
}

/// What is entered after a savepoint goes, the rest stays: also when what is taken back has been logged.
#[test]
fn what_is_taken_back_is_no_longer_left() {
    let storage: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
    let database = with_tables(&storage, 1);
    let table = database.table("t00000").unwrap();
    let mut t = database.begin(TransactionOptions::default());
    let rids: Vec<Rid> = (1..=4).map(|i| t.insert(&table, &[ValueRef::Int(i), ValueRef::Int(1)]).unwrap()).collect();
    let ghosts = || {
        let all = database.core.leftovers.all(&[]).into_iter();
        let rids = all.filter_map(|l| if let Leftover::Ghost { rid, .. } = l.left { Some(rid) } else { None });
        rids.collect::<Vec<_>>()
    };
    t.delete(&table, rids[0]).unwrap();
    let savepoint = t.savepoint();
    t.delete(&table, rids[1]).unwrap();
    t.roll_back_to(savepoint).unwrap();
    assert_eq!(ghosts(), [rids[0]]);
    t.delete(&table, rids[2]).unwrap();
    t.roll_back_to(savepoint).unwrap();
    t.delete(&table, rids[3]).unwrap();
    assert_eq!(ghosts(), [rids[0], rids[3]]);
    t.commit().unwrap();
    assert_eq!(table.row_count(), 3);
}

#[test]
fn opening_one_table_of_many() {
    let mut counted = Vec::new();
    for tables in [8, 32, 128] {
        let storage: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
        with_tables(&storage, tables).close().unwrap();
        let (steps, database) = steps_of(|| open(&storage, OpenMode::Write));
        assert_eq!(database.tables().unwrap().len() as u64, tables);
        counted.push((tables, steps / tables));
    }
    println!("steps of opening, per table: {counted:?}");
    assert_grows_by_doubling(&counted, 0);
}

/// A commit beside transactions that have a snapshot each, all of different moments.
#[test]
fn committing_beside_many_snapshots() {
    let mut counted = Vec::new();
    for open in [50, 200, 800u64] {
        let storage: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
        let database = with_tables(&storage, 1);
        let table = database.table("t00000").unwrap();
        let rid = Rid::new(0, 2, 0);
        let change = |value| {
            let mut t = database.begin(TransactionOptions::default());
            assert!(t.update(&table, rid, &[(1, ValueRef::Int(value))]).unwrap());
            t.commit().unwrap();
        };
        let repeatable = TransactionOptions { isolation: Isolation::RepeatableRead, ..TransactionOptions::default() };
        let mut others = Vec::new();
        for i in 0..open {
            let mut t = database.begin(repeatable);
            assert!(t.row(&table, rid).unwrap().is_some());
            others.push(t);
            change(i as i64);
        }
        let (steps, ()) = steps_of(|| (0..1000).for_each(change));
        counted.push((open, steps / 1000));
    }
    println!("steps of a commit: {counted:?}");
    assert_grows_by_doubling(&counted, 8);
}

/// A serializable insert beside transactions that have each read many keys, some of which were not there.
#[test]
fn inserting_beside_many_point_reads() {
    let mut counted = Vec::new();
    for readers in [8, 32, 128] {
        let storage: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
        let database = with_tables(&storage, 1);
        let (table, index) = (database.table("t00000").unwrap(), database.index("i00000").unwrap());
        let serializable = TransactionOptions { isolation: Isolation::Serializable, ..TransactionOptions::default() };
        let mut others = Vec::new();
        for reader in 0..readers {
            let mut t = database.begin(serializable);
            for i in 0..50 {
                assert_eq!(t.get(&table, &index, &[ValueRef::Int(10 + i * readers + reader)], |_, _| ()).unwrap(), None);
                assert_eq!(t.find(&table, &index, &[ValueRef::Int(1_000_000 + i * readers + reader)]).unwrap(), []);
            }
            others.push(t);
        }
        let mut t = database.begin(serializable);
        let (steps, _) = steps_of(|| t.insert(&table, &[ValueRef::Int(25 * readers), ValueRef::Int(0)]).unwrap());
        counted.push((readers as u64, steps));
    }
    println!("steps of a serializable insert: {counted:?}");
    assert_grows_by_doubling(&counted, 0);
}

/// One unique key, deleted and inserted again: in one transaction, and by many while an old reader keeps what was deleted.
#[test]
fn a_key_that_many_rows_have_had() {
    let (mut within, mut failing, mut returns, mut short) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for times in [25, 100, 400u64] {
        let storage: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
        let database = with_tables(&storage, 1);
        let table = database.table("t00000").unwrap();
        let row = [ValueRef::Int(0), ValueRef::Int(1)];
        let again = |t: &mut Transaction<'_>, rid: &mut Rid| {
            assert!(t.delete(&table, *rid).unwrap());
            *rid = t.insert(&table, &row).unwrap();
        };
        let mut rid = Rid::new(0, 2, 0);
        let mut t = database.begin(TransactionOptions::default());
        (0..times).for_each(|_| again(&mut t, &mut rid));
        within.push((times, steps_of(|| again(&mut t, &mut rid)).0));
        failing.push((times, steps_of(|| assert!(matches!(t.insert(&table, &row), Err(Error::DuplicateKey { .. })))).0));
        let savepoint = t.savepoint();
        returns.push((
            times,
            steps_of(|| {
                again(&mut t, &mut rid.clone());
                t.roll_back_to(savepoint).unwrap();
                again(&mut t, &mut rid.clone());
            })
            .0,
        ));
        t.rollback().unwrap();

        let mut reader = database.begin(TransactionOptions { isolation: Isolation::RepeatableRead, ..TransactionOptions::default() });
        assert!(reader.row(&table, Rid::new(0, 2, 0)).unwrap().is_some());
        let mut rid = Rid::new(0, 2, 0);
        let mut commit = || {
            let mut t = database.begin(TransactionOptions::default());
            let (steps, ()) = steps_of(|| again(&mut t, &mut rid));
            t.commit().unwrap();
            steps
        };
        (0..times).for_each(|_| _ = commit());
        short.push((times, commit()));
        assert!(reader.row(&table, Rid::new(0, 2, 0)).unwrap().is_some());
        assert_eq!(table.row_count(), 1);
    }
    println!("steps: in one transaction {within:?}, refused {failing:?}, after a return {returns:?}; in short ones {short:?}");
    for counted in [within, failing, returns, short] {
        assert_grows_by_doubling(&counted, 1);
    }
}

/// What one reader holds is not looked at when another one has ended.
#[test]
fn removing_beside_what_another_snapshot_needs() {
    let mut counted = Vec::new();
    for held in [50, 200, 800] {
        let storage: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
        let database = with_tables(&storage, 1);
        let table = database.table("t00000").unwrap();
        let change = |rid, number| {
            let mut t = database.begin(TransactionOptions::default());
            assert!(t.update(&table, rid, &[(0, ValueRef::Int(number))]).unwrap());
            t.commit().unwrap();
        };
        let mut t = database.begin(TransactionOptions::default());
        let rids: Vec<Rid> = (1..=held + 1).map(|i| t.insert(&table, &[ValueRef::Int(i), ValueRef::Int(0)]).unwrap()).collect();
        t.commit().unwrap();
        let read = || {
            let repeatable = TransactionOptions { isolation: Isolation::RepeatableRead, ..TransactionOptions::default() };
            let mut reader = database.begin(repeatable);
            assert!(reader.row(&table, rids[0]).unwrap().is_some());
            reader
        };
        let old = read();
        for (i, rid) in (1..).zip(&rids[1..]) {
            change(*rid, -i);
        }
        // Old enough not to be waited for.
        let commits = |count| (0..count).for_each(|i| change(rids[0], 100_000 + i % 2));
        commits(600);
        database.remove_leftovers().unwrap();
        let other = read();
        commits(600);
        let entries = || {
            let mut entries = 0;
            database
                .index("i00000")
                .unwrap()
                .tree()
                .check(&mut |_, _| {
                    entries += 1;
                    Ok(())
                })
                .unwrap();
            entries
        };
        drop(other);
        let (steps, ()) = steps_of(|| database.remove_leftovers().unwrap());
        // Two of each row that the reader sees otherwise.
        assert!(entries() <= 2 * held as usize + 5, "{} entries", entries());
        counted.push((held as u64, steps));
        old.commit().unwrap();
        database.remove_leftovers().unwrap();
        assert_eq!(entries(), held as usize + 2);
    }
    println!("steps of a removal: {counted:?}");
    assert_grows_by_doubling(&counted, 2);
}

/// Who reads the log looks at each thing left once, not at all that is left for each that goes.
#[test]
fn reading_a_log_with_many_deleted_rows() {
    let mut counted = Vec::new();
    for rows in [200, 800, 3200] {
        let storage: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
        let database = with_tables(&storage, 1);
        let table = database.table("t00000").unwrap();
        let mut t = database.begin(TransactionOptions::default());
        let rids: Vec<Rid> = (1..=rows).map(|i| t.insert(&table, &[ValueRef::Int(i), ValueRef::Int(0)]).unwrap()).collect();
        t.commit().unwrap();
        database.checkpoint().unwrap();
        let mut t = database.begin(TransactionOptions::default());
        rids.iter().for_each(|rid| assert!(t.delete(&table, *rid).unwrap()));
        t.commit().unwrap();
        database.remove_leftovers().unwrap();
        // Something durable behind the removals.
        let mut t = database.begin(TransactionOptions::default());
        t.insert(&table, &[ValueRef::Int(-2), ValueRef::Int(0)]).unwrap();
        t.commit().unwrap();
        let (steps, reader) = steps_of(|| open(&storage, OpenMode::Read));
        assert_eq!(reader.table("t00000").unwrap().row_count(), 2);
        println!("{rows} rows: {steps} steps");
        counted.push((rows as u64, steps));
    }
    let (first, last) = (counted[0], counted[2]);
    assert!(last.1 >= last.0, "the log has no leftovers: {counted:?}");
    assert!(last.1 * first.0 <= 2 * first.1 * last.0, "(rows, steps): {counted:?}");
}
