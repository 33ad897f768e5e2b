//! `auto`: the choice is printed with its reason, is what was done, and is what `estimate` says.
#![allow(missing_docs, clippy::unwrap_used)]

mod common;

use common::{Place, rows_csv};
use serde_json::Value as Json;

/// The pages of what was considered under this name and page size.
fn pages(choice: &Json, name: &str, page_size: u64) -> u64 {
    let all = choice["considered"].as_array().unwrap();
    let one = all.iter().find(|a| a["name"] == name && a["page_size_bytes"] == page_size).unwrap();
    assert!(one["read_ns"].as_f64().unwrap() > 0.0 && one["write_ns"].as_f64().unwrap() > 0.0 && one["size_bytes"].as_u64().unwrap() > 0);
    one["pages"].as_u64().unwrap()
}

#[test]
fn load_and_reorg_choose_a_method() {
    let place = Place::new();
    place.write("t.csv", &rows_csv(0..20_000));
    let load = ["load", "db", "t", "t.csv", "--primary-key", "id", "--compress", "auto", "--key-format", "auto", "--json"];
    let done = place.run(&load).ok().json();
    let (method, choice) = (done["method"].as_str().unwrap(), &done["choice"]);
    assert_eq!((choice["name"].as_str(), &choice["reason"]), (Some(method), &done["reason"]));
    assert_eq!(choice["considered"].as_array().unwrap().len(), 5);
    let reason = done["reason"].as_str().unwrap();
    assert!(reason.starts_with(&format!("{method}: ")) && reason.ends_with('.'), "{reason}");
    // Which of them costs least is not for a test to say, but all save more than half of these rows.
    assert!(method == "none" || done["pages"].as_u64().unwrap() < pages(choice, "none", 8192), "{done}");
    let report = place.run(&["report", "db", "--json"]).ok().json();
    assert_eq!(report["tables"][0]["method"], method);
    let key = report["indexes"].as_array().unwrap().iter().find(|i| i["name"] == "t_pk").unwrap().clone();
    assert_eq!((&key["format"], &key["page_size_bytes"]), (&done["key_choice"]["name"], &done["key_choice"]["page_size_bytes"]));
    assert!(done["key_reason"].as_str().unwrap().ends_with('.'));
    place.run(&["check", "db"]).ok();
    assert_eq!(place.run(&["export", "db", "t", "-"]).ok().out, rows_csv(0..20_000));

    // A key's format can be chosen for each method, also where RIDs are known late.
    let done = place.run(&["load", "db", "key", "t.csv", "--primary-key", "id", "--key-format", "auto", "--json"]).ok().json();
    assert!(done["method"] == "page" && done["key_reason"].is_string());

    let text = place.run(&["load", "db", "u", "t.csv", "--compress", "auto"]).ok().out;
    assert!(text.contains("  chosen ") && text.contains(" 8 KB"), "{text}");
    let done = place.run(&["reorg", "db", "u", "--compress", "auto", "--page-size", "16K", "--json"]).ok().json();
    assert_eq!((done["choice"]["page_size_bytes"].as_u64(), done["choice"]["reason"].is_string()), (Some(16384), true));
    let text = place.run(&["reorg", "db", "u", "--compress", "auto"]).ok().out;
    assert!(text.contains("  chosen "), "{text}");
    assert_eq!(place.run(&["export", "db", "u", "-"]).ok().out, rows_csv(0..20_000));
    let said = place.run(&["estimate", "db", "u", "--json"]).ok().json();
    assert!(said["advice"].as_str().unwrap().starts_with(said["choice"]["reason"].as_str().unwrap()));

    // Without auto there is nothing to say.
    let done = place.run(&["load", "db", "v", "t.csv", "--compress", "row", "--json"]).ok().json();
    assert!(done["reason"].is_null() && done["choice"].is_null() && done["key_choice"].is_null());
    place.run(&["load", "db", "u", "t.csv", "--replace", "--compress", "auto", "--keep-dictionary"]).fails(2, &["dictionary"]);
    place.run(&["load", "db", "w", "t.csv", "--compress", "best"]).fails(2, &["best", "huffman", "auto"]);
}

#[test]
fn page_sizes_that_cannot_be_are_refused_by_the_name_of_the_object() {
    let place = Place::new();
    place.write("t.csv", &rows_csv(0..3_000));
    let load = ["load", "db", "t", "t.csv", "--primary-key", "id"];
    place.run(&[&load[..], &["--compress", "auto", "--page-size", "3K"]].concat()).fails(2, &["table \"t\"", "3072"]);
    place.run(&[&load[..], &["--key-format", "auto", "--key-page-size", "64K"]].concat()).fails(2, &["index \"t_pk\"", "65536"]);
    place.run(&load).ok();
    place.run(&["reorg", "db", "t", "--compress", "auto", "--page-size", "3K"]).fails(2, &["table \"t\"", "3072"]);
    place.run(&["reorg", "db", "t_pk", "--format", "auto", "--page-size", "3K"]).fails(2, &["index \"t_pk\"", "3072"]);
    place.run(&["create-index", "db", "i", "t(name)", "--format", "auto", "--page-size", "64K"]).fails(2, &["index \"i\"", "65536"]);
    place.run(&["check", "db"]).ok();
}

#[test]
fn a_small_table_stays_as_it_is() {
    let place = Place::new();
    place.write("t.csv", &rows_csv(0..100));
    let done = place.run(&["load", "db", "t", "t.csv", "--primary-key", "id", "--compress", "auto", "--key-format", "auto", "--json"]);
    let done = done.ok().json();
    assert_eq!((done["method"].as_str(), done["key_choice"]["name"].as_str()), (Some("none"), Some("plain")));
    for field in ["reason", "key_reason"] {
        assert!(done[field].as_str().unwrap().contains("nothing to save"), "{}", done[field]);
    }
}

#[test]
fn create_index_and_reorg_choose_a_format() {
    let place = Place::new();
    place.write("t.csv", &rows_csv(0..20_000));
    place.run(&["load", "db", "t", "t.csv", "--primary-key", "id"]).ok();
    let create = ["create-index", "db", "by_name", "t(name, id DESC)", "--format", "auto", "--json"];
    let built = place.run(&create).ok().json();
    assert_eq!((&built["format"], &built["page_size_bytes"]), (&built["choice"]["name"], &built["choice"]["page_size_bytes"]));
    assert!(built["reason"].as_str().unwrap().starts_with(built["format"].as_str().unwrap()), "{built}");
    // All rows were looked at, so pages are what was said.
    let (name, page_size) = (built["format"].as_str().unwrap(), built["page_size_bytes"].as_u64().unwrap());
    assert_eq!(built["pages"].as_u64(), Some(pages(&built["choice"], name, page_size)));
    assert!(name == "plain" || built["size_bytes"].as_u64().unwrap() < 8192 * pages(&built["choice"], "plain", 8192));

    let text = place.run(&["create-index", "db", "by_day", "t(day)", "--format", "auto", "--page-size", "4K"]).ok().out;
    assert!(text.contains("  chosen ") && text.contains("pages of 4 KB"), "{text}");
    let done = place.run(&["reorg", "db", "by_day", "--format", "auto", "--json"]).ok().json();
    assert!(done["reason"].is_string() && done["choice"]["considered"].as_array().unwrap().len() == 13, "{done}");
    let said = place.run(&["estimate", "db", "--index", "by_name", "--json"]).ok().json();
    assert_eq!(said["index_advice"][0]["advice"], said["index_advice"][0]["choice"]["reason"]);
    place.run(&["check", "db"]).ok();
}
