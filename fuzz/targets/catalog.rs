//! Rows of the catalog, and definitions as the log and checkpoints have them.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pagefold_engine::catalog::{CatalogParts, Defined, read_definition};
use pagefold_format::catalog::attributes::Attributes;
use pagefold_format::catalog::{Notes, tag};
use pagefold_format::data::forms::LAYOUT_MAX;
use pagefold_fuzz::input::Input;

/// What is taken comes back as it is from the bytes that are written of it.
fn notes_come_back(notes: &Notes) {
    let mut bytes = Vec::new();
    notes.write_with(&[], &mut bytes);
    let mut again = Notes::default();
    for attribute in Attributes::new(&bytes) {
        again.take(attribute.expect("just written")).expect("taken before");
    }
    assert_eq!(&again, notes);
    assert_eq!(notes.constraints().len(), notes.all(tag::CONSTRAINT).count());
    assert_eq!(notes.columns().len(), notes.all(tag::COLUMN_NOTES).count());
    assert_eq!(notes.ranges().1.len(), notes.all(tag::RANGE_PARTITION).count());
    assert_eq!(notes.sequence().is_some(), notes.get(tag::SEQUENCE).is_some());
}

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
        // Its layouts are looked at when a row of one is met.
        if let Ok(decoder) = table.attributes.decoder() {
            (0..=LAYOUT_MAX).for_each(|layout| drop(decoder.columns_of(layout)));
        }
        notes_come_back(&table.attributes.notes);
    }
    for index in &entries.indexes {
        let table = entries.tables.iter().find(|t| t.object_id == index.table_id).expect("its table");
        index.attributes.check(&table.attributes.schema).expect("checked");
        assert_eq!(index.data_sets.len(), 1);
    }
    for other in &entries.others {
        notes_come_back(&other.notes);
    }
    // The same as a record of the log has them, beside the tables that were found.
    let schema = |id| entries.tables.iter().find(|t| t.object_id == id).map(|t| t.attributes.schema.clone());
    match read_definition(1, data, schema) {
        Ok(Defined::Table(table)) => assert_eq!(table.object_id, 1),
        Ok(Defined::Index(index)) => assert!(index.object_id == 1 && index.data_sets.len() <= 1),
        Ok(Defined::Other(other)) => {
            assert_eq!(&*other.definition, data);
            notes_come_back(&other.notes);
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
});
