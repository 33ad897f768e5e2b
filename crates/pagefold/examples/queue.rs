//! A queue of jobs: the oldest is taken, worked on, and removed in one transaction, so none is lost and none done twice, whoever is killed.

use pagefold::{DataType, Database, TableDefinition};

fn take_one(database: &Database) -> pagefold::Result<Option<String>> {
    database.write(|transaction| {
        let jobs = transaction.table("job")?;
        for job in jobs.range::<i64>(..)? {
            let (number, what): (i64, String) = job?.into()?;
            // False: another worker has removed it while this one waited for it.
            if jobs.lock(number)? && jobs.delete(number)? {
                return Ok(Some(what));
            }
        }
        Ok::<_, pagefold::Error>(None)
    })
}

pub(crate) fn main() -> pagefold::Result<()> {
    let database = Database::in_memory()?;
    database.write(|transaction| {
        let definition = TableDefinition::new().column("number", DataType::BigInt).column("what", DataType::Varchar(None));
        let jobs = transaction.create_table("job", definition.primary_key(["number"]))?;
        (1_i64..=40).try_for_each(|number| jobs.insert((number, format!("job {number}"))))
    })?;
    let mut done: Vec<String> = std::thread::scope(|scope| {
        let workers: Vec<_> =
            (0..3).map(|_| scope.spawn(|| std::iter::from_fn(|| take_one(&database).expect("a job")).collect::<Vec<_>>())).collect();
        workers.into_iter().flat_map(|worker| worker.join().expect("a worker")).collect()
    });
    done.sort_unstable();
    done.dedup();
    assert_eq!(done.len(), 40);
    println!("{} jobs done, each once", done.len());
    Ok(())
}
