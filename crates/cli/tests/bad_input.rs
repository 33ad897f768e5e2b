//! What cannot be: one clear error, the right exit code, and the database as it was.
#![allow(missing_docs)]

mod common;

use common::{Place, rows_csv};
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::process::{Command, Stdio};

#[test]
fn wrong_use_is_exit_code_2() {
    let place = Place::with_table();
    let cases: &[(&[&str], &[&str])] = &[
        (&[], &["Usage"]),
        (&["frobnicate"], &["frobnicate"]),
        (&["load", "db", "u"], &["FILE"]),
        (&["load", "db", "u", "t.csv", "--compress", "zip"], &["zip", "none", "row", "page", "fixed", "huffman"]),
        (&["load", "db", "u", "t.csv", "--page-size", "3K"], &["3072", "2 KB"]),
        (&["load", "db", "u", "t.csv", "--page-size", "1T"], &["2 KB"]),
        (&["load", "db", "u", "t.csv", "--page-size", "banana"], &["banana"]),
        (&["load", "db", "u", "t.csv", "--page-size", "99999999999999999999"], &["99999999999999999999"]),
        (&["load", "db", "u", "t.csv", "--primary-key", "nothing"], &["nothing", "id"]),
        (&["load", "db", "u", "t.csv", "--primary-key", "id,id"], &["twice"]),
        (&["load", "db", "u", "t.csv", "--pctfree", "100"], &["100"]),
        (&["load", "db", "u", "t.csv", "--maxrows", "0"], &["0"]),
        (&["load", "db", "u", "t.csv", "--delimiter", "ab"], &["--delimiter"]),
        (&["load", "db", "u", "t.csv", "--columns", "a nonsense"], &["--columns", "nonsense"]),
        (&["load", "db", "u", "t.csv", "--replace", "--append"], &["--append"]),
        (&["load", "db", "u", "t.csv", "--memory", "1K"], &["--memory"]),
        (&["load", "db", "u", "t.csv", "--memory", "8000T"], &["--memory"]),
        (&["get", "db", "t"], &["KEY"]),
        (&["get", "db", "t", "1", "2"], &["primary key", "id", "2 values"]),
        (&["get", "db", "t", "abc"], &["id", "abc"]),
        (&["scan", "db", "t", "--columns", "nothing"], &["nothing", "price"]),
        (&["scan", "db", "t", "--where", "price >"], &["t"]),
        (&["scan", "db", "t", "--where", "nothing = 1"], &["nothing"]),
        (&["scan", "db", "t", "--limit", "-1"], &["-1"]),
        (&["export", "db", "t", "t.docx"], &["t.docx", "--format"]),
        (&["export", "db", "t", "-", "--json"], &["--json"]),
        (&["create-index", "db", "i", "t"], &["TABLE(COLUMN"]),
        (&["create-index", "db", "i", "t(nothing)"], &["nothing"]),
        (&["create-index", "db", "i", "t(id)", "--format", "fold", "--page-size", "4K"], &["8, 16 or 32 KB"]),
        (&["reorg", "db", "t", "--format", "fold"], &["t", "table"]),
        (&["reorg", "db", "t_pk", "--compress", "none"], &["t_pk", "index"]),
        (&["reorg", "db", "t_pk", "--order", "t_pk"], &["t_pk", "index"]),
        (&["reorg", "db", "t", "--order", "nothing"], &["\"t\"", "\"nothing\""]),
        (&["estimate", "db"], &["TABLE"]),
        (&["demo", "--scale-factor", "-3"], &["-3"]),
        (&["demo", "--scale-factor", "1000000"], &["1000000"]),
    ];
    // Whoever opens for writing makes the log and the file of double writes ready, and says in the lock file who it is.
    let state = || -> Vec<_> {
        let ready = |path: &std::path::Path| {
            path.ends_with("doublewrite") || path.ends_with("lock") || path.extension().is_some_and(|extension| extension == "pfl")
        };
        place.files("db").into_iter().filter(|(path, _)| !ready(path)).collect()
    };
    let before = state();
    for (arguments, texts) in cases {
        place.run(arguments).fails(2, texts);
    }
    assert!(state() == before, "a command of wrong use changed the database");
}

#[test]
fn what_fails_is_exit_code_1_and_changes_nothing() {
    let place = Place::with_table();
    place.write("short.csv", "id,name\n1,a\n2\n");
    place.write("duplicate.csv", "id,name\n1,a\n2,b\n1,c\n");
    place.write("wide.csv", "id,name,price,day\n2001,x,1.5.0,2024-01-01\n");
    place.write("null.csv", "id,name\n1,a\n,b\n");
    place.write("open.csv", "id,name\n1,\"a\n2,b\n");
    place.write("typed.csv", "id,name\n2024-01-01,a\n2024-13-01,b\n");
    place.write("empty.csv", "");
    place.write("long.csv", &format!("id,name\n1,{}\n", "x".repeat(5000)));
    place.write("not.parquet", "this is no parquet file");
    std::fs::create_dir(place.path("folder")).unwrap();
    place.write("folder/file", "something");
    let before = place.files("db");
    let catalogs_before = place.catalogs();
    let cases: &[(&[&str], &[&str])] = &[
        (&["load", "db", "u", "missing.csv"], &["missing.csv", "No such file"]),
        (&["load", "db", "u", "folder"], &["folder"]),
        (&["load", "db", "u", "short.csv"], &["short.csv", "line 3"]),
        (&["load", "db", "u", "open.csv"], &["open.csv"]),
        (&["load", "db", "u", "empty.csv"], &["empty.csv"]),
        (&["load", "db", "u", "not.parquet"], &["not.parquet"]),
        (&["load", "db", "u", "duplicate.csv", "--primary-key", "id"], &["u_pk", "duplicate key", "1"]),
        (&["load", "db", "u", "null.csv", "--primary-key", "id"], &["id", "NULL"]),
        (&["load", "db", "u", "long.csv", "--primary-key", "name"], &["name", "5"]),
        (&["load", "db", "u", "typed.csv", "--columns", "id date, name text"], &["typed.csv", "line 3", "id", "2024-13-01"]),
        (&["load", "db", "t", "t.csv"], &["\"t\"", "already exists", "--replace"]),
        (&["load", "db", "t", "t.csv", "--append"], &["duplicate key"]),
        (&["load", "db", "t", "short.csv", "--append"], &["short.csv, line 1", "id, name"]),
        (&["load", "db", "t", "wide.csv", "--append"], &["price"]),
        (&["load", "folder", "t", "t.csv"], &["folder", "not a pagefold database", "\"file\""]),
        (&["load", "db", "t_pk", "t.csv"], &["index \"t_pk\" already exists"]),
        (&["create-index", "db", "t", "t(name)"], &["table \"t\" already exists"]),
        (&["load", "t.csv", "t", "t.csv"], &["t.csv"]),
        (&["get", "db", "nothing", "1"], &["\"nothing\"", "there are: t"]),
        (&["get", "db", "t", "999999"], &["999999"]),
        (&["scan", "nowhere", "t"], &["nowhere", "not a pagefold database"]),
        (&["scan", "folder", "t"], &["folder", "not a pagefold database"]),
        (&["scan", "db", "T2"], &["\"T2\""]),
        (&["scan", "db", "t", "--index", "none"], &["\"none\"", "t_pk"]),
        (&["export", "db", "nothing", "x.csv"], &["\"nothing\""]),
        (&["export", "db", "t", "no/such/folder/x.csv"], &["no/such/folder"]),
        (&["create-index", "db", "t_pk", "t(name)"], &["t_pk", "already exists"]),
        (&["create-index", "db", "i", "t(name)", "--unique"], &["\"i\"", "duplicate key", "anchor chain"]),
        (&["create-index", "db", "i", "nothing(name)"], &["\"nothing\""]),
        (&["drop", "db", "nothing"], &["\"nothing\""]),
        (&["reorg", "db", "nothing"], &["\"nothing\""]),
        (&["report", "db", "nothing"], &["\"nothing\""]),
        (&["report", "folder"], &["folder"]),
        (&["check", "folder"], &["folder"]),
        (&["print", "db", "nothing"], &["nothing"]),
        (&["estimate", "missing.csv"], &["missing.csv"]),
        (&["estimate", "db", "--index", "nothing"], &["\"nothing\""]),
        (&["demo", "--dir", "no/such/parent"], &["no/such/parent"]),
    ];
    for (arguments, texts) in cases {
        let run = place.run(arguments).fails(1, texts);
        assert_eq!(run.out, "", "{arguments:?}");
        assert_eq!(run.err.lines().count(), 1, "{}", run.err);
        let with_json = place.run(&[arguments, &["--json"][..]].concat()).fails(1, texts);
        assert!(with_json.json()["error"].is_string());
    }
    place.run(&["check", "db"]).ok();
    let after = place.files("db");
    // A transaction that failed may have made the log.
    let data_sets = |files: &[(std::path::PathBuf, Vec<u8>)], catalogs: &[String]| {
        let data = files.iter().map(|(path, _)| path.clone()).filter(|path| path.to_str().unwrap().contains("/data/"));
        data.filter(|path| !catalogs.iter().any(|catalog| path.ends_with(catalog))).collect::<Vec<_>>()
    };
    let catalogs = place.catalogs();
    assert_eq!(data_sets(&after, &catalogs), data_sets(&before, &catalogs_before));
    assert_eq!(after.iter().filter(|(path, _)| catalogs.iter().any(|catalog| path.ends_with(catalog))).count(), 1);
    assert_eq!(place.run(&["export", "db", "t", "-"]).ok().out, rows_csv(0..2000));
    assert!(!place.path("nowhere").exists() && !place.path("x.csv").exists());
}

/// A database without its control file is not taken for an empty place.
#[test]
fn a_lost_control_file_loses_nothing_else() {
    let place = Place::with_table();
    let control = std::fs::read(place.path("db/control")).unwrap();
    std::fs::remove_file(place.path("db/control")).unwrap();
    // Neither before the log has been made nor after.
    for log in [true, false] {
        if !log {
            for name in ["log", "doublewrite", "archive"] {
                let _ = std::fs::rename(place.path("db").join(name), place.path(name));
            }
        }
        let before = place.files("db");
        place.run(&["load", "db", "new", "t.csv"]).fails(1, &["db", "no control file", "Nothing was touched", "copy"]);
        for arguments in [&["get", "db", "t", "1"][..], &["scan", "db", "t"], &["drop", "db", "t"], &["upsert", "db", "t", "t.csv"]] {
            place.run(arguments).fails(1, &["not a pagefold database"]);
        }
        assert!(place.files("db") == before);
    }
    for name in ["log", "doublewrite", "archive"] {
        let _ = std::fs::rename(place.path(name), place.path("db").join(name));
    }
    std::fs::write(place.path("db/control"), control).unwrap();
    assert_eq!(place.run(&["export", "db", "t", "-"]).ok().out, rows_csv(0..2000));
}

#[test]
fn a_failed_first_load_leaves_no_database() {
    let place = Place::new();
    place.write("short.csv", "id,name\n1,a\n2\n");
    place.run(&["load", "db", "t", "short.csv"]).fails(1, &["line 3"]);
    assert!(!place.path("db").exists());
    place.write("duplicate.csv", "id\n1\n1\n");
    place.run(&["load", "db", "t", "duplicate.csv", "--primary-key", "id"]).fails(1, &["duplicate"]);
    assert!(!place.path("db").exists());
}

#[test]
fn damage_is_named() {
    // A page of the table.
    let place = Place::with_table();
    let header = place.run(&["print", "db", "t", "--json"]).ok().json();
    let path = place.path(&format!("db/data/{}.pfd", header["file"].as_str().unwrap()));
    let file = std::fs::OpenOptions::new().write(true).open(path).unwrap();
    file.write_all_at(&[0xA5; 16], 3 * 4096 + 100).unwrap();
    let run = place.run(&["scan", "db", "t", "--json"]);
    assert_eq!(run.code, Some(1));
    assert!(run.err.contains("\"t\"") && run.err.contains("page 3"), "{}", run.err);
    let found = place.run(&["check", "db", "--json"]).fails(1, &[]).json();
    assert!(found["errors"].as_array().unwrap().iter().any(|e| e["page"] == 3), "{found}");
    place.run(&["check", "db"]).fails(1, &[]);
    place.run(&["print", "db", "t", "--page", "3"]).ok();

    // Both slots of the control file; then a newer format.
    let place = Place::with_table();
    let control = place.path("db/control");
    let good = std::fs::read(&control).unwrap();
    std::fs::write(&control, vec![0x5A; good.len()]).unwrap();
    place.run(&["scan", "db", "t"]).fails(1, &["control"]);
    place.run(&["load", "db", "u", "t.csv"]).fails(1, &["control"]);
    std::fs::write(&control, &good[..100]).unwrap();
    place.run(&["report", "db"]).fails(1, &["control"]);
    std::fs::write(&control, &good).unwrap();
    place.run(&["check", "db"]).ok();

    // The catalog is gone.
    for (path, _) in place.files("db/data") {
        std::fs::remove_file(path).unwrap();
    }
    place.run(&["scan", "db", "t"]).fails(1, &["missing"]);
}

#[test]
fn a_second_writer_is_refused_and_readers_are_not() {
    let place = Place::with_table();
    let lock = std::fs::OpenOptions::new().write(true).open(place.path("db/lock")).unwrap();
    lock.lock().unwrap();
    for arguments in
        [["drop", "db", "t"].as_slice(), &["load", "db", "u", "t.csv"], &["create-index", "db", "i", "t(day)"], &["reorg", "db", "t"]]
    {
        place.run(arguments).fails(1, &["db", "another process"]);
    }
    place.run(&["get", "db", "t", "5"]).ok();
    place.run(&["report", "db"]).ok();
    drop(lock);
    place.run(&["drop", "db", "t"]).ok();
}

#[test]
fn a_full_disk_leaves_the_database_as_it_was() {
    let place = Place::with_table();
    place.write("many.csv", &rows_csv(0..40_000));
    // The limit on file sizes takes the place of the disk's end; the shell ignores the signal that goes with it.
    let limited = |arguments: &str| {
        let script = format!("trap '' XFSZ; ulimit -f 300; exec {} {arguments}", common::PROGRAM);
        let output = Command::new("bash").args(["-c", &script]).current_dir(place.directory.path()).stdin(Stdio::null()).output();
        common::Run::from(output.unwrap())
    };
    limited("load db many many.csv --compress none").fails(1, &["many.csv"][..0]);
    limited("load db t many.csv --replace --compress none").fails(1, &[]);
    place.run(&["check", "db"]).ok();
    assert_eq!(place.run(&["export", "db", "t", "-"]).ok().out, rows_csv(0..2000));
    place.run(&["load", "db", "many", "many.csv"]).ok();
    place.run(&["check", "db"]).ok();
}

#[test]
fn what_may_not_be_read_or_written_is_named() {
    let place = Place::with_table();
    let secret = place.write("secret.csv", "a\n1\n");
    std::fs::set_permissions(&secret, std::fs::Permissions::from_mode(0o000)).unwrap();
    if std::fs::read(&secret).is_ok() {
        // Root reads everything: nothing to see.
        return;
    }
    place.run(&["load", "db", "u", "secret.csv"]).fails(1, &["secret.csv", "ermission"]);
}

#[test]
fn an_interrupt_rolls_back() {
    let place = Place::with_table();
    place.write("many.csv", &rows_csv(0..400_000));
    let child = place.command(&["load", "db", "many", "many.csv", "--primary-key", "id"]).stderr(Stdio::piped()).spawn().unwrap();
    // Early or late, whatever it is doing: the result is one of two.
    std::thread::sleep(std::time::Duration::from_millis(300));
    Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    let run = common::Run::from(child.wait_with_output().unwrap());
    match run.code {
        Some(1) => assert!(run.err.contains("interrupted"), "{run:?}"),
        // The program had not begun, or had ended.
        code => assert!(code.is_none_or(|code| code == 0), "{run:?}"),
    }
    place.run(&["check", "db"]).ok();
    assert_eq!(place.run(&["get", "db", "many", "7"]).code == Some(0), run.code == Some(0));
    assert_eq!(place.run(&["export", "db", "t", "-"]).ok().out, rows_csv(0..2000));
}
