//! Temporary tables go with their session; what a process has left goes before the next one makes some.

use super::{database, fails, number, run};
use pagefold_sql::Database;
use std::sync::Arc;

const TABLES: &str = "SELECT count(*) FROM information_schema.tables";

#[test]
fn they_go_with_their_session() {
    let database = database();
    let (mut one, mut two) = (database.session(), database.session());
    run(&mut one, "CREATE TEMP TABLE t (id SERIAL PRIMARY KEY, x INTEGER)");
    run(&mut one, "INSERT INTO t (x) VALUES (1), (2)");
    assert!(!one.is_as_new());
    run(&mut two, "CREATE TABLE t (y INTEGER)");
    run(&mut two, "CREATE TEMP TABLE t (z INTEGER)");
    assert_eq!(number(&mut one, "SELECT count(x) FROM t"), 2);
    assert_eq!(number(&mut two, "SELECT count(z) FROM t"), 0);
    assert_eq!(number(&mut two, TABLES), 3);
    // Also where it ends within a transaction.
    run(&mut one, "BEGIN");
    run(&mut one, "INSERT INTO t (x) VALUES (3)");
    drop(one);
    assert_eq!(number(&mut two, TABLES), 2);
    assert_eq!(number(&mut two, "SELECT count(*) FROM information_schema.sequences"), 0);
    drop(two);
    let mut three = database.session();
    assert_eq!(number(&mut three, TABLES), 1);
    assert_eq!(fails(&mut three, "SELECT z FROM t"), "42703");
}

#[test]
fn a_prepared_statement_finds_what_there_is() {
    let database = database();
    let mut session = database.session();
    run(&mut session, "CREATE TABLE t (x INTEGER)");
    run(&mut session, "INSERT INTO t VALUES (1)");
    run(&mut session, "PREPARE s AS SELECT x FROM t");
    assert_eq!(number(&mut session, "EXECUTE s"), 1);
    run(&mut session, "CREATE TEMP TABLE t (x INTEGER)");
    run(&mut session, "INSERT INTO t VALUES (2)");
    assert_eq!(number(&mut session, "EXECUTE s"), 2);
    run(&mut session, "BEGIN ISOLATION LEVEL REPEATABLE READ");
    assert_eq!(number(&mut session, "EXECUTE s"), 2);
    run(&mut session, "DROP TABLE t");
    assert_eq!(number(&mut session, "EXECUTE s"), 1);
    run(&mut session, "ROLLBACK");
    assert_eq!(number(&mut session, "EXECUTE s"), 2);
}

#[test]
fn what_was_left_goes_before_others_come() {
    let database = database();
    let mut left = database.session();
    run(&mut left, "CREATE TEMP TABLE t (id SERIAL PRIMARY KEY)");
    // As when a process ends at once.
    std::mem::forget(left);
    let database = Database::new(Arc::clone(database.engine()));
    let mut session = database.session();
    assert_eq!(number(&mut session, TABLES), 1);
    run(&mut session, "CREATE TEMP TABLE u (x INTEGER)");
    assert_eq!(number(&mut session, TABLES), 1);
    assert_eq!(fails(&mut session, "SELECT * FROM t"), "42P01");
    assert_eq!(number(&mut session, "SELECT count(*) FROM u"), 0);
}
