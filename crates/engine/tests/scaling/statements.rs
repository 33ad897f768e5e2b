//! What a statement allocates beside many tables.

use crate::world::{storage, table_name, with_tables};
use allocation_counter::measure;
use pagefold_engine::database::TransactionOptions;
use pagefold_engine::table_space::Method;
use pagefold_types::ValueRef;

#[test]
fn statements_allocate_the_same_beside_many_tables() {
    let mut counted = Vec::new();
    for tables in [8, 32, 128] {
        let database = with_tables(&storage(), tables, Method::None, true);
        let table = database.table(&table_name(tables / 2)).unwrap();
        // The fourth takes none of the growth of lists that each has for the first time.
        let mut last = (0, 0, 0);
        for _ in 0..4 {
            let mut t = database.begin(TransactionOptions::default());
            let insert = measure(|| _ = t.insert(&table, &[ValueRef::Int(1), ValueRef::Int(1)]).unwrap()).count_total;
            let failure = measure(|| _ = t.insert(&table, &[ValueRef::Int(1), ValueRef::Int(1)]).unwrap_err()).count_total;
            let mut t = Some(t);
            let rollback = measure(|| t.take().unwrap().rollback().unwrap()).count_total;
            last = (insert, failure, rollback);
        }
        println!("{tables} tables: allocations of an insert, a failing insert, a rollback: {last:?}");
        counted.push(last);
    }
    assert!(counted.iter().all(|&(insert, failure, rollback)| {
        // A list may have to grow just then.
        insert <= counted[0].0 + 1 && failure <= counted[0].1 + 1 && rollback <= counted[0].2 + 1
    }));
}
