//! Rows by column whose lengths change from tiny to as long as a page allows, in any order: on a disk with room no change is refused.

use crate::changes;
use crate::tables::begin;
use crate::world::{Form, Random, World, open};
use pagefold_engine::database::{Isolation, OpenMode};
use pagefold_engine::table_space::Method;
use pagefold_io::{MemoryStorage, Storage};
use pagefold_types::{Rid, ValueRef};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A text of letters, which do not compress, or of one letter, which does.
fn text(random: &mut Random, page_bytes: usize) -> String {
    let below = |random: &mut Random, n: usize| random.below(n as u64) as usize;
    let length = match random.below(10) {
        0..=2 => below(random, 4),
        3 | 4 => below(random, 60),
        5 => below(random, page_bytes / 4),
        6 => below(random, page_bytes),
        // From a little less than what a page takes to a little more, which lies elsewhere.
        _ => page_bytes - 130 + below(random, 100),
    };
    match random.below(4) {
        0 => "a".repeat(length),
        _ => (0..length).map(|_| char::from(b'a' + random.below(26) as u8)).collect(),
    }
}

/// Changes of a transaction, which is committed, rolled back, or taken back to a savepoint in part.
fn change_some(world: &World, rows: &mut BTreeMap<i64, (Rid, String)>, random: &mut Random, page_bytes: usize, at_once: u64) {
    let mut transaction = begin(world, Isolation::ReadCommitted);
    let (before, mut at_savepoint) = (rows.clone(), None);
    let count = 1 + random.below(at_once);
    // Rows side by side, or anywhere.
    let (first, side_by_side) = (random.below(rows.len() as u64), random.below(2) == 0);
    for done in 0..count {
        if done == count / 2 && random.below(3) == 0 {
            at_savepoint = Some((transaction.savepoint(), rows.clone()));
        }
        let at = if side_by_side { (first + done) % rows.len() as u64 } else { random.below(rows.len() as u64) };
        let number = *rows.keys().nth(at as usize).unwrap();
        let fresh = text(random, page_bytes);
        let (rid, text) = rows.get_mut(&number).unwrap();
        if random.below(12) == 0 {
            assert!(transaction.delete(&world.table, *rid).unwrap());
            *rid = world.insert(&mut transaction, number, 1, &fresh).unwrap();
        } else {
            let updated = transaction.update(&world.table, *rid, &[(2, ValueRef::Text(&fresh))]);
            assert!(updated.unwrap_or_else(|error| panic!("row {number} to {} bytes: {error}", fresh.len())));
        }
        *text = fresh;
    }
    if let Some((savepoint, then)) = at_savepoint {
        transaction.roll_back_to(savepoint).unwrap();
        *rows = then;
    }
    if random.below(4) == 0 {
        transaction.rollback().unwrap();
        *rows = before;
    } else {
        transaction.commit().unwrap();
    }
}

fn never_refused(page_bytes: usize, at_once: u64, seed: u64, total: u64) {
    let storage: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
    let form = Form { method: Method::Page, page_bytes, memory_bytes: 16 << 20, ..Form::default() };
    let world = open(&storage, form, OpenMode::Create);
    let mut random = Random(seed);
    let rids = world.fill((0..300).map(|number| (number, 1)));
    let mut rows: BTreeMap<i64, (Rid, String)> = (0..).zip(rids).map(|(number, rid)| (number, (rid, String::new()))).collect();
    let mut done = 0;
    while done < total {
        change_some(&world, &mut rows, &mut random, page_bytes, at_once);
        done += at_once.div_ceil(2);
    }
    let found = world.check();
    assert_eq!(found.len(), rows.len());
    for (number, (_, text)) in &rows {
        assert!(found[number].1 == *text, "pages of {page_bytes}, {at_once} a transaction, seed {seed}: row {number}");
    }
}

#[test]
fn rows_of_any_length_are_never_refused() {
    for seed in 0..2 {
        for page_bytes in [2048, 4096, 16384] {
            for at_once in [1, 8, 60, 300] {
                never_refused(page_bytes, at_once, seed, changes(600));
            }
        }
    }
}
