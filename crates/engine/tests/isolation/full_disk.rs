//! A full disk: a statement that finds no room leaves nothing behind, and a rollback needs none.

use crate::world::{Form, Random, Rows, World, open};
use pagefold_engine::Error;
use pagefold_engine::database::Isolation::{ReadCommitted, RepeatableRead, Serializable};
use pagefold_engine::database::{Database, OpenMode, Settings, Transaction};
use pagefold_engine::index::IndexFormat;
use pagefold_engine::log::LogSettings;
use pagefold_engine::pool::PoolSettings;
use pagefold_engine::table_space::{Method, TableAttributes};
use pagefold_io::{CallKind, CrashPolicy, Failure, Fault, FaultOptions, FaultStorage, SimulatedClock, Storage, Trigger};
use pagefold_types::{Rid, ValueRef};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

const METHODS: [Method; 5] = [Method::None, Method::Row, Method::Page, Method::Fixed, Method::Huffman];

fn on_disk(disk: &FaultStorage, form: Form) -> World {
    let storage: Arc<dyn Storage> = Arc::new(disk.clone());
    let world = open(&storage, form, OpenMode::Create);
    // The catalog takes room, too.
    world.database.checkpoint().unwrap();
    world
}

/// From now on nothing can grow.
fn fill_up(disk: &FaultStorage, world: &World) {
    world.database.checkpoint().unwrap();
    disk.set_capacity(Some(disk.taken_bytes()));
}

fn letters(random: &mut Random, length: u64) -> String {
    (0..length).map(|_| char::from(b'a' + random.below(26) as u8)).collect()
}

#[test]
fn a_row_whose_move_failed_can_be_changed_by_anybody() {
    for method in METHODS {
        let disk = FaultStorage::new(FaultOptions::default());
        let world = on_disk(&disk, Form { method, ..Form::default() });
        let mut random = Random(5);
        let rids = world.fill((0..600).map(|number| (number, number)));
        fill_up(&disk, &world);
        let mut writer = world.begin(ReadCommitted);
        let failed = rids.iter().find(|rid| {
            let text = letters(&mut random, 300);
            writer.update(&world.table, **rid, &[(2, ValueRef::Text(&text))]).is_err()
        });
        let failed = *failed.expect("the disk is full");
        writer.rollback().unwrap();
        for isolation in [RepeatableRead, Serializable, ReadCommitted] {
            let mut other = world.begin(isolation);
            let changed = other.update(&world.table, failed, &[(1, ValueRef::Int(-1))]);
            assert!(changed.as_ref().is_ok_and(|found| *found), "{method}, {isolation:?}: {changed:?}");
            other.rollback().unwrap();
        }
        disk.set_capacity(None);
        assert_eq!(world.check().len(), rids.len(), "{method}");
    }
}

/// Some life, so that pages are as they are after a while: rows that moved, room here and there.
fn live(world: &World, random: &mut Random, rids: &mut [Rid]) {
    let mut next = 10_000;
    for _ in 0..40 {
        let mut transaction = world.begin(ReadCommitted);
        for _ in 0..10 {
            let at = random.below(rids.len() as u64) as usize;
            let text = random.text(60);
            if random.below(4) == 0 {
                transaction.delete(&world.table, rids[at]).unwrap();
                next += 1;
                rids[at] = world.insert(&mut transaction, next, 3, &text).unwrap();
            } else {
                let value = random.below(5000) as i64;
                transaction.update(&world.table, rids[at], &[(1, ValueRef::Int(value)), (2, ValueRef::Text(&text))]).unwrap();
            }
        }
        transaction.commit().unwrap();
    }
}

/// A transaction changes rows to and fro on a full disk while others take what room there is; it is rolled back, or the process is killed and recovery takes it back while the disk is still full.
fn rolls_back_on_a_full_disk(form: Form, seed: u64, killed: bool) {
    let disk = FaultStorage::new(FaultOptions::default());
    let world = on_disk(&disk, form);
    let mut random = Random(seed);
    let mut rids = world.fill((0..300).map(|number| (number, number % 50)));
    live(&world, &mut random, &mut rids);
    fill_up(&disk, &world);
    let mut filler = world.begin(ReadCommitted);
    let mut number = 1_000_000;
    loop {
        number += 1;
        let text = random.text(40);
        match world.insert(&mut filler, number, 1, &text) {
            Ok(rid) if number % 3 == 0 => rids.push(rid),
            Ok(_) => {}
            Err(error) => {
                assert!(matches!(error, Error::Io(_)), "{error}");
                break;
            }
        }
    }
    filler.commit().unwrap();
    let before = world.committed();

    let mut transaction = world.begin(ReadCommitted);
    let mut savepoint = None;
    for step in 0..200 {
        let rid = rids[random.below(rids.len() as u64) as usize];
        let text = random.text(60);
        let value = ValueRef::Int((random.below(1 << 60) >> random.below(60)) as i64);
        let changed = match random.below(6) {
            0 | 1 => transaction.update(&world.table, rid, &[(1, value)]),
            2 => transaction.delete(&world.table, rid),
            _ => transaction.update(&world.table, rid, &[(2, ValueRef::Text(&text))]),
        };
        assert!(changed.is_ok() || matches!(changed, Err(Error::Io(_))), "{form:?}, seed {seed}, step {step}: {changed:?}");
        if step == 70 {
            savepoint = Some(transaction.savepoint());
        }
        if step == 140 {
            transaction.roll_back_to(savepoint.unwrap()).unwrap();
        }
    }
    // Others use what room there is.
    let mut other = world.begin(ReadCommitted);
    let inserted: Rows = (0..300)
        .map_while(|i| {
            let text = random.text(20);
            world.insert(&mut other, 2_000_000 + i, 1, &text).ok().map(|_| (2_000_000 + i, (1, text)))
        })
        .collect();
    other.commit().unwrap();
    let expected: Rows = before.into_iter().chain(inserted).collect();
    if killed {
        std::mem::forget(transaction);
        let image = disk.crash_image(CrashPolicy::KeepAll);
        let storage: Arc<dyn Storage> = Arc::new(image.clone());
        let again = open(&storage, form, OpenMode::Write);
        assert!(again.committed() == expected, "{form:?}, seed {seed}: after recovery on the full disk");
        image.set_capacity(None);
        again.check();
        std::mem::forget(world);
    } else {
        let rolled_back = transaction.rollback();
        assert!(rolled_back.is_ok(), "{form:?}, seed {seed}: {rolled_back:?}");
        disk.set_capacity(None);
        assert!(world.check() == expected, "{form:?}, seed {seed}: after the rollback");
    }
}

#[test]
fn a_rollback_needs_no_room() {
    let seeds = std::env::var("PAGEFOLD_FULL_DISK_SEEDS").map_or(4, |seeds| seeds.parse().unwrap());
    for method in METHODS {
        for seed in 0..seeds {
            for killed in [false, true] {
                rolls_back_on_a_full_disk(Form { method, ..Form::default() }, seed, killed);
            }
        }
    }
}

/// The log of a large transaction is many segments long, and so is that of taking it back.
#[test]
fn a_large_transaction_is_taken_back_on_a_full_disk() {
    for method in METHODS {
        for killed in [false, true] {
            let form = Form { method, ..Form::default() };
            let disk = FaultStorage::new(FaultOptions::default());
            let world = on_disk(&disk, form);
            let mut random = Random(11);
            let rids = world.fill((0..2000).map(|number| (number, number)));
            let before = world.committed();
            let mut transaction = world.begin(ReadCommitted);
            let start = world.database.log_bytes_since_checkpoint();
            while world.database.log_bytes_since_checkpoint() - start < 4 << 20 {
                let rid = rids[random.below(2000) as usize];
                let text = letters(&mut random, 200);
                assert!(transaction.update(&world.table, rid, &[(1, ValueRef::Int(-1)), (2, ValueRef::Text(&text))]).unwrap());
            }
            disk.set_capacity(Some(disk.taken_bytes()));
            if killed {
                std::mem::forget(transaction);
                let image = disk.crash_image(CrashPolicy::KeepAll);
                let storage: Arc<dyn Storage> = Arc::new(image);
                assert!(open(&storage, form, OpenMode::Write).committed() == before, "{method}: after recovery");
                std::mem::forget(world);
            } else {
                let rolled_back = transaction.rollback();
                assert!(rolled_back.is_ok(), "{method}: {rolled_back:?}");
                assert!(world.check() == before, "{method}: after the rollback");
            }
        }
    }
}

/// The text of a row that leaves so much room that another like it goes there.
const ROOMY: &str = "a text of some length, as long as that of two or three other rows together";

/// Rows with ascending values in a prefix index, whose leaves are full. In each block a few are of a transaction
/// that runs: without them gaps are wider, and what is left of the block takes more bytes than all did.
fn with_narrow_gaps(world: &World) -> (Transaction<'_>, Vec<(Rid, i64, i64)>) {
    let mut random = Random(3);
    let (mut runs, mut others) = (world.begin(ReadCommitted), world.begin(ReadCommitted));
    let (mut value, mut rows) = (0, Vec::new());
    for number in 0..20_000 {
        value += 200 + random.below(56) as i64;
        if number % 32 == 16 {
            rows.push((world.insert(&mut runs, number, value, ROOMY).unwrap(), number, value));
        } else {
            world.insert(&mut others, number, value, "").unwrap();
        }
    }
    others.commit().unwrap();
    (runs, rows)
}

/// From now on nothing can grow, and no page has room.
fn take_all_room(disk: &FaultStorage, world: &World) {
    fill_up(disk, world);
    let mut filler = world.begin(ReadCommitted);
    let full = (100_000..).find_map(|number| world.insert(&mut filler, number, number * 1000, "").err());
    assert!(matches!(&full, Some(error) if error.is_no_room()), "{full:?}");
    filler.commit().unwrap();
}

fn pages(world: &World) -> Vec<u64> {
    [&world.by_number, &world.by_value].map(|index| index.tree().levels().unwrap().iter().map(|level| level.pages).sum()).to_vec()
}

fn narrow() -> Form {
    Form { format: IndexFormat::Prefix, small_extents: true, ..Form::default() }
}

#[test]
fn a_rollback_leaves_an_entry_without_which_its_leaf_would_be_too_full() {
    let disk = FaultStorage::new(FaultOptions::default());
    let world = on_disk(&disk, narrow());
    let (runs, _) = with_narrow_gaps(&world);
    take_all_room(&disk, &world);
    let (before, pages_before) = (world.committed(), pages(&world));
    let rolled_back = runs.rollback();
    assert!(rolled_back.is_ok(), "{rolled_back:?}");
    assert!(world.committed() == before);
    assert_eq!(pages(&world), pages_before, "the rollback has split leaves");
    // Its removal finds no room; it goes on being left, also when the database is closed.
    world.database.remove_leftovers().unwrap();
    assert_eq!(pages(&world), pages_before);
    world.database.close().unwrap();
    let storage: Arc<dyn Storage> = Arc::new(disk.clone());
    let again = open(&storage, narrow(), OpenMode::Write);
    assert!(again.committed() == before, "closed and opened on the full disk");
    disk.set_capacity(None);
    assert!(again.check() == before, "with room again");
    assert_ne!(pages(&again), pages_before, "the test wants removals that need a page");
}

#[test]
fn recovery_leaves_an_entry_without_which_its_leaf_would_be_too_full() {
    let disk = FaultStorage::new(FaultOptions::default());
    let world = on_disk(&disk, narrow());
    let (runs, _) = with_narrow_gaps(&world);
    take_all_room(&disk, &world);
    let (before, pages_before) = (world.committed(), pages(&world));
    // Killed, and then killed again when everything is taken back.
    let mut image = disk.crash_image(CrashPolicy::KeepAll);
    for _ in 0..3 {
        // The log may have given room back.
        let growth = Trigger::kind(CallKind::Allocate, 0).on_path("data/").forever();
        image.inject(growth, Fault::Error(Failure::NoSpace));
        let storage: Arc<dyn Storage> = Arc::new(image.clone());
        let again = open(&storage, narrow(), OpenMode::Write);
        assert!(again.committed() == before);
        again.database.remove_leftovers().unwrap();
        assert_eq!(pages(&again), pages_before, "recovery has split leaves");
        image = image.crash_image(CrashPolicy::KeepAll);
        std::mem::forget(again);
    }
    image.set_capacity(None);
    let storage: Arc<dyn Storage> = Arc::new(image);
    let again = open(&storage, narrow(), OpenMode::Write);
    assert!(again.check() == before, "with room again");
    assert_ne!(pages(&again), pages_before, "the test wants removals that need a page");
    std::mem::forget(runs);
    std::mem::forget(world);
}

/// Entries that a rollback has left are there for the same rows again.
#[test]
fn rows_come_back_where_entries_were_left() {
    for commits in [true, false] {
        let disk = FaultStorage::new(FaultOptions::default());
        let world = on_disk(&disk, narrow());
        let (runs, rows) = with_narrow_gaps(&world);
        take_all_room(&disk, &world);
        let mut expected = world.committed();
        runs.rollback().unwrap();
        disk.set_capacity(None);
        let mut again = world.begin(ReadCommitted);
        let mut added = Rows::new();
        // Pages that have room are filled from where the last row went, and then from the first one on.
        for number in 1_000_000.. {
            added.insert(number, (number * 1000, ROOMY.into()));
            if world.insert(&mut again, number, number * 1000, ROOMY).unwrap() == rows[0].0 {
                break;
            }
        }
        let mut in_place = 0;
        for (rid, number, value) in &rows[1..] {
            added.insert(*number, (*value, ROOMY.into()));
            in_place += usize::from(world.insert(&mut again, *number, *value, ROOMY).unwrap() == *rid);
        }
        assert!(in_place * 2 > rows.len(), "{in_place} of {} rows are where they were", rows.len());
        if commits {
            again.commit().unwrap();
            expected.extend(added);
        } else {
            again.rollback().unwrap();
        }
        assert!(world.committed() == expected);
        assert!(world.check() == expected);
    }
}

/// An entry that a rollback has left names a slot in which another row lies by now: who is given its key does not wait for that row.
#[test]
fn a_key_whose_entry_was_left_is_free_while_another_row_lies_in_its_place() {
    let disk = FaultStorage::new(FaultOptions::default());
    let world = on_disk(&disk, narrow());
    let mut random = Random(3);
    let (mut runs, mut others) = (world.begin(ReadCommitted), world.begin(ReadCommitted));
    let (mut number, mut rows) = (0, Vec::new());
    for value in 0..20_000 {
        number += 200 + random.below(56) as i64;
        if value % 32 == 16 {
            rows.push((world.insert(&mut runs, number, value, ROOMY).unwrap(), number));
        } else {
            world.insert(&mut others, number, value, "").unwrap();
        }
    }
    others.commit().unwrap();
    fill_up(&disk, &world);
    let mut filler = world.begin(ReadCommitted);
    assert!((1..).find_map(|n| world.insert(&mut filler, -n, n, "").err()).unwrap().is_no_room());
    filler.commit().unwrap();
    let before = world.committed().len();
    runs.rollback().unwrap();
    let is_left = |(rid, number): &(Rid, i64)| world.by_number.tree().contains(&key(&world, *number), *rid).unwrap();
    let left: Vec<_> = rows.into_iter().filter(is_left).collect();
    assert!(left.len() > 100, "the test wants entries that are left, not {}", left.len());
    disk.set_capacity(None);
    // Others in their slots, not committed: so nothing is removed.
    let mut holder = world.begin(ReadCommitted);
    let mut in_place = Vec::new();
    for n in 0..100_000 {
        let rid = world.insert(&mut holder, 100_000_000 + n, n, ROOMY).unwrap();
        in_place.extend(left.iter().find(|row| row.0 == rid));
        if in_place.len() == 50 {
            break;
        }
    }
    assert_eq!(in_place.len(), 50, "the test wants slots to be used again");
    for isolation in [ReadCommitted, RepeatableRead, Serializable] {
        let mut user = world.begin_impatient(isolation);
        for (rid, number) in &in_place {
            let inserted = world.insert(&mut user, *number, 0, "");
            assert!(inserted.is_ok(), "{isolation:?}, number {number}, whose entry names {rid}: {inserted:?}");
        }
        user.rollback().unwrap();
    }
    holder.rollback().unwrap();
    assert_eq!(world.check().len(), before);
}

/// What a rollback has left is tried now and then while the disk is full, and not all of it at each commit; with room it goes by itself.
#[test]
fn removals_without_room_cost_commits_little() {
    let disk = FaultStorage::new(FaultOptions::default());
    let world = on_disk(&disk, narrow());
    let (runs, rows) = with_narrow_gaps(&world);
    take_all_room(&disk, &world);
    let committed = world.committed();
    let (number, _) = committed.first_key_value().unwrap();
    let rid = world.find(&mut world.begin(ReadCommitted), *number).unwrap();
    let commits = |count| {
        let before = disk.calls_of(CallKind::Allocate);
        for _ in 0..count {
            let mut t = world.begin(ReadCommitted);
            assert!(t.update(&world.table, rid, &[(2, ValueRef::Text(""))]).unwrap());
            t.commit().unwrap();
        }
        disk.calls_of(CallKind::Allocate) - before
    };
    let entries = || {
        let mut entries = 0;
        world
            .by_value
            .tree()
            .check(&mut |_, _| {
                entries += 1;
                Ok(())
            })
            .unwrap();
        entries - committed.len()
    };
    assert_eq!(commits(10), 0, "commits that leave nothing");
    runs.rollback().unwrap();
    let left = entries();
    assert!(left > 50, "the test wants entries that are left, not {left} of {}", rows.len());
    let calls = commits(200);
    println!("{left} entries left: {calls} calls of 200 commits");
    assert!(calls <= 3 * 16, "{calls} calls for {left} entries");
    assert_eq!(entries(), left, "the disk is full");
    disk.set_capacity(None);
    commits(100);
    assert_eq!(entries(), 0, "with room again");
    assert!(world.check() == committed);
}

fn key(world: &World, number: i64) -> Vec<u8> {
    let mut key = Vec::new();
    world.by_number.key_layout().encode(&[ValueRef::Int(number)], &mut key).unwrap();
    key
}

/// The catalog follows tables and indexes with a checkpoint, which needs room. Until there is some, the log has them.
#[test]
fn what_is_defined_survives_on_a_full_disk() {
    let disk = FaultStorage::new(FaultOptions::default());
    let world = on_disk(&disk, Form::default());
    let attributes = world.table.attributes().clone();
    let mut change = world.database.change();
    change.create_table(TableAttributes { name: "more".into(), ..attributes.clone() }).unwrap();
    // So many that a checkpoint does not name them, but a new catalog.
    for i in 0..80 {
        change.create_table(TableAttributes { name: format!("more{i}"), ..attributes.clone() }).unwrap();
    }
    change.drop_index("value").unwrap();
    change.commit().unwrap();
    disk.set_capacity(Some(disk.taken_bytes()));
    assert!(world.database.checkpoint().unwrap_err().is_no_room());
    let rows = world.table.row_count();
    disk.set_capacity(None);
    let mut image = disk.crash_image(CrashPolicy::KeepAll);
    for room in [false, false, true] {
        if !room {
            // What is gone may have given room back.
            let growth = Trigger::kind(CallKind::Allocate, 0).on_path("data/").forever();
            image.inject(growth, Fault::Error(Failure::NoSpace));
        }
        let storage: Arc<dyn Storage> = Arc::new(image.clone());
        let again = database(&storage);
        assert_eq!(again.table("more").unwrap().row_count(), 0);
        assert!(again.index("value").is_err() && again.index("number").is_ok());
        assert_eq!(again.table("t").unwrap().row_count(), rows);
        assert_eq!(again.checkpoint().is_ok(), room);
        image = image.crash_image(CrashPolicy::KeepAll);
        std::mem::forget(again);
    }
}

fn database(storage: &Arc<dyn Storage>) -> Database {
    let clock = Arc::new(SimulatedClock::new(Duration::from_secs(1)));
    let pools = PoolSettings { memory_bytes: 1 << 20, background_threads: 0, ..PoolSettings::default() };
    let log = LogSettings { segment_bytes: 1 << 20, ..LogSettings::default() };
    Database::open(Arc::clone(storage), clock, Path::new("db"), OpenMode::Write, Settings { pools, log, ..Settings::default() }).unwrap()
}

/// A table that finds no room for its first page has no file, so a checkpoint has nothing to write into one.
#[test]
fn a_table_without_room_for_its_first_page_gets_it_later() {
    let disk = FaultStorage::new(FaultOptions::default());
    let world = on_disk(&disk, Form::default());
    let mut change = world.database.change();
    let attributes = world.table.attributes().clone();
    let more = change.create_table(TableAttributes { name: "more".into(), ..attributes }).unwrap();
    change.commit().unwrap();
    world.database.checkpoint().unwrap();
    let row = [ValueRef::Int(1), ValueRef::Int(1), ValueRef::Text("one")];
    let files = disk.list(Path::new("db/data")).unwrap().len();
    let insert = || {
        let mut transaction = world.begin(ReadCommitted);
        transaction.insert(&more, &row).and_then(|_| transaction.commit())
    };
    disk.inject(Trigger::kind(CallKind::Allocate, 0).on_path("data/").forever(), Fault::Error(Failure::NoSpace));
    assert!(insert().unwrap_err().is_no_room());
    assert_eq!(disk.list(Path::new("db/data")).unwrap().len(), files);
    world.database.checkpoint().unwrap();
    disk.clear_faults();
    insert().unwrap();
    world.database.checkpoint().unwrap();
    assert_eq!(more.row_count(), 1);
}
