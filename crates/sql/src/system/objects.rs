//! What there is, with how it is stored: `pagefold_tables`, `pagefold_partitions`, `pagefold_indexes`, `pagefold_dictionaries`, and what ANALYZE has found: `pagefold_column_statistics`.

use super::{FRACTION, NUMBER, Part, Rows, Seen, SystemTable, TRUTH, number, text, text_or_null};
use crate::SqlResult;
use crate::bind::TEXT;
use pagefold_engine::database::split_partition_name;
use pagefold_format::catalog::{ColumnStatistics, DefinedKind, Statistics, figure};
use pagefold_types::text::to_text;
use pagefold_types::{Column, DataType, Direction, KeyLayout, Schema, TimeUnit, Value};

pub(super) const TABLES: &[SystemTable] = &[
    SystemTable {
        name: "pagefold_tables",
        columns: &[
            ("table_name", TEXT),
            ("method", TEXT),
            ("page_size_bytes", NUMBER),
            ("pctfree", NUMBER),
            ("primary_key", TEXT),
            ("partitions", NUMBER),
            ("rows", NUMBER),
            ("pages", NUMBER),
            ("size_bytes", NUMBER),
        ],
        rows: |seen| seen.of_tables(|name, parts, rows| rows.push(table_row(name, parts))),
    },
    SystemTable {
        name: "pagefold_partitions",
        columns: &[
            ("table_name", TEXT),
            ("partition_name", TEXT),
            ("less_than", TEXT),
            ("method", TEXT),
            ("page_size_bytes", NUMBER),
            ("rows", NUMBER),
            ("pages", NUMBER),
            ("size_bytes", NUMBER),
            ("from_values", TEXT),
        ],
        rows: partitions,
    },
    SystemTable {
        name: "pagefold_indexes",
        columns: &[
            ("index_name", TEXT),
            ("table_name", TEXT),
            ("columns", TEXT),
            ("is_unique", DataType::Boolean),
            ("format", TEXT),
            ("page_size_bytes", NUMBER),
            ("pages", NUMBER),
            ("size_bytes", NUMBER),
        ],
        rows: |seen| seen.of_tables(index_rows),
    },
    SystemTable {
        name: "pagefold_dictionaries",
        columns: &[("table_name", TEXT), ("partition_name", TEXT), ("version", NUMBER), ("is_newest", TRUTH), ("size_bytes", NUMBER)],
        rows: |seen| seen.of_tables(dictionary_rows),
    },
    SystemTable {
        name: "pagefold_column_statistics",
        columns: &[
            ("table_name", TEXT),
            ("partition_name", TEXT),
            ("column_name", TEXT),
            ("null_share", FRACTION),
            ("distinct_values", FRACTION),
            ("value_bytes", FRACTION),
            ("correlation", FRACTION),
            ("least", TEXT),
            ("greatest", TEXT),
            ("pages_read", NUMBER),
            ("pages", NUMBER),
            ("gathered_at", DataType::Timestamp { unit: TimeUnit::Micro, with_zone: true }),
        ],
        rows: |seen| seen.of_tables(statistics_rows),
    },
];

/// A row for each partition, in the order of their keys.
fn partitions(seen: &mut Seen<'_>) -> SqlResult<Rows> {
    let transaction = &mut *seen.transaction;
    let mut rows = Vec::new();
    for name in transaction.object_names(DefinedKind::PartitionedTable) {
        let Ok(whole) = transaction.partitioned_table(&name) else { continue };
        let joined = |values: Vec<Option<String>>| {
            let values = values.into_iter().map(|text| text.unwrap_or_else(|| "MAXVALUE".into()));
            values.collect::<Vec<String>>().join(", ")
        };
        for partition in whole.own_partitions() {
            let Some(part) = Part::find(transaction, partition.table_name())? else { continue };
            let limit = joined(whole.limit_texts(partition));
            let from = Some(joined(whole.start_texts(partition))).filter(|from| !from.is_empty());
            let sizes = table_row(&name, std::slice::from_ref(&part)).split_off(6);
            let attributes = part.table.attributes();
            let stored = [text(attributes.method.name()), number(attributes.page_bytes as u64)];
            rows.push(
                [text(&name), text(partition.name()), text(&limit)]
                    .into_iter()
                    .chain(stored)
                    .chain(sizes)
                    .chain([text_or_null(from.as_deref())])
                    .collect(),
            );
        }
    }
    Ok(rows)
}

fn table_row(name: &str, parts: &[Part]) -> Vec<Value> {
    let attributes = parts[0].table.attributes();
    let key: Vec<&str> = attributes.primary_key.iter().map(|column| attributes.schema.columns()[*column].name.as_str()).collect();
    let (mut rows, mut pages, mut bytes) = (0, 0, 0);
    for part in parts {
        rows += part.table.row_count();
        for data_set in part.table.data_sets() {
            pages += u64::from(data_set.page_count());
            bytes += u64::from(data_set.page_count()) * data_set.page_bytes() as u64;
        }
    }
    let is_one = parts.iter().all(|part| part.table.attributes().method == attributes.method);
    vec![
        text(name),
        text(if is_one { attributes.method.name() } else { "several" }),
        number(attributes.page_bytes as u64),
        number(attributes.pctfree.into()),
        if key.is_empty() { Value::Null } else { text(&key.join(", ")) },
        number(parts.iter().filter(|part| !part.is_template()).count() as u64),
        number(rows),
        number(pages),
        number(bytes),
    ]
}

fn index_rows(name: &str, parts: &[Part], rows: &mut Rows) {
    for Part { table, indexes, .. } in parts {
        for index in indexes {
            let attributes = index.attributes();
            let column = |(column, direction): &(usize, Direction)| {
                let name = &table.attributes().schema.columns()[*column].name;
                if *direction == Direction::Descending { format!("{name} DESC") } else { name.clone() }
            };
            let columns: Vec<String> = attributes.columns.iter().map(column).collect();
            let data_set = index.data_set();
            let bytes = u64::from(data_set.page_count()) * data_set.page_bytes() as u64;
            rows.push(vec![
                text(index.name()),
                text(name),
                text(&columns.join(", ")),
                Value::Boolean(attributes.unique),
                text(attributes.format.name()),
                number(attributes.page_bytes as u64),
                number(data_set.page_count().into()),
                number(bytes),
            ]);
        }
    }
}

/// NULL of a table that is not divided.
fn partition_name(part: &Part) -> Value {
    let name = split_partition_name(part.table.name()).filter(|_| part.table.attributes().range.is_some());
    name.map_or(Value::Null, |(_, partition)| text(partition))
}

fn dictionary_rows(name: &str, parts: &[Part], rows: &mut Rows) {
    for part in parts {
        // All data sets of a table have the same ones.
        let Some(data_set) = part.table.data_sets().next() else { continue };
        let roots = data_set.facts().dictionaries.clone();
        let newest = roots.iter().map(|root| root.version).max();
        for root in roots {
            rows.push(vec![
                text(name),
                partition_name(part),
                number(root.version.into()),
                Value::Boolean(Some(root.version) == newest),
                number(root.bytes.into()),
            ]);
        }
    }
}

fn statistics_rows(name: &str, parts: &[Part], rows: &mut Rows) {
    for part in parts {
        // What cannot be read is as good as not there, as for RUNSTATS.
        let Some(found) = part.notes.statistics().and_then(|bytes| Statistics::decode(bytes).ok()) else { continue };
        for at in part.table.attributes().visible_columns() {
            let own = u32::try_from(at).ok().and_then(|id| found.column(id));
            let Some(own) = own else { continue };
            rows.push(statistics_row(name, part, &part.table.attributes().schema.columns()[at], (&found, own)));
        }
    }
}

fn statistics_row(name: &str, part: &Part, column: &Column, (of_table, own): (&Statistics, &ColumnStatistics)) -> Vec<Value> {
    let number_of = |wanted| own.figures.get(wanted).map_or(Value::Null, |figure| Value::Double(figure.value));
    let bound = |key: &Option<Vec<u8>>| key.as_ref().and_then(|key| text_of_key(column.data_type, key)).map_or(Value::Null, Value::Text);
    vec![
        text(name),
        partition_name(part),
        text(&column.name),
        number_of(figure::NULL_SHARE),
        number_of(figure::DISTINCT),
        number_of(figure::VALUE_BYTES),
        number_of(figure::CORRELATION),
        bound(&own.least),
        bound(&own.greatest),
        number(of_table.looked.pages_read),
        number(of_table.looked.pages),
        Value::Int(i64::try_from(of_table.gathered_ms.saturating_mul(1000)).unwrap_or(i64::MAX)),
    ]
}

/// A value of statistics, which is a key of one column.
fn text_of_key(data_type: DataType, key: &[u8]) -> Option<String> {
    // Texts are cut there, and may be longer than the column allows.
    let of_key = if data_type.is_text() { DataType::Varchar(None) } else { data_type };
    let schema = Schema::new(vec![Column::new("value", of_key, false)]).ok()?;
    let value = KeyLayout::new(&schema, &[(0, Direction::Ascending)]).decode(key).ok()?.pop()?;
    Some(to_text(value.as_ref(), &of_key))
}
