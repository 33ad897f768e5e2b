//! The files of `crates/sql/tests/slt`, each query of which is run by rows and by batches: the same rows come, or the same SQLSTATE.

#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use common::{both, done, in_order, run};
use pagefold_sql::{Session, TransactionState};
use pagefold_types::{DataType, Value, text};
use std::collections::HashMap;
use std::path::Path;

/// A statement of a file: for which connection it is, and what comes of it.
struct Told {
    connection: String,
    sql: String,
    /// `None`: it fails.
    rows: Option<Vec<String>>,
    is_query: bool,
}

fn statements(text: &str) -> Vec<Told> {
    let (mut all, mut connection) = (Vec::new(), String::new());
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if let Some(name) = line.strip_prefix("connection ") {
            // That without a name.
            name.trim().trim_start_matches("default").clone_into(&mut connection);
        }
        let is_query = line.starts_with("query");
        if !(line.starts_with("statement") || is_query) {
            continue;
        }
        let fails = line.starts_with("statement error") || line.starts_with("query error");
        let (mut body, mut rows, mut is_behind) = (Vec::new(), Vec::new(), false);
        for line in lines.by_ref().take_while(|line| !line.trim().is_empty()) {
            match (line, is_behind) {
                ("----", false) => is_behind = true,
                (line, false) => body.push(line),
                (line, true) => rows.extend(line.split_whitespace().map(str::to_owned)),
            }
        }
        rows.sort();
        let rows = if fails { None } else { Some(rows) };
        all.push(Told { connection: std::mem::take(&mut connection), sql: body.join("\n"), rows, is_query });
    }
    all
}

/// The words of all rows, in an order in which they can be compared; `None` of what fails.
fn words(session: &mut Session, sql: &str) -> Option<Vec<String>> {
    let mut answer = session.execute(sql, &[]).ok()?;
    let types: Vec<DataType> = answer.columns().map(|column| column.data_type).collect();
    let mut words = Vec::new();
    while let Some(row) = answer.next_row().ok()? {
        for (value, data_type) in row.iter().zip(&types) {
            match value {
                Value::Null => words.push("NULL".to_owned()),
                Value::Text(text) if text.is_empty() => words.push("(empty)".to_owned()),
                value => words.extend(text::to_text(value.as_ref(), data_type).split_whitespace().map(str::to_owned)),
            }
        }
    }
    words.sort();
    Some(words)
}

/// Is it a query that gives the same again?
fn is_query(sql: &str) -> bool {
    let text = sql.trim_start().to_lowercase();
    let begins = ["select", "with", "values", "("].iter().any(|word| text.starts_with(word));
    let others = [
        "random",
        "nextval",
        "uuid",
        "now()",
        "current_",
        "insert ",
        "update ",
        "delete ",
        "merge ",
        "pagefold_",
        "for update",
        "for share",
    ];
    begins && !others.iter().any(|other| text.contains(other))
}

#[test]
fn files_of_statements() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../sql/tests/slt");
    let (mut queries, mut by_batches, mut others) = (0, 0, Vec::new());
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    for file in files.iter().filter(|file| file.extension().is_some_and(|extension| extension == "slt")) {
        let database = common::database(2);
        let mut sessions: HashMap<String, Session> = HashMap::new();
        for Told { connection, sql, rows, is_query: has_rows } in statements(&std::fs::read_to_string(file).unwrap()) {
            let session = sessions.entry(connection).or_insert_with(|| database.session());
            if is_query(&sql) && session.transaction_state() != TransactionState::Failed {
                let is_within = session.transaction_state() == TransactionState::Open;
                if is_within {
                    done(session, "SAVEPOINT compared");
                }
                session.execute("SET analytics = off", &[]).unwrap();
                let by_rows = run(session, &sql);
                if is_within {
                    done(session, "ROLLBACK TO compared");
                }
                session.execute("SET analytics = on", &[]).unwrap();
                let before = database.analytics_statements();
                let batches = run(session, &sql);
                if is_within {
                    done(session, "ROLLBACK TO compared");
                }
                queries += 1;
                by_batches += u64::from(database.analytics_statements() > before);
                assert_eq!(in_order(by_rows), in_order(batches), "{}: {sql}", file.display());
            }
            // As the file has it, with all that it changes.
            session.execute("SET analytics = off", &[]).map(drop).unwrap_or_default();
            let own = words(session, &sql);
            let is_told = rows.as_ref().is_none_or(|rows| !rows.iter().any(|word| word.contains("<slt:")));
            if own.is_some() != rows.is_some() || has_rows && is_told && own != rows {
                others.push(format!("{}: {sql}\n  {own:?}\n  {rows:?}", file.display()));
            }
        }
    }
    println!("{queries} queries, {by_batches} by batches");
    assert!(others.is_empty(), "other than the files have it: {}", others.join("\n"));
    assert!(by_batches > 200, "{by_batches} of {queries} queries were run by batches");
}

#[test]
fn the_switch_is_a_setting() {
    let database = common::database(2);
    let mut session = database.session();
    done(&mut session, "CREATE TABLE n (a INTEGER)");
    let (rows, batches, was_run) = both(&database, &mut session, "SELECT sum(a) FROM n");
    assert_eq!((rows, was_run), (batches, true));
    done(&mut session, "SET analytics = auto");
    let before = database.analytics_statements();
    done(&mut session, "SELECT sum(a) FROM n");
    assert_eq!(database.analytics_statements(), before, "an empty table is no work");
    assert_eq!(run(&mut session, "SET analytics = sometimes"), Err("22023"));
}
