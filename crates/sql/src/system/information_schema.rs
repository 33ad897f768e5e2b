//! Tables of the SQL standard: `information_schema.tables`, `columns`, `views`, `sequences`, `schemata` and those of constraints.

use super::{NUMBER, Part, Rows, Seen, SystemTable, number, split, text};
use crate::SqlResult;
use crate::bind::view_change::{CheckOption, Doing};
use crate::bind::{Binder, TEXT};
use crate::catalog::is_system;
use crate::expression::{ParamTypes, type_name};
use pagefold_engine::database::{Transaction, split_partition_name};
use pagefold_engine::index::Index;
use pagefold_format::catalog::{ConstraintKind, DefinedKind, Notes, Reference};
use pagefold_types::{DataType, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

pub(super) const TABLES: &[SystemTable] = &[
    SystemTable {
        name: "information_schema.tables",
        columns: &[("table_catalog", TEXT), ("table_schema", TEXT), ("table_name", TEXT), ("table_type", TEXT)],
        rows: tables,
    },
    SystemTable {
        name: "information_schema.columns",
        columns: &[
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
        rows: |seen| seen.of_relations(columns_of),
    },
    SystemTable {
        name: "information_schema.table_constraints",
        columns: &[
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
        rows: |seen| seen.of_tables(|name, parts, rows| constraints_of(name, &parts[0], rows)),
    },
    SystemTable {
        name: "information_schema.key_column_usage",
        columns: &[
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
        rows: |seen| of_keys(seen, key_columns_of),
    },
    SystemTable {
        name: "information_schema.referential_constraints",
        columns: &[
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
        rows: |seen| of_keys(seen, references_of),
    },
    SystemTable {
        name: "information_schema.views",
        columns: &[
            ("table_catalog", TEXT),
            ("table_schema", TEXT),
            ("table_name", TEXT),
            ("view_definition", TEXT),
            ("check_option", TEXT),
            ("is_updatable", TEXT),
            ("is_insertable_into", TEXT),
        ],
        rows: views,
    },
    SystemTable {
        name: "information_schema.sequences",
        columns: &[
            ("sequence_catalog", TEXT),
            ("sequence_schema", TEXT),
            ("sequence_name", TEXT),
            ("start_value", TEXT),
            ("minimum_value", TEXT),
            ("maximum_value", TEXT),
            ("increment", TEXT),
            ("cycle_option", TEXT),
        ],
        rows: |seen| Ok(objects(seen.transaction, DefinedKind::Sequence, sequence_row)),
    },
    SystemTable { name: "information_schema.schemata", columns: &[("catalog_name", TEXT), ("schema_name", TEXT)], rows: schemata },
];

fn tables(seen: &mut Seen<'_>) -> SqlResult<Rows> {
    let mut rows = seen.of_relations(|name, _, rows| {
        let (schema, table) = split(name);
        rows.push(vec![text("pagefold"), text(schema), text(table), text("BASE TABLE")]);
    })?;
    let view = |schema: &str, name: &str, _: &Notes| vec![text("pagefold"), text(schema), text(name), text("VIEW")];
    rows.extend(objects(seen.transaction, DefinedKind::View, view));
    Ok(rows)
}

fn views(seen: &mut Seen<'_>) -> SqlResult<Rows> {
    let names: Vec<String> = seen.transaction.object_names(DefinedKind::View).into_iter().filter(|name| !is_system(name)).collect();
    let params = ParamTypes::default();
    let mut changed = BTreeSet::new();
    for name in names {
        let shown = Binder::new(seen.transaction, &params).view_target(&name, Doing::Ask, false);
        changed.extend(shown.is_ok_and(|(_, view)| view.is_updatable()).then_some(name));
    }
    Ok(objects(seen.transaction, DefinedKind::View, |schema, name, notes| {
        let whole = if schema == "public" { name.to_owned() } else { format!("{schema}.{name}") };
        let yes = if changed.contains(&whole) { "YES" } else { "NO" };
        let check = CheckOption::of(notes).map_or("none", CheckOption::name).to_uppercase();
        let definition = text(notes.text().unwrap_or_default());
        vec![text("pagefold"), text(schema), text(name), definition, text(&check), text(yes), text(yes)]
    }))
}

fn schemata(seen: &mut Seen<'_>) -> SqlResult<Rows> {
    let own = seen.transaction.object_names(DefinedKind::Schema);
    let all = ["information_schema", "public"].map(str::to_owned).into_iter().chain(own);
    Ok(all.map(|name| vec![text("pagefold"), text(&name)]).collect())
}

/// Rows of each table, that need the keys of others.
fn of_keys(seen: &mut Seen<'_>, push: fn(&str, &BTreeMap<String, Vec<Part>>, &mut Rows)) -> SqlResult<Rows> {
    let tables = seen.tables()?;
    let mut rows = Vec::new();
    tables.keys().for_each(|name| push(name, &tables, &mut rows));
    Ok(rows)
}

/// A row for each object of a kind, of its schema, name and notes.
fn objects(transaction: &Transaction<'static>, kind: DefinedKind, row: impl Fn(&str, &str, &Notes) -> Vec<Value>) -> Rows {
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

fn columns_of(name: &str, Part { table, notes, .. }: &Part, rows: &mut Rows) {
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

fn constraints_of(name: &str, part: &Part, rows: &mut Rows) {
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

fn key_columns_of(name: &str, tables: &BTreeMap<String, Vec<Part>>, rows: &mut Rows) {
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

fn references_of(name: &str, tables: &BTreeMap<String, Vec<Part>>, rows: &mut Rows) {
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
