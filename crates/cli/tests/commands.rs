//! Every command on small data.
#![allow(missing_docs)]

mod common;

use common::{Place, rows_csv};
use std::io::Read;
use std::process::Stdio;

#[test]
fn load_get_scan_export_give_the_rows_back() {
    let place = Place::with_table();
    let row = place.run(&["get", "db", "t", "1234", "--json"]).ok().json();
    assert_eq!(row["row"]["id"], 1234);
    assert_eq!(row["row"]["name"], "rope \"extra\"");
    assert_eq!(row["row"]["day"], "2024-11-03");
    let text = place.run(&["get", "db", "t", "9"]).ok().out;
    assert!(text.contains("price  NULL") && text.contains("name   sail, large"), "{text}");

    let scan = place.run(&["scan", "db", "t", "--columns", "day,id", "--where", "id between 10 and 12", "--json"]).ok().json();
    assert_eq!(scan["row_count"], 3);
    assert_eq!(scan["rows"][1], serde_json::json!({"day": "2024-12-12", "id": 11}));
    let csv = place.run(&["scan", "db", "t", "--format", "csv", "--limit", "2"]).ok().out;
    assert_eq!(csv, rows_csv(0..2));
    assert_eq!(place.run(&["scan", "db", "t", "--format", "json"]).ok().out.lines().count(), 2000);
    assert_eq!(place.run(&["scan", "db", "t", "--limit", "0", "--json"]).ok().json()["rows"], serde_json::json!([]));

    let done = place.run(&["export", "db", "t", "copy.csv", "--json"]).ok().json();
    assert_eq!(done["rows"], 2000);
    assert_eq!(std::fs::read_to_string(place.path("copy.csv")).unwrap(), rows_csv(0..2000));
    assert_eq!(place.run(&["export", "db", "t", "-"]).ok().out, rows_csv(0..2000));
    place.run(&["export", "db", "t", "copy.parquet"]).ok();
    place.run(&["load", "db", "u", "copy.parquet", "--compress", "none"]).ok();
    assert_eq!(place.run(&["export", "db", "u", "-"]).ok().out, rows_csv(0..2000));
}

/// What is best without being told.
#[test]
fn load_without_options_compresses_by_column_and_its_key_by_prefix() {
    let place = Place::new();
    place.write("t.csv", &rows_csv(0..2000));
    let done = place.run(&["load", "db", "t", "t.csv", "--primary-key", "id", "--json"]).ok().json();
    assert_eq!(done["method"], "page");
    let report = place.run(&["report", "db", "--json"]).ok().json();
    assert_eq!((&report["tables"][0]["method"], &report["indexes"][0]["format"]), (&"page".into(), &"prefix".into()));
    assert_eq!(place.run(&["export", "db", "t", "-"]).ok().out, rows_csv(0..2000));
    place.run(&["load", "db", "u", "t.csv", "--compress", "huffman"]).ok();
    // A table that is replaced keeps the method it has, unless told otherwise.
    let done = place.run(&["load", "db", "u", "t.csv", "--replace", "--json"]).ok().json();
    assert_eq!(done["method"], "huffman");
    let done = place.run(&["load", "db", "u", "t.csv", "--replace", "--compress", "row", "--json"]).ok().json();
    assert_eq!(done["method"], "row");
    let help = place.run(&["load", "--help"]).ok().out;
    assert!(help.contains("[default: page") && help.contains("[default: prefix]"), "{help}");
}

#[test]
fn conditions_give_the_same_rows_whatever_the_method() {
    let place = Place::new();
    place.write("t.csv", &rows_csv(0..3000));
    let mut changed: String = rows_csv(500..900).replace("compass", "a compass in a box").replace("anchor chain", "rope");
    changed += &rows_csv(3000..3100).split_once('\n').unwrap().1.replace("2024-", "1999-");
    place.write("changed.csv", &changed);
    place.write("gone.csv", &rows_csv(1000..1100));
    for method in ["none", "page"] {
        place.run(&["load", "db", method, "t.csv", "--primary-key", "id", "--compress", method, "--page-size", "4K"]).ok();
        place.run(&["upsert", "db", method, "changed.csv"]).ok();
        place.run(&["delete", "db", method, "gone.csv"]).ok();
    }
    let conditions = [
        ("id between 880 and 1120", 141),
        ("price is null and id < 1000", 100),
        ("price >= 8900 and day < '2024-03-01'", -1),
        ("day < '2000-01-01'", 100),
        ("name = 'compass' and id <= 899", -1),
        ("name > 'compass' or id = 7", -1),
        ("name like '%box' and not price < 2000", -1),
        ("id > 5000", 0),
    ];
    for (condition, count) in conditions {
        let scan = |method: &str, more: &[&str]| {
            let all = [&["scan", "db", method, "--where", condition, "--format", "csv", "--columns", "id,day,name,price"], more].concat();
            let mut lines: Vec<String> = place.run(&all).ok().out.lines().map(str::to_owned).collect();
            lines.sort();
            lines
        };
        let (expected, found) = (scan("none", &[]), scan("page", &[]));
        assert_eq!(expected, found, "{condition}");
        assert!(count < 0 || found.len() as i64 == count + 1, "{condition}: {} rows", found.len() - 1);
        let limited = scan("page", &["--limit", "30"]);
        assert!(limited.len() == found.len().min(31) && limited.iter().all(|line| found.contains(line)), "{condition}");
    }
}

#[test]
fn load_reports_and_replaces_and_appends() {
    let place = Place::with_table();
    place.write("more.csv", &rows_csv(2000..2500));
    let done = place.run(&["load", "db", "t", "more.csv", "--append", "--json"]).ok().json();
    assert_eq!(done["rows"], 500);
    assert_eq!(place.run(&["export", "db", "t", "-"]).ok().out, rows_csv(0..2500));
    assert_eq!(place.run(&["get", "db", "t", "2499", "--json"]).ok().json()["row"]["id"], 2499);
    let done = place.run(&["load", "db", "t", "more.csv", "--replace", "--primary-key", "id", "--json"]).ok().json();
    for field in ["rows", "source_bytes", "record_bytes", "pages", "size_bytes", "index_bytes", "page_size_bytes"] {
        assert!(done[field].as_u64().unwrap() > 0, "{field}");
    }
    assert_eq!(place.run(&["export", "db", "t", "-"]).ok().out, rows_csv(2000..2500));
    place.run(&["check", "db"]).ok();
    place.write("u.txt", "7;x y\n8;\\N\n");
    let options = ["--delimiter", ";", "--header", "no", "--null", "\\N", "--columns", "k smallint not null, name char(5)"];
    place.run(&[&["load", "db", "u", "u.txt", "--primary-key", "k"], &options[..]].concat()).ok();
    assert_eq!(place.run(&["get", "db", "u", "7", "--json"]).ok().json()["row"]["name"], "x y  ");
}

#[test]
fn indexes_are_built_used_reorganised_and_dropped() {
    let place = Place::with_table();
    let built =
        place.run(&["create-index", "db", "by_name", "t(name, id DESC)", "--format", "fold", "--page-size", "16K", "--json"]).ok().json();
    assert_eq!((built["rids"].as_u64(), built["keys"].as_u64()), (Some(2000), Some(2000)));
    let scan =
        place.run(&["scan", "db", "t", "--index", "by_name", "--where", "name = 'compass'", "--columns", "id", "--limit", "2", "--json"]);
    assert_eq!(scan.ok().json()["rows"], serde_json::json!([{"id": 1999}, {"id": 1995}]));
    let report = place.run(&["report", "db", "--json"]).ok().json();
    let index = &report["indexes"].as_array().unwrap().iter().find(|i| i["name"] == "by_name").unwrap().clone();
    assert_eq!((index["format"].as_str(), index["page_size_bytes"].as_u64()), (Some("fold"), Some(16384)));
    assert!(index["levels"][0]["keys_avg"].as_f64().unwrap() > 0.0 && index["levels"][0]["free_bytes_avg"].is_number());
    let table = &report["tables"][0];
    assert_eq!((table["name"].as_str(), table["rows"].as_u64()), (Some("t"), Some(2000)));
    assert!(table["npages"].as_u64() < table["allocated_bytes"].as_u64() && !report["pools"].as_array().unwrap().is_empty());

    let done = place.run(&["reorg", "db", "by_name", "--format", "plain", "--page-size", "4K", "--json"]).ok().json();
    assert_eq!(done["rows"], 2000);
    let done = place.run(&["reorg", "db", "t", "--compress", "none", "--page-size", "32K", "--json"]).ok().json();
    assert!(done["pages"].as_u64() < done["pages_before"].as_u64());
    assert_eq!(place.run(&["export", "db", "t", "-"]).ok().out, rows_csv(0..2000));
    let clean = place.run(&["check", "db", "--json"]).ok().json();
    assert_eq!(clean["errors"], serde_json::json!([]));

    let dropped = place.run(&["drop", "db", "by_name", "--json"]).ok().json();
    assert!(dropped["freed_bytes"].as_u64() > Some(0) && dropped["kind"] == "index");
    let dropped = place.run(&["drop", "db", "t", "--json"]).ok().json();
    assert_eq!(dropped["indexes"], serde_json::json!(["t_pk"]));
    // What is left: control file, lock, catalog, the two locks of readers, two segments of the log and the file of double writes.
    assert_eq!(place.files("db").len(), 8);
}

#[test]
fn prefix_indexes_go_through_every_command() {
    let place = Place::new();
    place.write("t.csv", &rows_csv(0..2000));
    place.run(&["load", "db", "t", "t.csv", "--primary-key", "id", "--key-format", "prefix", "--key-page-size", "4K"]).ok();
    assert_eq!(place.run(&["get", "db", "t", "1995", "--json"]).ok().json()["row"]["name"], "compass");
    for page_size in ["2K", "8K", "32K"] {
        let name = format!("by_name_{page_size}");
        let create = ["create-index", "db", name.as_str(), "t(name, id DESC)", "--format", "prefix", "--page-size", page_size, "--json"];
        let built = place.run(&create).ok().json();
        assert_eq!((built["rids"].as_u64(), built["keys"].as_u64()), (Some(2000), Some(2000)));
        let scan = ["scan", "db", "t", "--index", &name, "--where", "name = 'compass'", "--columns", "id", "--limit", "2", "--json"];
        assert_eq!(place.run(&scan).ok().json()["rows"], serde_json::json!([{"id": 1999}, {"id": 1995}]));
    }
    let report = place.run(&["report", "db", "--json"]).ok().json();
    let of = |name: &str| report["indexes"].as_array().unwrap().iter().find(|i| i["name"] == name).unwrap().clone();
    assert_eq!((of("t_pk")["format"].as_str(), of("t_pk")["page_size_bytes"].as_u64()), (Some("prefix"), Some(4096)));
    let index = of("by_name_2K");
    let leaves = index["levels"].as_array().unwrap().last().unwrap();
    assert!(leaves["keys_avg"].as_f64().unwrap() > 100.0 && leaves["free_bytes_avg"].is_number(), "{index}");
    let text = place.run(&["print", "db", "t_pk", "--page", "2"]).ok().out;
    assert!(text.contains("prefix leaf") && text.contains("first key"), "{text}");
    assert_eq!(place.run(&["check", "db", "--json"]).ok().json()["errors"], serde_json::json!([]));

    // There and back: each format built from each other, and what was said of it.
    let said = place.run(&["estimate", "db", "--index", "by_name_8K", "--json"]).ok().json();
    for (format, page_size, bytes) in [("fold", "8K", 8192), ("prefix", "4K", 4096), ("plain", "8K", 8192), ("prefix", "16K", 16384)] {
        let done = place.run(&["reorg", "db", "by_name_8K", "--format", format, "--page-size", page_size, "--json"]).ok().json();
        let same = |i: &&serde_json::Value| i["format"] == format && i["page_size_bytes"] == bytes;
        let line = said["indexes"].as_array().unwrap().iter().find(same).unwrap().clone();
        assert_eq!((&done["rows"], &done["pages"]), (&serde_json::json!(2000), &line["pages"]), "{format} {page_size}");
    }
    // Half of the rows go and come back.
    place.write("half.csv", &rows_csv(1000..2000));
    place.run(&["delete", "db", "t", "half.csv"]).ok();
    assert_eq!(place.run(&["check", "db", "--json"]).ok().json()["errors"], serde_json::json!([]));
    place.run(&["upsert", "db", "t", "t.csv"]).ok();
    assert_eq!(place.run(&["report", "db", "t", "--json"]).ok().json()["tables"][0]["rows"], 2000);
    assert_eq!(place.run(&["check", "db", "--json"]).ok().json()["errors"], serde_json::json!([]));
    place.run(&["drop", "db", "by_name_2K"]).ok();
}

#[test]
fn estimate_foretells_load_and_create_index() {
    let place = Place::new();
    place.write("t.csv", &rows_csv(0..20_000));
    let said =
        place.run(&["estimate", "t.csv", "--primary-key", "id", "--key", "name, day DESC", "--compress", "fixed", "--json"]).ok().json();
    assert_eq!(said["rows"], 20_000);
    for method in ["none", "row", "page", "fixed", "huffman"] {
        let done = place.run(&["load", "db", method, "t.csv", "--primary-key", "id", "--compress", method, "--json"]).ok().json();
        let all = said["methods"].as_array().unwrap();
        let line = all.iter().find(|m| m["method"] == method && m["page_size_bytes"] == 8192).unwrap();
        assert_eq!(line["pages"], done["pages"], "{method}");
        assert_eq!((&line["pages_low"], &line["size_bytes"]), (&line["pages"], &done["size_bytes"]));
    }
    for (format, page_size, bytes) in
        [("plain", "8K", 8192), ("fold", "16K", 16384), ("prefix", "2K", 2048), ("prefix", "4K", 4096), ("prefix", "16K", 16384)]
    {
        let index = format!("{format}_{page_size}");
        let arguments =
            ["create-index", "db", index.as_str(), "fixed(name, day DESC)", "--format", format, "--page-size", page_size, "--json"];
        let done = place.run(&arguments).ok().json();
        let all = said["indexes"].as_array().unwrap();
        let same = |i: &&serde_json::Value| i["format"] == format && i["page_size_bytes"] == bytes && i["name"] == "name, day DESC";
        let line = all.iter().find(same).unwrap();
        assert_eq!((&line["leaf_pages"], &line["pages"]), (&done["leaf_pages"], &done["pages"]), "{format}");
        assert!(line["space_reduction"].is_number() && line["buffer_unused"].is_number());
    }
    let index = place.run(&["estimate", "db", "--index", "plain_8K", "--json"]).ok().json();
    assert!(index["methods"].as_array().unwrap().is_empty() && !index["indexes"].as_array().unwrap().is_empty());
    let text = place.run(&["estimate", "db", "fixed"]).ok().out;
    assert!(text.contains("20,000 rows") && text.contains("8 KB"), "{text}");
    // A small table is read whole.
    let sample = place.run(&["estimate", "db", "fixed", "--sample-pages", "10", "--json"]).ok().json();
    assert!(sample["sample"].is_null(), "{sample}");
    place.write("more.csv", &rows_csv(0..60_000));
    place.run(&["load", "db", "more", "more.csv", "--compress", "none"]).ok();
    let sample = place.run(&["estimate", "db", "more", "--sample-pages", "10", "--json"]).ok().json();
    assert_eq!(sample["sample"]["pages"].as_u64(), Some(64), "512 KB");
}

#[test]
fn print_decodes_pages() {
    let place = Place::with_table();
    let header = place.run(&["print", "db", "t", "--json"]).ok().json();
    assert!(header.is_object());
    let text = place.run(&["print", "db", "t", "--page", "3"]).ok().out;
    assert!(text.contains("compass") || text.contains("anchor") || text.contains("dictionary"), "{text}");
    place.run(&["print", "db", "t_pk", "--page", "2"]).ok();
    place.run(&["print", "db", "control"]).ok();
    place.run(&["print", "db", "catalog", "--page", "2", "--json"]).ok().json();
    place.run(&["print", "db", "t", "--page", "4000000"]).fails(1, &["4000000"]);
}

#[test]
fn the_demo_runs_twice_in_the_same_place() {
    let place = Place::new();
    for arguments in [["demo", "--scale-factor", "0.001"].as_slice(), &["demo", "--scale-factor", "0.0005", "--json"]] {
        let run = place.run(arguments).ok();
        if !arguments.contains(&"--json") {
            for text in ["LINEITEM", "ORDERS", "foretold", "fold", "prefix", "saved", "Prefix leaves in its"] {
                assert!(run.out.contains(text), "{text}");
            }
            continue;
        }
        let found = run.json();
        let methods = found["methods"].as_array().unwrap();
        assert_eq!(methods.len(), 5);
        for (m, name) in methods.iter().zip(["none", "row", "page", "fixed", "huffman"]) {
            assert_eq!(m["method"], name);
            for field in ["size_bytes", "load_s", "scan_s", "seek_per_s", "update_per_s", "insert_per_s", "pages"] {
                assert!(m[field].as_f64().unwrap() > 0.0, "{field}");
            }
            assert_eq!(m["pages"], m["pages_estimated"]);
        }
        for index in found["indexes"].as_array().unwrap() {
            assert_eq!(index["pages"], index["pages_estimated"], "{index}");
        }
        assert_eq!(found["indexes"].as_array().unwrap().len(), 40);
    }
    place.run(&["check", "demo.pagefold/database"]).ok();
    let page = std::fs::read_to_string(place.path("demo.pagefold/demo.html")).unwrap();
    assert!(page.contains("<svg") && page.ends_with("</html>\n"));
}

#[test]
fn a_closed_pipe_ends_the_output_quietly() {
    let place = Place::with_table();
    for format in ["csv", "json", "table", "parquet"] {
        let mut child =
            place.command(&["scan", "db", "t", "--format", format]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        let mut err = String::new();
        child.stderr.take().unwrap().read_to_string(&mut err).unwrap();
        assert_eq!((child.wait().unwrap().code(), err.as_str()), (Some(0), ""), "{format}");
    }
}

#[test]
fn help_explains_every_command() {
    let place = Place::new();
    let help = place.run(&["--help"]).ok().out;
    let commands = [
        "demo",
        "load",
        "upsert",
        "delete",
        "export",
        "create-index",
        "drop",
        "get",
        "scan",
        "estimate",
        "report",
        "check",
        "print",
        "reorg",
    ];
    for command in commands {
        assert!(help.contains(command), "{command}");
        let own = place.run(&[command, "--help"]).ok().out;
        assert!(own.contains("Usage: pagefold") && own.contains("--json") && own.contains("--memory"), "{own}");
    }
    assert!(place.run(&["--version"]).ok().out.starts_with("pagefold 0."));
}
