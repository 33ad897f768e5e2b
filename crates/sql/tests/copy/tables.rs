//! Tables with rules, and transactions.

use super::{copy_from, copy_to, count, database, run, session, shown};
use pagefold_engine::database::{PartitionSpec, TransactionOptions, limit_key};
use pagefold_engine::index::{IndexAttributes, IndexFormat};
use pagefold_engine::table_space::TableAttributes;
use pagefold_sql::TransactionState;
use pagefold_types::{Column, DataType, Direction, Schema, ValueRef};

#[test]
fn defaults_and_columns_that_are_computed() {
    let mut session = session(
        "CREATE SEQUENCE s;
         CREATE TABLE t (id INTEGER PRIMARY KEY GENERATED ALWAYS AS IDENTITY, a INTEGER DEFAULT 7, n BIGINT DEFAULT nextval('s'), g INTEGER GENERATED ALWAYS AS (a * 2) STORED)",
    );
    assert_eq!(copy_from(&mut session, "COPY t (a) FROM STDIN", &b"1\n\\N\n"[..]).unwrap(), 2);
    // Values for an identity column are taken, as if OVERRIDING SYSTEM VALUE was said.
    assert_eq!(copy_from(&mut session, "COPY t (n, id) FROM STDIN CSV", &b"50,10\n"[..]).unwrap(), 1);
    assert_eq!(copy_from(&mut session, "COPY t FROM STDIN", &b"11\t5\t60\n"[..]).unwrap(), 1);
    assert_eq!(shown(&mut session, "SELECT * FROM t ORDER BY id"), ["1 1 1 2", "2 NULL 2 NULL", "10 7 50 14", "11 5 60 10"]);
    assert_eq!(copy_to(&mut session, "COPY t TO STDOUT CSV HEADER"), "id,a,n\n1,1,1\n2,,2\n10,7,50\n11,5,60\n");
    // A column that was dropped is none.
    run(&mut session, "ALTER TABLE t DROP COLUMN n");
    assert_eq!(copy_from(&mut session, "COPY t FROM STDIN", &b"12\t6\n"[..]).unwrap(), 1);
    assert_eq!(copy_to(&mut session, "COPY t TO STDOUT"), "1\t1\n2\t\\N\n10\t7\n11\t5\n12\t6\n");
}

#[test]
fn foreign_keys() {
    let mut session = session(
        "CREATE TABLE parent (id INTEGER PRIMARY KEY);
         INSERT INTO parent VALUES (1), (2);
         CREATE TABLE child (id INTEGER PRIMARY KEY, parent INTEGER REFERENCES parent, before INTEGER REFERENCES child)",
    );
    // A row that a later one refers to, and the other way round.
    assert_eq!(copy_from(&mut session, "COPY child FROM STDIN", &b"1\t1\t2\n2\t\\N\t1\n3\t2\t3\n"[..]).unwrap(), 3);
    for text in ["4\t3\t\\N\n", "4\t1\t9\n"] {
        let error = copy_from(&mut session, "COPY child FROM STDIN", text.as_bytes()).unwrap_err();
        assert_eq!(error.sqlstate(), "23503", "{error}");
    }
    assert_eq!(count(&mut session, "child"), 3);
    // More than come together.
    let many: String = (10..4000).map(|id| format!("{id},{},{}\n", id % 2 + 1, id + 1)).collect::<String>() + "4000,,\n";
    assert_eq!(copy_from(&mut session, "COPY child FROM STDIN CSV", many.as_bytes()).unwrap(), 3991);
    let many: String = (5000..9000).map(|id| format!("{id},{},\n", if id == 8000 { 5 } else { 1 })).collect();
    assert_eq!(copy_from(&mut session, "COPY child FROM STDIN CSV", many.as_bytes()).unwrap_err().sqlstate(), "23503");
    assert_eq!(count(&mut session, "child"), 3994);
}

#[test]
fn partitioned_tables() {
    let database = database();
    let column = |name: &str, data_type| Column::new(name, data_type, name != "id");
    let schema = Schema::new(vec![column("id", DataType::Integer), column("x", DataType::Varchar(None))]).unwrap();
    let mut attributes = TableAttributes::new("t", schema).with_page_bytes(4096);
    attributes.primary_key = vec![0];
    let below = |end: i64| limit_key(&attributes, &[0], &[Some(ValueRef::Int(end))]).unwrap();
    let part = |name: &str, limit| PartitionSpec { name: name.into(), limit, ..PartitionSpec::default() };
    let parts = [part("low", below(1000)), part("high", below(2000))];
    let mut transaction = database.engine().begin_owned(TransactionOptions::default());
    transaction.create_partitioned_table(&attributes, &[0], &parts).unwrap();
    let key = IndexAttributes::new("t_pkey", vec![(0, Direction::Ascending)], true).with_format(IndexFormat::Prefix, 4096);
    transaction.create_partitioned_index("t", &key).unwrap();
    transaction.commit().unwrap();
    let mut session = database.session();
    let text: String = (0..1999).rev().map(|id| format!("{id}\trow {id}\n")).collect();
    assert_eq!(copy_from(&mut session, "COPY t FROM STDIN", text.as_bytes()).unwrap(), 1999);
    assert_eq!(shown(&mut session, "SELECT count(*), min(id), max(id) FROM t WHERE id < 1000"), ["1000 0 999"]);
    for (row, sqlstate) in [("2000", "23514"), ("5", "23505"), ("1500", "23505")] {
        let text = format!("1999,a\n{row},b\n");
        let error = copy_from(&mut session, "COPY t FROM STDIN CSV", text.as_bytes()).unwrap_err();
        assert_eq!((error.sqlstate(), error.context()), (sqlstate, Some("COPY t, line 2")), "{error}");
        assert_eq!(count(&mut session, "t"), 1999);
    }
    let mut lines: Vec<String> = copy_to(&mut session, "COPY t TO STDOUT").lines().map(str::to_owned).collect();
    let mut expected: Vec<&str> = text.lines().collect();
    lines.sort_unstable();
    expected.sort_unstable();
    assert_eq!(lines, expected);
}

/// Columns that LOAD has made may have names which no statement can write.
#[test]
fn names_of_columns_are_taken_as_they_are() {
    let database = database();
    let columns = ["a\"b", "a\"\"b", "a\\\"b"].map(|name| Column::new(name, DataType::Integer, true));
    let attributes = TableAttributes::new("odd", Schema::new(columns.to_vec()).unwrap());
    let mut transaction = database.engine().begin_owned(TransactionOptions::default());
    let table = transaction.create_table(attributes).unwrap();
    transaction.insert(&table, &[ValueRef::Int(1), ValueRef::Int(2), ValueRef::Int(3)]).unwrap();
    transaction.commit().unwrap();
    let mut session = database.session();
    assert_eq!(copy_to(&mut session, "COPY odd TO STDOUT"), "1\t2\t3\n");
    assert_eq!(copy_to(&mut session, "COPY odd (\"a\"\"b\") TO STDOUT"), "1\n");
    assert_eq!(copy_to(&mut session, "COPY pagefold_tables (table_name) TO STDOUT"), "odd\n");
}

#[test]
fn transactions() {
    let database = database();
    let (mut session, mut other) = (database.session(), database.session());
    run(&mut session, "CREATE TABLE t (id INTEGER PRIMARY KEY)");
    run(&mut session, "BEGIN");
    assert_eq!(copy_from(&mut session, "COPY t FROM STDIN", &b"1\n2\n"[..]).unwrap(), 2);
    run(&mut session, "SAVEPOINT a");
    assert_eq!(copy_from(&mut session, "COPY t FROM STDIN", &b"3\n"[..]).unwrap(), 1);
    assert_eq!(copy_to(&mut session, "COPY t TO STDOUT"), "1\n2\n3\n");
    assert_eq!(copy_to(&mut other, "COPY t TO STDOUT"), "");
    // One that fails takes back what it has done, and the transaction has failed.
    assert_eq!(copy_from(&mut session, "COPY t FROM STDIN", &b"4\n5\n4\n"[..]).unwrap_err().sqlstate(), "23505");
    assert_eq!(session.transaction_state(), TransactionState::Failed);
    let statement = session.prepare("COPY t TO STDOUT").unwrap();
    assert_eq!(session.copy_to(&statement, &mut Vec::new()).unwrap_err().sqlstate(), "25P02");
    run(&mut session, "ROLLBACK TO a");
    assert_eq!(copy_to(&mut session, "COPY t TO STDOUT"), "1\n2\n");
    assert_eq!(copy_from(&mut session, "COPY t FROM STDIN", &b"4\n"[..]).unwrap(), 1);
    run(&mut session, "COMMIT");
    assert_eq!(copy_to(&mut other, "COPY t TO STDOUT"), "1\n2\n4\n");
    // Plans are kept, and made anew when the table is another.
    run(&mut session, "ALTER TABLE t ADD COLUMN x INTEGER DEFAULT 9");
    assert_eq!(copy_to(&mut other, "COPY t TO STDOUT"), "1\t9\n2\t9\n4\t9\n");
    run(&mut session, "SET default_transaction_read_only = on");
    assert_eq!(copy_from(&mut session, "COPY t FROM STDIN", &b"7\t7\n"[..]).unwrap_err().sqlstate(), "25006");
}

#[test]
fn a_table_is_copied_into_itself() {
    let mut session = session("CREATE TABLE t (x INTEGER)");
    run(&mut session, "INSERT INTO t SELECT * FROM generate_series(1, 3000)");
    let text = copy_to(&mut session, "COPY t TO STDOUT");
    assert_eq!(copy_from(&mut session, "COPY t FROM STDIN", text.as_bytes()).unwrap(), 3000);
    assert_eq!(count(&mut session, "t"), 6000);
}
