//! `pagefold get`

use crate::arguments::GetArguments;
use crate::failure::{Failure, Result};
use crate::session::Session;
use pagefold::engine::OpenMode;
use pagefold::interchange::{BatchBuilder, JsonLinesSink, Sink};
use pagefold::types::{Value, text};
use pagefold::utility;

pub(super) fn run(session: &Session, arguments: &GetArguments) -> Result<()> {
    let database = session.open(&arguments.database, OpenMode::Read)?;
    let found = utility::get(&database, &arguments.table, &arguments.key)?;
    let Some(all) = found else {
        return Err(Failure::Failed(format!("table \"{}\" has no row with primary key ({})", arguments.table, arguments.key.join(", "))));
    };
    let table = utility::first_table(&database, &arguments.table)?;
    let columns = table.attributes().visible_columns();
    if !session.global.json {
        let values: Vec<Value> = columns.iter().map(|column| all[*column].clone()).collect();
        let of_table = table.attributes().schema.columns();
        return session.print(&listing(&values, columns.iter().map(|column| &of_table[*column])));
    }
    // By the sink of scan, so that numbers keep all their digits.
    let schema = utility::table_schema(&table)?;
    let mut builder = BatchBuilder::new(&schema, table.layout(), &columns, 1)?;
    builder.push_row(&all)?;
    let mut row = Vec::new();
    let output = schema.project(&columns)?;
    let mut sink = JsonLinesSink::new(&mut row, &output);
    sink.write(&builder.finish()?)?;
    sink.finish()?;
    drop(sink);
    let name = serde_json::Value::from(arguments.table.as_str());
    session.print(&format!("{{\"table\":{name},\"row\":{}}}", String::from_utf8_lossy(&row).trim_end()))
}

/// A line for each column.
fn listing<'c>(values: &[Value], columns: impl Iterator<Item = &'c pagefold::types::Column> + Clone) -> String {
    let width = columns.clone().map(|c| c.name.chars().count()).max().unwrap_or(0);
    let mut out = String::new();
    for (value, column) in values.iter().zip(columns) {
        let shown: String = text::to_text(value.as_ref(), &column.data_type).chars().flat_map(shown).collect();
        let pad = " ".repeat(width - column.name.chars().count());
        out += &format!("{}{pad}  {shown}\n", column.name);
    }
    out
}

/// Control characters never reach a terminal.
fn shown(c: char) -> Vec<char> {
    if c.is_control() { c.escape_default().collect() } else { vec![c] }
}
