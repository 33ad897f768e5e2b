//! Rows come with ascending numbers, the oldest go: leaves are emptied and taken out.

use crate::coverage::Coverage;
use crate::images::{Tally, verify};
use crate::kinds::{Branch, branch};
use crate::model::{Left, Promise};
use crate::values::short_row;
use crate::world::{Shape, TABLES, create, open};
use pagefold_engine::database::{Durability, OpenMode, TransactionOptions};
use pagefold_io::{CrashPolicy, FaultOptions, FaultStorage};
use pagefold_types::{Value, ValueRef};
use parking_lot::Mutex;
use std::sync::Arc;

#[test]
fn a_queue_survives_crashes() {
    const ROWS: i64 = 900;
    let storage = FaultStorage::new(FaultOptions { log_calls_max: 0, ..FaultOptions::default() });
    create(&storage, Shape::default()).unwrap();
    let promise: Arc<Mutex<Promise>> = Arc::default();
    let tally = Arc::new(Mutex::new(Tally::default()));
    let (watched, counted) = (Arc::clone(&promise), Arc::clone(&tally));
    storage.set_observer(move |storage, call| {
        let image = storage.crash_image(CrashPolicy::DropAll);
        if counted.lock().is_new(&image) {
            counted.lock().add(&Coverage::of(&image), &[]);
            let promise = watched.lock().clone();
            verify(&image, &promise, Left::Durable).unwrap_or_else(|e| panic!("before call {} ({call:?}): {e}", storage.calls()));
        }
    });
    let database = open(&storage, OpenMode::Write).unwrap();
    let table = database.table(TABLES[0]).unwrap();
    let index = database.index(&format!("{}_pk", TABLES[0])).unwrap();
    for part in 0..40 {
        let mut model = promise.lock().last().clone();
        let mut t = database.begin(TransactionOptions::default());
        for n in part * 60..(part + 1) * 60 {
            let row = short_row(n, 1);
            let values: Vec<ValueRef<'_>> = row.iter().map(Value::as_ref).collect();
            t.insert(&table, &values).unwrap();
            model[0].insert(n, row);
            if n >= ROWS {
                let oldest = t.find(&table, &index, &[ValueRef::Int(n - ROWS)]).unwrap()[0];
                assert!(t.delete(&table, oldest).unwrap());
                model[0].remove(&(n - ROWS));
            }
        }
        promise.lock().begin(model);
        t.commit().unwrap();
        promise.lock().settle(Durability::Durable);
        if part % 8 == 7 {
            database.checkpoint().unwrap();
        }
    }
    let leaves = index.tree().levels().unwrap()[0].pages;
    assert!(leaves <= 13, "{leaves} leaves");
    drop((table, index, database));
    let tally = tally.lock();
    let unlinked = tally.coverage.get(&("branch", branch(&Branch::LeafUnlinked))).copied().unwrap_or(0);
    println!("{} distinct images, {unlinked} of them with an empty leaf taken out", tally.images.len());
    assert!(unlinked > 5, "only {unlinked} images with an empty leaf taken out");
}
