//! `runstats`: what it prints, keeps and refuses.
#![allow(missing_docs, clippy::unwrap_used)]

mod common;

use common::Place;
use serde_json::Value as Json;

/// 30,000 rows with an index.
fn made() -> Place {
    let place = Place::new();
    let mut text = String::from("id,kind,city\n");
    for id in 0..30_000 {
        let city = if id % 4 == 0 { "" } else { ["Oslo", "Bergen"][id / 3 % 2] };
        text += &format!("{id},{},{city}\n", id * 7919 % 100);
    }
    place.write("t.csv", &text);
    place.run(&["load", "db", "t", "t.csv", "--primary-key", "id", "--compress", "none", "--page-size", "2K"]).ok();
    place.run(&["create-index", "db", "t_kind", "t(kind, id)", "--page-size", "2K", "--format", "plain"]).ok();
    place
}

fn values(json: &Json, name: &str) -> [f64; 3] {
    ["value", "low", "high"].map(|end| json[name][end].as_f64().unwrap_or_else(|| panic!("{name} in {json}")))
}

/// Rows go to the order of an index and back to that of the key; the cluster ratio of each index shows it.
#[test]
fn a_table_is_put_in_the_order_of_an_index() {
    let place = Place::new();
    let rows: String = (0..20_000).map(|id| format!("{id},{}\n", id * 7_919 % 20_011)).collect();
    place.write("t.csv", &format!("id,mixed\n{rows}"));
    place.run(&["load", "db", "t", "t.csv", "--primary-key", "id", "--page-size", "2K"]).ok();
    place.run(&["create-index", "db", "t_mixed", "t(mixed desc)"]).ok();
    let ratios = || {
        let all = place.run(&["runstats", "db", "t", "--json"]).ok().json();
        let of = |name: &str| {
            let index = all["tables"][0]["indexes"].as_array().unwrap().iter().find(|index| index["name"] == name).unwrap();
            values(index, "cluster_ratio")[0]
        };
        (of("t_pk"), of("t_mixed"))
    };
    let (by_key, by_mixed) = ratios();
    assert!(by_key > 0.99 && by_mixed < 0.1, "{by_key} and {by_mixed}");
    for method in ["none", "row", "fixed", "huffman", "page"] {
        let done = place.run(&["reorg", "db", "t", "--order", "t_mixed", "--compress", method, "--json"]).ok().json();
        assert_eq!(done["rows"], 20_000);
        let (by_key, by_mixed) = ratios();
        assert!(by_key < 0.1 && by_mixed > 0.99, "{method}: {by_key} and {by_mixed}");
        assert_eq!(place.run(&["check", "db", "--json"]).ok().json()["errors"], serde_json::json!([]));
        // Without an order they keep it.
        place.run(&["reorg", "db", "t"]).ok();
        assert!(ratios().1 > 0.99);
        place.run(&["reorg", "db", "t", "--order", "primary-key"]).ok();
        assert!(ratios().0 > 0.99);
        assert_eq!(place.run(&["export", "db", "t", "-"]).ok().out, format!("id,mixed\n{rows}"));
    }
}

#[test]
fn statistics_are_gathered_kept_and_printed() {
    let place = made();
    let none = place.run(&["runstats", "db", "--print"]).ok();
    assert!(none.out.contains("TABLE t: no statistics"), "{}", none.out);
    let all = place.run(&["runstats", "db", "--json"]).ok().json();
    let table = &all["tables"][0];
    assert_eq!(values(table, "rows"), [30_000.0; 3]);
    assert_eq!(table["seed"], Json::Null);
    let column = |name: &str| table["columns"].as_array().unwrap().iter().find(|column| column["name"] == name).unwrap();
    assert_eq!(values(column("kind"), "distinct_values"), [100.0; 3]);
    assert!(values(column("id"), "correlation").iter().all(|correlation| (correlation - 1.0).abs() < 1e-9));
    assert_eq!((column("id")["least"].as_str(), column("id")["greatest"].as_str()), (Some("0"), Some("29999")));
    assert_eq!(values(column("city"), "null_share"), [0.25; 3]);
    assert_eq!(column("city")["frequent_values"].as_array().unwrap().len(), 2);
    assert_eq!(column("kind")["histogram_bounds"].as_array().unwrap().len(), 65);
    let index = table["indexes"].as_array().unwrap().iter().find(|index| index["name"] == "t_kind").unwrap();
    assert_eq!(values(index, "keys"), [30_000.0; 3]);
    assert_eq!(values(&index["prefixes"][0], "distinct_values"), [100.0; 3]);
    // Rows of one kind are a hundred apart: on one page, or the next.
    assert!(values(index, "cluster_ratio")[0] > 0.9 && values(index, "levels")[0] >= 2.0, "{index}");

    let printed = place.run(&["runstats", "db", "t", "--print", "--json"]).ok().json();
    let without = |mut table: Json| {
        table.as_object_mut().unwrap().retain(|name, _| name != "elapsed_s");
        table
    };
    assert_eq!(without(printed["tables"][0].clone()), without(table.clone()));
    let report = place.run(&["report", "db"]).ok();
    assert!(report.out.contains("statistics of 20"), "{}", report.out);
    assert!(place.run(&["report", "db", "--json"]).ok().json()["tables"][0]["statistics_unix_ms"].as_u64().unwrap() > 1_700_000_000_000);
}

#[test]
fn a_sample_has_bounds() {
    let place = made();
    let run = |arguments: &[&str]| place.run(&[&["runstats", "db", "t"], arguments].concat());
    let sampled = run(&["--sample", "10", "--seed", "3", "--json"]).ok().json();
    let table = &sampled["tables"][0];
    assert_eq!(table["seed"], 3);
    assert!(table["pages_read"].as_u64().unwrap() < values(table, "npages")[0] as u64 / 2);
    assert_eq!(values(table, "rows"), [30_000.0; 3]);
    let city = &table["columns"][2];
    let [value, low, high] = values(city, "null_share");
    assert!(low < value && value < high && low <= 0.25 && 0.25 <= high, "{city}");
    let text = run(&["--pages", "70"]).ok().out;
    for part in [
        "read: 70 of ",
        "in brackets the 95 % interval",
        "rows: 30,000\n",
        "COLUMN",
        "INDEX t_kind (kind, id)",
        "distinct (kind): ",
        " to ",
    ] {
        assert!(text.contains(part), "\"{part}\" not in {text}");
    }
    // The same seed, the same sample.
    let again = run(&["--sample", "10%", "--seed", "3", "--json"]).ok().json();
    assert_eq!(again["tables"][0]["columns"], table["columns"]);
    assert_ne!(run(&["--sample", "10", "--seed", "4", "--json"]).ok().json()["tables"][0]["columns"], table["columns"]);
}

#[test]
fn wrong_use_is_refused() {
    let place = made();
    for wrong in ["0", "101", "-1", "x", "nan"] {
        place.run(&["runstats", "db", &format!("--sample={wrong}")]).fails(2, &["--sample"]);
    }
    place.run(&["runstats", "db", "--sample", "1", "--pages", "100"]).fails(2, &["cannot be used with"]);
    place.run(&["runstats", "db", "--print", "--pages", "100"]).fails(2, &["cannot be used with"]);
    place.run(&["runstats", "db", "--pages", "0"]).fails(2, &["--pages"]);
    place.run(&["runstats", "db", "u"]).fails(1, &["\"u\""]);
    place.run(&["runstats", "nothing"]).fails(1, &["nothing"]);
}
