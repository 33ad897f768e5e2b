//! Batches as aligned columns for people.
//!
//! The widths come from the first rows; later values that are wider push the line out. Control characters are shown as `\n`, `\t`, `\u{..}`, so that a value never breaks the table.

use super::Sink;
use crate::arrow::ColumnView;
use crate::{InterchangeError, TableSchema};
use arrow_array::RecordBatch;
use pagefold_types::{DataType, text};
use std::io::Write;

/// Rows that decide the widths.
const ROWS_MEASURED: usize = 1_000;

/// Longer values are cut, with an ellipsis.
const VALUE_CHARS_MAX: usize = 60;

/// Writes aligned text.
#[derive(Debug)]
pub struct TableSink<W> {
    out: W,
    table: TableSchema,
    waiting: Vec<Vec<String>>,
    /// Known once the first rows are out
    widths: Option<Vec<usize>>,
}

fn shown(text: &str) -> String {
    let mut out = String::new();
    let mut chars = text.chars();
    for c in chars.by_ref().take(VALUE_CHARS_MAX) {
        if c.is_control() { out.extend(c.escape_default()) } else { out.push(c) }
    }
    if chars.next().is_some() {
        out.push('\u{2026}');
    }
    out
}

fn is_right_aligned(data_type: &DataType) -> bool {
    matches!(
        data_type,
        DataType::SmallInt | DataType::Integer | DataType::BigInt | DataType::Real | DataType::Double | DataType::Decimal { .. }
    )
}

impl<W: Write> TableSink<W> {
    /// Begins.
    #[must_use]
    pub fn new(out: W, table: &TableSchema) -> TableSink<W> {
        TableSink { out, table: table.clone(), waiting: Vec::new(), widths: None }
    }

    fn line(&self, fields: &[String], widths: &[usize]) -> String {
        let mut line = String::new();
        for (i, ((field, width), column)) in fields.iter().zip(widths).zip(self.table.schema().columns()).enumerate() {
            let pad = " ".repeat(width.saturating_sub(field.chars().count()));
            if i > 0 {
                line.push_str("  ");
            }
            if is_right_aligned(&column.data_type) {
                line.push_str(&pad);
                line.push_str(field);
            } else {
                line.push_str(field);
                line.push_str(&pad);
            }
        }
        line.truncate(line.trim_end_matches(' ').len());
        line.push('\n');
        line
    }

    /// Writes header and rows that waited for the widths.
    fn start(&mut self) -> Result<(), InterchangeError> {
        let names: Vec<String> = self.table.schema().columns().iter().map(|c| shown(&c.name)).collect();
        let mut widths: Vec<usize> = names.iter().map(|n| n.chars().count()).collect();
        for row in &self.waiting {
            widths.iter_mut().zip(row).for_each(|(w, field)| *w = (*w).max(field.chars().count()));
        }
        let rule: Vec<String> = widths.iter().map(|w| "-".repeat(*w)).collect();
        self.out.write_all(self.line(&names, &widths).as_bytes())?;
        self.out.write_all(self.line(&rule, &widths).as_bytes())?;
        for row in std::mem::take(&mut self.waiting) {
            self.out.write_all(self.line(&row, &widths).as_bytes())?;
        }
        self.widths = Some(widths);
        Ok(())
    }
}

impl<W: Write + Send> Sink for TableSink<W> {
    fn write(&mut self, batch: &RecordBatch) -> Result<(), InterchangeError> {
        let columns = self.table.schema().columns().to_vec();
        let views = ColumnView::of_batch(batch, &columns)?;
        for row in 0..batch.num_rows() {
            let fields = views.iter().zip(&columns).map(|(view, column)| shown(&text::to_text(view.value(row), &column.data_type)));
            let fields: Vec<String> = fields.collect();
            match &self.widths {
                Some(widths) => self.out.write_all(self.line(&fields, widths).as_bytes())?,
                None => self.waiting.push(fields),
            }
            if self.waiting.len() >= ROWS_MEASURED {
                self.start()?;
            }
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<(), InterchangeError> {
        if self.widths.is_none() {
            self.start()?;
        }
        Ok(self.out.flush()?)
    }
}
