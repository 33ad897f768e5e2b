//! Text files as a source: a first pass over everything finds types, names, rows and places to start from; then the rows are read.

use super::dialect::{CsvOptions, Dialect, Header};
use super::infer::Guess;
use super::split::Splitter;
use crate::arrow::ColumnBuilder;
use crate::source::{Batches, CLUSTER_ROWS, Source, clusters};
use crate::{InterchangeError, TableSchema};
use arrow_array::{RecordBatch, RecordBatchOptions};
use pagefold_io::{File, OpenOptions, Storage};
use pagefold_types::{Column, Schema, ValueRef, text};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Rows and bytes of a batch.
const BATCH_ROWS: usize = 8_192;
const BATCH_BYTES: usize = 16 << 20;

/// Places in the files to start from, for samples: at first one every 64 KB, then rarer, so that there are never more than these.
const CHECKPOINTS_MAX: usize = 4_096;
const CHECKPOINT_BYTES: u64 = 64 * 1024;

const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

#[derive(Debug, Clone, Copy)]
struct Checkpoint {
    row: u64,
    file: usize,
    offset: u64,
    line: u64,
}

/// The rows, and where to find some of them.
#[derive(Debug, Default)]
struct RowIndex {
    rows: u64,
    /// Rows of each file
    file_rows: Vec<u64>,
    checkpoints: Vec<Checkpoint>,
    spacing: u64,
}

impl RowIndex {
    /// Counts a row and its place.
    fn add(&mut self, file: usize, splitter: &Splitter) {
        if self.file_rows.len() <= file {
            self.file_rows.resize(file + 1, 0);
        }
        self.file_rows[file] += 1;
        let here = Checkpoint { row: self.rows, file, offset: splitter.record_offset(), line: splitter.record_line() };
        self.rows += 1;
        let due =
            self.checkpoints.last().is_none_or(|last| last.file != file || here.offset - last.offset >= self.spacing.max(CHECKPOINT_BYTES));
        if due {
            self.checkpoints.push(here);
        }
        if self.checkpoints.len() > CHECKPOINTS_MAX {
            let mut keep = false;
            self.checkpoints.retain(|_| {
                keep = !keep;
                keep
            });
            self.spacing = 2 * self.spacing.max(CHECKPOINT_BYTES);
        }
    }

    /// Counts a row before all others of its file.
    fn add_first(&mut self, file: usize, offset: u64, line: u64) {
        if self.file_rows.len() <= file {
            self.file_rows.resize(file + 1, 0);
        }
        let row = self.file_rows[..file].iter().sum();
        let at = self.checkpoints.partition_point(|c| c.file < file);
        self.checkpoints[at..].iter_mut().for_each(|c| c.row += 1);
        self.checkpoints.insert(at, Checkpoint { row, file, offset, line });
        self.file_rows[file] += 1;
        self.rows += 1;
    }

    /// The last place at or before a row.
    fn before(&self, row: u64) -> Option<Checkpoint> {
        let behind = self.checkpoints.partition_point(|c| c.row <= row);
        self.checkpoints.get(behind.checked_sub(1)?).copied()
    }
}

/// One file.
#[derive(Debug)]
struct TextFile {
    file: Arc<dyn File>,
    dialect: Dialect,
    /// Behind a byte order mark
    start: u64,
    header: bool,
    bytes: u64,
}

/// Text files of the same columns.
#[derive(Debug)]
pub struct CsvSource {
    files: Vec<TextFile>,
    table: TableSchema,
    has_names: bool,
    /// Known after a pass over everything
    index: Option<RowIndex>,
    done: Arc<AtomicU64>,
}

/// The columns as the first record shows them.
struct First {
    fields: Vec<Option<String>>,
    offset: u64,
    line: u64,
}

impl TextFile {
    fn open(storage: &dyn Storage, path: &Path, options: &CsvOptions) -> Result<TextFile, InterchangeError> {
        let file = storage.open(path, &OpenOptions::read_only())?;
        let bytes = file.len()?;
        let mut mark = [0; 3];
        let has_mark = bytes >= 3 && {
            pagefold_io::read_exact_at(&*file, &mut mark, 0)?;
            mark == *BYTE_ORDER_MARK
        };
        let dialect = Dialect::new(options, Some(path))?;
        Ok(TextFile { file, dialect, start: if has_mark { 3 } else { 0 }, header: false, bytes })
    }

    fn splitter(&self, done: &Arc<AtomicU64>) -> Splitter {
        Splitter::new(Arc::clone(&self.file), self.dialect.clone(), self.start, 1, Arc::clone(done))
    }

    /// The first record, if there is one; decides whether each line of a `.tbl` file ends with a delimiter.
    fn first(&mut self) -> Result<Option<First>, InterchangeError> {
        let mut splitter = self.splitter(&Arc::default());
        let mut blank = None;
        loop {
            if !splitter.next()? {
                return Ok(None);
            }
            if !splitter.is_blank() {
                break;
            }
            blank.get_or_insert((splitter.record_offset(), splitter.record_line()));
        }
        // In a file of one column a line without anything is a row.
        if let (1, Some((offset, line))) = (splitter.len(), blank) {
            return Ok(Some(First { fields: vec![None], offset, line }));
        }
        let last = splitter.len() - 1;
        self.dialect.trailing = self.dialect.is_tbl && last > 0 && splitter.is_empty_at(last);
        let count = splitter.len() - usize::from(self.dialect.trailing);
        let fields = (0..count).map(|i| field_text(&splitter, i).map(|t| t.map(str::to_owned))).collect::<Result<_, _>>()?;
        Ok(Some(First { fields, offset: splitter.record_offset(), line: splitter.record_line() }))
    }
}

/// A field as text.
fn field_text(splitter: &Splitter, i: usize) -> Result<Option<&str>, InterchangeError> {
    let Some(bytes) = splitter.field(i) else { return Ok(None) };
    let text = std::str::from_utf8(bytes);
    text.map(Some).map_err(|_| InterchangeError::line(splitter.path(), splitter.record_line(), format!("column {}: not UTF-8", i + 1)))
}

/// Reads the rows of a splitter, skipping blank lines; checks the number of fields.
struct Rows<'s> {
    splitter: Splitter,
    columns: usize,
    trailing: bool,
    skip_header: bool,
    table: Option<&'s TableSchema>,
}

impl Rows<'_> {
    /// Goes to the next row; false behind the last one.
    fn next(&mut self) -> Result<bool, InterchangeError> {
        loop {
            if !self.splitter.next()? {
                return Ok(false);
            }
            if self.splitter.is_blank() && self.columns > 1 {
                continue;
            }
            self.check_count()?;
            if !std::mem::replace(&mut self.skip_header, false) {
                return Ok(true);
            }
        }
    }

    fn check_count(&self) -> Result<(), InterchangeError> {
        let found = self.splitter.len();
        let expected = self.columns + usize::from(self.trailing);
        let reason = if found != expected {
            format!("{} fields, where {} are expected", found - usize::from(self.trailing && found > 1), self.columns)
        } else if self.trailing && !self.splitter.is_empty_at(found - 1) {
            format!("{found} fields, where {} are expected", self.columns)
        } else {
            return Ok(());
        };
        Err(InterchangeError::line(self.splitter.path(), self.splitter.record_line(), reason))
    }

    /// Appends the row to the builders.
    fn append(&self, row: usize, builders: &mut [ColumnBuilder]) -> Result<(), InterchangeError> {
        let columns = self.table.map(|t| t.schema().columns()).unwrap_or_default();
        for (i, (builder, column)) in builders.iter_mut().zip(columns).enumerate() {
            let error = |reason: String| {
                InterchangeError::line(
                    self.splitter.path(),
                    self.splitter.record_line(),
                    format!("column {} (\"{}\"): {reason}", i + 1, column.name),
                )
            };
            let pushed = match field_text(&self.splitter, i)? {
                None if !column.nullable => return Err(error("NULL, but the column is NOT NULL".to_owned())),
                None => builder.push(row, ValueRef::Null),
                Some(value) if column.data_type.is_text() => {
                    let value = ValueRef::Text(value);
                    value.check(&column.data_type, &column.name).map_err(|e| error(e.to_string()))?;
                    builder.push(row, value)
                }
                Some(value) => {
                    let value = text::parse(value, &column.data_type).map_err(|e| error(e.to_string()))?;
                    builder.push(row, value.as_ref())
                }
            };
            pushed?;
        }
        Ok(())
    }
}

fn names_are_possible(names: &[Option<String>]) -> bool {
    let mut seen = std::collections::HashSet::new();
    names.iter().all(|n| n.as_ref().is_some_and(|n| !n.is_empty() && seen.insert(n)))
}

impl CsvSource {
    /// Opens the files; without a schema in the options, reads all of them once.
    ///
    /// # Errors
    /// A file that cannot be read or has no columns; [`InterchangeError::Line`] for another number of fields than in the first line, quotes that are not closed, text
    /// that is not UTF-8; files whose columns differ.
    pub fn open(storage: &dyn Storage, paths: &[PathBuf], options: &CsvOptions) -> Result<CsvSource, InterchangeError> {
        let mut files = paths.iter().map(|path| TextFile::open(storage, path, options)).collect::<Result<Vec<_>, _>>()?;
        let Some(path) = paths.first() else {
            return Err(InterchangeError::Mismatch("no file to read".to_owned()));
        };
        let mut firsts = Vec::with_capacity(files.len());
        for file in &mut files {
            firsts.push(file.first()?);
        }
        // An empty file has the columns of the others.
        let Some(first) = firsts.iter().flatten().next() else {
            return match &options.schema {
                Some(schema) => Ok(CsvSource::new(files, TableSchema::from_schema(schema.clone()), true, Some(RowIndex::default()))),
                None => Err(InterchangeError::file(path, "the file has no rows, so its columns are unknown")),
            };
        };
        let columns = first.fields.len();
        match &options.schema {
            Some(schema) => CsvSource::with_schema(files, &firsts, schema, options),
            None => {
                let (guesses, index) = CsvSource::first_pass(&mut files, &firsts, columns, options)?;
                let names = CsvSource::names(&files, &firsts, columns)?;
                let header = files.iter().any(|f| f.header);
                let columns = names.into_iter().zip(&guesses).map(|(name, g)| Column::new(name, g.data_type(), g.has_null)).collect();
                Ok(CsvSource::new(files, TableSchema::from_schema(Schema::new(columns)?), header, Some(index)))
            }
        }
    }

    /// The names of the columns: of the header, where there is one.
    fn names(files: &[TextFile], firsts: &[Option<First>], columns: usize) -> Result<Vec<String>, InterchangeError> {
        let mut headers =
            files.iter().zip(firsts).filter(|(file, _)| file.header).filter_map(|(file, first)| Some((file, first.as_ref()?)));
        let header = headers.next().map(|(_, first)| &first.fields);
        if let Some((other, _)) = headers.find(|(_, first)| Some(&first.fields) != header) {
            return Err(InterchangeError::file(other.file.path(), "its header is not that of the first file"));
        }
        let name = |i: usize| header.and_then(|h| h[i].clone()).filter(|n| !n.is_empty()).unwrap_or_else(|| format!("column{}", i + 1));
        Ok((0..columns).map(name).collect())
    }

    fn new(files: Vec<TextFile>, table: TableSchema, has_names: bool, index: Option<RowIndex>) -> CsvSource {
        CsvSource { files, table, has_names, index, done: Arc::default() }
    }

    /// With known columns: a header, where there is one, says in which order they are.
    fn with_schema(
        mut files: Vec<TextFile>,
        firsts: &[Option<First>],
        schema: &Schema,
        options: &CsvOptions,
    ) -> Result<CsvSource, InterchangeError> {
        let mut order: Option<Vec<usize>> = None;
        for (file, first) in files.iter_mut().zip(firsts) {
            let Some(first) = first else { continue };
            let found: Option<Vec<usize>> = first.fields.iter().map(|n| n.as_ref().and_then(|n| schema.index_of(n).ok())).collect();
            let found = found.filter(|f| f.len() == schema.len() && names_are_possible(&first.fields));
            file.header = match options.header {
                Header::Yes => true,
                Header::No => false,
                // Names of all columns, and not by chance the texts of a row.
                Header::Auto => found.is_some() && !file.dialect.is_tbl,
            };
            if !file.header {
                continue;
            }
            let path = file.file.path();
            let found = found.ok_or_else(|| InterchangeError::line(path, 1, "the header does not name the columns of the table"))?;
            if order.as_ref().is_some_and(|o| *o != found) {
                return Err(InterchangeError::file(path, "its header is not that of the first file"));
            }
            order = Some(found);
        }
        let has_names = order.is_some();
        let columns = match order {
            Some(order) => order.iter().map(|i| schema.columns()[*i].clone()).collect(),
            None => schema.columns().to_vec(),
        };
        Ok(CsvSource::new(files, TableSchema::from_schema(Schema::new(columns)?), has_names, None))
    }

    /// Reads everything: types, rows, and whether the first lines are headers.
    fn first_pass(
        files: &mut [TextFile],
        firsts: &[Option<First>],
        columns: usize,
        options: &CsvOptions,
    ) -> Result<(Vec<Guess>, RowIndex), InterchangeError> {
        let mut guesses = vec![Guess::new(); columns];
        let mut index = RowIndex::default();
        let mut scratch = Vec::new();
        let mut open_first: Vec<usize> = Vec::new();
        for (i, file) in files.iter_mut().enumerate() {
            let Some(first) = &firsts[i] else { continue };
            let maybe = options.header == Header::Yes
                || (options.header == Header::Auto && !file.dialect.is_tbl && names_are_possible(&first.fields));
            if maybe && options.header == Header::Auto {
                open_first.push(i);
            }
            file.header = maybe;
            let mut rows = file_rows(file, columns, None, &Arc::default());
            while rows.next()? {
                for (column, guess) in guesses.iter_mut().enumerate() {
                    guess.add(field_text(&rows.splitter, column)?, &mut scratch);
                }
                index.add(i, &rows.splitter);
            }
        }
        // A first line is a header when one of its fields does not fit the type that all other rows agree on.
        for i in open_first {
            let Some(first) = &firsts[i] else { continue };
            let misfit = first.fields.iter().zip(&guesses).any(|(field, guess)| {
                let data_type = guess.data_type();
                !data_type.is_text() && field.as_ref().is_some_and(|f| !text::is_canonical(f, &data_type, &mut scratch))
            });
            if misfit {
                continue;
            }
            files[i].header = false;
            for (field, guess) in first.fields.iter().zip(&mut guesses) {
                guess.add(field.as_deref(), &mut scratch);
            }
            index.add_first(i, first.offset, first.line);
        }
        Ok((guesses, index))
    }

    fn index(&mut self) -> Result<&RowIndex, InterchangeError> {
        if self.index.is_none() {
            let mut index = RowIndex::default();
            for (i, file) in self.files.iter().enumerate() {
                let mut rows = file_rows(file, self.table.schema().len(), None, &Arc::default());
                while rows.next()? {
                    index.add(i, &rows.splitter);
                }
            }
            self.index = Some(index);
        }
        Ok(self.index.get_or_insert_default())
    }
}

fn file_rows<'s>(file: &TextFile, columns: usize, table: Option<&'s TableSchema>, done: &Arc<AtomicU64>) -> Rows<'s> {
    Rows { splitter: file.splitter(done), columns, trailing: file.dialect.trailing, skip_header: file.header, table }
}

/// The batches of all files, or of clusters.
struct BatchReader<'s> {
    files: &'s [TextFile],
    table: &'s TableSchema,
    done: &'s Arc<AtomicU64>,
    builders: Vec<ColumnBuilder>,
    rows: Option<Rows<'s>>,
    next_file: usize,
    failed: bool,
}

impl<'s> BatchReader<'s> {
    fn new(files: &'s [TextFile], table: &'s TableSchema, done: &'s Arc<AtomicU64>) -> BatchReader<'s> {
        let builders = table.schema().columns().iter().enumerate().map(|(i, c)| ColumnBuilder::new(i, c.data_type)).collect();
        BatchReader { files, table, done, builders, rows: None, next_file: 0, failed: false }
    }

    /// A row of the next file that has one; `None` behind the last.
    fn next_row(&mut self) -> Result<Option<&Rows<'s>>, InterchangeError> {
        loop {
            if let Some(rows) = &mut self.rows
                && rows.next()?
            {
                break;
            }
            let Some(file) = self.files.get(self.next_file) else { return Ok(None) };
            self.next_file += 1;
            self.rows = Some(file_rows(file, self.table.schema().len(), Some(self.table), self.done));
        }
        Ok(self.rows.as_ref())
    }

    /// Up to `rows_max` rows; `None` behind the last.
    fn batch(&mut self, rows_max: usize) -> Result<Option<RecordBatch>, InterchangeError> {
        let mut builders = std::mem::take(&mut self.builders);
        let mut count = 0;
        let mut bytes = 0;
        while count < rows_max && bytes < BATCH_BYTES {
            let Some(rows) = self.next_row()? else { break };
            rows.append(count, &mut builders)?;
            bytes += rows.splitter.record_bytes();
            count += 1;
        }
        let arrays = builders.iter_mut().map(|b| b.finish(count)).collect::<Result<Vec<_>, _>>()?;
        self.builders = builders;
        if count == 0 {
            return Ok(None);
        }
        let options = RecordBatchOptions::new().with_row_count(Some(count));
        Ok(Some(RecordBatch::try_new_with_options(Arc::clone(self.table.arrow()), arrays, &options)?))
    }

    /// Goes to a row that the checkpoint is at or before.
    fn seek(&mut self, from: Checkpoint, row: u64) -> Result<(), InterchangeError> {
        let file = &self.files[from.file];
        let splitter = Splitter::new(Arc::clone(&file.file), file.dialect.clone(), from.offset, from.line, Arc::clone(self.done));
        let columns = self.table.schema().len();
        self.rows = Some(Rows { splitter, columns, trailing: file.dialect.trailing, skip_header: false, table: Some(self.table) });
        self.next_file = from.file + 1;
        for _ in from.row..row {
            self.next_row()?;
        }
        Ok(())
    }
}

impl Iterator for BatchReader<'_> {
    type Item = Result<RecordBatch, InterchangeError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed {
            return None;
        }
        let batch = self.batch(BATCH_ROWS).transpose();
        self.failed = matches!(batch, None | Some(Err(_)));
        batch
    }
}

impl Source for CsvSource {
    fn table(&self) -> &TableSchema {
        &self.table
    }

    fn has_names(&self) -> bool {
        self.has_names
    }

    fn row_count(&self) -> Option<u64> {
        self.index.as_ref().map(|i| i.rows)
    }

    fn bytes_total(&self) -> u64 {
        self.files.iter().map(|f| f.bytes).sum()
    }

    fn bytes_done(&self) -> u64 {
        self.done.load(Ordering::Relaxed)
    }

    fn batches(&mut self) -> Result<Batches<'_>, InterchangeError> {
        self.done.store(0, Ordering::Relaxed);
        Ok(Box::new(BatchReader::new(&self.files, &self.table, &self.done)))
    }

    fn sample(&mut self, rows: u64, seed: u64) -> Result<Batches<'_>, InterchangeError> {
        let index = self.index()?;
        let Some(starts) = clusters(index.rows, rows, seed) else { return self.batches() };
        let plan: Vec<(u64, Checkpoint)> = starts.into_iter().filter_map(|row| Some((row, index.before(row)?))).collect();
        let mut reader = BatchReader::new(&self.files, &self.table, &self.done);
        Ok(Box::new(plan.into_iter().map(move |(row, from)| {
            reader.seek(from, row)?;
            let missing = || InterchangeError::Mismatch("the file has become shorter while it was read".to_owned());
            reader.batch(CLUSTER_ROWS as usize)?.ok_or_else(missing)
        })))
    }
}
