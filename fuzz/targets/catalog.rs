//! Rows of the catalog.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pagefold_engine::catalog::CatalogParts;
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
});
