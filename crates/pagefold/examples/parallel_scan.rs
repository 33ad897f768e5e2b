//! One state of the database, scanned by several threads, beside transactions that change it: read views, and batches of columns.

use pagefold::engine::ScanRequest;
use pagefold::{DataType, Database, TableDefinition};
use std::thread;

pub(crate) fn main() -> pagefold::Result<()> {
    let database = Database::in_memory()?;
    database.write(|transaction| {
        let definition = TableDefinition::new().column("id", DataType::BigInt).column("n", DataType::BigInt);
        let numbers = transaction.create_table("number", definition.primary_key(["id"]))?;
        (0_i64..50_000).try_for_each(|id| numbers.insert((id, id % 7)))
    })?;
    let engine = database.engine();
    let view = engine.read_view();
    let table = engine.table("number")?;
    let request = ScanRequest { columns: Some(vec![1]), ..ScanRequest::default() };
    // Each thread has a part; the view is the same, whatever is committed meanwhile.
    let parts = view.scan(&table, &request)?.split(2);
    let sums = thread::scope(|scope| {
        let threads: Vec<_> = parts
            .into_iter()
            .map(|part| scope.spawn(|| part.map(|batch| Ok(batch?.columns()[0].ints().iter().sum::<i64>())).sum::<pagefold::Result<i64>>()))
            .collect();
        database.write(|transaction| transaction.table("number")?.delete(4_711_i64)).expect("a change beside it");
        threads.into_iter().map(|thread| thread.join().expect("a thread")).sum::<pagefold::Result<i64>>()
    })?;
    assert_eq!(sums, (0_i64..50_000).map(|id| id % 7).sum::<i64>());
    println!("sum {sums}");
    Ok(())
}
