//! Rows that are locked as a statement asks for it, keys that are found out to be taken before anything is changed, and transactions that go on after a lock was not had.

use crate::world::World;
use pagefold_engine::database::Isolation::{ReadCommitted, RepeatableRead, Serializable};
use pagefold_engine::database::{Insertion, LockWait, Locked, RowLock};
use pagefold_engine::{Error, Result};
use pagefold_types::{Rid, ValueRef};

fn is_lock<T>(result: &Result<T>) -> bool {
    matches!(result, Err(Error::Lock(_)))
}

#[test]
fn a_lock_says_what_became_of_the_row() {
    let world = World::new();
    let rids = world.fill([(1, 1), (2, 2), (3, 3)]);
    let mut t = world.begin(ReadCommitted);
    let view = t.read_view().unwrap();
    let mut other = world.begin(ReadCommitted);
    world.set(&mut other, 2, 20).unwrap();
    other.delete(&world.table, rids[2]).unwrap();
    other.commit().unwrap();
    let expected = [Locked::Unchanged, Locked::Changed, Locked::Gone];
    for (rid, expected) in rids.iter().zip(expected) {
        assert_eq!(t.lock_seen(&view, &world.table, *rid, RowLock::Exclusive, LockWait::Wait).unwrap(), expected);
    }
    // Another statement sees the row as it is.
    let later = t.read_view().unwrap();
    assert_eq!(t.lock_seen(&later, &world.table, rids[1], RowLock::Exclusive, LockWait::Wait).unwrap(), Locked::Unchanged);
    let strange = world.begin(ReadCommitted).read_view().unwrap();
    assert!(matches!(t.lock_seen(&strange, &world.table, rids[0], RowLock::Shared, LockWait::Wait), Err(Error::Parameter(_))));
    // Of a snapshot of the transaction it is a conflict.
    for isolation in [RepeatableRead, Serializable] {
        let mut late = world.begin_impatient(isolation);
        let view = late.read_view().unwrap();
        t = {
            t.commit().unwrap();
            world.begin(ReadCommitted)
        };
        world.set(&mut t, 1, 10).unwrap();
        t.commit().unwrap();
        t = world.begin(ReadCommitted);
        let seen = late.lock_seen(&view, &world.table, rids[0], RowLock::Shared, LockWait::NoWait);
        assert!(matches!(seen, Err(Error::Conflict { .. })), "{seen:?}");
    }
}

#[test]
fn shared_locks_and_those_that_do_not_wait() {
    let world = World::new();
    let rids = world.fill([(1, 1), (2, 2)]);
    let lock = |t: &mut pagefold_engine::database::Transaction<'_>, rid: Rid, lock, wait| {
        let view = t.read_view().unwrap();
        t.lock_seen(&view, &world.table, rid, lock, wait)
    };
    let (mut a, mut b) = (world.begin(ReadCommitted), world.begin(ReadCommitted));
    assert_eq!(lock(&mut a, rids[0], RowLock::Shared, LockWait::Wait).unwrap(), Locked::Unchanged);
    assert_eq!(lock(&mut b, rids[0], RowLock::Shared, LockWait::NoWait).unwrap(), Locked::Unchanged);
    // Nobody changes it, and nobody locks it alone.
    let mut c = world.begin_impatient(ReadCommitted);
    let savepoint = c.savepoint();
    assert!(is_lock(&world.set(&mut c, 1, 9)));
    c.roll_back_to(savepoint).unwrap();
    assert!(is_lock(&lock(&mut c, rids[0], RowLock::Exclusive, LockWait::NoWait)));
    c.roll_back_to(savepoint).unwrap();
    assert_eq!(lock(&mut c, rids[0], RowLock::Exclusive, LockWait::Skip).unwrap(), Locked::Skipped);
    // What was passed over does not end it.
    assert_eq!(lock(&mut c, rids[1], RowLock::Exclusive, LockWait::Skip).unwrap(), Locked::Unchanged);
    assert_eq!(lock(&mut b, rids[1], RowLock::Shared, LockWait::Skip).unwrap(), Locked::Skipped);
    // One of two that share it may change it when the other one has gone.
    b.commit().unwrap();
    world.set(&mut a, 1, 5).unwrap();
    a.commit().unwrap();
    c.commit().unwrap();
    assert_eq!(world.get(&mut world.begin(ReadCommitted), 1), Some(5));
    world.check();
}

/// A lock that was not had, and a deadlock, leave what was done before a savepoint.
#[test]
fn a_savepoint_is_left_when_a_lock_was_not_had() {
    let world = World::new();
    let rids = world.fill([(1, 1), (2, 2)]);
    let mut t = world.begin_impatient(ReadCommitted);
    world.insert(&mut t, 3, 3, "before").unwrap();
    let savepoint = t.savepoint();
    let mut other = world.begin(ReadCommitted);
    world.set(&mut other, 1, 10).unwrap();
    world.insert(&mut t, 4, 4, "after").unwrap();
    assert!(is_lock(&world.set(&mut t, 1, 11)));
    // Nothing but that is possible.
    assert!(is_lock(&t.insert(&world.table, &[ValueRef::Int(5), ValueRef::Int(5), ValueRef::Text("")])));
    assert!(is_lock(&t.row(&world.table, rids[0])));
    t.roll_back_to(savepoint).unwrap();
    world.set(&mut t, 2, 20).unwrap();
    t.commit().unwrap();
    other.commit().unwrap();
    let values: Vec<_> = world.check().into_iter().map(|(number, (value, _))| (number, value)).collect();
    assert_eq!(values, [(1, 10), (2, 20), (3, 3)]);
}

/// Serialization that has failed leaves no way back.
#[test]
fn a_failure_of_serialization_is_final() {
    let world = World::new();
    world.fill([(1, 1), (2, 2)]);
    let (mut a, mut b) = (world.begin(Serializable), world.begin(Serializable));
    let savepoints = (a.savepoint(), b.savepoint());
    for t in [&mut a, &mut b] {
        assert_eq!(world.see(t).len(), 2);
    }
    let mut failures = 0;
    for (t, number, savepoint) in [(&mut a, 1, savepoints.0), (&mut b, 2, savepoints.1)] {
        if matches!(world.set(t, number, 9), Err(Error::Serialization(_))) {
            assert!(matches!(t.roll_back_to(savepoint), Err(Error::Serialization(_))));
            failures += 1;
        }
    }
    failures += [a.commit(), b.commit()].iter().filter(|done| done.is_err()).count();
    assert!(failures > 0);
}

#[test]
fn a_key_that_is_taken_is_found_before_anything_is_changed() {
    for isolation in [ReadCommitted, RepeatableRead, Serializable] {
        let world = World::new();
        let rids = world.fill([(1, 1), (2, 2)]);
        let mut t = world.begin(isolation);
        let rows = |t: &mut pagefold_engine::database::Transaction<'_>| world.see(t).len();
        let row = |number: i64| [ValueRef::Int(number), ValueRef::Int(7), ValueRef::Text("")];
        let Insertion::Taken { index, rid, elsewhere: None } = t.insert_unless_taken(&world.table, &row(2)).unwrap() else {
            panic!("it is taken")
        };
        assert_eq!((index.name(), rid), ("number", rids[1]));
        assert!(matches!(t.insert_unless_taken(&world.table, &row(3)).unwrap(), Insertion::Inserted(_)));
        let Insertion::Taken { .. } = t.insert_unless_taken(&world.table, &row(3)).unwrap() else { panic!("by itself") };
        assert!(matches!(t.insert_unless_taken(&world.table, &row(4)[..2]), Err(Error::Value(_))));
        assert_eq!(rows(&mut t), 3);
        // The row that has the key is locked, so it can be changed now.
        let mut other = world.begin_impatient(ReadCommitted);
        assert!(is_lock(&world.set(&mut other, 2, 0)));
        drop(other);
        assert!(t.update(&world.table, rid, &[(1, ValueRef::Int(8))]).unwrap());
        t.commit().unwrap();
        assert_eq!(world.check().len(), 3);
    }
}

/// Many who put the same keys in: each is there once, and who came second changed what the first one had put in.
#[test]
fn upserts_of_several_threads() {
    let world = World::new();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for number in 0..100 {
                    let mut t = world.begin(ReadCommitted);
                    match t.insert_unless_taken(&world.table, &[ValueRef::Int(number), ValueRef::Int(1), ValueRef::Text("")]).unwrap() {
                        Insertion::Inserted(_) => {}
                        Insertion::Taken { rid, .. } => {
                            let (_, (value, _)) = world.row(&mut t, rid).unwrap();
                            assert!(t.update(&world.table, rid, &[(1, ValueRef::Int(value + 1))]).unwrap());
                        }
                    }
                    t.commit().unwrap();
                }
            });
        }
    });
    assert!(world.check().values().all(|(value, _)| *value == 4));
}
