//! Lists of columns on the command line.
#![no_main]

use libfuzzer_sys::fuzz_target;

#[allow(dead_code, reason = "a part of the program pagefold")]
#[path = "../../crates/cli/src/column_list.rs"]
mod column_list;

fuzz_target!(|data: &[u8]| {
    let text = String::from_utf8_lossy(data);
    if let Ok(columns) = column_list::key_columns(&text) {
        assert!(!columns.is_empty() && columns.len() <= text.len() + 1);
    }
    if let Ok((table, columns)) = column_list::table_and_columns(&text) {
        assert!(!table.is_empty() && !columns.is_empty() && text.contains(&table));
    }
    if let Ok(schema) = column_list::schema(&text) {
        let again: Vec<String> = schema
            .columns()
            .iter()
            .filter(|column| !column.name.contains('"'))
            .map(|c| format!("\"{}\" {}{}", c.name, c.data_type, if c.nullable { "" } else { " NOT NULL" }))
            .collect();
        if again.len() == schema.len() {
            assert_eq!(column_list::schema(&again.join(", ")), Ok(schema));
        }
    }
});
