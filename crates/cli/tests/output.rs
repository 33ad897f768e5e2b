//! Where output goes: files, links, pipes, devices, terminals.
#![allow(missing_docs, clippy::unwrap_used)]

mod common;

use common::{PROGRAM, Place, rows_csv};
use std::os::unix::fs::{FileTypeExt, symlink};
use std::process::Command;

/// They write rows to a file.
const WRITERS: [&str; 2] = ["export", "salvage"];

#[test]
fn links_are_followed_and_kept() {
    WRITERS.into_iter().for_each(follows_links);
}

fn follows_links(command: &str) {
    let place = Place::with_table();
    place.write("target.csv", "before");
    symlink("target.csv", place.path("link.csv")).unwrap();
    symlink("nothing yet.csv", place.path("dangling.csv")).unwrap();
    for (link, target) in [("link.csv", "target.csv"), ("dangling.csv", "nothing yet.csv")] {
        place.run(&[command, "db", "t", link]).ok();
        assert!(place.path(link).symlink_metadata().unwrap().is_symlink());
        assert!(!place.path(target).symlink_metadata().unwrap().is_symlink());
        assert_eq!(std::fs::read_to_string(place.path(target)).unwrap(), rows_csv(0..2000));
    }
    std::fs::create_dir(place.path("folder.csv")).unwrap();
    place.run(&[command, "db", "t", "folder.csv"]).fails(1, &["folder.csv", "directory"]);
}

#[test]
fn pipes_and_devices_are_written_and_kept() {
    WRITERS.into_iter().for_each(writes_pipes_and_devices);
}

fn writes_pipes_and_devices(command: &str) {
    let place = Place::with_table();
    let pipe = place.path("pipe.csv");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let text = std::thread::scope(|scope| {
        let reader = scope.spawn(|| std::fs::read_to_string(&pipe).unwrap());
        place.run(&[command, "db", "t", "pipe.csv"]).ok();
        reader.join().unwrap()
    });
    assert_eq!(text, rows_csv(0..2000));
    assert!(pipe.symlink_metadata().unwrap().file_type().is_fifo());
    let done = place.run(&[command, "db", "t", "/dev/null", "--format", "csv", "--json"]).ok().json();
    assert!(command == "salvage" || done["size_bytes"] == rows_csv(0..2000).len());
    place.run(&[command, "db", "t", "/dev/full", "--format", "csv"]).fails(1, &["No space left"]);
    for device in ["/dev/null", "/dev/full"] {
        assert!(std::fs::metadata(device).unwrap().file_type().is_char_device());
    }
}

/// A file of the database may be meant by mistake, also by a link.
#[test]
fn the_directory_of_the_database_is_no_place_for_output() {
    let place = Place::with_table();
    symlink("db/control", place.path("link.csv")).unwrap();
    let before = std::fs::read(place.path("db/control")).unwrap();
    for target in ["db/control", "db/data/new.csv", "./db/../db/new.csv", "link.csv"] {
        for command in WRITERS {
            place.run(&[command, "db", "t", target, "--format", "csv"]).fails(1, &["directory of the database"]);
        }
    }
    for target in ["db/copy.pfc", "db/copy"] {
        place.run(&["copy", "db", target]).fails(1, &["directory of the database"]);
    }
    assert_eq!(std::fs::read(place.path("db/control")).unwrap(), before);
    place.run(&["check", "db"]).ok();
}

/// Rows and bars do not write over each other.
#[test]
fn rows_on_a_terminal_stand_alone() {
    let place = Place::with_table();
    for (arguments, rows) in [("scan db t --columns id --format csv", 2001), ("export db t -", 2001)] {
        // `script` runs a command on a terminal of its own.
        let command = format!("stty cols 60; {PROGRAM} {arguments}");
        let output = Command::new("script").args(["-qec", &command, "/dev/null"]).current_dir(place.directory.path()).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(!text.contains('\u{1b}'), "{:?}", &text[..200.min(text.len())]);
        assert_eq!(text.lines().filter(|line| !line.trim().is_empty()).count(), rows, "{arguments}");
    }
    // A bar is still shown where nothing else is.
    let command = format!("{PROGRAM} export db t out.csv");
    let output = Command::new("script").args(["-qec", &command, "/dev/null"]).current_dir(place.directory.path()).output().unwrap();
    assert!(String::from_utf8(output.stdout).unwrap().contains("2,000 rows written"));
}

#[test]
fn help_that_cannot_be_written_is_an_error() {
    let place = Place::new();
    for arguments in [&["--help"][..], &["--version"], &["load", "--help"]] {
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let run = place.command(arguments).stdout(full).output().unwrap();
        assert!(run.status.code() == Some(1) && String::from_utf8_lossy(&run.stderr).contains("No space left"), "{run:?}");
    }
}

/// A file that may not grow any more (`ulimit -f`) is an error that names it, and leaves everything as it was.
#[test]
fn files_that_the_shell_keeps_small() {
    let place = Place::with_table();
    place.write("large.csv", &rows_csv(0..60_000));
    for arguments in ["load db u large.csv", "upsert db t large.csv", "export db t large.parquet", "copy db copy.pfc"] {
        let command = format!("ulimit -f 16; exec {PROGRAM} {arguments}");
        let run = common::Run::from(Command::new("bash").args(["-c", &command]).current_dir(place.directory.path()).output().unwrap());
        let run = run.fails(1, &["File too large"]);
        assert!(["db/", "large.parquet", "copy.pfc"].iter().any(|name| run.err.contains(name)), "{run:?}");
    }
    place.run(&["check", "db"]).ok();
    assert_eq!(place.run(&["export", "db", "t", "-"]).ok().out, rows_csv(0..2000));
}
