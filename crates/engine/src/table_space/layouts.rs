//! The layouts that the records of a table have had: its columns as they were and are, by number of the layout.
//!
//! A change of columns makes a new layout, with the next number. Rows that are written from then on have it; those that are there keep theirs, and who reads
//! them brings them into his own. Which layout a stored row has, its form says ([`forms`](pagefold_format::data::forms)).
//!
//! Invariants:
//! - a column keeps its place for ever: new ones come behind all others. One that is dropped goes on in its place, hidden: new rows have NULL there, others
//!   what they had, if only because they are older than the column, until a REORG writes them anew. So a row may be brought from any layout into any other while somebody reads it in either: nothing is lost that he sees;
//! - a layout never changes, and its number is not given again, also when the change that made it was taken back: pages may have been written with it.

use crate::{Error, Result};
use pagefold_format::FormatError;
use pagefold_format::data::forms::{LAYOUT_MAX, OtherLayouts, RecordDecoder};
use pagefold_format::wire::{Reader, put_varint};
use pagefold_types::{COLUMNS_MAX, Column, ColumnSource, DataType, RowConversion, RowLayout, Schema, SchemaError, Value};
use parking_lot::RwLock;

use std::sync::Arc;

/// What a column is in a layout.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Shape {
    data_type: DataType,
    nullable: bool,
    dropped: bool,
}

impl Shape {
    fn of(column: &Column) -> Shape {
        Shape { data_type: column.data_type, nullable: column.nullable, dropped: false }
    }

    fn dropped(self) -> Shape {
        Shape { nullable: true, dropped: true, ..self }
    }
}

/// A column through all layouts.
#[derive(Clone, Debug, PartialEq)]
pub struct ColumnHistory {
    /// From which layout on it is so, ascending. Before the first it is not there.
    shapes: Vec<(u8, Shape)>,
    /// What rows have in it that were written when it was not there; NULL when nothing is said.
    before: Option<Value>,
}

impl ColumnHistory {
    fn new(since: u8, column: &Column, before: Option<Value>) -> ColumnHistory {
        ColumnHistory { shapes: vec![(since, Shape::of(column))], before }
    }

    /// What it is in a layout. `None`: it is not there yet.
    fn shape(&self, layout: u8) -> Option<Shape> {
        self.shapes.iter().rev().find(|(since, _)| *since <= layout).map(|(_, shape)| *shape)
    }

    fn set(&mut self, layout: u8, shape: Shape) {
        if self.shape(layout) != Some(shape) {
            self.shapes.push((layout, shape));
        }
    }

    /// It is dropped, if it is not: from this layout on, which is the newest.
    fn drop_from(&mut self, layout: u8) {
        let Some((since, last)) = self.shapes.last_mut() else { return };
        let dropped = last.dropped();
        if *since == layout {
            *last = dropped;
        } else if *last != dropped {
            self.shapes.push((layout, dropped));
        }
    }

    /// As an attribute of a column: for each of its shapes the layout, 0 dropped, 1 not NULL, 2 may be NULL, and the type as text with its length.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        for (since, shape) in &self.shapes {
            put_varint(&mut out, u64::from(*since));
            let data_type = shape.data_type.to_string();
            out.push(if shape.dropped { 0 } else { 1 + u8::from(shape.nullable) });
            put_varint(&mut out, data_type.len() as u64);
            out.extend_from_slice(data_type.as_bytes());
        }
        out
    }

    /// Read back. `before`: as a record of one column, of the first type.
    pub(crate) fn decode(bytes: &[u8], before: Option<&[u8]>) -> std::result::Result<ColumnHistory, FormatError> {
        let mut reader = Reader::new(bytes);
        let mut shapes: Vec<(u8, Shape)> = Vec::new();
        while !reader.is_empty() {
            let since = reader.varint32()?;
            let since = u8::try_from(since).ok().filter(|since| *since <= LAYOUT_MAX);
            let since = since.filter(|since| shapes.last().is_none_or(|(last, _)| last < since));
            let since = since.ok_or_else(|| FormatError::new("layouts of a column that do not ascend"))?;
            let kind = reader.u8()?;
            let length = reader.varint32()?;
            let text = std::str::from_utf8(reader.take(length as usize)?).map_err(|_| FormatError::new("a type that is no text"))?;
            if kind > 2 {
                return Err(FormatError::new(format!("a column of kind {kind} in a layout")));
            }
            let data_type = text.parse().map_err(|e: SchemaError| FormatError::new(e.to_string()))?;
            shapes.push((since, Shape { data_type, nullable: kind != 1, dropped: kind == 0 }));
        }
        let Some((_, first)) = shapes.first() else {
            return Err(FormatError::new("a column that no layout has"));
        };
        let before = before.map(|record| pagefold_types::record_value(first.data_type, record)).transpose();
        let before = before.map_err(|e| FormatError::new(format!("what rows of before have in a column: {e}")))?;
        Ok(ColumnHistory { shapes, before })
    }

    /// What rows of before have, as a record of one column, if something is said.
    pub(crate) fn before(&self) -> Option<Vec<u8>> {
        let (_, first) = self.shapes.first()?;
        pagefold_types::value_record(first.data_type, self.before.as_ref()?.as_ref())
    }
}

/// The layouts of a table. The default: that of a table whose columns never changed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Layouts {
    /// The one that rows get.
    number: u8,
    /// By place; none of a table whose columns never changed. Those behind the columns of the table are of changes that were taken back.
    columns: Vec<(String, ColumnHistory)>,
}

impl Layouts {
    /// As a definition has them.
    pub(crate) fn read(number: u8, columns: Vec<(String, ColumnHistory)>) -> std::result::Result<Layouts, FormatError> {
        let first = |(_, history): &(String, ColumnHistory)| history.shapes.first().map(|(since, _)| *since);
        if number > LAYOUT_MAX || !columns.iter().is_sorted_by_key(first) {
            return Err(FormatError::new("layouts of a table that are none"));
        }
        Ok(Layouts { number, columns })
    }

    /// The number of the layout that rows get.
    #[must_use]
    pub fn number(&self) -> u8 {
        self.number
    }

    /// Have there ever been others?
    #[must_use]
    pub fn are_several(&self) -> bool {
        !self.columns.is_empty()
    }

    /// All columns with their names.
    pub(crate) fn columns(&self) -> &[(String, ColumnHistory)] {
        &self.columns
    }

    /// Is the column at this place dropped?
    #[must_use]
    pub fn is_dropped(&self, column: usize) -> bool {
        self.columns.get(column).is_some_and(|(_, history)| history.shape(self.number).is_some_and(|shape| shape.dropped))
    }

    /// The highest number that was given.
    fn last(&self) -> u8 {
        self.columns.iter().filter_map(|(_, history)| history.shapes.last()).map(|(since, _)| *since).fold(self.number, u8::max)
    }

    /// The columns of a layout.
    pub(crate) fn schema(&self, layout: u8) -> std::result::Result<Schema, SchemaError> {
        let shapes = self.columns.iter().enumerate().map_while(|(at, (name, history))| Some((at, name, history.shape(layout)?)));
        let columns = shapes.map(|(at, name, shape)| {
            let name = if shape.dropped { hidden_name(at) } else { name.clone() };
            Column::new(name, shape.data_type, shape.nullable)
        });
        Schema::new(columns.collect())
    }

    /// A layout, and what brings its records into those of the columns of `own`, which have the number of these layouts.
    fn other(&self, number: u8, own: &RowLayout) -> Option<(RowLayout, RowConversion)> {
        if !self.are_several() || number > self.last() {
            return None;
        }
        let layout = RowLayout::new(&self.schema(number).ok()?).ok()?;
        let source = |column: usize| {
            let (_, history) = self.columns.get(column)?;
            Some(match (history.shape(number), history.shape(self.number)?) {
                // Of one that is dropped, too: that may be taken back, and who sees the table as it was reads it.
                (None, shape) => ColumnSource::Constant(history.value_before(&shape.data_type)),
                _ => ColumnSource::Column,
            })
        };
        let sources = (0..own.column_count()).map(source).collect::<Option<Vec<_>>>()?;
        Some((layout.clone(), RowConversion::new(layout, own.clone(), sources)))
    }

    /// The layouts of a table of these columns when they come to be `columns`, each at its place (`None`: dropped), and `added` come behind them, with what
    /// rows have there that do not have the column; and the columns then. `others` are those of another partition of the same table: a place that is taken there, by a
    /// change that was taken back, is not given here either, so that columns have the same places in all partitions.
    ///
    /// # Errors
    /// When there have been as many layouts, or are as many columns, as there can be.
    pub(crate) fn next(
        &self,
        schema: &Schema,
        columns: &[Option<Column>],
        added: &[(Column, Option<Value>)],
        others: Option<&Layouts>,
    ) -> Result<(Layouts, Schema)> {
        let number = self.last() + 1;
        if number > LAYOUT_MAX {
            return Err(Error::Parameter(format!("its columns have changed {LAYOUT_MAX} times: REORG it first")));
        }
        let mut next = self.clone();
        next.number = number;
        for (at, column) in schema.columns().iter().enumerate().skip(next.columns.len()) {
            debug_assert_eq!(at, next.columns.len());
            next.columns.push((column.name.clone(), ColumnHistory::new(0, column, None)));
        }
        // Of a change that was taken back: nobody will see them.
        for (at, (name, history)) in next.columns.iter_mut().enumerate().skip(schema.len()) {
            history.drop_from(number);
            history.before = None;
            *name = hidden_name(at);
        }
        let taken = others.map_or(&[][..], Layouts::columns).iter().enumerate().skip(next.columns.len());
        let taken = taken.filter_map(|(at, (_, history))| Some((at, history.shapes.last()?.1.dropped())));
        next.columns.extend(taken.map(|(at, shape)| (hidden_name(at), ColumnHistory { shapes: vec![(number, shape)], before: None })));
        for (at, column) in columns.iter().enumerate().take(schema.len()) {
            let (name, history) = &mut next.columns[at];
            match column {
                Some(column) => {
                    history.set(number, Shape::of(column));
                    name.clone_from(&column.name);
                }
                None => {
                    // As it was when it went; another change may have been taken back since.
                    let shape = history.shape(self.number);
                    shape.iter().for_each(|shape| history.set(number, *shape));
                    history.drop_from(number);
                    *name = hidden_name(at);
                }
            }
        }
        for (column, before) in added {
            next.columns.push((column.name.clone(), ColumnHistory::new(number, column, before.clone())));
        }
        if next.columns.len() > COLUMNS_MAX {
            return Err(Error::Parameter(format!("{} columns, those that were dropped among them: REORG it first", next.columns.len())));
        }
        if columns.iter().all(Option::is_none) && added.is_empty() {
            return Err(Error::Parameter("its only column cannot go".into()));
        }
        let schema = next.schema(number).map_err(|e| Error::Parameter(e.to_string()))?;
        Ok((next, schema))
    }

    /// Those of a new table of these columns, whose rows are all written anew: one, in which the same columns are dropped.
    pub(crate) fn fresh(&self, schema: &Schema) -> Layouts {
        if !(0..schema.len()).any(|column| self.is_dropped(column)) {
            return Layouts::default();
        }
        let history = |(at, column): (usize, &Column)| {
            let shape = Shape { dropped: self.is_dropped(at), ..Shape::of(column) };
            (column.name.clone(), ColumnHistory { shapes: vec![(0, shape)], before: None })
        };
        Layouts { number: 0, columns: schema.columns().iter().enumerate().map(history).collect() }
    }

    /// The same layouts, with these names.
    pub(crate) fn renamed(&self, schema: &Schema) -> Layouts {
        let mut renamed = self.clone();
        for ((name, _), column) in renamed.columns.iter_mut().zip(schema.columns()) {
            name.clone_from(&column.name);
        }
        renamed
    }

    /// The same layouts for a table of these columns, whose rows get the layout of this number. A type that has since come to take all values of one of these as they lie
    /// is not the type that the table has.
    pub(crate) fn of_table(&self, schema: &Schema, number: u8) -> Layouts {
        let mut own = self.renamed(schema).with_number(number);
        for ((_, history), column) in own.columns.iter_mut().zip(schema.columns()) {
            let shape = history.shapes.iter_mut().rev().find(|(since, _)| *since <= number).map(|(_, shape)| shape);
            if let Some(shape) = shape.filter(|shape| !column.data_type.holds_as_is(&shape.data_type)) {
                shape.data_type = column.data_type;
            }
        }
        own
    }

    /// The same layouts, of which rows get the one of this number.
    pub(crate) fn with_number(&self, number: u8) -> Layouts {
        Layouts { number, columns: self.columns.clone() }
    }
}

impl ColumnHistory {
    /// What rows of before have in it, now that it is of this type.
    fn value_before(&self, data_type: &DataType) -> Value {
        let (Some(before), Some((_, first))) = (&self.before, self.shapes.first()) else { return Value::Null };
        before.as_ref().converted(&first.data_type, data_type).map_or(Value::Null, |value| value.to_owned())
    }
}

/// What a column is called that is dropped.
fn hidden_name(at: usize) -> String {
    format!("(dropped {})", at + 1)
}

/// The layouts of a table that is there, as who reads it in one of them needs them.
#[derive(Debug)]
pub(crate) struct KnownLayouts {
    known: Arc<RwLock<Layouts>>,
    number: u8,
    own: RowLayout,
}

impl KnownLayouts {
    /// What reads rows of all layouts as those of `schema`, which is the layout of this number.
    pub(crate) fn decoder(
        known: &Arc<RwLock<Layouts>>,
        number: u8,
        schema: &Schema,
        page_bytes: usize,
    ) -> std::result::Result<RecordDecoder, SchemaError> {
        let own = RowLayout::new(schema)?;
        let decoder = RecordDecoder::new(&own, page_bytes);
        Ok(decoder.with_others(number, Arc::new(KnownLayouts { known: Arc::clone(known), number, own })))
    }
}

impl OtherLayouts for KnownLayouts {
    fn layout(&self, number: u8) -> Option<(RowLayout, RowConversion)> {
        self.known.read().with_number(self.number).other(number, &self.own)
    }
}
