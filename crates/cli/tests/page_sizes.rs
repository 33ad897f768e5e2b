//! `page-sizes`, with traces and without.
#![allow(missing_docs, clippy::unwrap_used)]

mod common;

use common::{Place, rows_csv};
use pagefold::{Database, RecordOptions};

fn place() -> Place {
    let place = Place::new();
    place.write("t.csv", &rows_csv(0..20_000));
    place.run(&["load", "db", "t", "t.csv", "--primary-key", "id", "--key-format", "plain", "--key-page-size", "2K"]).ok();
    place
}

#[test]
fn what_it_says_is_what_reorg_makes() {
    let place = place();
    let said = place.run(&["page-sizes", "db", "t_pk", "--json"]).ok().json()["indexes"][0].clone();
    assert_eq!((&said["now"]["format"], &said["now"]["page_size_bytes"], &said["rids"]), (&"plain".into(), &2048.into(), &20_000.into()));
    let lines = said["page_sizes"].as_array().unwrap();
    assert!(lines.len() >= 13);
    let saved = said["levels_saved"].as_array().unwrap().iter().find(|saved| saved["format"] == "plain").unwrap();
    assert_eq!(saved["levels_before"], said["now"]["levels"]);
    let size = saved["page_size_bytes"].as_u64().unwrap();
    let line = lines.iter().find(|line| line["format"] == "plain" && line["page_size_bytes"] == size).unwrap();
    place.run(&["reorg", "db", "t_pk", "--page-size", &size.to_string()]).ok();
    let report = place.run(&["report", "db", "t_pk", "--json"]).ok().json();
    let levels: Vec<u64> = report["indexes"][0]["levels"].as_array().unwrap().iter().map(|l| l["pages"].as_u64().unwrap()).collect();
    let mut expected: Vec<u64> = line["levels"].as_array().unwrap().iter().map(|pages| pages.as_u64().unwrap()).collect();
    // The report may begin at the root.
    if levels.first() < levels.last() {
        expected.reverse();
    }
    assert_eq!(levels, expected);
    assert_eq!(saved["levels"], levels.len());
    let text = place.run(&["page-sizes", "db", "t_pk"]).ok().out;
    assert!(text.contains("prefix") && !text.contains("hits"), "{text}");
}

#[test]
fn a_trace_says_how_it_would_be_read() {
    let place = place();
    let database = Database::open(place.path("db")).unwrap();
    database.record_keys("t_pk", &RecordOptions { one_in: 1, ..RecordOptions::default() }).unwrap();
    let transaction = database.begin();
    let table = transaction.table("t").unwrap();
    for n in 0..8_000u32 {
        assert!(table.get(i64::from(n.wrapping_mul(2_654_435_761) % 20_000)).unwrap().is_some());
    }
    transaction.commit().unwrap();
    let file = database.stop_recording_keys("t_pk").unwrap().unwrap();
    assert!(database.stop_recording_keys("t_pk").unwrap().is_none() && database.record_keys("none", &RecordOptions::default()).is_err());
    database.close().unwrap();
    std::fs::write(place.path("trace"), &file).unwrap();
    let said = place.run(&["page-sizes", "db", "t_pk", "--trace", "trace", "--pool", "256K", "--json"]).ok().json()["indexes"][0].clone();
    for line in said["page_sizes"].as_array().unwrap() {
        let forecast = &line["forecast"];
        let (hits, reads) = (forecast["hit_ratio"].as_f64().unwrap(), forecast["reads_per_request"].as_f64().unwrap());
        assert!((0.0..=1.0).contains(&hits) && reads >= 1.0 - hits - 1e-9 && forecast["pool_bytes"] == 262_144, "{line}");
    }
    // What does not fit is read again, what fits is not.
    let all = place.run(&["page-sizes", "db", "t_pk", "--trace", "trace", "--pool", "64M", "--json"]).ok().json()["indexes"][0].clone();
    let hits = |said: &serde_json::Value| said["page_sizes"][0]["forecast"]["hit_ratio"].as_f64().unwrap();
    assert!(hits(&all) > 0.99 && hits(&said) < 0.9, "{} {}", hits(&all), hits(&said));
    let text = place.run(&["page-sizes", "db", "t_pk", "--trace", "trace", "--pool", "256K"]).ok().out;
    assert!(text.contains("hits") && text.contains("reads a second"), "{text}");

    std::fs::write(place.path("cut"), &file[..file.len() - 1]).unwrap();
    place.run(&["page-sizes", "db", "t_pk", "--trace", "cut"]).fails(1, &["cut", "checksum"]);
    place.run(&["page-sizes", "db", "t_pk", "--trace", "t.csv"]).fails(1, &["t.csv", "not a key trace"]);
    place.run(&["page-sizes", "db", "t_pk", "--pool", "1M"]).fails(2, &["--trace"]);
    place.run(&["page-sizes", "db", "t_pk", "t_pk", "--trace", "trace"]).fails(2, &["2 indexes"]);
    let two = ["page-sizes", "db", "t_pk", "t_pk", "--trace", "trace", "--trace", "trace", "--pool", "512K"];
    let both = place.run(&[&two[..], &["--json"]].concat()).ok().json();
    let pools: Vec<u64> = both["division"].as_array().unwrap().iter().map(|own| own["pool_bytes"].as_u64().unwrap()).collect();
    assert!(pools.len() == 2 && pools.iter().sum::<u64>() <= 512 << 10, "{both}");
    assert!(place.run(&two).ok().out.contains("of pools together this is best"));
    place.run(&["page-sizes", "db", "other"]).fails(1, &["other"]);
}
