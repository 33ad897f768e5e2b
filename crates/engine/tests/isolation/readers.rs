//! Readers wait for nobody, and a snapshot stays what it is; afterwards nothing of it is left.

use crate::world::{Form, Random, Rows, World};
use pagefold_engine::Error;
use pagefold_engine::database::Isolation::{ReadCommitted, RepeatableRead};
use pagefold_engine::database::Transaction;
use pagefold_engine::index::IndexFormat;
use pagefold_engine::table_space::Method;
use pagefold_types::ValueRef;

/// One random change of a row; numbers below 150, lengths up to longer than a page.
fn change(world: &World, t: &mut Transaction<'_>, random: &mut Random) -> Result<(), Error> {
    let number = random.below(150) as i64;
    let value = random.below(40) as i64;
    let text = match random.below(20) {
        0 => "large ".repeat(1_000 + random.below(1_000) as usize),
        1..4 => random.text(120),
        _ => random.text(10),
    };
    let Some(rid) = world.find(t, number) else { return world.insert(t, number, value, &text).map(drop) };
    match random.below(6) {
        0 => assert!(t.delete(&world.table, rid)?),
        1 => assert!(t.update(&world.table, rid, &[(1, ValueRef::Int(value))])?),
        2 => assert!(t.update(&world.table, rid, &[(2, ValueRef::Text(&text))])?),
        // To a free number, if it is one.
        3 => match t.update(&world.table, rid, &[(0, ValueRef::Int(random.below(150) as i64))]) {
            Ok(true) | Err(Error::DuplicateKey { .. }) => {}
            other => panic!("{other:?}"),
        },
        _ => assert!(t.update(&world.table, rid, &[(1, ValueRef::Int(value)), (2, ValueRef::Text(&text))])?),
    }
    Ok(())
}

fn work(world: &World, random: &mut Random, transactions: usize) {
    for _ in 0..transactions {
        let mut t = world.begin(ReadCommitted);
        let savepoint = t.savepoint();
        for _ in 0..1 + random.below(6) {
            change(world, &mut t, random).unwrap();
        }
        match random.below(5) {
            0 => t.rollback().unwrap(),
            1 => {
                t.roll_back_to(savepoint).unwrap();
                change(world, &mut t, random).unwrap();
                t.commit().unwrap();
            }
            _ => t.commit().unwrap(),
        }
    }
}

fn forms() -> impl Iterator<Item = Form> {
    let formats = IndexFormat::ALL;
    Method::ALL.into_iter().flat_map(move |method| formats.map(|format| Form { method, format, ..Form::default() }))
}

#[test]
fn long_snapshots_stay_as_they_are() {
    for form in forms() {
        let world = World::with(form);
        let mut random = Random(3);
        work(&world, &mut random, 100);
        let mut open: Vec<(Transaction<'_>, Rows)> = Vec::new();
        for round in 0..24 {
            let mut snapshot = world.begin(RepeatableRead);
            let seen = world.see(&mut snapshot);
            open.push((snapshot, seen));
            work(&world, &mut random, 15);
            world.database.remove_leftovers().unwrap();
            if round % 8 == 7 {
                world.database.checkpoint().unwrap();
            }
            for (snapshot, seen) in &mut open {
                assert!(world.see(snapshot) == *seen, "{form:?}, round {round}: a snapshot has changed");
            }
            // One from the middle, so that there are gaps.
            if open.len() > 5 {
                open.remove(random.below(5) as usize).0.commit().unwrap();
            }
        }
        open.clear();
        world.check();
    }
}

/// Pages in use by the table and its indexes, and the most that there ever were.
fn pages(world: &World) -> (usize, u32) {
    let sets = world.table.data_sets().chain([world.by_number.data_set(), world.by_value.data_set()]);
    sets.fold((0, 0), |(used, all), set| (used + set.data_page_numbers().len(), all + set.page_count()))
}

/// Deletes all rows.
fn clear(world: &World) {
    let mut t = world.begin(ReadCommitted);
    for number in world.see(&mut t).into_keys() {
        let rid = world.find(&mut t, number).unwrap();
        assert!(t.delete(&world.table, rid).unwrap());
    }
    t.commit().unwrap();
}

#[test]
fn space_levels_off() {
    let world = World::new();
    let mut most = Vec::new();
    for round in 0..25 {
        let mut snapshot = world.begin(RepeatableRead);
        assert!(world.see(&mut snapshot).is_empty());
        // Each round the same.
        work(&world, &mut Random(9), 60);
        clear(&world);
        assert!(world.see(&mut snapshot).is_empty(), "round {round}");
        drop(snapshot);
        assert!(world.check().is_empty());
        most.push(pages(&world).1);
    }
    assert_eq!(most[24], most[4], "pages: {most:?}");
}

#[test]
fn afterwards_all_is_as_in_a_fresh_database() {
    let world = World::new();
    let rows = |world: &World| {
        let mut t = world.begin(ReadCommitted);
        for number in 0..100 {
            world.insert(&mut t, number, number % 7, if number % 10 == 0 { "" } else { "some text" }).unwrap();
        }
        t.commit().unwrap();
    };
    rows(&world);
    let fresh = pages(&world);
    let seen = world.check();
    for round in 0..10 {
        let mut snapshot = world.begin(RepeatableRead);
        world.see(&mut snapshot);
        work(&world, &mut Random(round), 10);
        // Everything goes; the snapshot has all of it until it ends.
        clear(&world);
        assert_eq!(world.see(&mut snapshot).len(), 100);
        drop(snapshot);
        assert!(world.check().is_empty());
        rows(&world);
        assert_eq!(world.check(), seen);
    }
    // A page of rows without any row is kept, but an index gives pages back.
    let entries = |world: &World| [&world.by_number, &world.by_value].map(|index| index.data_set().data_page_numbers().len());
    let other = World::new();
    rows(&other);
    assert_eq!(entries(&world), entries(&other));
    assert!(pages(&world).0 <= 20 * fresh.0, "{:?} {fresh:?}", pages(&world));
}
