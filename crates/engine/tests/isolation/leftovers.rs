//! Versions and what they leave: nothing is seen that should not be, nothing goes too early, everything goes.

use crate::world::{Form, Random, Scans, World, parts};
use pagefold_engine::Error;
use pagefold_engine::btree::Direction as Way;
use pagefold_engine::database::Isolation::{ReadCommitted, RepeatableRead, Serializable};
use pagefold_engine::database::Transaction;
use pagefold_engine::index::IndexFormat;
use pagefold_types::ValueRef;
use std::sync::atomic::{AtomicBool, Ordering};

#[test]
fn a_slot_whose_lock_is_still_held_is_passed_over() {
    let world = World::new();
    world.fill([(1, 10)]);
    // Taken back by savepoint, and by a statement that failed; the locks stay.
    let mut first = world.begin(ReadCommitted);
    let savepoint = first.savepoint();
    world.insert(&mut first, 2, 20, "").unwrap();
    first.roll_back_to(savepoint).unwrap();
    assert!(matches!(world.insert(&mut first, 1, 30, ""), Err(Error::DuplicateKey { .. })));
    let mut second = world.begin_impatient(ReadCommitted);
    world.insert(&mut second, 3, 40, "").unwrap();
    world.insert(&mut first, 4, 50, "").unwrap();
    second.commit().unwrap();
    first.commit().unwrap();
    assert_eq!(world.check().len(), 3);
}

#[test]
fn a_removal_that_had_to_stop_goes_on_where_it_was() {
    let world = World::new();
    let large = "x".repeat(20_000);
    let rids = world.fill([(1, 10), (2, 20)]);
    let mut setup = world.begin(ReadCommitted);
    assert!(setup.update(&world.table, rids[0], &[(2, ValueRef::Text(&large))]).unwrap());
    setup.commit().unwrap();
    let old = {
        let mut old = world.begin(RepeatableRead);
        world.see(&mut old);
        old
    };
    let mut leaves = world.begin(ReadCommitted);
    assert!(leaves.delete(&world.table, rids[0]).unwrap());
    world.set(&mut leaves, 2, 21).unwrap();
    leaves.commit().unwrap();
    // Who holds row 2 keeps the removal of its old entry from being done, but not that of row 1.
    let mut holder = world.begin(ReadCommitted);
    world.set(&mut holder, 2, 22).unwrap();
    old.commit().unwrap();
    world.database.remove_leftovers().unwrap();
    // Slot and pages of row 1 are used again.
    let other = "y".repeat(20_000);
    let mut user = world.begin(ReadCommitted);
    let rid = world.insert(&mut user, 3, 30, &other).unwrap();
    assert_eq!(rid, rids[0], "the test wants the slot to be used again");
    user.commit().unwrap();
    let mut deleter = world.begin(ReadCommitted);
    assert!(deleter.delete(&world.table, rid).unwrap());
    world.database.remove_leftovers().unwrap();
    deleter.rollback().unwrap();
    holder.commit().unwrap();
    let mut more = world.begin(ReadCommitted);
    world.insert(&mut more, 4, 40, &"z".repeat(30_000)).unwrap();
    more.commit().unwrap();
    let rows = world.check();
    assert!(rows[&3] == (30, other), "row 3 has lost its large value");
    assert_eq!(rows.len(), 3);
}

#[test]
fn an_entry_stays_while_a_snapshot_needs_it_again() {
    let world = World::new();
    world.fill([(1, 10), (2, 20)]);
    let mut before = world.begin(RepeatableRead);
    world.see(&mut before);
    // The row has the value 10, then 11, then 10 again, then 12.
    for value in [11, 10] {
        let mut t = world.begin(ReadCommitted);
        world.set(&mut t, 1, value).unwrap();
        t.commit().unwrap();
    }
    let mut between = world.begin(RepeatableRead);
    let seen = world.see(&mut between);
    let mut t = world.begin(ReadCommitted);
    world.set(&mut t, 1, 12).unwrap();
    t.commit().unwrap();
    before.commit().unwrap();
    world.database.remove_leftovers().unwrap();
    assert_eq!(world.select(&mut between, |value| value == 10), [(1, 10)]);
    assert_eq!(world.see(&mut between), seen);
    between.commit().unwrap();
    world.check();
}

/// As before, but the row is deleted in the end.
#[test]
fn an_entry_of_a_deleted_row_stays_while_a_snapshot_needs_it_again() {
    let world = World::new();
    let rids = world.fill([(1, 10), (2, 20)]);
    let mut before = world.begin(RepeatableRead);
    world.see(&mut before);
    for value in [11, 10] {
        let mut t = world.begin(ReadCommitted);
        world.set(&mut t, 1, value).unwrap();
        t.commit().unwrap();
    }
    let mut between = world.begin(RepeatableRead);
    let seen = world.see(&mut between);
    let mut t = world.begin(ReadCommitted);
    assert!(t.delete(&world.table, rids[0]).unwrap());
    t.commit().unwrap();
    before.commit().unwrap();
    world.database.remove_leftovers().unwrap();
    assert_eq!(world.see(&mut between), seen);
    between.commit().unwrap();
    assert_eq!(world.check().len(), 1);
}

#[test]
fn a_cursor_does_not_believe_entries_that_were_removed_under_it() {
    for isolation in [ReadCommitted, RepeatableRead] {
        let world = World::new();
        world.fill((0..20).map(|n| (n, n)));
        let mut old = world.begin(RepeatableRead);
        world.see(&mut old);
        let mut t = world.begin(ReadCommitted);
        world.set(&mut t, 10, 15).unwrap();
        t.commit().unwrap();
        // The entry of value 10 is in the leaf that the cursor has copied when it is removed.
        let mut old = Some(old);
        let mut reader = world.begin(isolation);
        let mut seen = Vec::new();
        for row in reader.rows_by(&world.table, &world.by_value, Way::Forward).unwrap() {
            let (number, (value, _)) = parts(&row.unwrap().1);
            seen.push((value, number));
            if let Some(old) = old.take() {
                old.commit().unwrap();
                world.database.remove_leftovers().unwrap();
            }
        }
        let mut expected: Vec<_> = (0..20).map(|n| (if n == 10 { 15 } else { n }, n)).collect();
        expected.sort_unstable();
        assert_eq!(seen, expected, "{isolation:?}");
    }
}

/// The same with an entry of a change that is taken back.
#[test]
fn a_cursor_does_not_believe_entries_that_were_taken_back_under_it() {
    let world = World::new();
    // Row 399 is on another page than row 0, and its entries on the same leaf.
    world.fill((0..400).map(|n| (n, if n == 399 { 3 } else { n })));
    let mut t = world.begin(ReadCommitted);
    world.set(&mut t, 399, 5).unwrap();
    let mut t = Some(t);
    let mut reader = world.begin(ReadCommitted);
    let mut seen = Vec::new();
    for row in reader.rows_by(&world.table, &world.by_value, Way::Forward).unwrap() {
        seen.push(parts(&row.unwrap().1).0);
        t.take().map_or(Ok(()), Transaction::rollback).unwrap();
    }
    seen.sort_unstable();
    assert_eq!(seen, (0..400).collect::<Vec<_>>());
}

/// Each commit has left entries; of the second one's, the versions must not go with those of the first one.
#[test]
fn versions_stay_as_long_as_the_entries_of_their_commit() {
    let world = World::new();
    // So many that the two rows are on different pages.
    world.fill((0..400).map(|n| (n, n)));
    let mut old = world.begin(RepeatableRead);
    world.see(&mut old);
    let mut t = world.begin(ReadCommitted);
    world.set(&mut t, 1, 1001).unwrap();
    t.commit().unwrap();
    let mut t = world.begin(ReadCommitted);
    world.set(&mut t, 399, 1003).unwrap();
    world.set(&mut t, 1, 1002).unwrap();
    t.commit().unwrap();
    let mut holder = world.begin(ReadCommitted);
    world.set(&mut holder, 399, 1004).unwrap();
    old.commit().unwrap();
    // The first list is done, the second one waits for row 399.
    world.database.remove_leftovers().unwrap();
    let rows = world.committed();
    assert_eq!(rows[&1].0, 1002);
    holder.commit().unwrap();
    world.check();
}

/// A row away from home is changed in place again and again, and always taken back: nobody may see that.
#[test]
fn changes_of_a_moved_row_are_not_seen_before_their_commit() {
    let world = World::new();
    let rids = world.fill((0..200).map(|n| (n, n)));
    let mut t = world.begin(ReadCommitted);
    let long = "a".repeat(900);
    assert!(t.update(&world.table, rids[5], &[(2, ValueRef::Text(&long))]).unwrap());
    t.commit().unwrap();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let other = "b".repeat(900);
            for _ in 0..4_000 {
                let mut t = world.begin(ReadCommitted);
                assert!(t.update(&world.table, rids[5], &[(2, ValueRef::Text(&other))]).unwrap());
                t.rollback().unwrap();
            }
            done.store(true, Ordering::Release);
        });
        for _ in 0..2 {
            scope.spawn(|| {
                let mut snapshot = world.begin(RepeatableRead);
                while !done.load(Ordering::Acquire) {
                    for t in [&mut snapshot, &mut world.begin(ReadCommitted)] {
                        let row = world.row(t, rids[5]).unwrap();
                        assert!(row.1.1 == long, "an uncommitted change is seen");
                    }
                }
            });
        }
    });
    world.check();
}

fn entries(world: &World) -> [usize; 2] {
    [&world.by_number, &world.by_value].map(|index| {
        let mut entries = 0;
        let faults = index.tree().check(&mut |_, _| {
            entries += 1;
            Ok(())
        });
        assert_eq!(faults.unwrap().len(), 0);
        entries
    })
}

/// A reader that stays open holds what it sees, and not each of the many changes since.
#[test]
fn under_a_long_reader_space_does_not_grow_with_the_changes() {
    const ROWS: i64 = 60;
    for isolation in [RepeatableRead, ReadCommitted] {
        let world = World::new();
        world.fill((0..ROWS).map(|n| (n, n)));
        let mut reader = world.begin(isolation);
        let seen = world.see(&mut reader);
        let mut random = Random(3);
        let mut pages = 0;
        for change in 0..3_000 {
            // A row gets another key, another one is inserted and goes again; a row of the reader is deleted and comes back under its number.
            let mut t = world.begin(ReadCommitted);
            world.set(&mut t, random.below(ROWS as u64) as i64, 1000 + random.below(5000) as i64).unwrap();
            let fresh = world.insert(&mut t, 10_000 + change, change, "some text").unwrap();
            t.commit().unwrap();
            let mut t = world.begin(ReadCommitted);
            assert!(t.delete(&world.table, fresh).unwrap());
            let number = random.below(ROWS as u64) as i64;
            let rid = world.find(&mut t, number).unwrap();
            assert!(t.delete(&world.table, rid).unwrap());
            t.commit().unwrap();
            let mut t = world.begin(ReadCommitted);
            world.insert(&mut t, number, 7, "again").unwrap();
            t.commit().unwrap();
            if change == 1_000 {
                pages = world.table.data_sets().next().unwrap().page_count();
            }
        }
        // Rows now and then, and what waits for its turn: three commits a change, 256 commits.
        let [by_number, by_value] = entries(&world);
        if isolation == RepeatableRead {
            assert!(by_number <= 2 * ROWS as usize + 2 * 256, "{by_number} entries by number");
            assert!(by_value <= 2 * ROWS as usize + 3 * 256, "{by_value} entries by value");
            let now = world.table.data_sets().next().unwrap().page_count();
            assert!(now <= pages + 2, "{now} pages, and {pages} after the first thousand changes");
            assert!(world.see(&mut reader) == seen, "the reader sees something else");
        } else {
            // It remembers RIDs: no slot is used again, but entries of other keys go.
            assert!(by_value <= 6_000 + 3 * 256 + 2 * ROWS as usize, "{by_value} entries by value");
        }
        reader.commit().unwrap();
        assert_eq!(world.check().len(), ROWS as usize);
    }
}

#[test]
fn keys_come_without_the_table_unless_its_rows_have_versions() {
    let world = World::new();
    let rids = world.fill((0..500).map(|number| (number, number * 10)));
    world.database.remove_leftovers().unwrap();
    let asked = || world.table.data_sets().map(|data_set| data_set.counters().getpages).sum::<u64>();
    let keys = || {
        let mut t = world.begin(RepeatableRead);
        let before = asked();
        let found = t.keys_of(&world.table, &world.by_value, Way::Forward).unwrap().map(Result::unwrap).count();
        (found, asked() - before)
    };
    assert_eq!(keys(), (500, 0));
    // One row in doubt: only those of its page are looked at.
    let mut writer = world.begin(ReadCommitted);
    assert!(writer.update(&world.table, rids[250], &[(1, ValueRef::Int(7))]).unwrap());
    let (found, looked_at) = keys();
    assert!(found == 500 && (1..200).contains(&looked_at), "{found} keys, {looked_at} rows looked at");
    writer.commit().unwrap();
    world.database.remove_leftovers().unwrap();
    assert_eq!(keys(), (500, 0));
}

/// Entries that older snapshots keep name rows that have other keys by now. Who is given such a key neither waits for these rows nor is refused because of them.
#[test]
fn a_former_key_is_free_while_its_row_is_changed() {
    for format in [IndexFormat::Plain, IndexFormat::Fold, IndexFormat::Prefix] {
        let world = World::with(Form { format, ..Form::default() });
        let rids = world.fill([(1, 10), (2, 20), (3, 30)]);
        let mut old = world.begin(RepeatableRead);
        let seen = world.see(&mut old);
        let number = |t: &mut Transaction<'_>, rid, number| t.update(&world.table, rid, &[(0, ValueRef::Int(number))]);
        let mut t = world.begin(ReadCommitted);
        assert!(number(&mut t, rids[0], 11).unwrap());
        assert!(t.delete(&world.table, rids[1]).unwrap());
        t.commit().unwrap();
        // Rows that had the numbers 1 and 3 are being changed.
        let mut holder = world.begin(ReadCommitted);
        world.set(&mut holder, 11, 100).unwrap();
        assert!(number(&mut holder, rids[2], 33).unwrap());
        for isolation in [ReadCommitted, RepeatableRead, Serializable] {
            let mut user = world.begin_impatient(isolation);
            let savepoint = user.savepoint();
            for free in [1, 2] {
                let inserted = world.insert(&mut user, free, 0, "");
                assert!(inserted.is_ok(), "{format:?}, {isolation:?}, {free}: {inserted:?}");
            }
            // These may become taken again, or are taken.
            for taken in [11, 3, 33] {
                let refused = world.insert(&mut user, taken, 0, "");
                assert!(matches!(refused, Err(Error::Lock(_))), "{format:?}, {isolation:?}, {taken}: {refused:?}");
                user.roll_back_to(savepoint).unwrap();
            }
            user.rollback().unwrap();
        }
        // For the old snapshot the keys are not free.
        for number in [1, 2] {
            let savepoint = old.savepoint();
            let refused = world.insert(&mut old, number, 0, "");
            assert!(matches!(refused, Err(Error::Conflict { .. })), "{format:?}, {number}: {refused:?}");
            old.roll_back_to(savepoint).unwrap();
        }
        assert!(world.see(&mut old) == seen);
        old.rollback().unwrap();
        holder.commit().unwrap();
        assert_eq!(world.check().into_keys().collect::<Vec<_>>(), [11, 33]);
    }
}

/// A key that very many rows have had, by savepoints, returns to them, and commits, beside readers of all ages: it is there once.
#[test]
fn a_key_is_deleted_and_inserted_again_and_again() {
    for format in [IndexFormat::Plain, IndexFormat::Fold, IndexFormat::Prefix] {
        let world = World::with(Form { format, ..Form::default() });
        world.fill([(1, 0), (2, 0)]);
        let (mut random, mut value, mut next) = (Random(7), 0, 0);
        let mut readers = Vec::new();
        for round in 0..60 {
            if round % 5 == 0 {
                let mut reader = world.begin(RepeatableRead);
                let seen = world.see(&mut reader);
                readers.push((reader, seen));
            }
            let isolation = [ReadCommitted, RepeatableRead, Serializable][round % 3];
            let mut t = world.begin_impatient(isolation);
            let (mut now, mut savepoints) = (Some(value), Vec::new());
            for _ in 0..40 {
                match random.below(6) {
                    0 => savepoints.push((t.savepoint(), now)),
                    1 if !savepoints.is_empty() => {
                        let at = random.below(savepoints.len() as u64) as usize;
                        savepoints.truncate(at + 1);
                        t.roll_back_to(savepoints[at].0).unwrap();
                        now = savepoints[at].1;
                    }
                    2 if now.is_some() => {
                        assert!(matches!(world.insert(&mut t, 1, -1, ""), Err(Error::DuplicateKey { .. })), "{format:?}");
                    }
                    // The other row takes the key, or gives it up.
                    3 if now.is_none() => {
                        let rid = world.find(&mut t, 2).unwrap();
                        assert!(t.update(&world.table, rid, &[(0, ValueRef::Int(1))]).unwrap());
                        assert!(matches!(world.insert(&mut t, 1, -1, ""), Err(Error::DuplicateKey { .. })), "{format:?}");
                        assert!(t.update(&world.table, rid, &[(0, ValueRef::Int(2))]).unwrap());
                    }
                    _ => {
                        if now.take().is_some() {
                            let rid = world.find(&mut t, 1).unwrap();
                            assert!(t.delete(&world.table, rid).unwrap());
                        } else {
                            next += 1;
                            world.insert(&mut t, 1, next, "").unwrap();
                            now = Some(next);
                        }
                    }
                }
                assert_eq!(world.get(&mut t, 1), now, "{format:?}");
            }
            if now.is_none() {
                next += 1;
                world.insert(&mut t, 1, next, "").unwrap();
                now = Some(next);
            }
            if random.below(4) == 0 {
                t.rollback().unwrap();
            } else {
                t.commit().unwrap();
                value = now.unwrap();
            }
            assert_eq!(world.committed()[&1].0, value, "{format:?}");
            // Whose snapshot has another row with the key learns of it.
            if round % 10 == 9 {
                let (mut reader, seen) = readers.swap_remove(random.below(readers.len() as u64) as usize);
                assert!(world.see(&mut reader) == seen, "{format:?}");
                if seen[&1].0 != value {
                    let refused = world.insert(&mut reader, 1, -1, "");
                    assert!(matches!(refused, Err(Error::DuplicateKey { .. } | Error::Conflict { .. })), "{format:?}: {refused:?}");
                }
                reader.rollback().unwrap();
            }
        }
        for (mut reader, seen) in readers {
            assert!(world.see(&mut reader) == seen, "{format:?}");
            reader.commit().unwrap();
        }
        assert_eq!(world.check().len(), 2, "{format:?}");
    }
}
