//! Rows of the catalog, and what the log says of tables and indexes that come.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pagefold_engine::catalog::{CatalogParts, Defined, read_definition};
use pagefold_fuzz::input::Input;

fuzz_target!(|data: &[u8]| {
    let mut input = Input(data);
    let mut parts = CatalogParts::default();
    while !input.is_empty() {
        let _ = parts.add(input.chunk());
    }
    let (entries, errors) = parts.finish();
    for error in errors {
        let _ = error.to_string();
    }
    for table in &entries.tables {
        assert!(table.attributes.primary_key.iter().all(|c| *c < table.attributes.schema.len()));
        table.attributes.check().expect("checked");
    }
    for index in &entries.indexes {
        let table = entries.tables.iter().find(|t| t.object_id == index.table_id).expect("its table");
        index.attributes.check(&table.attributes.schema).expect("checked");
        assert_eq!(index.data_sets.len(), 1);
    }
    // The same as a record of the log has them, beside the tables that were found.
    let schema = |id| entries.tables.iter().find(|t| t.object_id == id).map(|t| t.attributes.schema.clone());
    for id in [1, 2] {
        match read_definition(id, data, schema) {
            Ok(Defined::Table(table)) => assert_eq!(table.object_id, id),
            Ok(Defined::Index(index)) => assert_eq!((index.object_id, index.data_sets.len()), (id, 1)),
            Err(error) => assert!(!error.to_string().is_empty()),
        }
    }
});
