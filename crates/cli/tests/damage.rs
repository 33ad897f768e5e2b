//! Leftovers, full disks, file systems that are read only, and tables that are salvaged.
#![allow(missing_docs, clippy::unwrap_used)]

mod common;

use common::{Place, rows_csv};
use std::path::{Path, PathBuf};
use std::process::Command;

#[test]
fn check_names_what_a_command_left_and_finds_nothing_wrong_with_it() {
    let place = Place::with_table();
    place.write("db/data/0000ffff.pfd", "what a load had written when it was killed");
    place.write("db/data/sort.tmp", "");
    let run = place.run(&["check", "db"]).ok();
    for name in ["0000ffff.pfd", "sort.tmp"] {
        assert!(run.out.lines().any(|line| line.contains(name) && line.contains("harmless")), "{}", run.out);
    }
    let found = place.run(&["check", "db", "--json"]).ok().json();
    assert_eq!((found["errors"].as_array().unwrap().len(), found["leftovers"].as_array().unwrap().len()), (0, 2));
    place.write("one.csv", "id,name,price,day\n1,oak,2.00,2024-01-01\n");
    place.run(&["upsert", "db", "t", "one.csv"]).ok();
    assert!(place.run(&["check", "db", "--json"]).ok().json()["leftovers"].as_array().unwrap().is_empty());
}

#[test]
fn check_makes_nothing_where_no_database_is() {
    let place = Place::new();
    std::fs::create_dir(place.path("empty")).unwrap();
    place.write("empty/mine.txt", "mine");
    for command in ["check", "report"] {
        place.run(&[command, "empty"]).fails(1, &["is not a pagefold database"]);
        assert_eq!(std::fs::read_dir(place.path("empty")).unwrap().count(), 1, "{command}");
    }
}

/// A folder stands where a data set was: the system opens it for nobody. It is missed by those alone who need it.
#[test]
fn a_file_that_the_system_refuses_takes_nothing_else_away() {
    let place = Place::with_table();
    let data_sets = || {
        let files = std::fs::read_dir(place.path("db/data")).unwrap();
        files.map(|file| file.unwrap().path()).filter(|path| path.extension().is_some_and(|e| e == "pfd")).collect::<Vec<_>>()
    };
    let of_others = data_sets();
    place.run(&["load", "db", "u", "t.csv"]).ok();
    let catalogs = place.catalogs();
    let is_catalog = |path: &Path| catalogs.iter().any(|catalog| path.ends_with(catalog));
    for path in data_sets().iter().filter(|path| !of_others.contains(path) && !is_catalog(path)) {
        std::fs::remove_file(path).unwrap();
        std::fs::create_dir(path).unwrap();
    }
    place.run(&["get", "db", "t", "1"]).ok();
    place.run(&["export", "db", "t", "t_again.csv"]).ok();
    place.run(&["salvage", "db", "t", "t_saved.csv"]).ok();
    place.run(&["scan", "db", "u"]).fails(1, &["directory"]);
    let check = place.run(&["check", "db"]);
    assert!(check.code == Some(1) && (check.out + &check.err).contains("directory"));
}

#[test]
fn a_double_write_file_that_cannot_be_used_is_found_and_made_anew() {
    for damage in [0, 1, 2] {
        let place = Place::with_table();
        place.write("one.csv", "id,name,price,day\n1,oak,2.00,2024-01-01\n");
        place.run(&["upsert", "db", "t", "one.csv"]).ok();
        let path = place.path("db/doublewrite");
        let mut bytes = std::fs::read(&path).unwrap();
        match damage {
            0 => bytes[9] ^= 4,
            1 => bytes.truncate(bytes.len() / 2),
            _ => bytes.fill(0),
        }
        std::fs::write(&path, bytes).unwrap();
        let run = place.run(&["check", "db"]);
        assert!(run.code == Some(1) && run.out.contains("double-write file"), "{run:?}");
        place.run(&["get", "db", "t", "1"]).ok();
        place.run(&["upsert", "db", "t", "one.csv"]).ok();
        place.run(&["check", "db"]).ok();
    }
}

#[test]
fn a_table_is_salvaged_dropped_and_loaded_again() {
    let place = Place::new();
    place.write("t.csv", &rows_csv(0..2000));
    place.run(&["load", "db", "t", "t.csv", "--primary-key", "id", "--page-size", "4K", "--compress", "none"]).ok();
    let files = place.files("db/data");
    // The largest file is the table's.
    let (path, bytes) = files.iter().max_by_key(|(_, bytes)| bytes.iter().filter(|byte| **byte != 0).count()).unwrap();
    let mut bad = bytes.clone();
    bad[2 * 4096 + 100] ^= 1;
    std::fs::write(path, bad).unwrap();
    place.run(&["export", "db", "t", "out.csv"]).fails(1, &["table \"t\", page 2"]);
    let run = place.run(&["salvage", "db", "t", "rest.csv", "--json"]);
    assert_eq!(run.code, Some(1), "{run:?}");
    let found = run.json();
    let rest = std::fs::read_to_string(place.path("rest.csv")).unwrap().lines().count() as u64 - 1;
    assert_eq!(found["rows"].as_u64(), Some(rest));
    assert_eq!(found["damage"][0]["page"].as_u64(), Some(2));
    let lost: u64 = found["lost"].as_array().unwrap().iter().map(|lost| lost["rows"].as_u64().unwrap()).sum();
    assert!(lost + rest == 2000 && lost < 200, "{lost} rows lost, {rest} there");
    let text = place.run(&["salvage", "db", "t", "rest.csv"]);
    assert!(text.code == Some(1) && text.out.contains("rows lack, with keys from"), "{text:?}");
    place.run(&["drop", "db", "t"]).ok();
    place.run(&["load", "db", "t", "rest.csv", "--primary-key", "id"]).ok();
    place.run(&["check", "db"]).ok();
    place.run(&["salvage", "db", "t", "all.csv"]).ok();
    let report = place.run(&["report", "db", "--json"]).ok().json();
    let index = report["indexes"][0]["name"].as_str().unwrap();
    let built = place.run(&["rebuild-index", "db", index, "--json"]).ok().json();
    assert_eq!(built["rids"].as_u64(), Some(rest));
    place.run(&["check", "db"]).ok();
}

/// A file system of its own; `None` where that is not allowed.
struct Mount(PathBuf);

impl Mount {
    fn new(place: &Place, bytes: &str) -> Option<Mount> {
        let path = place.path("mount");
        std::fs::create_dir(&path).unwrap();
        let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", &format!("size={bytes}"), "tmpfs"]).arg(&path).output();
        mounted.is_ok_and(|output| output.status.success()).then_some(Mount(path))
    }

    fn remount(&self, how: &str) {
        assert!(Command::new("mount").args(["-o", &format!("remount,{how}")]).arg(&self.0).status().unwrap().success());
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.0).status();
    }
}

fn fill(path: &Path) {
    use std::io::Write;
    let mut file = std::fs::File::create(path).unwrap();
    while file.write_all(&[1; 4096]).is_ok() {}
    while file.write_all(&[1]).is_ok() {}
}

#[test]
fn on_a_disk_without_a_byte_free_everything_is_read_and_space_is_given_up() {
    let place = Place::new();
    let Some(mount) = Mount::new(&place, "64m") else {
        println!("no file system can be mounted here: not tested");
        return;
    };
    place.write("t.csv", &rows_csv(0..4000));
    for table in ["t", "u"] {
        place.run(&["load", "mount/db", table, "t.csv", "--primary-key", "id"]).ok();
    }
    fill(&mount.0.join("fill"));
    place.run(&["get", "mount/db", "t", "5"]).ok();
    place.run(&["scan", "mount/db", "t", "--limit", "2"]).ok();
    place.run(&["report", "mount/db"]).ok();
    place.run(&["export", "mount/db", "t", "out.csv"]).ok();
    assert_eq!(std::fs::read_to_string(place.path("out.csv")).unwrap().lines().count(), 4001);
    place.run(&["salvage", "mount/db", "t", "salvaged.csv"]).ok();
    place.run(&["check", "mount/db"]).ok();
    place.write("one.csv", "id,name,price,day\n9000000,oak,2.00,2024-01-01\n");
    // Where a segment of the log is there already, it goes in.
    let upsert = place.run(&["upsert", "mount/db", "t", "one.csv"]);
    assert!(upsert.code == Some(0) || upsert.err.contains("No space left"), "{upsert:?}");
    let more = usize::from(upsert.code == Some(0));
    place.write("some.csv", &("id\n".to_owned() + &(0..1000).map(|id| format!("{id}\n")).collect::<String>()));
    place.run(&["delete", "mount/db", "t", "some.csv"]).ok();
    place.run(&["drop", "mount/db", "u"]).ok();
    place.run(&["check", "mount/db"]).ok();
    assert_eq!(place.run(&["export", "mount/db", "t", "-"]).ok().out.lines().count(), 3001 + more);
}

#[test]
fn a_file_system_that_is_read_only_is_read_and_copied() {
    let place = Place::new();
    let Some(mount) = Mount::new(&place, "64m") else {
        println!("no file system can be mounted here: not tested");
        return;
    };
    place.write("t.csv", &rows_csv(0..2000));
    place.run(&["load", "mount/db", "t", "t.csv", "--primary-key", "id"]).ok();
    mount.remount("ro");
    place.run(&["check", "mount/db"]).ok();
    place.run(&["copy", "mount/db", "copied"]).ok();
    place.run(&["copy", "mount/db", "copy.pfc"]).ok();
    place.run(&["check", "copied"]).ok();
    assert_eq!(place.run(&["export", "copied", "t", "-"]).ok().out.lines().count(), 2001);
}

#[test]
fn check_shows_a_person_the_first_errors_of_an_object_and_all_that_are_kept_on_demand() {
    let place = Place::new();
    place.write("t.csv", &rows_csv(0..6000));
    place.run(&["load", "db", "t", "t.csv", "--page-size", "2K", "--compress", "none"]).ok();
    let files = place.files("db/data");
    let (path, bytes) = files.iter().max_by_key(|(_, bytes)| bytes.iter().filter(|byte| **byte != 0).count()).unwrap();
    let mut bad = bytes.clone();
    (2..80).for_each(|page| bad[page * 2048 + 100] ^= 1);
    std::fs::write(path, bad).unwrap();
    let lines = |arguments: &[&str]| {
        let run = place.run(arguments);
        assert_eq!(run.code, Some(1), "{run:?}");
        (run.out.lines().filter(|line| line.starts_with("table \"t\", page ")).count(), run.out)
    };
    let (listed, out) = lines(&["check", "db"]);
    assert!(listed == 20 && out.contains("58 more errors, which --all-errors lists") && out.contains("78 errors"), "{out}");
    let (listed, out) = lines(&["check", "db", "--all-errors"]);
    assert!(listed == 78 && !out.contains("--all-errors"), "{out}");
    let found = place.run(&["check", "db", "--json"]).json();
    assert_eq!(found["errors"].as_array().unwrap().len(), 78);
}

#[test]
fn what_is_not_there_is_not_dropped_and_what_is_there_is_named() {
    let place = Place::with_table();
    place.run(&["drop", "db", "nobody"]).fails(1, &["no table or index \"nobody\"; there are: t, t_pk"]);
    place.run(&["drop", "db", "t"]).ok();
    place.run(&["drop", "db", "nobody"]).fails(1, &["there are none"]);
}

/// The files of a database that was closed have everything, whatever has become of its log.
#[test]
fn a_closed_database_without_its_log_is_salvaged() {
    let remove = |place: &Place| std::fs::remove_dir_all(place.path("db/log")).unwrap();
    let replace = |place: &Place| {
        for segment in std::fs::read_dir(place.path("db/log")).unwrap().map(|file| file.unwrap().path()) {
            std::fs::remove_file(&segment).unwrap();
            std::fs::create_dir(&segment).unwrap();
        }
    };
    for damage in [&remove as &dyn Fn(&Place), &replace] {
        let place = Place::with_table();
        place.write("more.csv", &rows_csv(2000..2001));
        place.run(&["upsert", "db", "t", "more.csv"]).ok();
        damage(&place);
        let salvage = place.run(&["salvage", "db", "t", "saved.csv"]);
        assert!(salvage.code == Some(1) && salvage.out.contains("log could not be applied"), "{salvage:?}");
        assert_eq!(std::fs::read_to_string(place.path("saved.csv")).unwrap(), rows_csv(0..2001));
        let check = place.run(&["check", "db"]);
        let said = check.out.clone() + &check.err;
        assert!(check.code == Some(1) && said.contains("log") && !said.contains("lost"), "{check:?}");
    }
}
