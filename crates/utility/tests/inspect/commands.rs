//! Every command on a damaged database: an answer or an error, but no panic.

use crate::sample::{Place, contents, open, print_from};
use arrow_array::RecordBatch;
use pagefold_advisor::Cost;
use pagefold_engine::database::{Database, OpenMode};
use pagefold_engine::index::IndexFormat;
use pagefold_engine::table_space::Method;
use pagefold_interchange::{CsvOptions, InterchangeError, OpenSource, Sink};
use pagefold_io::{MemoryStorage, OpenOptions, Storage};
use pagefold_types::Direction;
use pagefold_utility::{
    Costs, EstimateOptions, IndexOptions, LoadMode, LoadOptions, PrintWhat, Proposal, ReorgOptions, Scan, ScanOptions, Silent,
    create_index, drop_object, estimate_index, estimate_table, export, get, load, reorg, report,
};
use std::path::PathBuf;

const ROWS: &str = "id,amount,code,text,more\n70001,1.50,c00001,carefully final,\n70002,,c00002,slyly,ironic\n";

/// Rows go nowhere.
struct Ignore;

impl Sink for Ignore {
    fn write(&mut self, _: &RecordBatch) -> Result<(), InterchangeError> {
        Ok(())
    }

    fn finish(&mut self) -> Result<(), InterchangeError> {
        Ok(())
    }
}

/// Commands that change nothing.
pub(crate) fn reading_commands(storage: &MemoryStorage, damaged: &Place) {
    let _ = contents(storage);
    if let Ok(database) = open(storage, OpenMode::Read) {
        let _ = report(&database, None, &Silent).map(|r| (r.to_json().to_string(), r.to_text()));
    }
    let file = damaged.path.file_stem().unwrap().to_str().unwrap();
    for object in ["catalog", "control", "parts", "small", "parts_code", "parts_id", file] {
        for what in [PrintWhat::Header, PrintWhat::Page(damaged.number), PrintWhat::Dictionary] {
            let _ = print_from(storage, object, what).map(|p| (p.to_json().to_string(), p.to_text()));
        }
    }
}

fn append() -> LoadOptions {
    let csv = CsvOptions { schema: Some(crate::sample::schema()), ..CsvOptions::default() };
    LoadOptions { mode: LoadMode::Append, source: OpenSource { csv }, ..LoadOptions::default() }
}

/// Nothing is opened for that, so nothing damaged is met.
fn names(database: &Database) -> (Vec<String>, Vec<String>) {
    (database.table_names(), database.index_names())
}

fn estimates(database: &Database, tables: &[String], indexes: &[String]) {
    for sample_pages in [None, Some(9)] {
        let proposal = Proposal { name: "proposed".into(), columns: vec![("code".into(), Direction::Ascending)], unique: false };
        // Damage is found in the database, not in what costs are measured on.
        let costs = Costs::Given(|_, _| Cost { read_ns: 1.0, write_ns: 1.0 });
        let options =
            EstimateOptions { page_sizes: vec![4096], proposals: vec![proposal], sample_pages, costs, ..EstimateOptions::default() };
        for table in tables {
            let _ = estimate_table(database, table, &options, &Silent);
        }
        for index in indexes {
            let _ = estimate_index(database, index, &options, &Silent);
        }
    }
}

/// All the others, on a copy.
pub(crate) fn all_commands(storage: &MemoryStorage, damaged: &Place) {
    reading_commands(storage, damaged);
    let copy = storage.snapshot();
    let rows = PathBuf::from("rows.csv");
    copy.open(&rows, &OpenOptions::create()).unwrap().write_at(ROWS.as_bytes(), 0).unwrap();
    let Ok(database) = open(&copy, OpenMode::Write) else { return };
    let (tables, indexes) = names(&database);
    estimates(&database, &tables, &indexes);
    for table in &tables {
        let _ = export(&database, table, &mut Ignore, &Silent);
        let _ = get(&database, table, &["5".into()]);
        let scan = ScanOptions { condition: Some("id > 100 and code = \"c00001\"".into()), ..ScanOptions::default() };
        let _ = Scan::new(&database, table, &scan).and_then(|scan| scan.run(&mut Ignore, &Silent));
        let _ = load(&database, table, std::slice::from_ref(&rows), &append(), &Silent);
        let columns = [("code".to_owned(), Direction::Descending)];
        let fold = IndexOptions { format: IndexFormat::Fold.into(), ..IndexOptions::default() };
        let _ = create_index(&database, &format!("{table}_more"), table, &columns, &fold, &Silent);
        for method in Method::ALL {
            let _ = reorg(&database, table, &ReorgOptions { method: Some(method.into()), ..ReorgOptions::default() }, &Silent);
        }
    }
    for index in &indexes {
        let _ = reorg(&database, index, &ReorgOptions { format: Some(IndexFormat::Plain.into()), ..ReorgOptions::default() }, &Silent);
        let _ = drop_object(&database, index);
    }
    for table in &tables {
        let _ = drop_object(&database, table);
    }
}

/// On a whole database they all do something; else the tests of damage would show little.
#[test]
fn all_commands_succeed_on_a_whole_database() {
    let storage = crate::sample::sample();
    let database = open(&storage, OpenMode::Write).unwrap();
    let rows = PathBuf::from("rows.csv");
    storage.open(&rows, &OpenOptions::create()).unwrap().write_at(ROWS.as_bytes(), 0).unwrap();
    let (tables, _) = names(&database);
    assert_eq!(tables.len(), 5);
    for table in &tables {
        load(&database, table, std::slice::from_ref(&rows), &append(), &Silent).unwrap();
        let scan = ScanOptions { condition: Some("id > 100 and code = \"c00001\"".into()), ..ScanOptions::default() };
        let found = Scan::new(&database, table, &scan).unwrap().run(&mut Ignore, &Silent).unwrap();
        assert!(found > 0, "{table}");
        reorg(&database, table, &ReorgOptions { method: Some(Method::Fixed.into()), ..ReorgOptions::default() }, &Silent).unwrap();
    }
    drop(database);
    all_commands(&storage, &crate::sample::places(&storage).0[0]);
}
