//! A small database: conditions hold, and each of them is seen to fail; plans use indexes; terminals
//! beside each other, and what they were told.

use crate::acknowledged::{Acknowledged, Change};
use crate::conditions::{self, CONDITIONS};
use crate::driver::drive;
use crate::options::Options;
use crate::population::load;
use crate::schema::definitions;
use crate::statements::{all, parameters};
use clap::Parser;
use pagefold_lab_engine::sessions::ours::{Ours, create, open};
use pagefold_lab_engine::sessions::{Access, Connection};
use pagefold_sql::Database;
use pagefold_types::Value;
use std::path::Path;

fn options(arguments: &str) -> Options {
    let all = format!("tpcc --warehouses 2 --scale 100 --memory-mb 64 --terminals 4 --seconds 1 {arguments}");
    Options::parse_from(all.split(' ').filter(|argument| !argument.is_empty()))
}

fn loaded(directory: &Path, options: &Options) -> Database {
    let database = open(directory, options.memory_bytes()).unwrap();
    create(&database, &definitions(true, |_| format!(" WITH (compress = '{}')", options.method))).unwrap();
    load(&mut Ours::new(&database, &options.used(), all()).unwrap(), options.scale(), options.seed).unwrap();
    database
}

/// A statement that breaks something, and the conditions that have to say so.
const BREAKS: [(&str, &[usize]); 15] = [
    ("UPDATE warehouse SET w_ytd = w_ytd + 0.01 WHERE w_id = 2", &[1, 8]),
    ("UPDATE district SET d_next_o_id = d_next_o_id + 1 WHERE d_w_id = 1 AND d_id = 4", &[2]),
    ("DELETE FROM new_order WHERE no_w_id = 1 AND no_d_id = 10 AND no_o_id = 25", &[3, 5, 11]),
    ("UPDATE orders SET o_ol_cnt = o_ol_cnt - 1 WHERE o_w_id = 2 AND o_d_id = 1 AND o_id = 30", &[4, 6]),
    ("UPDATE orders SET o_carrier_id = 7 WHERE o_w_id = 2 AND o_d_id = 3 AND o_id = 29", &[5, 7]),
    ("UPDATE orders SET o_carrier_id = NULL WHERE o_w_id = 2 AND o_d_id = 3 AND o_id = 1", &[5, 7]),
    ("UPDATE order_line SET ol_o_id = 5, ol_number = 16 WHERE ol_w_id = 1 AND ol_d_id = 1 AND ol_o_id = 6 AND ol_number = 2", &[6]),
    ("UPDATE order_line SET ol_delivery_d = NULL WHERE ol_w_id = 2 AND ol_d_id = 9 AND ol_o_id = 20 AND ol_number = 3", &[7]),
    ("UPDATE history SET h_w_id = 2 WHERE h_w_id = 1 AND h_d_id = 3 AND h_c_id = 12", &[8, 9]),
    ("UPDATE history SET h_d_id = 4 WHERE h_w_id = 1 AND h_d_id = 3 AND h_c_id = 12", &[9]),
    ("UPDATE customer SET c_balance = c_balance - 0.01 WHERE c_w_id = 1 AND c_d_id = 5 AND c_id = 30", &[10, 12]),
    ("INSERT INTO new_order VALUES (20, 6, 1)", &[3, 5, 11]),
    ("UPDATE customer SET c_ytd_payment = 10.01 WHERE c_w_id = 2 AND c_d_id = 10 AND c_id = 1", &[12]),
    ("UPDATE stock SET s_ytd = 1 WHERE s_w_id = 2 AND s_i_id = 77", &[13]),
    ("UPDATE customer SET c_payment_cnt = 2 WHERE c_w_id = 2 AND c_d_id = 10 AND c_id = 1", &[14]),
];

#[test]
fn each_condition_is_seen_to_fail() {
    let (directory, options) = (tempfile::tempdir().unwrap(), options("--method page"));
    let database = loaded(directory.path(), &options);
    let mut connection = Ours::new(&database, &options.used(), all()).unwrap();
    conditions::check(&mut connection, options.scale()).unwrap();
    let mut failed = std::collections::BTreeSet::new();
    for (text, wanted) in BREAKS {
        connection.begin(Access::Write).unwrap();
        connection.say(text, &[]).unwrap();
        let violated: Vec<usize> = CONDITIONS
            .iter()
            .filter(|condition| !condition.violations(&mut connection, options.scale()).unwrap().is_empty())
            .map(|condition| condition.number)
            .collect();
        assert_eq!(violated, wanted, "{text}");
        assert!(conditions::check(&mut connection, options.scale()).is_err());
        connection.rollback().unwrap();
        failed.extend(violated);
    }
    assert_eq!(failed, (1..=CONDITIONS.len()).collect());
    conditions::check(&mut connection, options.scale()).unwrap();
}

#[test]
fn every_statement_finds_its_rows_by_a_key() {
    let (directory, options) = (tempfile::tempdir().unwrap(), options(""));
    let database = loaded(directory.path(), &options);
    let mut connection = Ours::new(&database, &options.used(), all()).unwrap();
    for query in all() {
        let lines = connection.plan(query.text, &vec![Value::Int(1); parameters(query)]).unwrap();
        let reads = |line: &&String| line.contains(" of ") && !line.contains("Foreign key");
        for line in lines.iter().filter(reads) {
            assert!(line.contains("One row by") || line.contains("Index ") || line.contains("Keys of index "), "{}: {line}", query.text);
        }
        assert!(!lines.iter().any(|line| line.contains("Scan") || line.contains("Sort")), "{}: {lines:?}", query.text);
        let is_insert = query.text.starts_with("INSERT");
        assert!(is_insert || lines.iter().any(|line| line.contains("where")), "{}: {lines:?}", query.text);
    }
}

#[test]
fn terminals_beside_each_other_leave_what_they_were_told() {
    for isolation in ["read committed", "repeatable read", "serializable"] {
        let directory = tempfile::tempdir().unwrap();
        let mut options = options("");
        options.isolation = isolation.into();
        let database = loaded(directory.path(), &options);
        let mut plan = options.plan();
        plan.is_loud = false;
        let of = options.used();
        let measured = drive(&plan, &|| Ok(Box::new(Ours::new(&database, &of, all())?))).unwrap();
        let mut connection = Ours::new(&database, &of, all()).unwrap();
        conditions::check(&mut connection, options.scale()).unwrap();
        let mut told = Acknowledged::default();
        told.add(measured.changes.iter().copied());
        told.compare(&mut connection).unwrap().check(false, 0).unwrap();
        assert!(measured.kinds[0].took.latencies_us.len() > 10);
        // One that was told and is not there, and one that is there and was not told.
        told.add([Change::Payment { moment: 1, amount: 100 }]);
        let found = told.compare(&mut connection).unwrap();
        assert_eq!((found.missing, found.untold), ([0, 1, 0], [0, 0, 0]));
        connection.begin(Access::Write).unwrap();
        connection.say("UPDATE history SET h_amount = h_amount + 0.01 WHERE h_date = (SELECT max(h_date) FROM history)", &[]).unwrap();
        let found = told.compare(&mut connection).unwrap();
        assert_eq!((found.missing, found.untold), ([0, 2, 0], [0, 1, 0]));
        connection.rollback().unwrap();
    }
}

#[cfg(feature = "rivals")]
#[test]
fn sqlite_runs_the_same() {
    use pagefold_lab_engine::sessions::sqlite::Sqlite;
    let (directory, options) = (tempfile::tempdir().unwrap(), options(""));
    let file = directory.path().join("tpcc");
    let open = || Sqlite::open(&file, "off", 1 << 22, true, true);
    let mut connection = open().unwrap();
    connection.create(&definitions(true, |is_short| if is_short { " WITHOUT ROWID".into() } else { String::new() })).unwrap();
    load(&mut connection, options.scale(), options.seed).unwrap();
    let mut plan = options.plan();
    plan.is_loud = false;
    let measured = drive(&plan, &|| Ok(Box::new(open()?))).unwrap();
    conditions::check(&mut connection, options.scale()).unwrap();
    let mut told = Acknowledged::default();
    told.add(measured.changes.iter().copied());
    told.compare(&mut connection).unwrap().check(false, 0).unwrap();
}
