//! Rows as CSV, Markdown, and values with a bar between them.

use super::{OutputColumn, RowWriter, Style, field, is_number};
use crate::failure::Result;
use pagefold::Value;
use std::io::Write;

/// RFC 4180, with line feeds between lines. What stands for NULL is never in quotes, and a text of the same letters always is.
pub(super) struct CsvRows {
    columns: Vec<OutputColumn>,
    style: Style,
    has_begun: bool,
}

impl CsvRows {
    pub(super) fn new(columns: Vec<OutputColumn>, style: Style) -> CsvRows {
        CsvRows { columns, style, has_begun: false }
    }

    fn quoted(&self, text: String) -> String {
        let is_plain = text != self.style.null && !text.contains([',', '"', '\n', '\r']);
        if is_plain { text } else { format!("\"{}\"", text.replace('"', "\"\"")) }
    }

    fn begin(&mut self, out: &mut dyn Write) -> Result<()> {
        if !std::mem::replace(&mut self.has_begun, true) && self.style.headers {
            let names: Vec<String> = self.columns.iter().map(|column| self.quoted(column.name.clone())).collect();
            writeln!(out, "{}", names.join(","))?;
        }
        Ok(())
    }
}

impl RowWriter for CsvRows {
    fn row(&mut self, row: &[Value], out: &mut dyn Write) -> Result<()> {
        self.begin(out)?;
        let one = |(value, column)| field(value, column).map_or_else(|| self.style.null.clone(), |text| self.quoted(text));
        let fields: Vec<String> = row.iter().zip(&self.columns).map(one).collect();
        Ok(writeln!(out, "{}", fields.join(","))?)
    }

    fn end(&mut self, is_complete: bool, out: &mut dyn Write) -> Result<()> {
        if is_complete { self.begin(out) } else { Ok(()) }
    }
}

/// A table for Markdown.
pub(super) struct MarkdownRows {
    columns: Vec<OutputColumn>,
    style: Style,
    has_begun: bool,
}

impl MarkdownRows {
    pub(super) fn new(columns: Vec<OutputColumn>, style: Style) -> MarkdownRows {
        MarkdownRows { columns, style, has_begun: false }
    }

    /// Without names there is no table in Markdown: they are always there.
    fn begin(&mut self, out: &mut dyn Write) -> Result<()> {
        if !std::mem::replace(&mut self.has_begun, true) {
            let names: Vec<String> = self.columns.iter().map(|column| cell(&column.name)).collect();
            let rule: Vec<&str> = self.columns.iter().map(|column| if is_number(&column.data_type) { "---:" } else { "---" }).collect();
            writeln!(out, "| {} |\n|{}|", names.join(" | "), rule.join("|"))?;
        }
        Ok(())
    }
}

fn cell(text: &str) -> String {
    text.replace('\\', "\\\\").replace('|', "\\|").replace("\r\n", "<br>").replace(['\n', '\r'], "<br>")
}

impl RowWriter for MarkdownRows {
    fn row(&mut self, row: &[Value], out: &mut dyn Write) -> Result<()> {
        self.begin(out)?;
        let one = |(value, column)| cell(&field(value, column).unwrap_or_else(|| self.style.null.clone()));
        let fields: Vec<String> = row.iter().zip(&self.columns).map(one).collect();
        Ok(writeln!(out, "| {} |", fields.join(" | "))?)
    }

    fn end(&mut self, is_complete: bool, out: &mut dyn Write) -> Result<()> {
        if is_complete { self.begin(out) } else { Ok(()) }
    }
}

/// Values as they are, with a bar between them.
pub(super) struct ListRows {
    columns: Vec<OutputColumn>,
    style: Style,
    has_begun: bool,
}

impl ListRows {
    pub(super) fn new(columns: Vec<OutputColumn>, style: Style) -> ListRows {
        ListRows { columns, style, has_begun: false }
    }

    fn begin(&mut self, out: &mut dyn Write) -> Result<()> {
        if !std::mem::replace(&mut self.has_begun, true) && self.style.headers {
            let names: Vec<&str> = self.columns.iter().map(|column| column.name.as_str()).collect();
            writeln!(out, "{}", names.join("|"))?;
        }
        Ok(())
    }
}

impl RowWriter for ListRows {
    fn row(&mut self, row: &[Value], out: &mut dyn Write) -> Result<()> {
        self.begin(out)?;
        let one = |(value, column)| field(value, column).unwrap_or_else(|| self.style.null.clone());
        let fields: Vec<String> = row.iter().zip(&self.columns).map(one).collect();
        Ok(writeln!(out, "{}", fields.join("|"))?)
    }

    fn end(&mut self, is_complete: bool, out: &mut dyn Write) -> Result<()> {
        if is_complete { self.begin(out) } else { Ok(()) }
    }
}
