//! What goes with something that is dropped: what is told of it, and views that somebody else is about to make.

use super::{database, fails, run};
use pagefold_sql::Session;
use std::thread;
use std::time::Duration;

/// What is told beside the answer.
fn told(session: &mut Session, sql: &str) -> Vec<String> {
    run(session, sql);
    let line = |notice: &pagefold_sql::Notice| match &notice.detail {
        Some(detail) => format!("{}: {}", notice.message, detail.replace('\n', ", ")),
        None => notice.message.clone(),
    };
    session.notices().iter().map(line).collect()
}

#[test]
fn it_is_told_what_was_there_what_was_not_and_what_went() {
    let database = database();
    let mut session = database.session();
    assert!(told(&mut session, "CREATE TABLE t (id INTEGER PRIMARY KEY, a INTEGER)").is_empty());
    for (sql, wanted) in [
        ("CREATE TABLE IF NOT EXISTS t (z TEXT)", "relation \"t\" already exists, skipping"),
        ("CREATE TABLE IF NOT EXISTS t AS SELECT 1", "relation \"t\" already exists, skipping"),
        ("CREATE INDEX IF NOT EXISTS t_pkey ON t (a)", "relation \"t_pkey\" already exists, skipping"),
        ("CREATE SCHEMA IF NOT EXISTS public", "schema \"public\" already exists, skipping"),
        ("ALTER TABLE t ADD COLUMN IF NOT EXISTS a TEXT", "column \"a\" of relation \"t\" already exists, skipping"),
        ("ALTER TABLE t DROP COLUMN IF EXISTS b", "column \"b\" of relation \"t\" does not exist, skipping"),
        ("ALTER TABLE t DROP CONSTRAINT IF EXISTS c", "constraint \"c\" of relation \"t\" does not exist, skipping"),
        ("ALTER TABLE IF EXISTS u DROP COLUMN b", "relation \"u\" does not exist, skipping"),
        ("ALTER VIEW IF EXISTS u RENAME TO w", "relation \"u\" does not exist, skipping"),
        ("DROP TABLE IF EXISTS u", "table \"u\" does not exist, skipping"),
        ("DROP VIEW IF EXISTS u", "view \"u\" does not exist, skipping"),
        ("DROP INDEX IF EXISTS u", "index \"u\" does not exist, skipping"),
        ("DROP SCHEMA IF EXISTS u", "schema \"u\" does not exist, skipping"),
        ("DROP SEQUENCE IF EXISTS u", "sequence \"u\" does not exist, skipping"),
    ] {
        assert_eq!(told(&mut session, sql), [wanted], "{sql}");
    }
    assert!(told(&mut session, "CREATE VIEW v AS SELECT a FROM t").is_empty());
    assert_eq!(told(&mut session, "ALTER TABLE t DROP COLUMN a CASCADE"), ["drop cascades to view v"]);
    run(&mut session, "CREATE TABLE child (id INTEGER REFERENCES t)");
    run(&mut session, "CREATE VIEW v AS SELECT id FROM t");
    let wanted = "drop cascades to 2 other objects: drop cascades to constraint child_id_fkey on table child, drop cascades to view v";
    assert_eq!(told(&mut session, "DROP TABLE t CASCADE"), [wanted]);
    assert!(told(&mut session, "SELECT 1").is_empty());
    run(&mut session, "CREATE SCHEMA s");
    run(&mut session, "CREATE TABLE s.t (id INTEGER)");
    assert_eq!(told(&mut session, "DROP SCHEMA s CASCADE"), ["drop cascades to table s.t"]);
}

#[test]
fn who_drops_a_table_waits_for_who_makes_a_view_of_it() {
    for drop in ["DROP TABLE t", "ALTER TABLE t DROP COLUMN a", "ALTER TABLE t ALTER COLUMN a TYPE BIGINT"] {
        let database = database();
        let (mut one, mut two) = (database.session(), database.session());
        run(&mut one, "CREATE TABLE t (id INTEGER PRIMARY KEY, a INTEGER)");
        run(&mut one, "BEGIN");
        run(&mut one, "CREATE VIEW v AS SELECT a FROM t");
        let waiting = thread::spawn(move || fails(&mut two, drop));
        thread::sleep(Duration::from_millis(200));
        assert!(!waiting.is_finished(), "{drop}");
        run(&mut one, "COMMIT");
        assert!(["2BP01", "0A000"].contains(&waiting.join().unwrap()), "{drop}");
        assert!(run(&mut one, "SELECT a FROM v").is_empty());
    }
}
