//! An index that cannot be opened takes nothing else away: the commands name it, go on without it, drop it and build it anew. So for tables: others go on,
//! and what is damaged is dropped.
#![allow(missing_docs, clippy::unwrap_used)]

mod common;

use common::Place;
use pagefold::engine::{self, OpenMode, Settings, TransactionOptions};
use pagefold::types::ValueRef;
use std::path::{Path, PathBuf};

const HOWS: [&str; 5] = ["header", "zeros", "short", "missing", "another"];

/// The file of a table or index: `print` says it.
fn file_of(place: &Place, object: &str) -> PathBuf {
    let printed = place.run(&["print", "db", object]).ok().out;
    let file = printed.lines().find_map(|line| line.strip_prefix("file ")).unwrap().trim().to_owned();
    place.path(&format!("db/data/{file}.pfd"))
}

/// Tables `t` and `u` of 2,000 rows, each with an index on `name`; the files of `t_name`, `u_name` and `t_pk`.
fn made() -> (Place, [PathBuf; 3]) {
    let place = Place::with_table();
    place.run(&["load", "db", "u", "t.csv", "--primary-key", "id"]).ok();
    for table in ["t", "u"] {
        let (name, columns) = (format!("{table}_name"), format!("{table}(name, id)"));
        place.run(&["create-index", "db", &name, &columns, "--format", "plain"]).ok();
    }
    place.write("one.csv", "id,name,price,day\n1,oak,2.00,2024-01-01\n");
    place.write("new.csv", "id,name,price,day\n90001,elm,2.00,2024-01-01\n");
    place.write("gone.csv", "id\n7\n");
    let files = ["t_name", "u_name", "t_pk"].map(|index| file_of(&place, index));
    (place, files)
}

/// Another place with the same files.
fn copied(place: &Place) -> Place {
    let copy = Place::new();
    for (path, bytes) in place.files("") {
        let to = copy.path(path.strip_prefix(place.path("")).unwrap().to_str().unwrap());
        std::fs::create_dir_all(to.parent().unwrap()).unwrap();
        std::fs::write(to, bytes).unwrap();
    }
    copy
}

fn damage(path: &Path, another: &Path, how: &str) {
    let mut bytes = std::fs::read(path).unwrap();
    match how {
        "header" => bytes[77] ^= 2,
        "zeros" => bytes[..8192].fill(0),
        "short" => bytes.truncate(2 * 8192),
        "another" => bytes = std::fs::read(another).unwrap(),
        _ => return std::fs::remove_file(path).unwrap(),
    }
    std::fs::write(path, bytes).unwrap();
}

#[test]
fn commands_go_on_without_an_index_that_is_damaged() {
    for how in HOWS {
        let (place, [file, another, ..]) = made();
        let whole = std::fs::read(&file).unwrap();
        damage(&file, &another, how);
        let mends = ["t_name", "rebuild-index"];
        place.run(&["get", "db", "t", "5"]).ok();
        assert_eq!(place.run(&["export", "db", "t", "-"]).ok().out.lines().count(), 2001, "{how}");
        assert!(place.run(&["scan", "db", "t", "--where", "name = 'compass' and id = 3", "--columns", "id"]).ok().out.ends_with(" 3\n"));
        place.run(&["scan", "db", "t", "--index", "t_name"]).fails(1, &mends);
        place.run(&["scan", "db", "u", "--index", "u_name", "--limit", "1"]).ok();
        let report = place.run(&["report", "db", "--json"]).ok().json();
        assert_eq!(
            (&report["damaged"][0]["name"], &report["damaged"][0]["mended_by"]),
            (&"t_name".into(), &"rebuild-index".into()),
            "{how}"
        );
        assert_eq!((report["tables"].as_array().unwrap().len(), report["indexes"].as_array().unwrap().len()), (2, 3));
        assert!(place.run(&["report", "db"]).ok().out.contains("DAMAGED index t_name"));
        let check = place.run(&["check", "db"]);
        assert!(check.code == Some(1) && check.out.contains("t_name"), "{check:?}");
        // A copy would lack what nothing says it lacks.
        place.run(&["copy", "db", "unmarked.pfc"]).fails(1, &["t_name"]);
        place.run(&["upsert", "db", "t", "one.csv"]).ok();
        place.run(&["load", "db", "t", "new.csv", "--append"]).ok();
        place.run(&["delete", "db", "t", "gone.csv"]).ok();
        place.run(&["upsert", "db", "u", "one.csv"]).ok();
        // It comes back, and is not believed.
        std::fs::write(&file, &whole).unwrap();
        place.run(&["scan", "db", "t", "--index", "t_name"]).fails(1, &mends);
        let check = place.run(&["check", "db"]);
        assert!(check.code == Some(1) && check.out.contains("t_name") && check.out.contains("rebuild-index"), "{check:?}");
        let copied = place.run(&["copy", "db", "copy.pfc", "--json"]).ok().json();
        assert_eq!(copied["damaged_indexes"], serde_json::json!(["t_name"]), "{how}");
        place.run(&["recover", "recovered", "copy.pfc"]).ok();
        assert_eq!(place.run(&["export", "recovered", "t", "-"]).ok().out.lines().count(), 2001, "{how}");
        place.run(&["rebuild-index", "recovered", "t_name"]).ok();
        place.run(&["check", "recovered"]).ok();
        place.run(&["rebuild-index", "db", "t_name"]).ok();
        let found = place.run(&["scan", "db", "t", "--index", "t_name", "--where", "name = 'elm'", "--columns", "id"]).ok();
        assert!(found.out.ends_with("90001\n"), "{}", found.out);
        place.run(&["check", "db"]).ok();
    }
}

#[test]
fn an_index_that_is_damaged_is_dropped_and_replaced() {
    let (whole, [file, another, ..]) = made();
    let commands: [&[&str]; 5] = [
        &["drop", "db", "t_name"],
        &["reorg", "db", "t_name"],
        &["reorg", "db", "t", "--compress", "page"],
        &["load", "db", "t", "t.csv", "--replace", "--primary-key", "id"],
        &["drop", "db", "t"],
    ];
    for how in HOWS {
        for command in commands {
            let place = copied(&whole);
            let here = |path: &Path| place.path(path.strip_prefix(whole.path("")).unwrap().to_str().unwrap());
            damage(&here(&file), &here(&another), how);
            place.run(command).ok();
            place.run(&["check", "db"]).ok();
            if command[0] != "drop" {
                place.run(&["scan", "db", "t", "--index", "t_name", "--limit", "1"]).ok();
            }
        }
    }
}

#[test]
fn keys_are_not_given_while_their_index_is_damaged() {
    for how in HOWS {
        let (place, [_, another, key]) = made();
        damage(&key, &another, how);
        let mends = ["t_pk", "rebuild-index"];
        place.run(&["get", "db", "t", "5"]).fails(1, &mends);
        place.run(&["upsert", "db", "t", "one.csv"]).fails(1, &mends);
        place.run(&["delete", "db", "t", "gone.csv"]).fails(1, &mends);
        place.run(&["load", "db", "t", "new.csv", "--append"]).fails(1, &mends);
        assert_eq!(place.run(&["export", "db", "t", "-"]).ok().out.lines().count(), 2001, "{how}");
        place.run(&["scan", "db", "t", "--index", "t_name", "--limit", "1"]).ok();
        place.run(&["upsert", "db", "u", "one.csv"]).ok();
        place.run(&["rebuild-index", "db", "t_pk"]).ok();
        place.run(&["upsert", "db", "t", "one.csv"]).ok();
        place.run(&["get", "db", "t", "5"]).ok();
        place.run(&["check", "db"]).ok();
    }
}

#[test]
fn a_table_that_is_damaged_is_dropped_and_others_go_on() {
    for how in HOWS {
        let (place, [another, ..]) = made();
        place.run(&["load", "db", "w", "t.csv", "--compress", "none", "--page-size", "8K"]).ok();
        let table = file_of(&place, "w");
        damage(&table, &another, how);
        place.run(&["export", "db", "w", "-"]).fails(1, &[]);
        place.run(&["get", "db", "t", "5"]).ok();
        place.run(&["upsert", "db", "t", "one.csv"]).ok();
        let report = place.run(&["report", "db", "--json"]).ok().json();
        assert_eq!((&report["damaged"][0]["name"], &report["damaged"][0]["mended_by"]), (&"w".into(), &"salvage".into()), "{how}");
        assert_eq!((report["tables"].as_array().unwrap().len(), report["indexes"].as_array().unwrap().len()), (2, 4));
        place.run(&["load", "db", "w", "t.csv"]).fails(1, &[]);
        place.run(&["drop", "db", "w"]).ok();
        place.run(&["check", "db"]).ok();
        place.run(&["load", "db", "w", "t.csv"]).ok();
    }
}

#[test]
fn a_table_that_lacks_what_the_log_has_is_salvaged_and_dropped() {
    let (place, _) = made();
    let file = file_of(&place, "t");
    let database = engine::open(place.path("db"), OpenMode::Write, Settings::default()).unwrap();
    for name in ["t", "u"] {
        let table = database.table(name).unwrap();
        let mut t = database.begin(TransactionOptions::default());
        t.insert(&table, &[ValueRef::Int(90_000), ValueRef::Text("elm"), ValueRef::Null, ValueRef::Int(19_800)]).unwrap();
        t.commit().unwrap();
    }
    // As a crash would leave it.
    let crashed = copied(&place);
    drop(database);
    let file = crashed.path(file.strip_prefix(place.path("")).unwrap().to_str().unwrap());
    let mut bytes = std::fs::read(&file).unwrap();
    bytes[77] ^= 2;
    std::fs::write(&file, bytes).unwrap();
    for command in [&["get", "db", "t", "90000"] as &[&str], &["upsert", "db", "u", "one.csv"], &["drop", "db", "u"]] {
        crashed.run(command).fails(1, &["table \"t\""]);
    }
    // Readers go on without it.
    crashed.run(&["get", "db", "u", "90000"]).ok();
    assert_eq!(crashed.run(&["report", "db", "--json"]).ok().json()["damaged"][0]["name"], "t");
    let salvaged = crashed.run(&["salvage", "db", "t", "rest.csv", "--json"]);
    assert!(salvaged.code == Some(1) && salvaged.json()["rows"] == 2000, "{salvaged:?}");
    crashed.run(&["drop", "db", "t"]).ok();
    crashed.run(&["get", "db", "u", "90000"]).ok();
    crashed.run(&["check", "db"]).ok();
    crashed.run(&["load", "db", "t", "rest.csv", "--primary-key", "id"]).ok();
}

#[test]
fn a_file_that_the_system_does_not_give_takes_nothing_else_away() {
    let is_a_directory = |path: &Path| {
        std::fs::remove_file(path).unwrap();
        std::fs::create_dir(path).unwrap();
    };
    let report = |place: &Place| place.run(&["report", "db", "--json"]).ok().json();
    let (made, [index, ..]) = made();
    let table = file_of(&made, "t");
    let (of_index, of_table) = (copied(&made), copied(&made));
    let place = of_index;
    is_a_directory(&place.path(index.strip_prefix(made.path("")).unwrap().to_str().unwrap()));
    place.run(&["get", "db", "t", "5"]).ok();
    assert_eq!(place.run(&["export", "db", "t", "-"]).ok().out.lines().count(), 2001);
    place.run(&["scan", "db", "t", "--index", "t_name"]).fails(1, &["directory"]);
    // Rows do not change without it: it may be whole.
    place.run(&["upsert", "db", "t", "new.csv"]).fails(1, &["directory"]);
    place.run(&["upsert", "db", "u", "new.csv"]).ok();
    let found = report(&place);
    assert_eq!((&found["damaged"][0]["name"], found["tables"].as_array().unwrap().len()), (&"t_name".into(), 2));
    assert!(place.run(&["report", "db"]).ok().out.contains("NOT READ index t_name"));
    place.run(&["drop", "db", "t_name"]).ok();
    // What the system does not let anybody remove is in nobody's way.
    place.run(&["upsert", "db", "t", "new.csv"]).ok();
    place.run(&["check", "db"]).ok();

    let place = of_table;
    is_a_directory(&place.path(table.strip_prefix(made.path("")).unwrap().to_str().unwrap()));
    place.run(&["get", "db", "u", "5"]).ok();
    place.run(&["get", "db", "t", "5"]).fails(1, &["directory"]);
    assert_eq!(report(&place)["tables"].as_array().unwrap().len(), 1);
    place.run(&["drop", "db", "t"]).ok();
    place.run(&["upsert", "db", "u", "new.csv"]).ok();
    place.run(&["check", "db"]).ok();
}
