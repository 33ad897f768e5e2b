//! What is chosen with `auto`: what the estimate says, never more than without, and by the costs that are given.

use crate::tables::{Rows, SAME, database, lineitem, mixed, scratch};
use pagefold_advisor::{Choice, Cost};
use pagefold_engine::database::Database;
use pagefold_engine::index::IndexFormat;
use pagefold_engine::table_space::Method;
use pagefold_io::MemoryStorage;
use pagefold_types::Direction;
use pagefold_utility::{
    Costs, EstimateOptions, IndexOptions, LoadOptions, LoadReport, Proposal, ReorgOptions, Setting, Silent, create_index, estimate_index,
    estimate_source, estimate_table, load_source, reorg,
};
use std::sync::Arc;

fn in_memory() -> Database {
    database(Arc::new(MemoryStorage::new()), 32 << 20)
}

fn loaded(database: &Database, table: &str, rows: &mut Rows, method: Setting<Method>, costs: Costs) -> LoadReport {
    let options = LoadOptions { method, costs, ..LoadOptions::default() };
    let report = load_source(database, table, rows, &options, &Silent).unwrap();
    assert_eq!(report.choice.is_some(), method == Setting::Auto);
    report
}

fn pages(choice: &Choice, name: &str, page_bytes: usize) -> u64 {
    choice.considered.iter().find(|a| a.name == name && a.page_bytes == page_bytes).unwrap().pages.value
}

/// From all rows, for one page size of tables.
fn all_of(costs: Costs) -> EstimateOptions {
    EstimateOptions { page_sizes: Vec::new(), costs, ..EstimateOptions::default() }
}

/// Reading what is compressed by rows, and writing pages by column, take long.
fn dear(name: &str, _: usize) -> Cost {
    match name {
        "fixed" | "huffman" => Cost { read_ns: 1000.0, write_ns: 100.0 },
        "page" => Cost { read_ns: 100.0, write_ns: 1000.0 },
        "prefix" => Cost { read_ns: 1000.0, write_ns: 100.0 },
        _ => Cost { read_ns: 100.0, write_ns: 100.0 },
    }
}

#[test]
fn load_takes_what_estimate_advises() {
    let mut rows = lineitem(0.003);
    for (costs, expected) in [(SAME, "page"), (Costs::Given(dear), "row")] {
        let database = in_memory();
        let said = estimate_source(&mut rows, &scratch(), &all_of(costs), &Silent).unwrap();
        let done = loaded(&database, "t", &mut rows, Setting::Auto, costs);
        let (said_choice, choice) = (said.choice.unwrap(), done.choice.unwrap());
        assert_eq!((said_choice.chosen().name, choice.chosen().name), (expected, expected));
        assert!(said.advice.starts_with(&said_choice.reason));
        assert_eq!(database.table("t").unwrap().attributes().method.name(), expected);
        // From a sample, or from all rows where there are few.
        let known = choice.chosen().pages;
        assert!((known.low..=known.high).contains(&done.pages), "{} pages, {known:?}", done.pages);
        assert!(done.pages < pages(&said_choice, "none", 8192));
        // Written anew: with other costs, another way.
        let options = ReorgOptions { method: Some(Setting::Auto), page_bytes: Some(16384), costs: SAME, ..ReorgOptions::default() };
        let done = reorg(&database, "t", &options, &Silent).unwrap();
        let choice = done.choice.unwrap();
        assert_eq!((choice.chosen().name, choice.chosen().page_bytes), ("page", 16384));
        let known = choice.chosen().pages;
        assert!((known.low..=known.high).contains(&done.pages), "{} pages, {known:?}", done.pages);
        let said = estimate_table(&database, "t", &all_of(SAME), &Silent).unwrap();
        assert_eq!(said.choice.unwrap().chosen().name, "page");
    }
}

#[test]
fn what_is_chosen_is_never_larger() {
    for (count, longest, seed) in [(0, 0, 1), (1, 10, 2), (700, 50, 3), (12_000, 3_000, 4), (2_000, 120_000, 5), (5_000, 0, 6)] {
        let mut rows = mixed(count, longest, seed);
        let database = in_memory();
        let chosen = loaded(&database, "chosen", &mut rows, Setting::Auto, SAME);
        let none = loaded(&database, "none", &mut rows, Method::None.into(), SAME);
        assert!(chosen.pages <= none.pages, "{} of {} pages", chosen.pages, none.pages);
        let choice = chosen.choice.unwrap();
        assert_eq!(choice.chosen().name == "none", chosen.pages == none.pages, "{}", choice.reason);
        if count < 2 {
            assert!(choice.chosen().name == "none" && choice.reason.contains("nothing to save"), "{}", choice.reason);
        }
    }
}

#[test]
fn indexes_get_what_estimate_advises() {
    let mut rows = lineitem(0.003);
    let up = Direction::Ascending;
    let columns = vec![("l_shipdate".to_owned(), up), ("l_orderkey".to_owned(), up)];
    let proposals = vec![Proposal { name: "by_date".into(), columns: columns.clone(), unique: false }];
    for costs in [SAME, Costs::Given(dear)] {
        let database = in_memory();
        let key = vec!["l_orderkey".to_owned(), "l_linenumber".to_owned()];
        let load =
            LoadOptions { method: Method::Page.into(), key_format: Setting::Auto, primary_key: key, costs, ..LoadOptions::default() };
        let loaded = load_source(&database, "t", &mut rows, &load, &Silent).unwrap();
        let choice = loaded.key_choice.unwrap();
        let attributes = database.index("t_pk").unwrap().attributes().clone();
        assert_eq!((choice.chosen().name, choice.chosen().page_bytes), (attributes.format.name(), attributes.page_bytes));
        assert_eq!(attributes.format, if costs_are_same(costs) { IndexFormat::Prefix } else { IndexFormat::Fold });

        let all = EstimateOptions { proposals: proposals.clone(), ..all_of(costs) };
        let said = estimate_table(&database, "t", &all, &Silent).unwrap().indexes.remove(0);
        let said_choice = said.choice.unwrap();
        assert_eq!(said.advice, said_choice.reason);
        let options = IndexOptions { format: Setting::Auto, costs, ..IndexOptions::default() };
        let built = create_index(&database, "by_date", "t", &columns, &options, &Silent).unwrap();
        let choice = built.choice.unwrap();
        assert_eq!((choice.chosen().name, choice.chosen().page_bytes), (said_choice.chosen().name, said_choice.chosen().page_bytes));
        assert_eq!(choice.chosen().name, if costs_are_same(costs) { "prefix" } else { "fold" });
        let known = choice.chosen().pages;
        assert!((known.low..=known.high).contains(&built.pages), "{} pages, {known:?}", built.pages);
        assert!(built.size_bytes < choice.considered.iter().find(|a| a.name == "plain" && a.page_bytes == 8192).unwrap().size_bytes.low);

        // Of a page size that is given only formats are considered.
        let options = IndexOptions { page_bytes: Some(4096), ..options };
        let built = create_index(&database, "of_4_kb", "t", &columns, &options, &Silent).unwrap();
        assert!(built.choice.unwrap().considered.iter().all(|a| a.page_bytes == 4096));
        assert_eq!(database.index("of_4_kb").unwrap().attributes().page_bytes, 4096);
        let anew = ReorgOptions { format: Some(Setting::Auto), costs, ..ReorgOptions::default() };
        let done = reorg(&database, "of_4_kb", &anew, &Silent).unwrap();
        let said = estimate_index(&database, "by_date", &all_of(costs), &Silent).unwrap();
        assert_eq!(done.choice.unwrap().chosen().name, said.indexes[0].choice.as_ref().unwrap().chosen().name);
    }
}

fn costs_are_same(costs: Costs) -> bool {
    matches!(costs, Costs::Given(cost) if cost("prefix", 8192) == cost("plain", 8192))
}

/// Measured costs are there for every method and format; which are larger is not for a test to say.
#[test]
fn costs_are_measured() {
    let mut rows = mixed(3_000, 9_000, 7);
    let proposals = vec![Proposal { name: "name".into(), columns: vec![("name".into(), Direction::Ascending)], unique: true }];
    let options = EstimateOptions { proposals, page_sizes: vec![2048], ..EstimateOptions::default() };
    let report = estimate_source(&mut rows, &scratch(), &options, &Silent).unwrap();
    let choices = [report.choice.as_ref().unwrap(), report.indexes[0].choice.as_ref().unwrap()];
    for alternative in choices.iter().flat_map(|choice| &choice.considered) {
        let cost = alternative.cost.unwrap();
        assert!(cost.read_ns > 0.0 && cost.read_ns.is_finite() && cost.write_ns > 0.0 && cost.write_ns.is_finite(), "{alternative:?}");
    }
    println!("{}\n{}", report.advice, report.indexes[0].advice);
}
