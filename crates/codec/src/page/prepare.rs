//! Packed records taken apart into columns, many at once: by other threads than the one that fills pages.
//!
//! Equal strings of a column are found, and turned into string codes, once for all the rows; onto a page then come columns, not records.
//!
//! Invariant: an area does not depend on who took its rows apart, nor with which others: what is encoded is what [`PageEncoder::push`] makes of the records.

use std::sync::Arc;

use super::encoder::{PageEncoder, Rows, fixed_int, is_null};
use super::layout::ROWS_MAX;
use super::nulls::RowBits;
use super::schema::{Class, PageSchema};
use super::spans::Spans;
use super::string_rows::{CodesOf, StringRows};
use crate::CodecError;
use crate::row::Encoder;

/// Takes rows apart that come onto pages later.
#[derive(Clone, Debug)]
pub struct RowPreparer {
    schema: Arc<PageSchema>,
    codes: Option<Arc<Encoder>>,
}

/// Rows taken apart.
#[derive(Debug)]
pub struct PreparedRows {
    columns: Vec<Column>,
    /// Rows that are none, ascending.
    refused: Vec<usize>,
    rows: usize,
}

/// A column of rows. What it has of a row that is none is of no use.
#[derive(Debug)]
enum Column {
    Ints(Vec<i64>, RowBits),
    Strings(StringRows),
}

impl RowPreparer {
    pub(super) fn new(schema: Arc<PageSchema>, codes: Option<Arc<Encoder>>) -> Self {
        Self { schema, codes }
    }

    /// Takes packed records apart. Those that are none of the schema are refused when they are to come onto a page.
    pub fn prepare<'r>(&self, records: impl Iterator<Item = &'r [u8]> + Clone) -> PreparedRows {
        let schema = &*self.schema;
        let mut spans = Spans::default();
        let (mut refused, mut rows) = (Vec::new(), 0);
        let count = records.clone().count();
        let mut columns: Vec<Column> = schema
            .columns
            .iter()
            .map(|column| match column.class {
                Class::Int { .. } => Column::Ints(Vec::new(), RowBits::default()),
                Class::Fixed { .. } | Class::Variable { .. } => {
                    let mut strings = StringRows::new(column.null_bit.is_some());
                    strings.reserve(count);
                    Column::Strings(strings)
                }
            })
            .collect();
        for record in records.clone() {
            let refuse = spans.find(schema, record).is_err();
            if refuse {
                refused.push(rows);
            }
            rows += 1;
            let mut spans = spans.iter();
            for number in &schema.strings {
                let (column, number) = (&schema.columns[*number], *number);
                let Column::Strings(own) = &mut columns[number] else { unreachable!("a column of strings") };
                let (value, large) = match column.class {
                    _ if refuse => (&[][..], false),
                    Class::Variable { .. } => spans.next().map_or((&[][..], false), |(start, end, large)| (&record[start..end], large)),
                    Class::Int { width } | Class::Fixed { width } => (&record[column.at..column.at + usize::from(width)], false),
                };
                if !refuse && is_null(column, record) {
                    own.push_null();
                } else {
                    own.push(value, large, self.codes.as_deref().map_or(CodesOf::Unknown, CodesOf::Encoder));
                }
            }
        }
        for (column, own) in schema.columns.iter().zip(&mut columns) {
            let Column::Ints(values, nulls) = own else { continue };
            let whole = |record: &[u8]| record.len() >= schema.fixed_len;
            values.reserve(rows);
            values.extend(records.clone().map(|record| if whole(record) { fixed_int(column, record) } else { 0 }));
            if column.null_bit.is_some() {
                records.clone().for_each(|record| nulls.push(whole(record) && is_null(column, record)));
            }
        }
        PreparedRows { columns, refused, rows }
    }
}

impl PageEncoder {
    /// What other threads can take rows apart with.
    #[must_use]
    pub fn preparer(&self) -> RowPreparer {
        RowPreparer::new(Arc::clone(&self.schema), self.codes.clone())
    }

    /// Takes in rows that were taken apart with its [preparer](Self::preparer): their records, and the number of the first in `prepared`.
    ///
    /// # Errors
    /// When one is not a record of the schema; none is taken in then.
    ///
    /// # Panics
    /// When it would hold more than [`ROWS_MAX`] rows, or `prepared` is of another schema or has fewer.
    pub fn push_prepared(&mut self, records: &[&[u8]], prepared: &PreparedRows, first: usize) -> Result<(), CodecError> {
        let rows = first..first + records.len();
        assert!(self.rows() + rows.len() <= ROWS_MAX && rows.end <= prepared.rows && self.columns.len() == prepared.columns.len());
        let next = prepared.refused.partition_point(|row| *row < rows.start);
        if prepared.refused.get(next).is_some_and(|row| *row < rows.end) {
            return Err(CodecError::Page("not a record of the schema"));
        }
        records.iter().for_each(|record| self.hold(record));
        for (own, prepared) in self.columns.iter_mut().zip(&prepared.columns) {
            match (own, prepared) {
                (Rows::Ints(own), Column::Ints(values, nulls)) => own.push_rows(values, nulls, rows.clone()),
                (Rows::Strings(own), Column::Strings(prepared)) => own.push_rows(prepared, rows.clone()),
                _ => unreachable!("the same schema"),
            }
        }
        Ok(())
    }
}
