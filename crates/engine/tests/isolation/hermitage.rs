//! The anomalies of Martin Kleppmann's Hermitage (github.com/ept/hermitage), with the outcomes that snapshots promise: READ COMMITTED and REPEATABLE READ (snapshot isolation) as PostgreSQL has them.
//!
//! Each test begins with the rows (1, 10) and (2, 20).

use crate::world::{World, is_retryable};
use pagefold_engine::database::Isolation::{self, ReadCommitted, RepeatableRead, Serializable};
use pagefold_engine::database::Transaction;
use pagefold_engine::{Error, Result};

fn world() -> World {
    let world = World::new();
    world.fill([(1, 10), (2, 20)]);
    world
}

fn both(world: &World, t: &mut Transaction<'_>) -> [i64; 2] {
    [1, 2].map(|number| world.get(t, number).unwrap())
}

fn now(world: &World) -> [i64; 2] {
    both(world, &mut world.begin(ReadCommitted))
}

/// Does `blocked` on a thread of its own; when it waits for a lock, does `go_on`. Gives what `blocked` gave.
fn while_waiting<R: Send>(world: &World, blocked: impl FnOnce() -> R + Send, go_on: impl FnOnce()) -> R {
    std::thread::scope(|scope| {
        let blocked = scope.spawn(blocked);
        world.until_waiting(1);
        go_on();
        blocked.join().unwrap()
    })
}

fn is_conflict<T>(result: &Result<T>) -> bool {
    matches!(result, Err(Error::Conflict { .. }))
}

/// Of two transactions that must not both succeed, with the results of their last statements.
fn one_fails(first: Result<()>, second: Result<()>) {
    assert!(first.is_err() || second.is_err(), "both succeed");
    for result in [first, second] {
        assert!(result.is_ok() || is_retryable(&result), "{result:?}");
    }
}

/// G0: dirty writes, of which the later ones are lost in part.
fn g0(isolation: Isolation) {
    let world = world();
    let (mut a, mut b) = (world.begin(isolation), world.begin(isolation));
    both(&world, &mut b);
    world.set(&mut a, 1, 11).unwrap();
    let second = while_waiting(
        &world,
        || world.set(&mut b, 1, 12),
        || {
            world.set(&mut a, 2, 21).unwrap();
            a.commit().unwrap();
        },
    );
    if isolation == ReadCommitted {
        assert!(second.unwrap());
        assert_eq!(now(&world), [11, 21]);
        world.set(&mut b, 2, 22).unwrap();
        b.commit().unwrap();
        assert_eq!(now(&world), [12, 22]);
    } else {
        assert!(is_retryable(&second));
        assert!(b.commit().is_err());
        assert_eq!(now(&world), [11, 21]);
    }
}

/// G1a: what is rolled back is read.
fn g1a(isolation: Isolation) {
    let world = world();
    let (mut a, mut b) = (world.begin(isolation), world.begin(isolation));
    world.set(&mut a, 1, 101).unwrap();
    assert_eq!(both(&world, &mut b), [10, 20]);
    a.rollback().unwrap();
    assert_eq!(both(&world, &mut b), [10, 20]);
    b.commit().unwrap();
}

/// G1b: a state in the middle of a transaction is read.
fn g1b(isolation: Isolation) {
    let world = world();
    let (mut a, mut b) = (world.begin(isolation), world.begin(isolation));
    world.set(&mut a, 1, 101).unwrap();
    assert_eq!(both(&world, &mut b), [10, 20]);
    world.set(&mut a, 1, 11).unwrap();
    a.commit().unwrap();
    assert_eq!(both(&world, &mut b), [if isolation == ReadCommitted { 11 } else { 10 }, 20]);
    b.commit().unwrap();
}

/// G1c: each of two reads what the other writes.
fn g1c(isolation: Isolation) -> (Result<()>, Result<()>) {
    let world = world();
    let (mut a, mut b) = (world.begin(isolation), world.begin(isolation));
    world.set(&mut a, 1, 11).unwrap();
    world.set(&mut b, 2, 22).unwrap();
    assert_eq!(world.get(&mut a, 2), Some(20));
    let read = world.find(&mut b, 1).map(|rid| b.row(&world.table, rid)).transpose();
    let first = a.commit();
    let second = read.and_then(|row| {
        assert_eq!(row.flatten().unwrap()[1], pagefold_types::Value::Int(10));
        b.commit()
    });
    (first, second)
}

/// OTV: a transaction's changes vanish again for one that has seen some of them.
fn otv(isolation: Isolation) {
    let world = world();
    let (mut a, mut b, mut reader) = (world.begin(isolation), world.begin(isolation), world.begin(isolation));
    both(&world, &mut b);
    world.set(&mut a, 1, 11).unwrap();
    world.set(&mut a, 2, 19).unwrap();
    let second = while_waiting(&world, || world.set(&mut b, 1, 12), || a.commit().unwrap());
    assert_eq!(world.get(&mut reader, 1), Some(11));
    if isolation == ReadCommitted {
        assert!(second.unwrap());
        world.set(&mut b, 2, 18).unwrap();
        assert_eq!(both(&world, &mut reader), [11, 19]);
        b.commit().unwrap();
        assert_eq!(both(&world, &mut reader), [12, 18]);
    } else {
        assert!(is_retryable(&second));
        assert!(b.commit().is_err());
        assert_eq!(both(&world, &mut reader), [11, 19]);
    }
}

/// PMP: a condition that was asked for before has other rows now.
fn pmp(isolation: Isolation) {
    let world = world();
    let (mut a, mut b) = (world.begin(isolation), world.begin(isolation));
    assert_eq!(world.select(&mut a, |value| value == 30), []);
    world.insert(&mut b, 3, 30, "").unwrap();
    b.commit().unwrap();
    let again = world.select(&mut a, |value| value % 3 == 0);
    assert_eq!(again, if isolation == ReadCommitted { vec![(3, 30)] } else { vec![] });
    a.commit().unwrap();
}

/// PMP for a write by a condition, which waits for one who changes what the condition is about. At READ COMMITTED who deletes locks the row, and asks again.
fn pmp_of_a_write(isolation: Isolation) {
    let world = world();
    let (mut a, mut b) = (world.begin(isolation), world.begin(isolation));
    world.set(&mut a, 1, 20).unwrap();
    world.set(&mut a, 2, 30).unwrap();
    assert_eq!(world.select(&mut b, |value| value == 20), [(2, 20)]);
    let rid = world.find(&mut b, 2).unwrap();
    let locked = while_waiting(&world, || b.lock(&world.table, rid), || a.commit().unwrap());
    if isolation == ReadCommitted {
        assert!(locked.unwrap());
        assert_eq!(world.row(&mut b, rid).unwrap().1.0, 30);
        b.commit().unwrap();
    } else {
        assert!(is_retryable(&locked));
        assert!(b.commit().is_err());
    }
    assert_eq!(now(&world), [20, 30]);
}

/// P4: an update is lost, since it is overwritten by one who has read what was before.
fn p4(isolation: Isolation) {
    let world = world();
    let (mut a, mut b) = (world.begin(isolation), world.begin(isolation));
    assert_eq!((world.get(&mut a, 1), world.get(&mut b, 1)), (Some(10), Some(10)));
    world.set(&mut a, 1, 11).unwrap();
    let second = while_waiting(&world, || world.set(&mut b, 1, 12), || a.commit().unwrap());
    if isolation == ReadCommitted {
        assert!(second.unwrap());
        b.commit().unwrap();
        assert_eq!(now(&world), [12, 20]);
    } else {
        assert!(is_retryable(&second) && (isolation == Serializable || is_conflict(&second)));
        assert!(b.commit().is_err());
        assert_eq!(now(&world), [11, 20]);
    }
}

/// G-single: one row is read before, the other after a change of both.
fn g_single(isolation: Isolation) {
    let world = world();
    let (mut a, mut b) = (world.begin(isolation), world.begin(isolation));
    assert_eq!(world.get(&mut a, 1), Some(10));
    assert_eq!(both(&world, &mut b), [10, 20]);
    world.set(&mut b, 1, 12).unwrap();
    world.set(&mut b, 2, 18).unwrap();
    b.commit().unwrap();
    assert_eq!(world.get(&mut a, 2), Some(if isolation == ReadCommitted { 18 } else { 20 }));
    a.commit().unwrap();
}

/// G-single, with conditions.
fn g_single_of_conditions(isolation: Isolation) {
    let world = world();
    let (mut a, mut b) = (world.begin(isolation), world.begin(isolation));
    assert_eq!(world.select(&mut a, |value| value % 5 == 0), [(1, 10), (2, 20)]);
    world.set(&mut b, 1, 12).unwrap();
    b.commit().unwrap();
    let again = world.select(&mut a, |value| value % 3 == 0);
    assert_eq!(again, if isolation == ReadCommitted { vec![(1, 12)] } else { vec![] });
    a.commit().unwrap();
}

/// G-single, with a write by a condition.
fn g_single_of_a_write(isolation: Isolation) {
    let world = world();
    let (mut a, mut b) = (world.begin(isolation), world.begin(isolation));
    assert_eq!(world.get(&mut a, 1), Some(10));
    world.set(&mut b, 1, 12).unwrap();
    world.set(&mut b, 2, 18).unwrap();
    b.commit().unwrap();
    let found = world.select(&mut a, |value| value == 20);
    if isolation == ReadCommitted {
        assert_eq!(found, []);
        a.commit().unwrap();
    } else {
        assert_eq!(found, [(2, 20)]);
        let rid = world.find(&mut a, 2).unwrap();
        let deleted = a.delete(&world.table, rid);
        assert!(is_retryable(&deleted), "{deleted:?}");
        assert!(a.commit().is_err());
    }
    assert_eq!(now(&world), [12, 18]);
}

/// G2-item: each of two reads both rows and changes another one of them.
fn g2_item(isolation: Isolation) -> (Result<()>, Result<()>) {
    let world = world();
    let (mut a, mut b) = (world.begin(isolation), world.begin(isolation));
    assert_eq!((both(&world, &mut a), both(&world, &mut b)), ([10, 20], [10, 20]));
    let first = world.set(&mut a, 1, 11);
    let second = world.set(&mut b, 2, 21);
    let first = first.and_then(|_| a.commit());
    (first, second.and_then(|_| b.commit()))
}

/// G2: each of two inserts what the other has found missing.
fn g2(isolation: Isolation) -> (Result<()>, Result<()>) {
    let world = world();
    let (mut a, mut b) = (world.begin(isolation), world.begin(isolation));
    assert_eq!((world.select(&mut a, |v| v % 3 == 0), world.select(&mut b, |v| v % 3 == 0)), (vec![], vec![]));
    let first = world.insert(&mut a, 3, 30, "");
    let second = world.insert(&mut b, 4, 42, "");
    let first = first.and_then(|_| a.commit());
    (first, second.and_then(|_| b.commit()))
}

/// G2 with two edges: a reader makes the order of two others visible (Fekete, O'Neil, O'Neil 2004).
fn g2_two_edges(isolation: Isolation) -> Result<()> {
    let world = world();
    let (mut a, mut b) = (world.begin(isolation), world.begin(isolation));
    assert_eq!(world.select(&mut a, |_| true), [(1, 10), (2, 20)]);
    world.set(&mut b, 2, 25)?;
    b.commit()?;
    let mut reader = world.begin(isolation);
    assert_eq!(world.select(&mut reader, |_| true), [(1, 10), (2, 25)]);
    reader.commit()?;
    world.set(&mut a, 1, 0)?;
    a.commit()
}

macro_rules! at_each_level {
    ($($anomaly:ident),*) => {
        mod read_committed {
            $(#[test] fn $anomaly() { super::$anomaly(super::ReadCommitted) })*
        }
        mod repeatable_read {
            $(#[test] fn $anomaly() { super::$anomaly(super::RepeatableRead) })*
        }
        mod serializable {
            $(#[test] fn $anomaly() { super::$anomaly(super::Serializable) })*
        }
    };
}

at_each_level!(g0, g1a, g1b, otv, pmp, pmp_of_a_write, p4, g_single, g_single_of_conditions, g_single_of_a_write);

#[test]
fn snapshots_allow_write_skew() {
    for isolation in [ReadCommitted, RepeatableRead] {
        for (first, second) in [g1c(isolation), g2_item(isolation), g2(isolation)] {
            first.unwrap();
            second.unwrap();
        }
        g2_two_edges(isolation).unwrap();
    }
}

#[test]
fn serializable_does_not_allow_write_skew() {
    for (first, second) in [g1c(Serializable), g2_item(Serializable), g2(Serializable)] {
        one_fails(first, second);
    }
    assert!(is_retryable(&g2_two_edges(Serializable)));
}
