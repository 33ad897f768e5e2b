//! JSON lines as a source: a pass over everything finds names and types, then the rows are read.

use super::members::Members;
use crate::csv::{CsvOptions, Dialect, Splitter, given_types};
use crate::source::{Batches, CLUSTER_ROWS, Input, Source, clusters};
use crate::text::{
    BatchReader, Checkpoint, ColumnDecided, DateOrder, Decided, FileDecided, Guess, Kind, Rejects, RowFormat, RowIndex, RowReader,
    check_rows, index_rows,
};
use crate::{InterchangeError, TableSchema};
use pagefold_types::{Column, DataType, Schema};
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// JSON-lines files of the same columns.
#[derive(Debug)]
pub struct JsonSource {
    files: Vec<Input>,
    table: TableSchema,
    names: Arc<BTreeMap<String, usize>>,
    index: Option<RowIndex>,
    format: RowFormat,
    notes: Vec<Option<&'static str>>,
    done: Arc<AtomicU64>,
}

/// What is in one line.
#[derive(Debug, Default)]
struct Line {
    /// By column: where in `text` it is, and what
    fields: Vec<Option<(Range<usize>, Kind)>>,
    text: String,
    has_nested: bool,
    fault: Option<String>,
}

impl Line {
    /// Takes a line apart. Names that are not known become columns behind the others if `names` may grow, else they are a fault.
    fn read(&mut self, line: &[u8], names: &mut Names<'_>) {
        self.fields.clear();
        self.text.clear();
        self.fault = self.members(line, names).err();
    }

    fn members(&mut self, line: &[u8], names: &mut Names<'_>) -> Result<(), String> {
        let line = std::str::from_utf8(line).map_err(|_| "not UTF-8".to_owned())?;
        if line.trim_start().starts_with('[') {
            return Err("an array; every line is to be one object (jq -c '.[]' makes such lines)".to_owned());
        }
        let Members(members) = serde_json::from_str(line).map_err(|e| format!("not a JSON object: {e}"))?;
        if let Names::Growing(known) = names
            && members.keys().any(|name| !known.contains_key(name))
        {
            // In the order of the line.
            let mut new: Vec<(&String, &&RawValue)> = members.iter().filter(|(name, _)| !known.contains_key(*name)).collect();
            new.sort_unstable_by_key(|(_, raw)| raw.get().as_ptr() as usize);
            for (name, _) in new {
                let number = known.len();
                known.insert(name.clone(), number);
            }
        }
        self.fields.resize(names.known().len(), None);
        for (name, raw) in &members {
            let Some(column) = names.known().get(name) else {
                return Err(format!("member \"{name}\" is no column of the table"));
            };
            let start = self.text.len();
            let raw = raw.get();
            let kind = match raw.as_bytes().first() {
                Some(b'n') => continue,
                Some(b'"') => {
                    self.text += &serde_json::from_str::<String>(raw).map_err(|e| format!("member \"{name}\": {e}"))?;
                    Kind::Text
                }
                Some(b'{' | b'[') => {
                    self.has_nested = true;
                    self.text += raw;
                    Kind::Text
                }
                _ => {
                    self.text += raw;
                    Kind::Any
                }
            };
            self.fields[*column] = Some((start..self.text.len(), kind));
        }
        Ok(())
    }

    fn field(&self, column: usize) -> Option<(&str, Kind)> {
        self.fields.get(column)?.as_ref().map(|(range, kind)| (&self.text[range.clone()], *kind))
    }
}

/// The names of columns, with their numbers.
enum Names<'n> {
    Known(&'n BTreeMap<String, usize>),
    Growing(&'n mut BTreeMap<String, usize>),
}

impl Names<'_> {
    fn known(&self) -> &BTreeMap<String, usize> {
        match self {
            Names::Known(names) => names,
            Names::Growing(names) => names,
        }
    }
}

/// The lines of a file that are not blank.
struct Lines {
    splitter: Splitter,
}

impl Lines {
    fn new(input: &Input, from: Option<Checkpoint>, done: &Arc<AtomicU64>) -> Result<Lines, InterchangeError> {
        let mut mark = [0; 3];
        let has_mark = input.bytes >= 3 && {
            pagefold_io::read_exact_at(&*input.file, &mut mark, 0)?;
            mark == *BYTE_ORDER_MARK
        };
        let (offset, line) = from.map_or((if has_mark { 3 } else { 0 }, 1), |from| (from.offset, from.line));
        Ok(Lines { splitter: Splitter::new(Arc::clone(&input.file), &input.path, Dialect::lines(), offset, line, Arc::clone(done)) })
    }

    fn next(&mut self) -> Result<bool, InterchangeError> {
        while self.splitter.next()? {
            if !self.splitter.raw().trim_ascii().is_empty() {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

struct JsonRows {
    lines: Lines,
    names: Arc<BTreeMap<String, usize>>,
    line: Line,
}

impl RowReader for JsonRows {
    fn next(&mut self) -> Result<bool, InterchangeError> {
        if !self.lines.next()? {
            return Ok(false);
        }
        self.line.read(self.lines.splitter.raw(), &mut Names::Known(&self.names));
        Ok(true)
    }

    fn fault(&self) -> Option<String> {
        self.line.fault.clone()
    }

    fn field(&self, column: usize) -> Result<Option<&str>, String> {
        Ok(self.line.field(column).map(|(text, _)| text))
    }

    fn path(&self) -> &Path {
        self.lines.splitter.path()
    }

    fn line(&self) -> u64 {
        self.lines.splitter.record_line()
    }

    fn offset(&self) -> u64 {
        self.lines.splitter.record_offset()
    }

    fn raw(&self) -> &[u8] {
        self.lines.splitter.raw()
    }
}

impl JsonSource {
    pub(crate) fn of_inputs(files: Vec<Input>, options: &CsvOptions) -> Result<JsonSource, InterchangeError> {
        match &options.schema {
            Some(schema) => {
                let names = schema.columns().iter().enumerate().map(|(i, c)| (c.name.clone(), i)).collect();
                let mut source = JsonSource::new(files, names, schema.clone(), options);
                source.format.values = vec![crate::text::ValueFormat { order: options.date_order }; schema.len()];
                Ok(source)
            }
            None => JsonSource::with_types(files, options),
        }
    }

    fn new(files: Vec<Input>, names: BTreeMap<String, usize>, schema: Schema, options: &CsvOptions) -> JsonSource {
        let format = RowFormat { values: Vec::new(), rejects: options.rejects.clone() };
        let notes = vec![None; schema.len()];
        JsonSource {
            files,
            table: TableSchema::from_schema(schema),
            names: Arc::new(names),
            index: None,
            format,
            notes,
            done: Arc::default(),
        }
    }

    fn with_types(files: Vec<Input>, options: &CsvOptions) -> Result<JsonSource, InterchangeError> {
        let mut known = BTreeMap::new();
        let (mut guesses, mut nested): (Vec<Guess>, Vec<bool>) = (Vec::new(), Vec::new());
        let (mut index, mut line, mut scratch) = (RowIndex::default(), Line::default(), Vec::new());
        for (number, file) in files.iter().enumerate() {
            let mut lines = Lines::new(file, None, &Arc::default())?;
            while lines.next()? {
                let splitter = &lines.splitter;
                line.has_nested = false;
                line.read(splitter.raw(), &mut Names::Growing(&mut known));
                match &line.fault {
                    Some(fault) if options.rejects.is_none() => {
                        return Err(InterchangeError::line(splitter.path(), splitter.record_line(), fault));
                    }
                    Some(_) => continue,
                    None => {}
                }
                let by_number = |number: usize| known.iter().find(|(_, n)| **n == number).map(|(name, _)| name.as_str());
                while guesses.len() < known.len() {
                    let base = options.base.as_ref().zip(by_number(guesses.len()));
                    let hint = base.and_then(|(base, name)| Some(base.columns()[base.index_of(name).ok()?].data_type));
                    let mut guess = Guess::new(hint, options.date_order);
                    // The rows before have none.
                    if index.rows > 0 {
                        guess.add(None, Kind::Any, &mut scratch);
                    }
                    guesses.push(guess);
                    nested.push(false);
                }
                for (column, guess) in guesses.iter_mut().enumerate() {
                    match line.field(column) {
                        None => guess.add(None, Kind::Any, &mut scratch),
                        Some((text, kind)) => {
                            nested[column] |= line.has_nested && text.starts_with(['{', '[']);
                            guess.add(Some(text), kind, &mut scratch);
                        }
                    }
                }
                index.add(number, splitter.record_offset(), splitter.record_line());
            }
        }
        let mut names: Vec<String> = vec![String::new(); known.len()];
        known.iter().for_each(|(name, number)| names[*number].clone_from(name));
        if names.is_empty() {
            let path = files.first().map(|f| f.path.clone()).unwrap_or_default();
            return Err(InterchangeError::file(&path, "the file has no rows, so its columns are unknown"));
        }
        let types = given_types(&names, options)?;
        let mut columns = Vec::with_capacity(names.len());
        let mut notes = Vec::with_capacity(names.len());
        for (i, (name, guess)) in names.iter().zip(&guesses).enumerate() {
            let data_type = match types[i] {
                Some(given) => given,
                None => guess.data_type().map_err(|(had, found)| InterchangeError::Column {
                    column: name.clone(),
                    reason: format!("it is {had} in the table, but {found} in the source; --type says another type"),
                })?,
            };
            let base = options.base.as_ref().and_then(|base| Some(&base.columns()[base.index_of(name).ok()?]));
            let nullable = guess.nullable() || base.is_some_and(|c| c.nullable);
            columns.push(Column::new(base.map_or(name, |c| &c.name), data_type, nullable));
            notes.push(match types[i] {
                Some(_) => Some("told so"),
                None if nested[i] => Some("objects and arrays are kept as JSON text"),
                None if data_type.is_text() && guess.is_ambiguous() => Some("dates: day or month first? --date-order says it"),
                None => None,
            });
        }
        let mut source = JsonSource::new(files, known, Schema::new(columns)?, options);
        source.format.values = guesses.iter().map(Guess::format).collect();
        (source.index, source.notes) = (Some(index), notes);
        Ok(source)
    }

    fn rows(&self, number: usize, from: Option<Checkpoint>, done: &Arc<AtomicU64>) -> Option<Box<dyn RowReader>> {
        // A file whose first bytes could be read once can be so again.
        let lines = Lines::new(self.files.get(number)?, from, done).ok()?;
        Some(Box::new(JsonRows { lines, names: Arc::clone(&self.names), line: Line::default() }))
    }

    fn index(&mut self) -> Result<&RowIndex, InterchangeError> {
        if self.index.is_none() {
            self.index = Some(index_rows(|number| self.rows(number, None, &Arc::default()))?);
        }
        Ok(self.index.get_or_insert_default())
    }

    fn reader(&self) -> BatchReader<'_> {
        BatchReader::new(Box::new(|number, from| self.rows(number, from, &self.done)), &self.table, &self.format)
    }
}

impl Source for JsonSource {
    fn table(&self) -> &TableSchema {
        &self.table
    }

    fn has_names(&self) -> bool {
        true
    }

    fn row_count(&self) -> Option<u64> {
        self.index.as_ref().filter(|_| self.format.rejects.is_none()).map(|i| i.rows)
    }

    fn bytes_total(&self) -> u64 {
        self.files.iter().map(|f| f.bytes).sum()
    }

    fn bytes_done(&self) -> u64 {
        self.done.load(Ordering::Relaxed)
    }

    fn decided(&self) -> Decided {
        let files = self.files.iter().map(|f| FileDecided {
            path: f.path.clone(),
            format: "json",
            compression: f.compression,
            ..FileDecided::default()
        });
        let columns = self.table.schema().columns().iter().zip(&self.format.values).zip(&self.notes).map(|((c, format), note)| {
            let is_date = matches!(c.data_type, DataType::Date | DataType::Timestamp { .. });
            ColumnDecided {
                name: c.name.clone(),
                data_type: c.data_type,
                nullable: c.nullable,
                order: format.order.filter(|order| is_date && *order != DateOrder::YearMonthDay),
                note: *note,
            }
        });
        Decided { files: files.collect(), columns: columns.collect() }
    }

    fn place(&mut self, row: u64) -> Option<String> {
        check_rows(|number| self.rows(number, None, &Arc::default()), &self.table, &self.format, row)
    }

    fn batches(&mut self) -> Result<Batches<'_>, InterchangeError> {
        self.done.store(0, Ordering::Relaxed);
        self.format.rejects.iter().for_each(Rejects::clear);
        Ok(Box::new(self.reader()))
    }

    fn sample(&mut self, rows: u64, seed: u64) -> Result<Batches<'_>, InterchangeError> {
        let index = self.index()?;
        let Some(starts) = clusters(index.rows, rows, seed) else {
            return Ok(Box::new(self.reader().of_sample()));
        };
        let plan: Vec<(u64, Checkpoint)> = starts.into_iter().filter_map(|row| Some((row, index.before(row)?))).collect();
        let mut reader = self.reader().of_sample();
        Ok(Box::new(plan.into_iter().map(move |(row, from)| reader.cluster(from, row, CLUSTER_ROWS as usize))))
    }
}
