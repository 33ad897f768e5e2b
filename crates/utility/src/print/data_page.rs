//! Data pages: every slot.

use super::object::Object;
use super::page::{Content, hex, map};
use pagefold_codec::page::ColumnArea;
use pagefold_format::FormatError;
use pagefold_format::data::forms::{RecordDecoder, record_form};
use pagefold_format::data::{Body, ColumnPart, DataPage, SlotRange, Stored};
use pagefold_types::{ColumnValue, Rid, excerpt};
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
        let mut line = map(json!({ "slot": slot, "bytes": row.own_bytes() }));
        match Stored::parse(row, version) {
            Ok(Stored::Home(body)) => {
                line.insert("what".into(), json!("row"));
                put_body(object, body, &mut line);
            }
            Ok(Stored::Away { home, body }) => {
                line.insert("what".into(), json!(format!("row away from its home {home}")));
                put_body(object, body, &mut line);
            }
            Ok(Stored::Hosted { home, body }) => {
                line.insert("what".into(), json!(format!("row hosted for its home {home}")));
                put_body(object, body, &mut line);
            }
            Ok(Stored::Forward(target) | Stored::HostedForward { target, .. }) => {
                drop(line.insert("what".into(), json!(format!("pointer to the row at {target}"))))
            }
            Ok(Stored::Forwarded(target)) => drop(line.insert("what".into(), json!(format!("its row, if any, is hosted at {target}")))),
            Err(error) => {
                line.insert("what".into(), json!(error.to_string()));
                line.insert("content".into(), json!(hex(row.bytes)));
            }
        }
        slots.push(Value::Object(line));
    }
    let first = Rid::new(object.expected.partition.min(pagefold_types::PARTITION_MAX), number, 0);
    let column_part = view.column_part().map(|part| {
        json!({
            "bytes": part.area().len(),
            "rows": part.rows(),
            "dictionary_version": part.dictionary(),
            "layout": part.layout(),
            "rows_by_themselves": view.entries().count(),
            "columns": columns(object, part),
        })
    });
    let out = map(json!({
        "column_part": column_part,
        "dictionary_version": version,
        "rows": view.row_count(),
        "free_bytes": view.free_bytes(),
        "ranges": view.ranges().iter().map(range).collect::<Vec<_>>(),
        "first_rid": first.to_string(),
        "slots": slots,
    }));
    match view.validate() {
        Ok(()) => Ok(out),
        Err(error) => Err((error, out)),
    }
}

fn range(range: SlotRange) -> Value {
    json!({
        "first_slot": range.first,
        "slots": range.count,
        "what": if range.hosted { "hosted" } else { "forwarded" },
        "there": range.there.to_string(),
    })
}

/// How the columns of a column part are encoded.
fn columns(object: &Object, part: ColumnPart<'_>) -> Value {
    let Some(table) = &object.table else { return Value::Null };
    let decoder = match decoder(object) {
        Ok(decoder) => decoder,
        Err(error) => return json!(error.to_string()),
    };
    let schema = match decoder.columns_of(part.layout()) {
        Ok(schema) => schema,
        Err(error) => return json!(error.to_string()),
    };
    let dictionary = object.dictionaries.get(&part.dictionary()).map(|dictionary| dictionary.tokens());
    let area = match ColumnArea::parse(&schema, dictionary, part.area()) {
        Ok(area) => area,
        Err(error) => return json!(error.to_string()),
    };
    let names = table.attributes.schema.columns().iter().map(|column| column.name.as_str());
    names.zip(area.encodings()).map(|(name, (encoding, bits))| json!({ "name": name, "encoding": encoding, "bits": bits })).collect()
}

/// What reads rows of all layouts of the object's table.
fn decoder(object: &Object) -> Result<RecordDecoder, FormatError> {
    let table = object.table.as_ref().ok_or_else(|| FormatError::new("rows of no table"))?;
    table.attributes.decoder().map_err(|e| FormatError::new(e.to_string()))
}

fn put_body(object: &Object, body: Body<'_>, line: &mut Map<String, Value>) {
    let dictionary = body.dictionary();
    let kind = match (body, dictionary) {
        (Body::Plain(_), _) => "plain".to_string(),
        (Body::Column { .. }, _) => "by column".to_string(),
        (Body::Compressed { version: form, .. }, None) if form == record_form(body.layout()) => "plain".to_string(),
        (Body::Compressed { .. }, None) => "compact".to_string(),
        (Body::Compressed { version: form, .. }, Some(version)) if form == record_form(body.layout()) | version => {
            format!("compressed, dictionary {version}")
        }
        (Body::Compressed { .. }, Some(version)) => format!("compressed with codes of 12 bits, dictionary {version}"),
    };
    let bytes = if let Body::Column { .. } = body { &[] } else { body.parts().1 };
    let dictionary = dictionary.and_then(|version| object.dictionaries.get(&version)).map(Arc::as_ref);
    let mut record = Vec::new();
    let content = match &object.row_layout {
        None => hex(bytes),
        Some(_) => match decoder(object).and_then(|decoder| decoder.decode(body, dictionary, &mut record)) {
            Ok(record) => record_text(object, record),
            Err(error) => format!("{error}: {}", hex(bytes)),
        },
    };
    line.insert("stored".into(), json!(kind));
    if body.layout() > 0 {
        line.insert("layout".into(), json!(body.layout()));
    }
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
