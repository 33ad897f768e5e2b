//! A full disk: a statement that finds no room leaves nothing behind, and a rollback needs none.

use crate::world::{Form, Random, Rows, World, open};
use pagefold_engine::Error;
use pagefold_engine::database::Isolation::{ReadCommitted, RepeatableRead, Serializable};
use pagefold_engine::database::OpenMode;
use pagefold_engine::table_space::Method;
use pagefold_io::{CrashPolicy, FaultOptions, FaultStorage, Storage};
use pagefold_types::{Rid, ValueRef};
use std::sync::Arc;

const METHODS: [Method; 5] = [Method::None, Method::Row, Method::Page, Method::Fixed, Method::Huffman];

fn on_disk(disk: &FaultStorage, form: Form) -> World {
    let storage: Arc<dyn Storage> = Arc::new(disk.clone());
    open(&storage, form, OpenMode::Create)
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
