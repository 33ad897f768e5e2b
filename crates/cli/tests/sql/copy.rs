//! COPY in the shell: rows in a script, in standard input, and written to standard output.

use super::common::{Place, Run};
use super::{query, script, signal};
use std::io::Write;
use std::process::Stdio;

const TABLE: &str = "create table t (id integer primary key, x text);\n";

/// One argument, with something in standard input.
fn with_input(place: &Place, arguments: &[&str], input: &str) -> Run {
    let mut child = place.command(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(input.as_bytes()).unwrap();
    drop(stdin);
    child.wait_with_output().unwrap().into()
}

#[test]
fn rows_in_a_script() {
    let place = Place::new();
    let text = format!(
        "{TABLE}copy t from stdin;\n1\ta\n2\tb; select\n\\.\ninsert into t values (3, 'c');
/* rows */ COPY t FROM STDIN (FORMAT csv); -- they follow\n4,\"x\n\\.\ny\"\n5,\n\\.\nselect count(*) from t;
\\copy t (id) from stdin\n6\n\\.\ncopy (select * from t order by id) to stdout csv;\ncopy t from stdin;\n7\tlast"
    );
    let run = script(&place, &["--format", "csv"], &text).ok();
    assert_eq!(run.out, "count\n5\n1,a\n2,b; select\n3,c\n4,\"x\n\\.\ny\"\n5,\n6,\n");
    assert_eq!(query(&place, "select x from t where id = 7", "csv"), "x\nlast\n");
    // What was written comes back.
    let written = place.run(&["sql", "db", "copy t to stdout"]).ok().out;
    let run = script(
        &place,
        &["--format", "csv"],
        &format!(
            "create table u (id integer, x text);\ncopy u from stdin;\n{written}\\.\nselect count(*) from u, t where u.id = t.id and u.x is not distinct from t.x"
        ),
    );
    assert_eq!(run.ok().out, "count\n7\n");
}

#[test]
fn rows_that_are_refused_are_no_statements() {
    let place = Place::new();
    let text = format!(
        "{TABLE}copy t from stdin;\n1\ta\n1\tdelete from t;\n3\tc\n\\.\ninsert into t values (9, 'nine');
copy u from stdin;\ndelete from t;\n\\.\ncopy t from stdin; select 1;\n5\te\n\\.\nselect nothing;
begin;\ncopy t from stdin;\nx\ty\n\\.\nrollback;\nselect x from t;\n"
    );
    let run = script(&place, &["--keep-going", "--format", "csv"], &text);
    assert_eq!((run.code, run.out.as_str()), (Some(1), "x\nnine\n"), "{run:?}");
    let told = [
        "stdin:2: 23505 ",
        "CONTEXT: COPY t, line 2\n",
        "stdin:8: 42P01 ",
        "stdin:11: the rows of COPY FROM STDIN begin on the next line",
        "stdin:14: 42703 ",
        "stdin:16: 22P02 ",
        "CONTEXT: COPY t, line 1, column id: \"x\"",
    ];
    for told in told {
        assert!(run.err.contains(told), "{told} in {}", run.err);
    }
    // Without --keep-going the first one ends it.
    let run = script(&place, &[], "copy t from stdin;\nx\ty\n\\.\ndelete from t;\n").fails(1, &["stdin:1: 22P02", "column id: \"x\""]);
    assert_eq!(run.out, "");
    assert_eq!(query(&place, "select id from t", "csv"), "id\n9\n");
}

#[test]
fn rows_from_standard_input_and_files() {
    let place = Place::new();
    place.run(&["sql", "db", TABLE]).ok();
    let run = with_input(&place, &["sql", "db", "--json", "copy t from stdin csv header"], "id,x\n1,a\n2,\n").ok();
    assert_eq!(run.json(), serde_json::json!({ "tag": "COPY 2", "rows": 2 }));
    let run = with_input(&place, &["sql", "db", "--json", "copy t from stdin"], "3\n");
    assert_eq!(run.code, Some(1));
    let told: serde_json::Value = serde_json::from_str(&run.out).unwrap();
    assert_eq!(told["sqlstate"], "22P04");
    assert_eq!(told["context"], "COPY t, line 1: \"3\"");
    // A file, by a name that begins where the program was started.
    let file = place.directory.path().join("out.csv");
    let name = file.to_str().unwrap();
    place.run(&["sql", "db", &format!("copy t to '{name}' csv")]).ok();
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "1,a\n2,\n");
    place.run(&["sql", "db", &format!("delete from t; copy t from '{name}' csv; \\copy t to '{name}' (header)")]).ok();
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "id\tx\n1\ta\n2\t\\N\n");
    place.run(&["sql", "db", &format!("copy t to '{}'", place.directory.path().join("db/control").display())]).fails(1, &["42501"]);
    // Where results go.
    place.run(&["sql", "db", "copy t to stdout", "--output", name]).ok();
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "1\ta\n2\t\\N\n");
    // Whoever reads no more is no error.
    let mut child = place
        .command(&["sql", "db", "copy (select * from generate_series(1, 10000000)) to stdout"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    assert!(child.wait().unwrap().success());
}

/// By links, too, nothing is written into the directory of the database; and no other file than the one that is named.
#[test]
fn files_are_written_where_they_are_named() {
    use std::os::unix::fs::symlink;
    let place = Place::new();
    script(&place, &[], &format!("{TABLE}insert into t values (1, 'a');")).ok();
    symlink(place.path("db"), place.path("link")).unwrap();
    symlink(place.path("db/log"), place.path("logs")).unwrap();
    symlink(place.path("db/control"), place.path("control")).unwrap();
    for name in ["link/control", "link/new", "logs/new", "control", "link/../db/new", "db/new"] {
        place.run(&["sql", "db", &format!("copy t to '{name}'")]).fails(1, &["42501", "lies in the directory of the database"]);
    }
    // A name of its own while it is written: what has that name stays.
    symlink(place.path("db/control"), place.path("out.partial")).unwrap();
    place.write("out.partial1", "somebody's");
    place.run(&["sql", "db", "copy t to 'out'"]).ok();
    assert_eq!(std::fs::read_to_string(place.path("out")).unwrap(), "1\ta\n");
    assert_eq!(std::fs::read_to_string(place.path("out.partial1")).unwrap(), "somebody's");
    assert!(!place.path("out.partial2").exists());
    // EXPORT and Parquet of the shell do the same.
    for name in ["rows.csv", "rows.parquet"] {
        symlink(place.path("db/control"), place.path(&format!("{name}.partial"))).unwrap();
    }
    place.run(&["export", "db", "t", "rows.csv"]).ok();
    place.run(&["sql", "db", "select * from t", "--format", "parquet", "--output", "rows.parquet"]).ok();
    assert!(place.path("rows.parquet").exists() && place.path("rows.parquet.partial").is_symlink());
    place.run(&["check", "db"]).ok();
    // Through a link to a file that file is written.
    place.write("file", "before");
    symlink(place.path("file"), place.path("to_file")).unwrap();
    place.run(&["sql", "db", "copy t to 'to_file'"]).ok();
    assert_eq!(std::fs::read_to_string(place.path("file")).unwrap(), "1\ta\n");
    assert!(place.path("to_file").is_symlink());
    place.run(&["check", "db"]).ok();
}

#[test]
fn an_interrupt_ends_a_copy_that_waits_for_rows() {
    let place = Place::new();
    script(&place, &[], TABLE).ok();
    let mut child = place
        .command(&["sql", "db", "copy t from stdin"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(b"1\ta\n").unwrap();
    std::thread::sleep(std::time::Duration::from_millis(500));
    signal(&child, "-INT");
    // Standard input stays open.
    let run: Run = child.wait_with_output().unwrap().into();
    assert_eq!(run.code, Some(1), "{run:?}");
    assert!(run.err.contains("57014"), "{run:?}");
    drop(stdin);
    assert_eq!(query(&place, "select count(*) from t", "csv"), "count\n0\n");
    // What stands behind the rows of one is there for the next.
    let run = with_input(&place, &["sql", "db", "copy t from stdin", "copy t (id) from stdin"], "1\ta\n\\.\n2\n3\n");
    run.ok();
    assert_eq!(query(&place, "select count(*), sum(id) from t", "csv"), "count,sum\n3,6\n");
}
