//! Who waits for whom: deadlocks, timeouts, savepoints, unique keys.

use crate::world::{Form, World, open};
use pagefold_engine::Error;
use pagefold_engine::database::Isolation::{ReadCommitted, RepeatableRead};
use pagefold_engine::database::{OpenMode, Transaction, TransactionOptions};
use pagefold_engine::transaction::LockError;
use pagefold_io::{Failure, FaultOptions, FaultStorage, Repeat, Storage};
use pagefold_types::ValueRef;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Duration;

#[test]
fn of_a_deadlock_one_goes_on() {
    let world = World::new();
    let rids = world.fill([(1, 10), (2, 20)]);
    let mut a = world.begin(ReadCommitted);
    let mut b = world.begin(ReadCommitted);
    world.set(&mut a, 1, 11).unwrap();
    world.set(&mut b, 2, 22).unwrap();
    let (ids, (to_a, of_a)) = ([a.id(), b.id()], channel());
    std::thread::scope(|scope| {
        let world = &world;
        scope.spawn(move || {
            let result = world.set(&mut a, 2, 21);
            to_a.send((a, result)).unwrap();
        });
        world.until_waiting(1);
        // The younger one is the victim.
        let Err(Error::Lock(LockError::Deadlock { victim, cycle })) = world.set(&mut b, 1, 12) else { panic!("no deadlock") };
        assert_eq!((victim, cycle.len()), (ids[1], 2));
        assert!(matches!(b.row(&world.table, rids[1]), Err(Error::Lock(_))), "only rollback is left");
        b.rollback().unwrap();
        let (a, result) = of_a.recv().unwrap();
        assert!(result.unwrap());
        a.commit().unwrap();
    });
    let rows = world.check();
    assert_eq!((rows[&1].0, rows[&2].0), (11, 21));
}

#[test]
fn a_wait_that_takes_too_long() {
    let world = World::new();
    world.fill([(1, 10)]);
    let mut a = world.begin(ReadCommitted);
    world.set(&mut a, 1, 11).unwrap();
    for timeout in [Duration::ZERO, Duration::from_millis(5)] {
        let mut b = world.database.begin(TransactionOptions { lock_timeout: timeout, ..TransactionOptions::default() });
        assert!(matches!(world.set(&mut b, 1, 12), Err(Error::Lock(LockError::Timeout { .. }))));
        b.rollback().unwrap();
    }
    a.commit().unwrap();
    assert_eq!(world.check()[&1].0, 11);
}

#[test]
fn what_was_taken_back_to_a_savepoint_is_seen_by_nobody() {
    let world = World::new();
    let rids = world.fill((0..30).map(|n| (n, n)));
    let mut old = world.begin(RepeatableRead);
    let before = world.see(&mut old);
    let mut t = world.begin(ReadCommitted);
    world.set(&mut t, 1, 101).unwrap();
    let kept = world.see(&mut t);
    let savepoint = t.savepoint();
    for round in 0..3 {
        world.insert(&mut t, 100, 7, "").unwrap();
        world.set(&mut t, 1, 201 + round).unwrap();
        let inner = t.savepoint();
        let grown = "grown ".repeat(100);
        assert!(t.update(&world.table, rids[2], &[(2, ValueRef::Text(&grown)), (1, ValueRef::Int(500))]).unwrap());
        t.roll_back_to(inner).unwrap();
        assert!(t.update(&world.table, rids[3], &[(2, ValueRef::Text(&"x".repeat(9_000)))]).unwrap());
        assert!(t.delete(&world.table, rids[4]).unwrap());
        world.insert(&mut t, 4, 44, "").unwrap();
        assert_eq!(world.see(&mut old), before);
        assert_eq!(world.committed(), before);
        t.roll_back_to(savepoint).unwrap();
        assert_eq!(world.see(&mut t), kept);
    }
    assert_eq!(world.see(&mut old), before);
    t.commit().unwrap();
    assert_eq!(world.see(&mut old), before);
    drop(old);
    assert_eq!(world.check(), kept);
}

/// An insert of a key that a running transaction is about to give, or to give free.
fn insert_waits(work: impl Fn(&World, &mut Transaction<'_>), commits: bool, succeeds: bool) {
    let world = World::new();
    world.fill([(1, 10)]);
    let mut a = world.begin(ReadCommitted);
    work(&world, &mut a);
    std::thread::scope(|scope| {
        let inserter = scope.spawn(|| {
            let mut b = world.begin(ReadCommitted);
            let inserted = world.insert(&mut b, 5, 55, "");
            b.commit().unwrap();
            inserted
        });
        world.until_waiting(1);
        if commits { a.commit() } else { a.rollback() }.unwrap();
        match inserter.join().unwrap() {
            Ok(_) => assert!(succeeds),
            Err(Error::DuplicateKey { .. }) => assert!(!succeeds),
            Err(error) => panic!("{error}"),
        }
    });
    let rows = world.check();
    assert_eq!(rows.get(&5).is_some_and(|row| row.0 == 55), succeeds);
}

#[test]
fn an_insert_waits_for_who_inserts_the_same_key() {
    let insert = |world: &World, t: &mut Transaction<'_>| {
        world.insert(t, 5, 50, "").unwrap();
    };
    insert_waits(insert, true, false);
    insert_waits(insert, false, true);
}

#[test]
fn an_insert_waits_for_who_deletes_or_changes_the_same_key() {
    let delete = |world: &World, t: &mut Transaction<'_>| {
        world.fill([(5, 50)]);
        let rid = world.find(t, 5).unwrap();
        assert!(t.delete(&world.table, rid).unwrap());
    };
    insert_waits(delete, true, true);
    insert_waits(delete, false, false);
    let change = |world: &World, t: &mut Transaction<'_>| {
        world.fill([(5, 50)]);
        let rid = world.find(t, 5).unwrap();
        assert!(t.update(&world.table, rid, &[(0, ValueRef::Int(6))]).unwrap());
    };
    insert_waits(change, true, true);
    insert_waits(change, false, false);
    let change_to = |world: &World, t: &mut Transaction<'_>| {
        let rid = world.find(t, 1).unwrap();
        assert!(t.update(&world.table, rid, &[(0, ValueRef::Int(5))]).unwrap());
    };
    insert_waits(change_to, true, false);
    insert_waits(change_to, false, true);
}

#[test]
fn a_key_leaves_and_comes_back_in_one_transaction() {
    for commits in [true, false] {
        let world = World::new();
        let rids = world.fill([(1, 10), (2, 20)]);
        let mut old = world.begin(RepeatableRead);
        let before = world.see(&mut old);
        let mut t = world.begin(ReadCommitted);
        assert!(t.delete(&world.table, rids[0]).unwrap());
        let again = world.insert(&mut t, 1, 11, "again").unwrap();
        assert_ne!(again, rids[0]);
        assert!(matches!(world.insert(&mut t, 1, 12, ""), Err(Error::DuplicateKey { .. })));
        // Key 2 goes to 3 and back, twice.
        for number in [3, 2, 3, 2] {
            assert!(t.update(&world.table, rids[1], &[(0, ValueRef::Int(number))]).unwrap());
            assert_eq!(world.find(&mut t, number), Some(rids[1]));
            assert_eq!(world.find(&mut t, 5 - number), None);
        }
        assert_eq!(world.see(&mut old), before);
        let after = world.see(&mut t);
        if commits { t.commit() } else { t.rollback() }.unwrap();
        assert_eq!(world.see(&mut old), before);
        drop(old);
        assert_eq!(world.check(), if commits { after } else { before });
    }
}

#[test]
fn nobody_waits_for_one_whose_commit_failed() {
    let disk = FaultStorage::new(FaultOptions::default());
    let storage: Arc<dyn Storage> = Arc::new(disk.clone());
    let world = open(&storage, Form::default(), OpenMode::Create);
    world.fill([(1, 10)]);
    let mut a = world.begin(ReadCommitted);
    world.set(&mut a, 1, 11).unwrap();
    std::thread::scope(|scope| {
        let second = scope.spawn(|| world.set(&mut world.begin(ReadCommitted), 1, 12));
        world.until_waiting(1);
        disk.error_at(disk.calls(), Failure::Io, Repeat::Forever);
        assert!(a.commit().is_err());
        assert!(matches!(second.join().unwrap(), Err(Error::Poisoned(_))));
    });
    disk.clear_faults();
    drop(world);
    // The commit failed for its caller; what is in the log shows now.
    let rows = open(&storage, Form::default(), OpenMode::Write).check();
    assert!([10, 11].contains(&rows[&1].0), "{rows:?}");
}
