//! `top` beside a process that writes, and beside none.
#![allow(missing_docs, clippy::unwrap_used)]

mod common;

use common::Place;
use pagefold::backup::{Progress, Silent, Unit};
use pagefold::{DataType, Database, TableDefinition};
use std::io::Read;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// A process that goes on putting rows into a table.
struct Writer(Child);

/// The directory of the database that the process writes.
const DIRECTORY: &str = "PAGEFOLD_TOP_DIRECTORY";

/// What that process does: this test, which a test starts.
#[test]
#[ignore = "started by another test"]
fn writer() {
    let Ok(directory) = std::env::var(DIRECTORY) else { return };
    let database = Database::create(directory).unwrap();
    let definition = TableDefinition::new().column("id", DataType::BigInt).column("name", DataType::Varchar(None)).primary_key(["id"]);
    database.write(|transaction| transaction.create_table("t", definition.clone()).map(drop)).unwrap();
    let watched = database.engine().watch("filling t", &Silent);
    watched.start("rows", Some(1 << 40), Unit::Rows);
    for id in 0i64.. {
        database.write(|transaction| transaction.table("t")?.insert((id, format!("name {id}"))).map(drop)).unwrap();
        watched.advance(1);
    }
}

impl Writer {
    fn start(place: &Place) -> Writer {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["writer", "--exact", "--ignored"]).env(DIRECTORY, place.path("db")).stdout(Stdio::null()).stderr(Stdio::null());
        Writer(command.spawn().unwrap())
    }

    fn signal(&self, name: &str) {
        assert!(Command::new("kill").args([name, &self.0.id().to_string()]).status().unwrap().success());
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn top_shows_what_another_process_does_and_knows_when_it_is_gone() {
    let place = Place::new();
    place.run(&["top", "nothing", "--once"]).fails(1, &["nothing"]);
    place.run(&["top", "db", "--interval", "soon"]).fails(2, &["soon"]);
    let writer = Writer::start(&place);
    // Until it has the database open.
    let mut json = serde_json::Value::Null;
    for _ in 0..100 {
        let run = place.run(&["top", "db", "--once", "--json"]);
        if run.code == Some(0) {
            json = run.json();
            if json["commits_per_second"].as_f64().unwrap() > 0.0 {
                break;
            }
        }
        std::thread::sleep(Duration::from_millis(200));
    }
    assert!(json["commits_per_second"].as_f64().unwrap() > 0.0, "{json}");
    assert_eq!(json["utilities"][0]["name"].as_str(), Some("filling t"), "{json}");
    let objects: Vec<&str> = json["objects"].as_array().unwrap().iter().map(|object| object["name"].as_str().unwrap()).collect();
    assert!(objects.contains(&"table t") && objects.contains(&"index t_pk"), "{objects:?}");
    assert!(json["pools"].as_array().unwrap().iter().any(|pool| pool["per_second"]["getpages"].as_f64().unwrap() > 0.0), "{json}");
    let run = place.run(&["top", "db", "--once"]).ok();
    for part in ["commits/s", "POOL", "OBJECT", "table t", "UTILITY", "filling t"] {
        assert!(run.out.contains(part), "{part} is not in {}", run.out);
    }
    let run = place.run(&["top", "db", "--prometheus"]).ok();
    assert!(run.out.contains("# TYPE pagefold_commits_total counter") && run.out.contains("pagefold_log_end_bytes "), "{}", run.out);
    // View after view, until Ctrl-C.
    let mut top = place.command(&["top", "db", "--interval", "1s"]).stdout(Stdio::piped()).spawn().unwrap();
    std::thread::sleep(Duration::from_secs(5));
    assert!(Command::new("kill").args(["-INT", &top.id().to_string()]).status().unwrap().success());
    assert_eq!(top.wait().unwrap().code(), Some(0));
    let mut shown = String::new();
    top.stdout.take().unwrap().read_to_string(&mut shown).unwrap();
    assert!(shown.matches("pagefold top db").count() >= 2 && shown.contains("table t"), "{shown}");
    // Stopped it shows nothing, and is named.
    writer.signal("-STOP");
    place.run(&["top", "db", "--once"]).fails(1, &["is being written by process", "which is stopped"]);
    writer.signal("-CONT");
    place.run(&["top", "db", "--once"]).ok();
    // Killed: what it has left is known to be old.
    drop(writer);
    assert!(place.path("db/live/view").exists());
    place.run(&["top", "db", "--once", "--json"]).fails(1, &["no process has db open for writing"]);
    // What is there is no table's, and in nobody's way.
    place.run(&["check", "db"]).ok();
    place.run(&["report", "db"]).ok();
    place.run(&["top", "db", "--once"]).fails(1, &["no process has db open for writing"]);
}
