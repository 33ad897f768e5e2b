//! Rows that are changed where they lie by column, until their pages have no room: whatever is kept for taking changes back, a valid change finds room in the end.

use crate::world::{Form, Random, Rows, World};
use pagefold_engine::database::Isolation::ReadCommitted;
use pagefold_engine::database::Transaction;
use pagefold_engine::table_space::Method;
use pagefold_types::ValueRef;

/// Adds one to the values of all rows from a number on.
fn add_from(world: &World, t: &mut Transaction<'_>, rows: &mut Rows, from: i64) {
    for (number, row) in rows.range_mut(from..) {
        row.0 += 1;
        assert!(world.set(t, *number, row.0).unwrap_or_else(|e| panic!("row {number}: {e}")));
    }
}

fn add_committed(world: &World, rows: &mut Rows, from: i64) {
    let mut t = world.begin(ReadCommitted);
    add_from(world, &mut t, rows, from);
    t.commit().unwrap();
}

fn filled(page_bytes: usize, rows: &Rows) -> World {
    let world = World::with(Form { method: Method::Page, page_bytes, ..Form::default() });
    let mut t = world.begin(ReadCommitted);
    for (number, (value, text)) in rows {
        world.insert(&mut t, *number, *value, text).unwrap();
    }
    t.commit().unwrap();
    world
}

/// Rows shrink by patches and by moves; then a transaction changes all of them, and some twice.
#[test]
fn rows_that_a_transaction_changes_twice_find_room() {
    let mut rows: Rows = (150..=300).map(|number| (number, (number % 13, "x".repeat(number as usize)))).collect();
    let world = filled(4096, &rows);
    let mut t = world.begin(ReadCommitted);
    for (number, row) in rows.range_mut(..=158) {
        row.1.clear();
        let rid = world.find(&mut t, *number).unwrap();
        assert!(t.update(&world.table, rid, &[(2, ValueRef::Text(""))]).unwrap());
    }
    t.commit().unwrap();
    add_committed(&world, &mut rows, 182);
    add_committed(&world, &mut rows, 25);
    let before = rows.clone();
    let mut t = world.begin(ReadCommitted);
    add_from(&world, &mut t, &mut rows, 100);
    add_from(&world, &mut t, &mut rows, 188);
    drop(t);
    assert_eq!(world.check(), before, "taken back");
}

/// Texts that are alike but for some, which are emptied, cut or become unlike them; values that need more bits with each change.
#[test]
fn whatever_texts_have_in_common_changes_find_room() {
    let mut built = 0;
    for seed in 0..60 {
        let mut random = Random(seed);
        let page_bytes = [2048, 4096, 8192, 16384][random.below(4) as usize];
        let longest = 40 + random.below(page_bytes as u64 / 12);
        let beginning = ["x", "ab", "carefully final "][random.below(3) as usize].repeat(page_bytes);
        let text = |random: &mut Random| match random.below(8) {
            0 => random.text(20),
            _ => beginning[..(longest / 2 + random.below(longest / 2)) as usize].to_string(),
        };
        let count = 100 + random.below(300) as i64;
        let mut rows: Rows = (0..count).map(|number| (number, (number % 13, text(&mut random)))).collect();
        let world = filled(page_bytes, &rows);
        for turn in 0..12 {
            let before = rows.clone();
            let mut t = world.begin(ReadCommitted);
            for _ in 0..=random.below(3) {
                let from = random.below(count as u64) as i64;
                if random.below(3) == 0 {
                    for (number, row) in rows.range_mut(from..from + 10) {
                        row.1 = if random.below(2) == 0 { String::new() } else { text(&mut random) };
                        let rid = world.find(&mut t, *number).unwrap();
                        let done = t.update(&world.table, rid, &[(2, ValueRef::Text(&row.1))]);
                        assert!(done.unwrap_or_else(|e| panic!("seed {seed}, turn {turn}, row {number}: {e}")));
                    }
                } else {
                    add_from(&world, &mut t, &mut rows, from);
                }
            }
            if random.below(3) == 0 {
                t.rollback().unwrap();
                rows = before;
            } else {
                t.commit().unwrap();
            }
        }
        assert!(world.check() == rows, "seed {seed}");
        built += world.table.images_built();
    }
    assert!(built > 1_000, "{built} pages were built anew");
}
