//! `advise`: what it says is what its commands make; carried out once, nothing is left to be done.
#![allow(missing_docs, clippy::unwrap_used)]

mod common;

use common::{Place, rows_csv};
use pagefold::utility::Workload;
use pagefold::{Database, RecordOptions};
use serde_json::Value as Json;

/// Tables and indexes that are not stored as they should be, an empty table and a small one.
fn place() -> Place {
    let place = Place::new();
    place.write("t.csv", &rows_csv(0..30_000));
    place.write("small.csv", &rows_csv(0..50));
    place.write("empty.csv", "id,name,price,day\n1,a,2.5,2024-01-01\n");
    let load = ["load", "db", "t", "t.csv", "--primary-key", "id", "--compress", "none", "--key-format", "plain"];
    place.run(&load).ok();
    place.run(&["create-index", "db", "by name", "t(name, day)"]).ok();
    place.write("keyless.csv", &rows_csv(0..4_000));
    place.run(&["load", "db", "keyless", "keyless.csv", "--compress", "none"]).ok();
    place.run(&["load", "db", "small", "small.csv", "--compress", "none"]).ok();
    place.run(&["load", "db", "empty", "empty.csv", "--primary-key", "id"]).ok();
    place.run(&["delete", "db", "empty", "empty.csv"]).ok();
    place
}

fn object<'j>(said: &'j Json, name: &str) -> &'j Json {
    said["objects"].as_array().unwrap().iter().find(|object| object["name"] == name).unwrap_or_else(|| panic!("no {name}: {said}"))
}

fn sizes(place: &Place) -> Vec<(String, u64)> {
    let report = place.run(&["report", "db", "--json"]).ok().json();
    let all = ["tables", "indexes"].map(|kind| report[kind].as_array().unwrap().clone()).concat();
    all.iter().map(|o| (o["name"].as_str().unwrap().to_owned(), o["size_bytes"].as_u64().unwrap())).collect()
}

#[test]
fn its_commands_make_what_it_says_and_then_there_is_nothing_to_do() {
    let place = place();
    let kept = ["advise", "db", "--all-pages", "--json", "--calibration", "machine.json"];
    let said = place.run(&kept).ok().json();
    assert_eq!(object(&said, "keyless")["change"], true, "{}", object(&said, "keyless"));
    let commands: Vec<&str> = said["commands"].as_array().unwrap().iter().map(|c| c.as_str().unwrap()).collect();
    assert!(commands.len() >= 2 && commands.iter().all(|c| c.starts_with("pagefold reorg db ")), "{commands:?}");
    assert!(commands.iter().any(|c| c.contains("'by name' --format ")), "{commands:?}");
    assert_eq!(object(&said, "small")["change"], false);
    assert!(object(&said, "small")["reason"].as_str().unwrap().contains("nothing to save"));
    assert_eq!(object(&said, "empty")["reason"], "it is empty");
    let table = object(&said, "t");
    assert!(table["ways"].as_array().unwrap().len() >= 20 && table["findings"].as_array().unwrap().iter().all(|f| f["reason"] != ""));
    // Nothing was changed.
    let before = sizes(&place);
    for (name, size) in &before {
        if name != "empty" && name != "empty_pk" {
            assert_eq!(object(&said, name)["now"]["size_bytes"], *size, "{name}");
        }
    }
    // The command of the table, as it is printed.
    let command = table["command"].as_str().unwrap();
    let words: Vec<&str> = command.split(' ').skip(1).collect();
    place.run(&words).ok();
    let after = sizes(&place);
    let size_of = |name: &str| after.iter().find(|(other, _)| other == name).unwrap().1;
    assert_eq!(table["best"]["size_bytes"], size_of("t"));
    // The rest at once.
    let applied = place.run(&[&kept[..], &["--apply"]].concat()).ok().json();
    assert_eq!(object(&applied, "t")["change"], false, "{}", object(&applied, "t"));
    let done = applied["applied"]["done"].as_array().unwrap();
    assert!(!done.is_empty() && applied["applied"]["failed"] == Json::Array(vec![]), "{}", applied["applied"]);
    let after = sizes(&place);
    for step in done {
        let name = step["name"].as_str().unwrap();
        assert_eq!(step["size_bytes"], after.iter().find(|(other, _)| other == name).unwrap().1, "{name}");
        assert_eq!(step["size_bytes"], object(&applied, name)["best"]["size_bytes"], "{name}: as it was said");
    }
    let total = |sizes: &[(String, u64)]| sizes.iter().map(|(_, size)| size).sum::<u64>();
    assert!(total(&after) * 2 < total(&before), "{before:?} {after:?}");
    // Nothing is left, whether all is read or a sample.
    let by_sample = ["advise", "db", "--json", "--calibration", "machine.json"];
    for arguments in [&kept[..], &by_sample, &[&by_sample[..], &["--apply"]].concat()] {
        let again = place.run(arguments).ok().json();
        assert_eq!(again["commands"], Json::Array(vec![]), "{again}");
        assert_eq!(again["before"], again["after"]);
    }
    place.run(&["check", "db"]).ok();
    assert!(place.run(&["advise", "db", "--calibration", "machine.json"]).ok().out.contains("Nothing is to be done"));
}

#[test]
fn range_partitions_are_advised_singly_and_a_damaged_one_is_said() {
    let place = Place::new();
    // What is in the second partition does not compress, what is in the first does.
    let mut csv = "id,text\n".to_owned();
    let mut state = 1u64;
    for id in 0..20_000u32 {
        let text = if id < 10_000 {
            "always the same text again and again".to_owned()
        } else {
            (0..37)
                .map(|_| {
                    state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                    char::from(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"[(state >> 33) as usize % 62])
                })
                .collect()
        };
        csv += &format!("{id},{text}\n");
    }
    place.write("t.csv", &csv);
    let load =
        ["load", "db", "t", "t.csv", "--primary-key", "id", "--compress", "none", "--partition-by", "id: 10000, 20000, last = MAXVALUE"];
    place.run(&load).ok();
    let said = place.run(&["advise", "db", "t", "--json"]).ok().json();
    let tables: Vec<&Json> = said["objects"].as_array().unwrap().iter().filter(|o| o["kind"] == "table").collect();
    assert_eq!(tables.len(), 3, "{said}");
    assert_eq!(tables.iter().filter(|table| table["reason"] == "it is empty").count(), 1, "{said}");
    let saving = |table: &&Json| 1.0 - table["best"]["size_bytes"].as_f64().unwrap() / table["now"]["size_bytes"].as_f64().unwrap();
    let mut full: Vec<&Json> = tables.into_iter().filter(|table| table["best"].is_object()).collect();
    full.sort_by(|a, b| saving(b).total_cmp(&saving(a)));
    assert!(full.len() == 2 && saving(&full[0]) > 0.6 && saving(&full[1]) < 0.5, "{said}");
    let first = full[0]["name"].as_str().unwrap().to_owned();

    // The file of the first partition is cut in its middle.
    let files = place.files("db/data");
    let largest = files.iter().max_by_key(|(_, bytes)| bytes.iter().filter(|b| **b == b'g').count()).unwrap();
    let mut bytes = largest.1.clone();
    let half = bytes.len() / 2;
    bytes[half..half + 64].fill(0x5A);
    std::fs::write(&largest.0, &bytes).unwrap();
    let damaged = place.run(&["advise", "db", "--all-pages", "--json"]).ok().json();
    let said = object(&damaged, &first);
    assert!(said["damaged"] == true && said["reason"].as_str().unwrap().contains("page"), "{damaged}");
    assert_eq!(damaged["objects"].as_array().unwrap().iter().filter(|o| o["damaged"] == true).count(), 1, "{damaged}");
}

#[test]
fn wrong_use() {
    let place = Place::with_table();
    place.run(&["advise", "db", "nothing"]).fails(1, &["nothing"]);
    place.run(&["advise", "nowhere"]).fails(1, &["nowhere"]);
    place.run(&["advise", "db", "--goal", "beauty"]).fails(2, &["beauty"]);
    place.run(&["advise", "db", "--all-pages", "--sample-pages", "9"]).fails(2, &["--sample-pages"]);
    let help = place.run(&["advise", "--help"]).ok().out;
    assert!(help.contains("--apply") && help.contains("pagefold advise shop.db"), "{help}");
}

/// Uses the table of `place` through the library: look-ups, changes, a scan. The workload as a file, and the keys of the primary key that were asked for.
fn use_it(place: &Place) {
    let database = Database::open(place.path("db")).unwrap();
    let before = Workload::of(database.engine());
    database.record_keys("t_pk", &RecordOptions { one_in: 1, ..RecordOptions::default() }).unwrap();
    let transaction = database.begin();
    let table = transaction.table("t").unwrap();
    for n in 0..9_000u32 {
        let id = i64::from(n.wrapping_mul(2_654_435_761) % 30_000);
        assert!(table.get(id).unwrap().is_some());
        if n % 10 == 0 {
            assert!(table.update(id, [("price", 7)]).unwrap());
        }
    }
    assert_eq!(table.filter("price < 0").unwrap().count(), 0);
    transaction.commit().unwrap();
    let workload = Workload { elapsed_s: Some(10.0), ..Workload::of(database.engine()).since(&before) };
    let counted = workload.objects["t"];
    // Of rows on pages with changes versions are asked.
    assert!(counted.lookups > 500 && counted.snapshot_lookups > 900 && counted.lookups + counted.snapshot_lookups >= 9_900, "{counted:?}");
    assert!(counted.updates == 900 && counted.rows_scanned >= 30_000, "{counted:?}");
    assert!(counted.values_read >= 36_000 && counted.inserts == 0 && workload.objects["t_pk"].lookups >= 9_000, "{workload:?}");
    assert!(!workload.objects.contains_key("small"), "nothing was done to it");
    std::fs::write(place.path("t.trace"), database.stop_recording_keys("t_pk").unwrap().unwrap()).unwrap();
    database.close().unwrap();
    std::fs::write(place.path("w.json"), workload.to_json().to_string()).unwrap();
}

#[test]
fn a_workload_says_what_processors_and_pools_have_to_do() {
    let place = place();
    use_it(&place);
    let arguments =
        ["advise", "db", "t", "--all-pages", "--workload", "w.json", "--calibration", "machine.json", "--pools", "1M", "--json"];
    let said = place.run(&arguments).ok().json();
    let total = |said: &Json, which: &str, what: &str| said[which][what].as_f64().unwrap();
    assert!(total(&said, "before", "cpu_s") > 0.0 && total(&said, "after", "cpu_s") > 0.0, "{said}");
    assert!(total(&said, "after", "reads") < total(&said, "before", "reads"), "{said}");
    assert!((total(&said, "after", "reads_per_s") * 10.0 - total(&said, "after", "reads")).abs() < 1e-6);
    let pools: u64 = said["objects"].as_array().unwrap().iter().filter_map(|o| o["pool"]["pool_bytes"].as_u64()).sum();
    assert!(pools > 0 && pools <= 1 << 20, "{said}");
    // Costs are kept: the second time they are the same, and not measured again.
    let kept = std::fs::read_to_string(place.path("machine.json")).unwrap();
    let again = place.run(&arguments).ok().json();
    assert_eq!(std::fs::read_to_string(place.path("machine.json")).unwrap(), kept);
    for name in ["t", "t_pk"] {
        let ways = |said: &Json| object(said, name)["ways"].as_array().unwrap().clone();
        for (way, other) in ways(&said).iter().zip(&ways(&again)) {
            // The last digit of what is read from text may differ.
            let (cpu_s, other_s) = (way["cpu_s"].as_f64().unwrap(), other["cpu_s"].as_f64().unwrap());
            assert!(way["name"] == other["name"] && (cpu_s / other_s - 1.0).abs() < 1e-9, "{way} {other}");
        }
        assert_eq!(object(&said, name)["reason"], object(&again, name)["reason"]);
    }
    // With a trace, and memory for all: each page is read once at most.
    let traced = ["advise", "db", "t", "--workload", "w.json", "--calibration", "machine.json", "--trace", "t_pk=t.trace"];
    let all = place.run(&[&traced[..], &["--pools", "64M", "--json"]].concat()).ok().json();
    assert_eq!(object(&all, "t_pk")["pool"]["traced"], true, "{all}");
    assert!(total(&all, "after", "reads") < 1.0 && object(&all, "t_pk")["pool"]["hit_ratio"].as_f64().unwrap() > 0.99, "{all}");
    // What takes least time, once done, is not advised again.
    let by_time = [&traced[..], &["--goal", "time", "--pools", "1M", "--apply", "--json"]].concat();
    let applied = place.run(&by_time).ok().json();
    assert!(total(&applied, "after", "cpu_s") > 0.0 && applied["applied"]["left"] == Json::Array(vec![]), "{applied}");
    let again = place.run(&by_time).ok().json();
    assert_eq!(again["commands"], Json::Array(vec![]), "{again}");
    let text = place.run(&[&traced[..], &["--pools", "1M"]].concat()).ok().out;
    assert!(text.contains("Processors, for the workload") && text.contains("of pools divided like this"), "{text}");

    std::fs::write(place.path("wrong.json"), "{\"version\":1,\"objects\":{\"t\":{\"lookups\":-1}}}").unwrap();
    place.run(&["advise", "db", "--workload", "wrong.json"]).fails(1, &["wrong.json", "lookups is no count"]);
    place.run(&["advise", "db", "--calibration", "t.csv"]).fails(1, &["t.csv", "calibration"]);
    place.run(&["advise", "db", "--goal", "time"]).fails(2, &["--workload"]);
    place.run(&["advise", "db", "--trace", "t_pk=t.trace"]).fails(2, &["--workload"]);
    place.run(&["advise", "db", "--workload", "w.json", "--trace", "t.trace"]).fails(2, &["INDEX=FILE"]);
    place.run(&["advise", "db", "--workload", "w.json", "--trace", "no=t.trace"]).fails(1, &["no index \"no\""]);
}
