//! Rows in boxes, and one column a line.
//!
//! Invariants:
//! - widths are those of the first rows; of later ones texts that are wider are cut, and numbers push the line out: none is ever cut;
//! - a line of the output is a row: control characters are shown as `\n`, `\t`, `\u{..}`.

use super::{OutputColumn, RowWriter, Style, field, is_number, is_text};
use crate::failure::Result;
use crate::size::grouped;
use pagefold::Value;
use std::io::Write;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Rows, and bytes of them, that decide the widths.
const ROWS_MEASURED: usize = 1000;
const BYTES_MEASURED: usize = 4 << 20;

/// A text on one line, at most so wide; 0 for any width.
pub(in super::super) fn shown(text: &str, width_max: usize) -> String {
    let (mut out, mut width) = (String::with_capacity(text.len().min(256)), 0);
    // The end before which there is room for the ellipsis.
    let mut cut = 0;
    for c in text.chars() {
        let before = out.len();
        if c.is_control() {
            out.extend(c.escape_default())
        } else {
            out.push(c)
        }
        width += if c.is_control() { out.len() - before } else { c.width().unwrap_or(0) };
        if width_max > 0 && width > width_max {
            out.truncate(cut);
            out.push('…');
            return out;
        }
        if width < width_max {
            cut = out.len();
        }
    }
    out
}

/// A field and the blanks that it needs.
fn padded(text: &str, width: usize, is_right: bool) -> String {
    let blanks = " ".repeat(width.saturating_sub(text.width()));
    if is_right { blanks + text } else { text.to_owned() + &blanks }
}

/// A table of box characters.
pub(super) struct BoxRows {
    columns: Vec<OutputColumn>,
    style: Style,
    /// Known once the first rows are out.
    widths: Option<Vec<usize>>,
    waiting: Vec<Vec<String>>,
    waiting_bytes: usize,
    rows: u64,
}

impl BoxRows {
    pub(super) fn new(columns: Vec<OutputColumn>, style: Style) -> BoxRows {
        BoxRows { columns, style, widths: None, waiting: Vec::new(), waiting_bytes: 0, rows: 0 }
    }

    fn fields(&self, row: &[Value]) -> Vec<String> {
        let null = shown(&self.style.null, 0);
        let one = |(at, (value, column)): (usize, (&Value, &OutputColumn))| match field(value, column) {
            None => null.clone(),
            Some(text) => {
                // A box that has begun keeps its width, unless nothing is to be cut.
                let width = match &self.widths {
                    Some(widths) if self.style.width_max > 0 => widths[at],
                    _ => self.style.width_max,
                };
                shown(&text, if is_text(&column.data_type) { width } else { 0 })
            }
        };
        row.iter().zip(&self.columns).enumerate().map(one).collect()
    }

    fn line(&self, fields: &[String], widths: &[usize]) -> String {
        let mut line = String::from("│");
        for ((text, width), column) in fields.iter().zip(widths).zip(&self.columns) {
            line.push(' ');
            line.push_str(&padded(text, *width, is_number(&column.data_type)));
            line.push_str(" │");
        }
        line
    }

    fn start(&mut self, out: &mut dyn Write) -> Result<()> {
        let names: Vec<String> = self.columns.iter().map(|column| shown(&column.name, self.style.width_max)).collect();
        let mut widths: Vec<usize> = names.iter().map(|name| if self.style.headers { name.width() } else { 1 }).collect();
        for row in &self.waiting {
            widths.iter_mut().zip(row).for_each(|(width, text)| *width = (*width).max(text.width()));
        }
        writeln!(out, "{}", rule(&widths, ['┌', '┬', '┐']))?;
        if self.style.headers {
            writeln!(out, "{}", self.line(&names, &widths))?;
            writeln!(out, "{}", rule(&widths, ['├', '┼', '┤']))?;
        }
        for row in std::mem::take(&mut self.waiting) {
            writeln!(out, "{}", self.line(&row, &widths))?;
        }
        self.widths = Some(widths);
        Ok(())
    }
}

fn rule(widths: &[usize], [left, between, right]: [char; 3]) -> String {
    let lines: Vec<String> = widths.iter().map(|width| "─".repeat(width + 2)).collect();
    format!("{left}{}{right}", lines.join(&between.to_string()))
}

impl RowWriter for BoxRows {
    fn row(&mut self, row: &[Value], out: &mut dyn Write) -> Result<()> {
        self.rows += 1;
        let fields = self.fields(row);
        if let Some(widths) = &self.widths {
            return Ok(writeln!(out, "{}", self.line(&fields, widths))?);
        }
        self.waiting_bytes += fields.iter().map(String::len).sum::<usize>();
        self.waiting.push(fields);
        if self.waiting.len() >= ROWS_MEASURED || self.waiting_bytes >= BYTES_MEASURED { self.start(out) } else { Ok(()) }
    }

    fn end(&mut self, is_complete: bool, out: &mut dyn Write) -> Result<()> {
        if self.widths.is_none() {
            if !is_complete && self.waiting.is_empty() {
                return Ok(());
            }
            self.start(out)?;
        }
        writeln!(out, "{}", rule(self.widths.as_deref().unwrap_or_default(), ['└', '┴', '┘']))?;
        if is_complete {
            writeln!(out, "({} row{})", grouped(self.rows), if self.rows == 1 { "" } else { "s" })?;
        }
        Ok(())
    }
}

/// One column a line.
pub(super) struct ExpandedRows {
    columns: Vec<OutputColumn>,
    names: Vec<String>,
    width: usize,
    style: Style,
    rows: u64,
}

impl ExpandedRows {
    pub(super) fn new(columns: Vec<OutputColumn>, style: Style) -> ExpandedRows {
        let names: Vec<String> = columns.iter().map(|column| shown(&column.name, style.width_max)).collect();
        let width = names.iter().map(|name| name.width()).max().unwrap_or(0);
        ExpandedRows { columns, names, width, style, rows: 0 }
    }
}

impl RowWriter for ExpandedRows {
    fn row(&mut self, row: &[Value], out: &mut dyn Write) -> Result<()> {
        self.rows += 1;
        writeln!(out, "─[ {} ]{}", self.rows, "─".repeat(self.width.saturating_sub(2).max(3)))?;
        for ((value, column), name) in row.iter().zip(&self.columns).zip(&self.names) {
            let text = field(value, column).unwrap_or_else(|| self.style.null.clone());
            writeln!(out, "{} │ {}", padded(name, self.width, false), shown(&text, 0))?;
        }
        Ok(())
    }

    fn end(&mut self, is_complete: bool, out: &mut dyn Write) -> Result<()> {
        if is_complete && self.rows == 0 {
            writeln!(out, "(0 rows)")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::columns;
    use super::*;
    use crate::arguments::RowsFormat;

    #[test]
    fn texts_are_cut_by_their_width() {
        assert_eq!(shown("abcdef", 6), "abcdef");
        assert_eq!(shown("abcdefg", 6), "abcde…");
        assert_eq!(shown("船船船", 6), "船船船");
        assert_eq!(shown("船船船船", 6), "船船…");
        assert_eq!(shown("船船船船", 5), "船船…");
        assert_eq!(shown("a\nb", 0), "a\\nb");
        assert_eq!(shown("\u{1b}[31m", 0), "\\u{1b}[31m");
        assert_eq!(shown("abc", 1), "…");
    }

    #[test]
    fn later_rows_keep_the_box() {
        let row = |number: i64, text: &str| vec![Value::Int(number), Value::Text(text.into()), Value::Null];
        let (mut out, mut writer) = (Vec::new(), BoxRows::new(columns(), Style::new(RowsFormat::Box)));
        for _ in 0..ROWS_MEASURED {
            writer.row(&row(1, "abcde"), &mut out).unwrap();
        }
        assert!(writer.waiting.is_empty(), "no more is kept");
        out.clear();
        writer.row(&row(123_456, "abcdefg"), &mut out).unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), "│ 123456 │ abcd… │       │\n");
    }

    #[test]
    fn an_error_closes_the_box() {
        let (mut out, mut writer) = (Vec::new(), BoxRows::new(columns(), Style::new(RowsFormat::Box)));
        writer.end(false, &mut out).unwrap();
        assert_eq!(out, b"");
        writer.row(&[Value::Int(1), Value::Null, Value::Null], &mut out).unwrap();
        writer.end(false, &mut out).unwrap();
        assert!(String::from_utf8(out).unwrap().ends_with("┘\n"));
    }
}
