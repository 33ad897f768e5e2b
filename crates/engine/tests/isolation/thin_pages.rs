//! Thin pages that are emptied beside others: nobody loses a row, or finds that one was deleted which was only put elsewhere; and the pages come free.

use crate::world::{Form, Random, Rows, Scans, World, is_retryable, open, parts};
use pagefold_engine::database::Isolation::{self, ReadCommitted, RepeatableRead, Serializable};
use pagefold_engine::database::{LockWait, Locked, MoveOptions, MoveStep, MoveTally, OpenMode, RowLock, TransactionOptions};
use pagefold_engine::index::IndexFormat;
use pagefold_engine::table_space::Method;
use pagefold_engine::{Error, Result, Silent};
use pagefold_io::{MemoryStorage, Storage};
use pagefold_types::{Rid, ValueRef};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

const OPTIONS: MoveOptions = MoveOptions { rows_max: 50, is_thorough: false };

/// Data pages, and all pages.
fn pages(world: &World) -> (u64, u64) {
    let data = world.table.data_sets().map(|data_set| u64::from(data_set.facts().data_pages)).sum();
    (data, world.table.data_sets().map(|data_set| u64::from(data_set.page_count())).sum())
}

/// Moves rows until there is nothing more to be moved, or somebody is to be waited for.
fn run(world: &World) -> (MoveTally, MoveStep) {
    let mut thin = world.database.thin_pages(&world.table, OPTIONS).unwrap();
    loop {
        match thin.step().unwrap() {
            MoveStep::Done => {}
            ended => return (thin.standing(), ended),
        }
    }
}

/// A table of which most rows were deleted.
fn thinned(form: Form, rows: i64, percent: u64) -> (Arc<dyn Storage>, World, Rows) {
    let storage: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
    let world = open(&storage, form, OpenMode::Create);
    let (mut random, mut model, mut t) = (Random(7), Rows::new(), world.begin(ReadCommitted));
    for number in 0..rows {
        let text = random.text(25);
        world.insert(&mut t, number, number % 100, &text).unwrap();
        model.insert(number, (number % 100, text));
    }
    t.commit().unwrap();
    let mut t = world.begin(ReadCommitted);
    for number in 0..rows {
        if random.below(100) < percent {
            let rid = world.find(&mut t, number).unwrap();
            assert!(t.delete(&world.table, rid).unwrap());
            model.remove(&number);
        }
    }
    t.commit().unwrap();
    world.database.remove_leftovers().unwrap();
    (storage, world, model)
}

fn check_closed(storage: &Arc<dyn Storage>, world: World) {
    let World { database, table, by_number, by_value } = world;
    drop((table, by_number, by_value));
    database.close().unwrap();
    let report = pagefold_utility::check_files(storage.as_ref(), Path::new("db"), &Silent).unwrap();
    assert!(report.errors.is_empty(), "{:?}", report.errors.first());
}

#[test]
fn pages_come_free_under_each_method() {
    for method in Method::ALL {
        for percent in [60, 90] {
            let (storage, world, model) = thinned(Form { method, ..Form::default() }, 6_000, percent);
            let changed = world.table.rows_changed();
            let before = pages(&world);
            let (standing, ended) = run(&world);
            assert_eq!(ended, MoveStep::End);
            let after = pages(&world);
            let percent_left = after.0 * 100 / before.0;
            println!("{method:?}, {percent} % deleted: {before:?} -> {after:?} ({percent_left} %), {standing:?}");
            assert!(percent_left <= 100 - percent + 12, "{method:?}: {before:?} -> {after:?}, {standing:?}");
            assert_eq!((before.0 - after.0, after.1), (standing.pages_given_back, before.1), "{method:?}: no page is lost");
            assert_eq!(world.table.rows_changed(), changed, "nothing counts as changed");
            assert!(world.check() == model, "{method:?}");
            // There is nothing more to be done.
            let again = run(&world).0;
            assert!(again.rows_moved * 20 <= standing.rows_moved, "{method:?}: {again:?}");
            // Rows come where pages are free.
            world.fill((10_000..11_000).map(|number| (number, 1)));
            assert_eq!(pages(&world).1, before.1);
            check_closed(&storage, world);
            let world = open(&storage, Form { method, ..Form::default() }, OpenMode::Write);
            assert_eq!(world.check().len(), model.len() + 1_000);
        }
    }
}

/// Old snapshots see what they saw, by scans and indexes, and rows go from where they were when nobody needs them there.
#[test]
fn readers_see_what_they_saw() {
    for method in [Method::None, Method::Page, Method::Huffman] {
        let (storage, world, model) = thinned(Form { method, ..Form::default() }, 3_000, 60);
        let mut reader = world.database.begin(TransactionOptions { isolation: RepeatableRead, read_only: true, ..Default::default() });
        assert!(world.see(&mut reader) == model);
        let view = world.database.read_view();
        let mut scan = view.scan(&world.table, &Default::default()).unwrap().into_rows();
        let mut seen = Rows::new();
        for _ in 0..model.len() / 3 {
            let (number, row) = parts(&scan.next().unwrap().unwrap().1);
            seen.insert(number, row);
        }
        let before = pages(&world);
        let (standing, _) = run(&world);
        assert!(standing.rows_moved > 300, "{standing:?}");
        assert!(world.see(&mut reader) == model);
        for row in scan {
            let (number, row) = parts(&row.unwrap().1);
            assert!(seen.insert(number, row).is_none());
        }
        assert!(seen == model);
        drop(view);
        reader.commit().unwrap();
        assert!(world.check() == model);
        run(&world);
        assert!(pages(&world).0 < before.0 * 6 / 10, "{before:?} {:?}", pages(&world));
        check_closed(&storage, world);
    }
}

/// Who remembers RIDs under READ COMMITTED finds the rows where they are now, wherever they go meanwhile, and no other row.
#[test]
fn remembered_rids_lead_to_the_rows() {
    for method in [Method::None, Method::Page, Method::Fixed] {
        let (_, world, mut model) = thinned(Form { method, ..Form::default() }, 3_000, 60);
        let mut t = world.begin(ReadCommitted);
        let view = t.read_view().unwrap();
        let rids: BTreeMap<i64, Rid> =
            t.rows(&world.table).unwrap().map(|row| row.map(|(rid, row)| (parts(&row).0, rid)).unwrap()).collect();
        let other = world.begin(ReadCommitted);
        // They are moved, changed and deleted, moved once more, and others come to where they were.
        assert!(run(&world).0.rows_moved > 300);
        let (mut writer, mut now) = (world.begin(ReadCommitted), BTreeMap::new());
        for (number, rid) in &rids {
            match number % 5 {
                0 => assert!(writer.delete(&world.table, world.find(&mut world.begin(ReadCommitted), *number).unwrap()).unwrap()),
                1 => assert!(writer.update(&world.table, *rid, &[(1, ValueRef::Int(-1))]).is_ok()),
                _ => {}
            }
            now.insert(*number, *rid);
        }
        writer.commit().unwrap();
        run(&world);
        world.fill((10_000..11_000).map(|number| (number, 1)));
        let (mut moved, mut unchanged) = (0, 0);
        for (number, rid) in &rids {
            let locked = t.lock_seen(&view, &world.table, *rid, RowLock::Exclusive, LockWait::NoWait).unwrap();
            match (number % 5, locked) {
                (0, Locked::Gone) | (1, Locked::Changed | Locked::Gone) => {}
                (2.., Locked::Unchanged) => unchanged += 1,
                (2.., Locked::Moved(to)) => {
                    assert_eq!(world.row(&mut t, to).unwrap().0, *number);
                    moved += 1;
                }
                (_, other) => panic!("{method:?}: row {number} is {other:?}"),
            }
            let found = world.row(&mut t, *rid);
            assert_eq!(found.as_ref().map(|row| row.0), (number % 5 != 0).then_some(*number), "{method:?}: {locked:?}");
            assert_eq!(t.lock(&world.table, *rid).unwrap(), number % 5 != 0);
            let updated = t.update(&world.table, *rid, &[(1, ValueRef::Int(number + 7))]).unwrap();
            assert_eq!(updated, number % 5 != 0, "{method:?}: row {number}");
            if number % 5 == 4 {
                assert!(t.delete(&world.table, *rid).unwrap());
            }
        }
        assert!(moved > 100 && unchanged > 100, "{moved} moved, {unchanged} not");
        drop((view, other));
        t.commit().unwrap();
        model.retain(|number, _| number % 5 != 0 && number % 5 != 4);
        model.iter_mut().for_each(|(number, row)| row.0 = number + 7);
        model.extend((10_000..11_000).map(|number| (number, (1, String::new()))));
        assert!(world.check() == model, "{method:?}");
    }
}

/// Who keeps a snapshot and may change rows is not disturbed: no step begins before it has ended. One that is read-only is no hindrance.
#[test]
fn rows_stay_beside_who_may_change_them_by_a_snapshot() {
    for isolation in [RepeatableRead, Serializable] {
        let (_, world, model) = thinned(Form::default(), 2_000, 60);
        let mut t = world.begin(isolation);
        assert!(world.see(&mut t) == model);
        let (standing, ended) = run(&world);
        assert_eq!((standing.rows_moved, ended), (0, MoveStep::BehindTransaction(t.id())));
        let mut thin = world.database.thin_pages(&world.table, OPTIONS).unwrap();
        assert_eq!(thin.step().unwrap(), MoveStep::BehindTransaction(t.id()));
        let number = *model.keys().last().unwrap();
        assert!(world.set(&mut t, number, 1).unwrap());
        t.commit().unwrap();
        // One that has come since is not waited for, and meets a row that was moved as any other change.
        let mut late = world.begin(isolation);
        assert!(world.see(&mut late).len() == model.len());
        let rids: Vec<Rid> = late.rows(&world.table).unwrap().map(|row| row.unwrap().0).collect();
        assert_eq!(thin.step().unwrap(), MoveStep::Done);
        assert!(thin.standing().rows_moved > 0);
        let results: Vec<Result<bool>> = rids
            .iter()
            .map(|rid| {
                let savepoint = late.savepoint();
                let result = late.update(&world.table, *rid, &[(1, ValueRef::Int(3))]);
                if result.is_err() && late.roll_back_to(savepoint).is_err() {
                    return Ok(true);
                }
                result
            })
            .collect();
        assert!(results.iter().all(|result| matches!(result, Ok(true) | Err(Error::Conflict { .. }))), "{results:?}");
        assert!(results.iter().any(Result::is_err), "{results:?}");
    }
}

/// A serializable transaction that has read a row where it was comes before one that changes it where it is now. It would have to come after it, too: so one of them fails.
#[test]
fn reads_count_where_the_row_was() {
    for is_moved in [true, false] {
        let (_, world, model) = thinned(Form::default(), 2_000, 60);
        let (stays, moves) = (*model.keys().next().unwrap(), *model.keys().last().unwrap());
        let value = |t: &mut pagefold_engine::database::Transaction<'_>, number| {
            t.get(&world.table, &world.by_number, &[ValueRef::Int(number)], |rid, _| rid).unwrap().unwrap()
        };
        // The step waits for another one, and not for the first, which comes later.
        let mut blocker = world.begin(RepeatableRead);
        blocker.read_view().unwrap();
        let mut thin = world.database.thin_pages(&world.table, OPTIONS).unwrap();
        assert_eq!(thin.step().unwrap(), MoveStep::BehindTransaction(blocker.id()));
        blocker.commit().unwrap();
        let mut first = world.begin(Serializable);
        let places = [value(&mut first, stays), value(&mut first, moves)];
        if is_moved {
            assert_eq!(thin.step().unwrap(), MoveStep::Done);
        }
        let mut second = world.begin(Serializable);
        let now = [value(&mut second, stays), value(&mut second, moves)];
        assert_eq!([now[0] == places[0], now[1] == places[1]], [true, !is_moved]);
        let results = [
            second.update(&world.table, now[1], &[(1, ValueRef::Int(-1))]).and_then(|_| second.commit()),
            first.update(&world.table, places[0], &[(1, ValueRef::Int(-1))]).and_then(|_| first.commit()),
        ];
        assert!(results[0].is_ok() && matches!(results[1], Err(Error::Serialization(_))), "moved: {is_moved}: {results:?}");
    }
}

/// Somebody waits for a row that is being moved, and has it then.
#[test]
fn counters_lose_nothing() {
    for (method, isolations) in [
        (Method::None, &[ReadCommitted][..]),
        (Method::Page, &[ReadCommitted, RepeatableRead, Serializable]),
        (Method::Huffman, &[ReadCommitted, Serializable]),
    ] {
        counters(Form { method, memory_bytes: 1 << 20, background_threads: 1, format: IndexFormat::Prefix, ..Form::default() }, isolations);
    }
}

fn counters(form: Form, isolations: &[Isolation]) {
    const WRITERS: usize = 4;
    const EACH: usize = 250;
    let (storage, world, model) = thinned(form, 4_000, 60);
    let (world, numbers) = (&world, &model.keys().copied().collect::<Vec<i64>>());
    // Those of one who waits for nobody, and is never refused.
    let (own, shared) = numbers.split_at(200);
    let before: i64 = model.values().map(|row| row.0).sum();
    let (added, moved, done) = (&AtomicU64::new(0), &AtomicU64::new(0), &AtomicBool::new(false));
    std::thread::scope(|scope| {
        let writers: Vec<_> = (0..WRITERS)
            .map(|thread| {
                let isolation = isolations[thread % isolations.len()];
                scope.spawn(move || {
                    let mut random = Random(50 + thread as u64);
                    let mut finished = 0;
                    // Until both have met often enough.
                    while finished < EACH || moved.load(Ordering::Relaxed) < 500 {
                        let mut t = world.begin(isolation);
                        match add(world, &mut t, &mut random, shared).and_then(|more| t.commit().map(|()| more)) {
                            Ok(more) => {
                                added.fetch_add(more, Ordering::Relaxed);
                                finished += 1;
                            }
                            error => assert!(is_retryable(&error), "{error:?}"),
                        }
                    }
                })
            })
            .collect();
        scope.spawn(|| {
            let mut random = Random(9);
            while !done.load(Ordering::Acquire) {
                let mut t = world.begin_impatient(ReadCommitted);
                let view = t.read_view().unwrap();
                for _ in 0..20 {
                    let number = own[random.below(own.len() as u64) as usize];
                    let rid = world.find(&mut t, number).unwrap();
                    let wait = if random.below(2) == 0 { LockWait::NoWait } else { LockWait::Skip };
                    let locked = t.lock_seen(&view, &world.table, rid, RowLock::Exclusive, wait).unwrap();
                    assert!(!matches!(locked, Locked::Gone | Locked::Skipped), "row {number} is {locked:?}");
                    assert!(t.update(&world.table, rid, &[(2, ValueRef::Text(&model[&number].1))]).unwrap());
                }
                t.commit().unwrap();
            }
        });
        // Deletes and inserts, so that there is always something to be moved; some are taken back.
        scope.spawn(|| {
            let (mut random, mut next) = (Random(3), 100_000);
            while !done.load(Ordering::Acquire) {
                let mut t = world.begin(ReadCommitted);
                let text = random.text(60);
                let rids: Vec<Rid> = (0..40).map(|at| world.insert(&mut t, next + at, 0, &text).unwrap()).collect();
                t.commit().unwrap();
                next += 40;
                let mut t = world.begin(ReadCommitted);
                for rid in rids {
                    // They may have gone elsewhere, which this one does not know.
                    let _ = t.delete(&world.table, rid);
                }
                if random.below(4) == 0 {
                    t.rollback().unwrap()
                } else {
                    t.commit().unwrap()
                }
                std::thread::sleep(std::time::Duration::from_millis(4));
            }
        });
        scope.spawn(|| {
            while !done.load(Ordering::Acquire) {
                let mut thin = world.database.thin_pages(&world.table, OPTIONS).unwrap();
                let mut before = 0;
                while !done.load(Ordering::Acquire) && thin.step().unwrap() != MoveStep::End {
                    let now = thin.standing().rows_moved;
                    moved.fetch_add(now - before, Ordering::Relaxed);
                    before = now;
                    std::thread::yield_now();
                }
            }
        });
        scope.spawn(|| {
            while !done.load(Ordering::Acquire) {
                let mut t = world.database.begin(TransactionOptions { isolation: RepeatableRead, read_only: true, ..Default::default() });
                let rows = world.see(&mut t);
                let known = numbers.iter().filter(|number| rows.contains_key(number)).count();
                assert_eq!(known, numbers.len(), "rows are missing");
                assert!(world.see(&mut t) == rows);
                drop(t);
                std::thread::sleep(std::time::Duration::from_millis(50));
            }
        });
        let results: Vec<_> = writers.into_iter().map(|writer| writer.join()).collect();
        done.store(true, Ordering::Release);
        results.into_iter().for_each(|result| result.unwrap());
    });
    println!("{form:?}: {} rows moved, {:?}", moved.load(Ordering::Relaxed), pages(world));
    let rows = world.check();
    let now: i64 = numbers.iter().map(|number| rows[number].0).sum();
    assert_eq!(now - before, added.load(Ordering::Relaxed) as i64, "updates were lost");
    assert!(numbers.iter().all(|number| rows[number].1 == model[number].1));
    let _ = storage;
}

/// Adds to some rows, found by key or by RIDs from a while ago.
fn add(world: &World, t: &mut pagefold_engine::database::Transaction<'_>, random: &mut Random, numbers: &[i64]) -> Result<u64> {
    let mut known = Vec::new();
    for _ in 0..6 {
        let number = numbers[random.below(numbers.len() as u64) as usize];
        let rids = t.find(&world.table, &world.by_number, &[ValueRef::Int(number)])?;
        assert_eq!(rids.len(), 1, "row {number}");
        known.push((number, rids[0]));
    }
    known.sort_unstable();
    known.dedup();
    if random.below(3) == 0 {
        std::thread::sleep(std::time::Duration::from_millis(random.below(12)));
    }
    let mut added = 0;
    for (number, rid) in known {
        assert!(t.lock(&world.table, rid)?, "row {number} is gone");
        let row = t.row(&world.table, rid)?;
        let (found, (value, _)) = parts(&row.expect("a row that is locked"));
        assert_eq!(found, number, "another row");
        let savepoint = t.savepoint();
        if random.below(4) == 0 {
            assert!(t.update(&world.table, rid, &[(1, ValueRef::Int(-5))])?);
            t.roll_back_to(savepoint)?;
        }
        assert!(t.update(&world.table, rid, &[(1, ValueRef::Int(value + 1))])?, "row {number} is gone");
        added += 1;
    }
    Ok(added)
}
