//! What a transaction was to leave when it commits, and does not because that part of it was taken
//! back: neither the running process nor recovery after a kill may remove it.

use crate::world::{Form, Random, World, open};
use pagefold_engine::Error;
use pagefold_engine::database::Isolation::ReadCommitted;
use pagefold_engine::database::OpenMode;
use pagefold_engine::table_space::Method;
use pagefold_io::{MemoryStorage, Storage};
use pagefold_types::{Rid, ValueRef};
use std::sync::Arc;

/// How an update that leaves something is taken back.
#[derive(Clone, Copy, Debug)]
enum TakenBack {
    BySavepoint,
    ByDuplicateKey,
    /// Twice, with a change in between that stays.
    BetweenOthers,
}

fn long_text(random: &mut Random) -> String {
    (0..9000).map(|_| char::from(b'a' + random.below(26) as u8)).collect()
}

fn take_back(world: &World, rid: Rid, how: TakenBack) {
    let mut transaction = world.begin(ReadCommitted);
    let short = [(2, ValueRef::Text("short"))];
    match how {
        TakenBack::BySavepoint => {
            let savepoint = transaction.savepoint();
            assert!(transaction.update(&world.table, rid, &short).unwrap());
            transaction.roll_back_to(savepoint).unwrap();
        }
        TakenBack::ByDuplicateKey => {
            let changes = [(0, ValueRef::Int(2)), short[0]];
            assert!(matches!(transaction.update(&world.table, rid, &changes), Err(Error::DuplicateKey { .. })));
        }
        TakenBack::BetweenOthers => {
            for value in [71, 72] {
                let savepoint = transaction.savepoint();
                assert!(transaction.update(&world.table, rid, &short).unwrap());
                transaction.roll_back_to(savepoint).unwrap();
                assert!(world.set(&mut transaction, 2, value).unwrap());
            }
        }
    }
    transaction.commit().unwrap();
}

fn keeps_its_large_value(method: Method, how: TakenBack) {
    let memory = MemoryStorage::new();
    let storage: Arc<dyn Storage> = Arc::new(memory.clone());
    let form = Form { method, ..Form::default() };
    let world = open(&storage, form, OpenMode::Create);
    let mut random = Random(7);
    let large = long_text(&mut random);
    let mut setup = world.begin(ReadCommitted);
    let rid = world.insert(&mut setup, 1, 10, &large).unwrap();
    world.insert(&mut setup, 2, 20, "other").unwrap();
    setup.commit().unwrap();
    take_back(&world, rid, how);
    world.database.remove_leftovers().unwrap();
    assert_eq!(world.committed()[&1].1, large, "{how:?}: the process that took it back");

    // The process is killed: the files as they are.
    let killed: Arc<dyn Storage> = Arc::new(memory.snapshot());
    let again = open(&killed, form, OpenMode::Write);
    assert_eq!(again.committed()[&1].1, large, "{how:?}: after recovery");
    let mut others = again.begin(ReadCommitted);
    for number in 10..14 {
        again.insert(&mut others, number, 1, &long_text(&mut random)).unwrap();
    }
    others.commit().unwrap();
    assert_eq!(again.check()[&1].1, large, "{how:?}: after others took pages");
}

#[test]
fn a_large_value_whose_update_was_taken_back_outlives_a_kill() {
    for method in [Method::None, Method::Row, Method::Page, Method::Fixed, Method::Huffman] {
        for how in [TakenBack::BySavepoint, TakenBack::ByDuplicateKey, TakenBack::BetweenOthers] {
            keeps_its_large_value(method, how);
        }
    }
}
