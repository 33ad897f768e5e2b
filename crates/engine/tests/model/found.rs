//! Faults that programs have found, each by itself.

use crate::shape::{ColumnShape, IndexShape, Shape, TableShape, World, open};
use pagefold_engine::database::{Durability, Isolation, OpenMode, ScanRequest, Transaction, TransactionOptions};
use pagefold_engine::index::IndexFormat;
use pagefold_engine::table_space::Method;
use pagefold_engine::{Error, Result};
use pagefold_io::MemoryStorage;
use pagefold_types::{DataType, ValueRef};
use std::time::Duration;

/// Two tables of two numbers, with an index on both.
fn world() -> World {
    world_with(vec![(0, false), (1, false)], false)
}

/// The same, with another index.
fn world_with(columns: Vec<(usize, bool)>, unique: bool) -> World {
    let column = ColumnShape { data_type: DataType::BigInt, nullable: false };
    let index = IndexShape { columns, unique, format: IndexFormat::Plain, page_bytes: 2048 };
    let table = TableShape {
        columns: vec![column.clone(), column],
        indexes: vec![index],
        method: Method::None,
        page_bytes: 2048,
        maxrows: 4096,
        small_partitions: false,
        primary_key: false,
        dictionary: None,
    };
    let shape = Shape { tables: vec![table.clone(), table], memory_bytes: 4 << 20, checkpoint_bytes: 1 << 30 };
    open(&MemoryStorage::new(), &shape, OpenMode::Create, 0).unwrap()
}

fn begin(world: &World, isolation: Isolation) -> Transaction<'_> {
    world.database.begin(TransactionOptions {
        isolation,
        durability: Durability::Durable,
        lock_timeout: Duration::ZERO,
        ..TransactionOptions::default()
    })
}

const LEVELS: [Isolation; 3] = [Isolation::ReadCommitted, Isolation::RepeatableRead, Isolation::Serializable];

/// The first values of a key find the first of their rows, at every level.
#[test]
fn first_values_of_a_key() {
    let world = world();
    let (table, index) = (&world.tables[0], &world.indexes[0][0]);
    let mut t = begin(&world, Isolation::ReadCommitted);
    let rids: Vec<_> = [(1, 5), (1, 4), (2, 0)].map(|(a, b)| t.insert(table, &[ValueRef::Int(a), ValueRef::Int(b)]).unwrap()).into();
    t.commit().unwrap();
    for isolation in LEVELS {
        let mut t = begin(&world, isolation);
        let get = |t: &mut Transaction<'_>, key: &[ValueRef<'_>]| t.get(table, index, key, |rid, _| rid).unwrap();
        assert_eq!(get(&mut t, &[ValueRef::Int(1)]), Some(rids[1]), "{isolation:?}");
        assert_eq!(get(&mut t, &[ValueRef::Int(1), ValueRef::Int(5)]), Some(rids[0]), "{isolation:?}");
        assert_eq!(get(&mut t, &[ValueRef::Int(3)]), None, "{isolation:?}");
        assert_eq!(get(&mut t, &[]), Some(rids[1]), "{isolation:?}");
    }
}

/// Who locks a row that is gone is told so.
#[test]
fn a_row_that_is_gone_is_not_locked() {
    for isolation in LEVELS {
        let world = world();
        let table = &world.tables[0];
        let mut t = begin(&world, isolation);
        let rid = t.insert(table, &[ValueRef::Int(1), ValueRef::Int(1)]).unwrap();
        assert!(t.lock(table, rid).unwrap());
        t.commit().unwrap();
        let mut t = begin(&world, isolation);
        assert!(t.lock(table, rid).unwrap() && t.delete(table, rid).unwrap());
        assert!(!t.lock(table, rid).unwrap(), "{isolation:?}: its own transaction has deleted it");
        t.commit().unwrap();
        let mut t = begin(&world, isolation);
        assert!(!t.lock(table, rid).unwrap(), "{isolation:?}: it was deleted");
    }
}

/// To be told that there is no row to be changed is to have read: who has put it there meanwhile comes later.
#[test]
fn a_change_that_finds_no_row_is_a_read() {
    for what in 0..3 {
        let world = world();
        let (mut one, mut other) = (begin(&world, Isolation::Serializable), begin(&world, Isolation::Serializable));
        let row = [ValueRef::Int(1), ValueRef::Int(1)];
        let run = || -> Result<()> {
            one.insert(&world.tables[0], &row)?;
            // Nothing: before the first.
            assert_eq!(other.read_view()?.scan(&world.tables[0], &ScanRequest::default())?.into_rows().count(), 0);
            let rid = other.insert(&world.tables[1], &row)?;
            other.commit()?;
            // Nothing: before the second.
            let found = match what {
                0 => one.delete(&world.tables[1], rid)?,
                1 => one.update(&world.tables[1], rid, &[(0, ValueRef::Int(2))])?,
                _ => one.lock(&world.tables[1], rid)?,
            };
            assert!(!found, "a row that came after the snapshot");
            one.commit()
        };
        assert!(matches!(run(), Err(Error::Serialization(_))), "statement {what}: both are committed, each before the other");
    }
}

/// That a key is free is something read: a transaction that took it and gave it free again came before, but is not seen by a scan before it.
#[test]
fn a_free_key_is_a_read() {
    let world = world_with(vec![(0, false)], true);
    let table = &world.tables[0];
    let mut giver = begin(&world, Isolation::Serializable);
    let mut taker = begin(&world, Isolation::Serializable);
    let rid = giver.insert(table, &[ValueRef::Int(1), ValueRef::Int(0)]).unwrap();
    let scan = taker.read_view().unwrap().scan(table, &ScanRequest::default()).unwrap();
    assert_eq!(scan.into_rows().map(Result::unwrap).count(), 0);
    assert!(giver.update(table, rid, &[(0, ValueRef::Int(2))]).unwrap());
    giver.commit().unwrap();
    // Before the giver, by its scan; after it, as the key is free.
    let taken = taker.insert(table, &[ValueRef::Int(1), ValueRef::Int(0)]).and_then(|_| taker.commit());
    assert!(matches!(taken, Err(Error::Serialization(_) | Error::Conflict { .. })), "{taken:?}");
}
