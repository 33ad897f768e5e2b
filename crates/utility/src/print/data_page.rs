//! Data pages: every slot.

use super::object::Object;
use super::page::{Content, hex, map};
use pagefold_format::data::{Body, DataPage, Stored, forms};
use pagefold_types::{ColumnValue, CompactLayout, Rid, excerpt};
use serde_json::{Map, Value, json};
use std::sync::Arc;

pub(super) fn content(object: &Object, number: u32, bytes: &[u8]) -> Content {
    let view = DataPage::new(bytes);
    let version = view.dictionary_version();
    let mut slots = Vec::new();
    // A damaged count may be anything; there are not more slots than bytes for them.
    for slot in 0..view.slot_count().min((bytes.len() / 4) as u16) {
        let Some(row) = view.row(slot) else {
            slots.push(json!({ "slot": slot, "what": "free" }));
            continue;
        };
        let mut line = map(json!({ "slot": slot, "bytes": row.bytes.len() }));
        match Stored::parse(row, version) {
            Ok(Stored::Home(body)) => {
                line.insert("what".into(), json!("row"));
                put_body(object, body, &mut line);
            }
            Ok(Stored::Away { home, body }) => {
                line.insert("what".into(), json!(format!("row away from its home {home}")));
                put_body(object, body, &mut line);
            }
            Ok(Stored::Forward(target)) => drop(line.insert("what".into(), json!(format!("pointer to the row at {target}")))),
            Err(error) => {
                line.insert("what".into(), json!(error.to_string()));
                line.insert("content".into(), json!(hex(row.bytes)));
            }
        }
        slots.push(Value::Object(line));
    }
    let first = Rid::new(object.expected.partition.min(pagefold_types::PARTITION_MAX), number, 0);
    let out = map(json!({
        "dictionary_version": version,
        "rows": view.row_count(),
        "free_bytes": view.free_bytes(),
        "first_rid": first.to_string(),
        "slots": slots,
    }));
    match view.validate() {
        Ok(()) => Ok(out),
        Err(error) => Err((error, out)),
    }
}

fn put_body(object: &Object, body: Body<'_>, line: &mut Map<String, Value>) {
    let (kind, content) = match body {
        Body::Plain(record) => (json!("plain"), record_text(object, record)),
        Body::Compressed { version: form, codes } => {
            let version = forms::dictionary_of(form);
            let kind = match version {
                None => "compact".to_string(),
                Some(version) if version == form => format!("compressed, dictionary {version}"),
                Some(version) => format!("compressed with codes of 12 bits, dictionary {version}"),
            };
            let dictionary = version.and_then(|version| object.dictionaries.get(&version)).map(Arc::as_ref);
            let mut record = Vec::new();
            let content = match &object.row_layout {
                None => hex(codes),
                Some(layout) => {
                    let compact = CompactLayout::new(layout.clone());
                    let length = forms::decode(form, codes, dictionary, &compact, object.expected.page_bytes, &mut record);
                    length.map_or_else(|e| format!("{e}: {}", hex(codes)), |length| record_text(object, &record[..length]))
                }
            };
            (json!(kind), content)
        }
    };
    line.insert("stored".into(), kind);
    line.insert("content".into(), json!(content));
}

/// A record's values by column; of what is no record the bytes.
fn record_text(object: &Object, record: &[u8]) -> String {
    let (Some(layout), Some(table)) = (&object.row_layout, &object.table) else { return hex(record) };
    if let Err(error) = layout.validate(record) {
        return format!("{error}: {}", hex(record));
    }
    let values: Vec<String> = table
        .attributes
        .schema
        .columns()
        .iter()
        .enumerate()
        .map(|(i, column)| match layout.column(record, i) {
            Ok(ColumnValue::Value(value)) => format!("{}={}", column.name, excerpt(value, &column.data_type)),
            Ok(ColumnValue::Large(large)) => {
                format!("{}=({} bytes at page {} of partition {})", column.name, large.raw_bytes, large.first_page, large.partition)
            }
            Err(error) => format!("{}=({error})", column.name),
        })
        .collect();
    values.join(", ")
}
