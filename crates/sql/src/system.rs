//! Tables that say what there is: `information_schema.tables`, `columns`, `views`, `sequences`, `schemata` and those of constraints, `pagefold_tables`, `pagefold_partitions`, `pagefold_indexes`. Their rows are made when a statement begins, of what its
//! transaction would find then: what it has defined itself, not what others have and may take back.

use crate::SqlResult;
use crate::bind::{Output, TEXT};
use crate::catalog::is_system;
use crate::expression::type_name;
use pagefold_engine::Error;
use pagefold_engine::database::{Transaction, split_partition_name};
use pagefold_engine::index::Index;
use pagefold_engine::table_space::Table;
use pagefold_format::catalog::{ConstraintKind, DefinedKind, Notes, Reference};
use pagefold_types::{DataType, Direction, Value};
use std::collections::BTreeMap;
use std::sync::Arc;

/// One of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SystemTable {
    Tables,
    Columns,
    TableConstraints,
    KeyColumnUsage,
    ReferentialConstraints,
    Views,
    Sequences,
    Schemata,
    PagefoldTables,
    PagefoldPartitions,
    PagefoldIndexes,
}

const NUMBER: DataType = DataType::BigInt;

impl SystemTable {
    /// The one of this name, as a statement has it.
    pub(crate) fn named(name: &str) -> Option<SystemTable> {
        Some(match name {
            "information_schema.tables" => SystemTable::Tables,
            "information_schema.columns" => SystemTable::Columns,
            "information_schema.table_constraints" => SystemTable::TableConstraints,
            "information_schema.key_column_usage" => SystemTable::KeyColumnUsage,
            "information_schema.referential_constraints" => SystemTable::ReferentialConstraints,
            "information_schema.views" => SystemTable::Views,
            "information_schema.sequences" => SystemTable::Sequences,
            "information_schema.schemata" => SystemTable::Schemata,
            "pagefold_tables" => SystemTable::PagefoldTables,
            "pagefold_partitions" => SystemTable::PagefoldPartitions,
            "pagefold_indexes" => SystemTable::PagefoldIndexes,
            _ => return None,
        })
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            SystemTable::Tables => "tables",
            SystemTable::Columns => "columns",
            SystemTable::TableConstraints => "table_constraints",
            SystemTable::KeyColumnUsage => "key_column_usage",
            SystemTable::ReferentialConstraints => "referential_constraints",
            SystemTable::Views => "views",
            SystemTable::Sequences => "sequences",
            SystemTable::Schemata => "schemata",
            SystemTable::PagefoldTables => "pagefold_tables",
            SystemTable::PagefoldPartitions => "pagefold_partitions",
            SystemTable::PagefoldIndexes => "pagefold_indexes",
        }
    }

    pub(crate) fn columns(self) -> Vec<Output> {
        let columns: &[(&str, DataType)] = match self {
            SystemTable::Tables => &[("table_catalog", TEXT), ("table_schema", TEXT), ("table_name", TEXT), ("table_type", TEXT)],
            SystemTable::Columns => &[
                ("table_catalog", TEXT),
                ("table_schema", TEXT),
                ("table_name", TEXT),
                ("column_name", TEXT),
                ("ordinal_position", NUMBER),
                ("column_default", TEXT),
                ("is_nullable", TEXT),
                ("data_type", TEXT),
                ("character_maximum_length", NUMBER),
                ("numeric_precision", NUMBER),
                ("numeric_scale", NUMBER),
            ],
            SystemTable::TableConstraints => &[
                ("constraint_catalog", TEXT),
                ("constraint_schema", TEXT),
                ("constraint_name", TEXT),
                ("table_catalog", TEXT),
                ("table_schema", TEXT),
                ("table_name", TEXT),
                ("constraint_type", TEXT),
                ("is_deferrable", TEXT),
                ("initially_deferred", TEXT),
            ],
            SystemTable::KeyColumnUsage => &[
                ("constraint_catalog", TEXT),
                ("constraint_schema", TEXT),
                ("constraint_name", TEXT),
                ("table_catalog", TEXT),
                ("table_schema", TEXT),
                ("table_name", TEXT),
                ("column_name", TEXT),
                ("ordinal_position", NUMBER),
                ("position_in_unique_constraint", NUMBER),
            ],
            SystemTable::ReferentialConstraints => &[
                ("constraint_catalog", TEXT),
                ("constraint_schema", TEXT),
                ("constraint_name", TEXT),
                ("unique_constraint_catalog", TEXT),
                ("unique_constraint_schema", TEXT),
                ("unique_constraint_name", TEXT),
                ("match_option", TEXT),
                ("update_rule", TEXT),
                ("delete_rule", TEXT),
            ],
            SystemTable::Views => &[
                ("table_catalog", TEXT),
                ("table_schema", TEXT),
                ("table_name", TEXT),
                ("view_definition", TEXT),
                ("is_updatable", TEXT),
                ("is_insertable_into", TEXT),
            ],
            SystemTable::Sequences => &[
                ("sequence_catalog", TEXT),
                ("sequence_schema", TEXT),
                ("sequence_name", TEXT),
                ("start_value", TEXT),
                ("minimum_value", TEXT),
                ("maximum_value", TEXT),
                ("increment", TEXT),
                ("cycle_option", TEXT),
            ],
            SystemTable::Schemata => &[("catalog_name", TEXT), ("schema_name", TEXT)],
            SystemTable::PagefoldPartitions => &[
                ("table_name", TEXT),
                ("partition_name", TEXT),
                ("less_than", TEXT),
                ("method", TEXT),
                ("page_size_bytes", NUMBER),
                ("rows", NUMBER),
                ("pages", NUMBER),
                ("size_bytes", NUMBER),
            ],
            SystemTable::PagefoldTables => &[
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
            SystemTable::PagefoldIndexes => &[
                ("index_name", TEXT),
                ("table_name", TEXT),
                ("columns", TEXT),
                ("is_unique", DataType::Boolean),
                ("format", TEXT),
                ("page_size_bytes", NUMBER),
                ("pages", NUMBER),
                ("size_bytes", NUMBER),
            ],
        };
        columns.iter().map(|(name, data_type)| Output { name: (*name).into(), data_type: *data_type }).collect()
    }

    /// Its rows.
    ///
    /// # Errors
    /// When a table cannot be opened.
    pub(crate) fn rows(self, transaction: &mut Transaction<'static>) -> SqlResult<Vec<Vec<Value>>> {
        match self {
            SystemTable::Views => {
                return Ok(objects(transaction, DefinedKind::View, |schema, name, notes| {
                    let definition = text(notes.text().unwrap_or_default());
                    vec![text("pagefold"), text(schema), text(name), definition, text("NO"), text("NO")]
                }));
            }
            SystemTable::Sequences => return Ok(objects(transaction, DefinedKind::Sequence, sequence_row)),
            SystemTable::Schemata => {
                let own = transaction.object_names(DefinedKind::Schema);
                let all = ["information_schema", "public"].map(str::to_owned).into_iter().chain(own);
                return Ok(all.map(|name| vec![text("pagefold"), text(&name)]).collect());
            }
            SystemTable::PagefoldPartitions => return partitions(transaction),
            _ => {}
        }
        // A table that is divided is one table.
        let mut tables: BTreeMap<String, Vec<Part>> = BTreeMap::new();
        for name in transaction.table_names() {
            let Some(part) = Part::find(transaction, &name)? else { continue };
            let whole = split_partition_name(&name).filter(|_| part.table.attributes().range.is_some());
            let name = whole.map_or(&*name, |(name, _)| name).to_owned();
            tables.entry(name).or_default().push(part);
        }
        let mut rows = Vec::new();
        for (name, parts) in tables.iter().filter(|(name, _)| !is_system(name)) {
            match self {
                SystemTable::Tables => {
                    let (schema, table) = split(name);
                    rows.push(vec![text("pagefold"), text(schema), text(table), text("BASE TABLE")]);
                }
                SystemTable::Columns => columns_of(name, &parts[0], &mut rows),
                SystemTable::TableConstraints => constraints_of(name, &parts[0], &mut rows),
                SystemTable::KeyColumnUsage => key_columns_of(name, &tables, &mut rows),
                SystemTable::ReferentialConstraints => references_of(name, &tables, &mut rows),
                SystemTable::PagefoldTables => rows.push(table_row(name, parts)),
                SystemTable::PagefoldIndexes => index_rows(name, parts, &mut rows),
                SystemTable::Views | SystemTable::Sequences | SystemTable::Schemata | SystemTable::PagefoldPartitions => {}
            }
        }
        if self == SystemTable::Tables {
            let view = |schema: &str, name: &str, _: &Notes| vec![text("pagefold"), text(schema), text(name), text("VIEW")];
            rows.extend(objects(transaction, DefinedKind::View, view));
        }
        Ok(rows)
    }
}

/// A row for each object of a kind, of its schema, name and notes.
fn objects(transaction: &Transaction<'static>, kind: DefinedKind, row: impl Fn(&str, &str, &Notes) -> Vec<Value>) -> Vec<Vec<Value>> {
    let names = transaction.object_names(kind).into_iter().filter(|name| !is_system(name));
    // One that goes at this moment is none.
    let found = names.filter_map(|name| {
        let object = transaction.object(kind, &name).ok()?;
        let (schema, short) = split(&name);
        Some(row(schema, short, &object.notes))
    });
    found.collect()
}

fn sequence_row(schema: &str, name: &str, notes: &Notes) -> Vec<Value> {
    let numbers = notes.sequence().unwrap_or_default();
    let mut row = vec![text("pagefold"), text(schema), text(name)];
    let of_sequence = [numbers.start, numbers.least, numbers.greatest, numbers.increment];
    row.extend(of_sequence.map(|number| text(&number.to_string())));
    row.push(text(if numbers.cycles { "YES" } else { "NO" }));
    row
}

/// A row for each partition, in the order of their keys.
fn partitions(transaction: &mut Transaction<'static>) -> SqlResult<Vec<Vec<Value>>> {
    let mut rows = Vec::new();
    for name in transaction.object_names(DefinedKind::PartitionedTable) {
        let Ok(whole) = transaction.partitioned_table(&name) else { continue };
        for partition in whole.partitions() {
            let Some(part) = Part::find(transaction, partition.table_name())? else { continue };
            let values = whole.limit_texts(partition).into_iter().map(|text| text.unwrap_or_else(|| "MAXVALUE".into()));
            let limit = values.collect::<Vec<String>>().join(", ");
            let sizes = table_row(&name, std::slice::from_ref(&part)).split_off(6);
            let attributes = part.table.attributes();
            let stored = [text(attributes.method.name()), number(attributes.page_bytes as u64)];
            rows.push([text(&name), text(partition.name()), text(&limit)].into_iter().chain(stored).chain(sizes).collect());
        }
    }
    Ok(rows)
}

/// A table that is not divided, or a partition, as a transaction finds it.
struct Part {
    table: Arc<Table>,
    notes: Arc<Notes>,
    indexes: Vec<Arc<Index>>,
}

impl Part {
    fn find(transaction: &mut Transaction<'static>, name: &str) -> SqlResult<Option<Part>> {
        let mut find = || {
            let table = transaction.table(name)?;
            let (notes, indexes) = (transaction.notes_of_table(&table), transaction.indexes(&table)?);
            Ok(Part { table, notes, indexes })
        };
        match find() {
            Ok(part) => Ok(Some(part)),
            // It has come since the snapshot, or goes at this moment.
            Err(Error::Unknown { .. } | Error::Stale { .. }) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

fn text(text: &str) -> Value {
    Value::Text(text.into())
}

fn number(number: u64) -> Value {
    Value::Int(i64::try_from(number).unwrap_or(i64::MAX))
}

/// Schema and name.
fn split(name: &str) -> (&str, &str) {
    name.split_once('.').unwrap_or(("public", name))
}

fn columns_of(name: &str, Part { table, notes, .. }: &Part, rows: &mut Vec<Vec<Value>>) {
    let (schema, short) = split(name);
    for at in table.attributes().visible_columns() {
        let column = &table.attributes().schema.columns()[at];
        let default = u32::try_from(at).ok().and_then(|id| notes.column(id).default);
        let length = match column.data_type {
            DataType::Char(length) | DataType::Varchar(Some(length)) => number(length.into()),
            _ => Value::Null,
        };
        let (precision, scale) = match column.data_type {
            DataType::Decimal { precision, scale } => (Value::Int(precision.into()), Value::Int(scale.into())),
            DataType::SmallInt => (Value::Int(16), Value::Int(0)),
            DataType::Integer => (Value::Int(32), Value::Int(0)),
            DataType::BigInt => (Value::Int(64), Value::Int(0)),
            _ => (Value::Null, Value::Null),
        };
        rows.push(vec![
            text("pagefold"),
            text(schema),
            text(short),
            text(&column.name),
            number(at as u64 + 1),
            default.map_or(Value::Null, Value::Text),
            text(if column.nullable { "YES" } else { "NO" }),
            text(type_name(&column.data_type)),
            length,
            precision,
            scale,
        ]);
    }
}

/// The unique indexes of a table, which are its keys: name, columns, and whether it is the primary one.
fn keys_of(Part { table, indexes, .. }: &Part) -> Vec<(String, Vec<usize>, bool)> {
    let own = |index: &Arc<Index>| {
        let attributes = index.attributes();
        let name = split_partition_name(index.name()).filter(|_| table.attributes().range.is_some()).map_or(index.name(), |(name, _)| name);
        let columns = attributes.columns.iter().map(|(column, _)| *column).collect();
        (name.to_owned(), columns, attributes.is_of_key(&table.attributes().primary_key))
    };
    indexes.iter().filter(|index| index.attributes().unique).map(own).collect()
}

fn constraints_of(name: &str, part: &Part, rows: &mut Vec<Vec<Value>>) {
    let (schema, short) = split(name);
    let mut push = |constraint: &str, kind: &str| {
        let names = [text("pagefold"), text(schema), text(constraint), text("pagefold"), text(schema), text(short), text(kind)];
        rows.push(names.into_iter().chain([text("NO"), text("NO")]).collect());
    };
    for (key, _, is_primary) in keys_of(part) {
        push(&key, if is_primary { "PRIMARY KEY" } else { "UNIQUE" });
    }
    for constraint in part.notes.constraints() {
        match constraint.kind {
            ConstraintKind::ForeignKey => push(&constraint.name, "FOREIGN KEY"),
            ConstraintKind::Check => push(&constraint.name, "CHECK"),
            ConstraintKind::Unique | ConstraintKind::PrimaryKey => {}
        }
    }
}

/// The key of another table that a foreign key refers to: its name, and which of the columns stand where in it.
fn key_referred(tables: &BTreeMap<String, Vec<Part>>, reference: &Reference) -> Option<(String, Vec<usize>)> {
    let parent = tables.get(&reference.name)?.first()?;
    let mut keys = keys_of(parent);
    keys.sort();
    keys.into_iter().find_map(|(key, columns, _)| {
        let place = |column: &u32| columns.iter().position(|own| *own == *column as usize);
        let places: Vec<usize> = reference.columns.iter().filter_map(place).collect();
        (places.len() == columns.len() && columns.len() == reference.columns.len()).then_some((key, places))
    })
}

fn key_columns_of(name: &str, tables: &BTreeMap<String, Vec<Part>>, rows: &mut Vec<Vec<Value>>) {
    let Some(part) = tables.get(name).and_then(|parts| parts.first()) else { return };
    let (schema, short) = split(name);
    let mut push = |key: &str, column: usize, at: usize, referred: Option<usize>| {
        let Some(own) = part.table.attributes().schema.columns().get(column) else { return };
        let names = [text("pagefold"), text(schema), text(key), text("pagefold"), text(schema), text(short), text(&own.name)];
        let referred = referred.map_or(Value::Null, |at| number(at as u64 + 1));
        rows.push(names.into_iter().chain([number(at as u64 + 1), referred]).collect());
    };
    for (key, columns, _) in keys_of(part) {
        columns.iter().enumerate().for_each(|(at, column)| push(&key, *column, at, None));
    }
    for constraint in part.notes.constraints() {
        let Some(reference) = &constraint.reference else { continue };
        let referred = key_referred(tables, reference);
        for (at, column) in constraint.columns.iter().enumerate() {
            push(&constraint.name, *column as usize, at, referred.as_ref().map(|(_, places)| places[at]));
        }
    }
}

fn references_of(name: &str, tables: &BTreeMap<String, Vec<Part>>, rows: &mut Vec<Vec<Value>>) {
    let Some(part) = tables.get(name).and_then(|parts| parts.first()) else { return };
    let (schema, _) = split(name);
    for constraint in part.notes.constraints() {
        let Some(reference) = &constraint.reference else { continue };
        let key = key_referred(tables, reference).map_or(Value::Null, |(key, _)| Value::Text(key));
        let rule = |action: u8| text(Reference::ACTIONS.get(usize::from(action)).copied().unwrap_or(Reference::ACTIONS[0]));
        rows.push(vec![
            text("pagefold"),
            text(schema),
            text(&constraint.name),
            text("pagefold"),
            text(split(&reference.name).0),
            key,
            text(if reference.full { "FULL" } else { "NONE" }),
            rule(reference.actions[1]),
            rule(reference.actions[0]),
        ]);
    }
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
        number(parts.len() as u64),
        number(rows),
        number(pages),
        number(bytes),
    ]
}

fn index_rows(name: &str, parts: &[Part], rows: &mut Vec<Vec<Value>>) {
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
