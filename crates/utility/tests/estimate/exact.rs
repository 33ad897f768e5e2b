//! Without a sample: to the page.

use crate::tables::{Rows, SAME, database, lineitem, mixed, scratch};
use pagefold_advisor::IndexCandidate;
use pagefold_engine::database::Database;
use pagefold_engine::index::IndexFormat;
use pagefold_engine::table_space::Method;
use pagefold_io::MemoryStorage;
use pagefold_types::Direction;
use pagefold_utility::{
    EstimateOptions, EstimateReport, IndexOptions, IndexReportLine, IndexesEstimate, LoadOptions, Proposal, ReorgOptions, Silent,
    create_index, drop_object, estimate_index, estimate_source, estimate_table, load_source, reorg,
};
use std::sync::Arc;

const PAGE_SIZES: [usize; 4] = [2048, 4096, 8192, 32768];

fn proposal(name: &str, columns: &[(&str, Direction)], unique: bool) -> Proposal {
    Proposal { name: name.into(), columns: columns.iter().map(|(c, d)| ((*c).to_owned(), *d)).collect(), unique }
}

fn format(candidate: &IndexCandidate) -> IndexFormat {
    candidate.format().parse().unwrap()
}

fn is_plain(line: &IndexReportLine, page_bytes: usize) -> bool {
    line.estimate.candidate == IndexCandidate::plain(page_bytes)
}

/// Builds every format and page size of a proposed index of table "t".
fn check_proposed(database: &Database, proposal: &Proposal, estimate: &IndexesEstimate) {
    assert_eq!(estimate.name, proposal.name);
    for line in &estimate.lines {
        let (e, candidate) = (&line.estimate, line.estimate.candidate);
        let options = IndexOptions {
            unique: proposal.unique,
            format: format(&candidate).into(),
            page_bytes: Some(candidate.page_bytes),
            ..IndexOptions::default()
        };
        let built = create_index(database, "i", "t", &proposal.columns, &options, &Silent);
        if e.key_too_long.is_some() || estimate.duplicates > 0 {
            assert!(built.is_err(), "{candidate:?}");
            continue;
        }
        let built = built.unwrap();
        let leaves = u64::from(database.index("i").unwrap().data_set().facts().data_pages);
        assert_eq!((e.pages.value, e.leaf_pages.value), (built.pages, leaves), "{} {candidate:?}", proposal.name);
        assert_eq!((e.keys, e.rids), (built.keys, built.rids), "{} {candidate:?}", proposal.name);
        assert_eq!(e.pages.half_width(), 0.0);
        let saved = line.saving.total_bytes();
        let before = estimate.lines.iter().find(|l| is_plain(l, 8192)).unwrap();
        assert_eq!(saved, before.estimate.size_bytes() as i64 - e.size_bytes() as i64);
        drop_object(database, "i").unwrap();
    }
}

fn check_source(mut rows: Rows, base: LoadOptions, proposals: Vec<Proposal>) -> EstimateReport {
    let options = EstimateOptions {
        page_sizes: PAGE_SIZES.to_vec(),
        pctfree: base.pctfree,
        maxrows: base.maxrows,
        method: base.method.given().unwrap(),
        page_bytes: base.page_bytes,
        primary_key: base.primary_key.clone(),
        proposals,
        costs: SAME,
        ..EstimateOptions::default()
    };
    let report = estimate_source(&mut rows, &scratch(), &options, &Silent).unwrap();
    assert!(report.sample.is_none());
    for line in &report.methods {
        let e = &line.estimate;
        let database = database(Arc::new(MemoryStorage::new()), 32 << 20);
        let method: Method = e.method.parse().unwrap();
        let load = LoadOptions { method: method.into(), page_bytes: e.options.page_bytes, ..base.clone() };
        let loaded = load_source(&database, "t", &mut rows, &load, &Silent).unwrap();
        assert_eq!((e.pages.value, e.rows, e.size_bytes()), (loaded.pages, loaded.rows, loaded.size_bytes), "{e:?}");
        assert_eq!((e.record_bytes, e.dictionary), (loaded.record_bytes, loaded.dictionary), "{e:?}");
        let table = database.table("t").unwrap();
        let data_pages: u64 = table.data_sets().map(|data_set| data_set.data_page_numbers().len() as u64).sum();
        assert_eq!(e.data_pages.value, data_pages);
        assert_eq!(e.data_pages.value + e.large_pages + e.dictionary_pages + e.other_pages, e.pages.value);
        let plain = report.methods.iter().find(|m| m.estimate.method == "none" && m.estimate.options.page_bytes == e.options.page_bytes);
        assert_eq!(line.saving.total_bytes(), plain.unwrap().estimate.size_bytes() as i64 - e.size_bytes() as i64);
        assert_eq!(line.saving.free_space_bytes, 0);
        if base.method == method.into() && e.options.page_bytes == base.page_bytes {
            for proposal in &options.proposals {
                check_proposed(&database, proposal, report.indexes.iter().find(|i| i.name == proposal.name).unwrap());
            }
            if let Some(key) = report.indexes.iter().find(|i| i.name == "primary key") {
                let prefix =
                    |l: &&IndexReportLine| format(&l.estimate.candidate) == IndexFormat::Prefix && l.estimate.candidate.page_bytes == 8192;
                assert_eq!(key.lines.iter().find(prefix).unwrap().estimate.size_bytes(), loaded.index_bytes);
            }
        }
    }
    report
}

#[test]
fn files_of_mixed_rows() {
    let (up, down) = (Direction::Ascending, Direction::Descending);
    for (rows, longest, seed) in [(0, 0, 1), (1, 10, 2), (700, 50, 3), (12_000, 3_000, 4), (4_000, 120_000, 5)] {
        let proposals = vec![
            proposal("few", &[("few", down)], false),
            proposal("name and id", &[("name", up), ("id", down)], true),
            proposal("name", &[("name", up)], true),
        ];
        let method = if seed == 3 { Method::None } else { Method::Fixed };
        let report = check_source(mixed(rows, longest, seed), LoadOptions { method: method.into(), ..LoadOptions::default() }, proposals);
        assert_eq!(report.indexes[2].duplicates > 0, rows > 600);
        assert!(!report.advice.is_empty() && report.indexes.iter().all(|i| !i.advice.is_empty()));
    }
}

#[test]
fn files_with_free_space_limits_and_primary_key() {
    let base = LoadOptions {
        method: Method::Fixed.into(),
        pctfree: 15,
        maxrows: Some(40),
        primary_key: vec!["id".into()],
        page_bytes: 4096,
        ..LoadOptions::default()
    };
    let report = check_source(mixed(9_000, 200, 6), base, Vec::new());
    assert_eq!(report.methods[0].estimate.options.page_bytes, 4096, "the page size in use comes first");
}

#[test]
fn a_file_of_line_items() {
    let up = Direction::Ascending;
    let proposals = vec![
        proposal("key", &[("l_orderkey", up), ("l_linenumber", up)], true),
        proposal("date", &[("l_shipdate", up)], false),
        proposal("part", &[("l_partkey", up), ("l_suppkey", Direction::Descending)], false),
    ];
    let base = LoadOptions { method: Method::Fixed.into(), ..LoadOptions::default() };
    let report = check_source(lineitem(0.01), base, proposals);
    assert!(report.advice.contains("page"), "{}", report.advice);
    println!("{}", report.advice);
    report.indexes.iter().for_each(|i| println!("{}: {}", i.name, i.advice));
}

#[test]
fn tables_and_indexes_that_exist() {
    for (method, page_bytes) in [(Method::None, 4096), (Method::Fixed, 8192)] {
        let database = database(Arc::new(MemoryStorage::new()), 32 << 20);
        let load = LoadOptions { method: method.into(), page_bytes, pctfree: 10, ..LoadOptions::default() };
        load_source(&database, "t", &mut mixed(8_000, 9_000, 7), &load, &Silent).unwrap();
        let key = vec![("name".to_owned(), Direction::Ascending)];
        create_index(&database, "by_name", "t", &key, &IndexOptions { pctfree: 20, ..IndexOptions::default() }, &Silent).unwrap();
        let options = EstimateOptions {
            page_sizes: PAGE_SIZES.to_vec(),
            proposals: vec![proposal("few and name", &[("few", Direction::Ascending), ("name", Direction::Descending)], false)],
            costs: SAME,
            ..EstimateOptions::default()
        };
        let report = estimate_table(&database, "t", &options, &Silent).unwrap();
        check_proposed(&database, &options.proposals[0], &report.indexes[0]);
        let index = estimate_index(&database, "by_name", &options, &Silent).unwrap();
        let now = index.now.as_ref().unwrap();
        assert_eq!((now.page_bytes, now.method.as_str()), (8192, "plain"));
        for line in &index.indexes[0].lines {
            let e = &line.estimate;
            let reorg_options = ReorgOptions {
                format: Some(format(&e.candidate).into()),
                page_bytes: Some(e.candidate.page_bytes),
                ..ReorgOptions::default()
            };
            let done = reorg(&database, "by_name", &reorg_options, &Silent).unwrap();
            assert_eq!((e.pages.value, e.rids), (done.pages, done.rows), "{e:?}");
            assert_eq!(line.saving.total_bytes(), now.size_bytes as i64 - e.size_bytes() as i64);
        }
        let table_now = report.now.unwrap();
        for line in &report.methods {
            let e = &line.estimate;
            assert_eq!(line.saving.total_bytes(), table_now.size_bytes as i64 - e.size_bytes() as i64);
            // Each from the table as it was.
            let fresh = crate::tables::database(Arc::new(MemoryStorage::new()), 32 << 20);
            load_source(&fresh, "t", &mut mixed(8_000, 9_000, 7), &load, &Silent).unwrap();
            let reorg_options =
                ReorgOptions { method: Some(e.method.parse().unwrap()), page_bytes: Some(e.options.page_bytes), ..ReorgOptions::default() };
            let done = reorg(&fresh, "t", &reorg_options, &Silent).unwrap();
            assert_eq!((e.pages.value, e.rows), (done.pages, done.rows), "{e:?}");
        }
    }
}
