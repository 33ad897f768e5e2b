//! Statements beside thin pages that are emptied: what they see, change and lock is as if no row had moved, and none of them fails for it.
#![allow(clippy::unwrap_used, reason = "tests")]

use pagefold_engine::database::{Database as Engine, MoveOptions, MoveStep, OpenMode, Settings};
use pagefold_io::{MemoryStorage, OsClock};
use pagefold_sql::{Database, Session};
use pagefold_types::Value;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

const WRITERS: i64 = 3;
const STATEMENTS: i64 = 60;
/// Rows that move meanwhile, at least.
const ROWS_MOVED: u64 = 500;

fn number(session: &mut Session, statement: &str) -> i64 {
    let mut answer = session.execute(statement, &[]).unwrap_or_else(|error| panic!("{statement}: {error}"));
    match answer.next_row().unwrap().unwrap()[..] {
        [Value::Int(number)] => number,
        ref row => panic!("{statement}: {row:?}"),
    }
}

/// The tag of a statement.
fn run(session: &mut Session, statement: &str) -> String {
    let mut answer = session.execute(statement, &[]).unwrap_or_else(|error| panic!("{statement}: {error}"));
    while answer.next_row().unwrap().is_some() {}
    answer.tag().unwrap()
}

/// Moves rows of all tables until told to stop; how many.
fn move_rows(engine: &Engine, stop: &AtomicBool, moved: &AtomicU64) {
    while !stop.load(Ordering::Acquire) {
        for table in engine.tables().unwrap() {
            let mut thin = engine.thin_pages(&table, MoveOptions { rows_max: 40, is_thorough: true }).unwrap();
            for _ in 0..20 {
                let before = thin.standing().rows_moved;
                let step = thin.step().unwrap();
                moved.fetch_add(thin.standing().rows_moved - before, Ordering::Relaxed);
                if step == MoveStep::End || stop.load(Ordering::Acquire) {
                    break;
                }
            }
        }
    }
}

#[test]
fn statements_do_not_see_that_rows_move() {
    for method in ["none", "page", "huffman"] {
        let engine =
            Engine::open(Arc::new(MemoryStorage::new()), Arc::new(OsClock), Path::new("db"), OpenMode::Create, Settings::default());
        let database = Database::new(Arc::new(engine.unwrap()));
        let mut session = database.session();
        run(
            &mut session,
            &format!(
                "create table p (id integer primary key, v integer not null, note text) with (compress = '{method}', page_size = '2K')"
            ),
        );
        run(&mut session, "create index p_v on p (v)");
        run(
            &mut session,
            &format!(
                "create table c (id integer primary key, p integer references p (id) on delete cascade) with (compress = '{method}', page_size = '2K')"
            ),
        );
        run(&mut session, "create index c_p on c (p)");
        run(&mut session, "insert into p select n, 0, repeat('x', n % 60) from generate_series(1, 4000) s(n)");
        run(&mut session, "insert into c select n, n from generate_series(1, 4000) s(n)");
        // Its children go with it.
        run(&mut session, "delete from p where id % 5 <> 0");
        let (stop, moved, failed, updates) = (AtomicBool::new(false), AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0));
        std::thread::scope(|scope| {
            scope.spawn(|| move_rows(database.engine(), &stop, &moved));
            let writers: Vec<_> = (0..WRITERS)
                .map(|writer| {
                    let (database, failed, moved, updates) = (&database, &failed, &moved, &updates);
                    scope.spawn(move || {
                        let mut session = database.session();
                        // Until both have met often enough.
                        let enough = |at| at >= STATEMENTS && moved.load(Ordering::Relaxed) >= ROWS_MOVED;
                        for at in (0..STATEMENTS * 100).take_while(|at| !enough(*at)) {
                            let low = 5 * ((writer * 131 + at * 37) % 700) + 1;
                            // Twenty rows, whatever happens meanwhile.
                            let update = format!("update p set v = v + 1 where id between {low} and {}", low + 99);
                            // Others lock rows in another order, as they lie elsewhere by now: one of two begins again.
                            let is_victim = |error: &pagefold_sql::SqlError| {
                                let is_victim = error.sqlstate() == "40P01";
                                failed.fetch_add(u64::from(is_victim), Ordering::Relaxed);
                                is_victim
                            };
                            loop {
                                match session.execute(&update, &[]).and_then(|answer| answer.tag()) {
                                    Ok(tag) => break assert_eq!(tag, "UPDATE 20", "{method}"),
                                    Err(error) => assert!(is_victim(&error), "{error}"),
                                }
                            }
                            updates.fetch_add(1, Ordering::Relaxed);
                            run(&mut session, "begin");
                            let locking = format!("select id from p where id between {low} and {} for update", low + 24);
                            let rows = session.execute(&locking, &[]).and_then(|mut answer| {
                                let mut rows = 0;
                                while answer.next_row()?.is_some() {
                                    rows += 1;
                                }
                                Ok(rows)
                            });
                            match rows {
                                Ok(rows) => assert_eq!(rows, 5, "{method}"),
                                Err(error) => {
                                    assert!(is_victim(&error), "{error}");
                                    run(&mut session, "rollback");
                                    continue;
                                }
                            }
                            // Rows come and go so that pages are thin again; the parent is there, wherever it is.
                            let own = 100_000 + writer * 10_000 + at % 100 * 100;
                            let insert =
                                format!("insert into c select {own} + n, {low} + 4 - ({low} + 4) % 5 from generate_series(1, 40) s(n)");
                            assert_eq!(run(&mut session, &insert), "INSERT 0 40");
                            run(&mut session, "commit");
                            let delete = format!("delete from c where id > {own} and id <= {own} + 40");
                            assert_eq!(run(&mut session, &delete), "DELETE 40");
                        }
                    })
                })
                .collect();
            let results: Vec<_> = writers.into_iter().map(|writer| writer.join()).collect();
            stop.store(true, Ordering::Release);
            results.into_iter().for_each(|result| result.unwrap());
        });
        println!("{method}: {moved:?} rows moved, {failed:?} deadlocks");
        assert!(moved.load(Ordering::Relaxed) >= ROWS_MOVED, "{method}: {moved:?}");
        let updates = updates.into_inner() as i64;
        assert_eq!(number(&mut session, "select sum(v)::bigint from p"), updates * 20, "{method}: updates were lost");
        assert_eq!(number(&mut session, "select count(*) from p"), 800);
        assert_eq!(number(&mut session, "select count(*) from c"), 800);
        assert_eq!(number(&mut session, "select count(*) from c where not exists (select 1 from p where p.id = c.p)"), 0);
    }
}
