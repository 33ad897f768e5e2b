//! Tables of an SQLite file, and SQLite as a rival: WITHOUT ROWID where there is a primary key, text without the blanks that pad it, dates and decimals as integers, vacuumed.

use crate::data::Outcome;
use crate::inputs::{Group, Input, Pending, Rows, in_batches};
use pagefold_interchange::{ColumnView, Source};
use pagefold_types::{Column, DataType, Schema, Value, ValueRef, text};
use rusqlite::types::ValueRef as SqliteValue;
use rusqlite::{Connection, OpenFlags};
use std::path::{Path, PathBuf};

/// A column of a table, and whether it is a part of the primary key.
struct ColumnOf {
    name: String,
    declared: String,
    not_null: bool,
    key: bool,
}

fn open(path: &Path) -> Outcome<Connection> {
    // The file may lie where nothing can be written beside it.
    let uri = format!("file:{}?immutable=1", path.display());
    Ok(Connection::open_with_flags(uri, OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI)?)
}

fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// The tables of a file.
pub fn tables(path: &Path) -> Outcome<Vec<Pending>> {
    let connection = open(path)?;
    let mut query = connection.prepare("select name from sqlite_master where type = 'table' and name not like 'sqlite_%' order by name")?;
    let names = query.query_map([], |row| row.get::<_, String>(0))?.collect::<Result<Vec<_>, _>>()?;
    let path = path.to_path_buf();
    Ok(names
        .into_iter()
        .map(|name| {
            let path = path.clone();
            Pending::new(name.to_ascii_lowercase(), Group::Files, move || read(path, &name))
        })
        .collect())
}

/// The type of a column, by what its declaration says first.
fn sql_type(declared: &str) -> DataType {
    let upper = declared.to_ascii_uppercase();
    if upper.contains("INT") {
        DataType::BigInt
    } else if upper.contains("CHAR") || upper.contains("TEXT") || upper.contains("DATE") {
        DataType::Varchar(None)
    } else if upper.contains("BLOB") {
        DataType::Bytea
    } else {
        DataType::Double
    }
}

fn read(path: PathBuf, name: &str) -> Outcome<Rows> {
    let connection = open(&path)?;
    let mut query = connection.prepare(&format!("pragma table_info({})", quoted(name)))?;
    let columns = query.query_map([], |row| {
        Ok(ColumnOf { name: row.get(1)?, declared: row.get(2)?, not_null: row.get(3)?, key: row.get::<_, i64>(5)? > 0 })
    })?;
    let columns = columns.collect::<Result<Vec<_>, _>>()?;
    let schema = Schema::new(columns.iter().map(|c| Column::new(&c.name, sql_type(&c.declared), !c.not_null && !c.key)).collect())?;
    let types: Vec<DataType> = schema.columns().iter().map(|column| column.data_type).collect();
    let mut query = connection.prepare(&format!("select * from {}", quoted(name)))?;
    let rows = query.query_and_then([], |row| {
        let value = |(number, data_type): (usize, &DataType)| {
            Ok(match (row.get_ref(number)?, data_type) {
                (SqliteValue::Null, _) => Value::Null,
                (SqliteValue::Integer(v), DataType::BigInt) => Value::Int(v),
                (SqliteValue::Integer(v), DataType::Double) => Value::Double(v as f64),
                (SqliteValue::Real(v), DataType::Double) => Value::Double(v),
                (SqliteValue::Text(v), DataType::Varchar(_)) => Value::Text(std::str::from_utf8(v)?.to_owned()),
                (SqliteValue::Blob(v), DataType::Bytea) => Value::Bytes(v.to_vec()),
                (other, data_type) => return Err(format!("{other:?} in a column of {data_type}").into()),
            })
        };
        types.iter().enumerate().map(value).collect::<Outcome<Vec<Value>>>()
    })?;
    let (table, batches) = in_batches(schema, rows)?;
    Ok((table, batches, columns.into_iter().filter(|c| c.key).map(|c| c.name).collect()))
}

/// Bytes of an SQLite file with the table and its primary key.
pub fn file_bytes(input: &Input) -> Outcome<u64> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("table.sqlite");
    let mut connection = Connection::open(&path)?;
    let columns = input.table().schema().columns();
    let declared = |column: &Column| {
        let kind = match column.data_type {
            DataType::Real | DataType::Double => "real",
            DataType::Char(_) | DataType::Varchar(_) | DataType::Interval => "text",
            DataType::Bytea | DataType::Uuid => "blob",
            _ => "integer",
        };
        format!("{} {kind}{}", quoted(&column.name), if column.nullable { "" } else { " not null" })
    };
    let mut parts: Vec<String> = columns.iter().map(declared).collect();
    let key: Vec<String> = input.primary_key.iter().map(|name| quoted(name)).collect();
    if !key.is_empty() {
        parts.push(format!("primary key ({})", key.join(", ")));
    }
    let without = if key.is_empty() { "" } else { " without rowid" };
    connection.execute_batch(&format!("pragma synchronous = off; create table t ({}){without}", parts.join(", ")))?;
    let transaction = connection.transaction()?;
    {
        let places = vec!["?"; columns.len()].join(", ");
        let mut insert = transaction.prepare(&format!("insert into t values ({places})"))?;
        for batch in input.rows() {
            let views = ColumnView::of_batch(batch, columns)?;
            for row in 0..batch.num_rows() {
                for (number, (view, column)) in views.iter().zip(columns).enumerate() {
                    let place = number + 1;
                    match view.value(row) {
                        ValueRef::Null => insert.raw_bind_parameter(place, rusqlite::types::Null)?,
                        ValueRef::Boolean(v) => insert.raw_bind_parameter(place, v)?,
                        ValueRef::Int(v) => insert.raw_bind_parameter(place, v)?,
                        ValueRef::Real(v) => insert.raw_bind_parameter(place, f64::from(v))?,
                        ValueRef::Double(v) => insert.raw_bind_parameter(place, v)?,
                        ValueRef::Decimal(v) => match i64::try_from(v) {
                            Ok(v) => insert.raw_bind_parameter(place, v)?,
                            Err(_) => insert.raw_bind_parameter(place, text::to_text(ValueRef::Decimal(v), &column.data_type))?,
                        },
                        ValueRef::Text(v) => insert.raw_bind_parameter(place, v)?,
                        ValueRef::Bytes(v) => insert.raw_bind_parameter(place, v)?,
                        ValueRef::Uuid(v) => insert.raw_bind_parameter(place, v)?,
                        ValueRef::Interval(_) => insert.raw_bind_parameter(place, text::to_text(view.value(row), &column.data_type))?,
                    }
                }
                insert.raw_execute()?;
            }
        }
    }
    transaction.commit()?;
    connection.execute_batch("vacuum")?;
    drop(connection);
    Ok(std::fs::metadata(&path)?.len())
}
