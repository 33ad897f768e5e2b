//! Text files as a source. Their beginnings say how they are written and whether their first lines are names; a pass over everything finds types and places to start from; then the rows
//! are read.
//!
//! Invariant: a file with names gives its fields to the columns of these names, wherever they are; one without gives them in the order of the columns.

use super::dialect::{CsvOptions, Dialect, Header};
use super::header::{find_header, names};
use super::sniff::{Record, Sniffed, columns as columns_of, sniff};
use super::split::Splitter;
use crate::source::{Batches, CLUSTER_ROWS, Input, Source, clusters};
use crate::text::{
    BatchReader, Checkpoint, ColumnDecided, Decided, FileDecided, Guess, Kind, RowFormat, RowIndex, RowReader, check_rows, index_rows,
};
use crate::{InterchangeError, TableSchema};
use pagefold_io::Storage;
use pagefold_types::{Column, DataType, Schema};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// One file.
#[derive(Clone, Debug)]
struct TextFile {
    input: Input,
    dialect: Dialect,
    /// Behind a byte order mark and lines to pass over
    start: u64,
    start_line: u64,
    header: bool,
    header_reason: &'static str,
    is_crlf: bool,
    /// The first records
    records: Vec<Record>,
    /// Fields in a row, and for each column of the table which
    fields: usize,
    order: Arc<[usize]>,
}

/// Text files of the same columns.
#[derive(Debug)]
pub struct CsvSource {
    files: Vec<TextFile>,
    table: TableSchema,
    has_names: bool,
    /// Known after a pass over everything
    index: Option<RowIndex>,
    format: RowFormat,
    notes: Vec<Option<&'static str>>,
    done: Arc<AtomicU64>,
}

/// The rows of one file.
struct CsvRows {
    splitter: Splitter,
    fields: usize,
    trailing: bool,
    skip_header: bool,
    order: Arc<[usize]>,
}

impl RowReader for CsvRows {
    fn next(&mut self) -> Result<bool, InterchangeError> {
        loop {
            if !self.splitter.next()? {
                return Ok(false);
            }
            if self.splitter.is_blank() && self.fields > 1 {
                continue;
            }
            if !std::mem::replace(&mut self.skip_header, false) {
                return Ok(true);
            }
        }
    }

    fn fault(&self) -> Option<String> {
        let found = self.splitter.len();
        if found != self.fields + usize::from(self.trailing) {
            return Some(format!("{} fields, where {} are expected", found - usize::from(self.trailing && found > 1), self.fields));
        }
        (self.trailing && !self.splitter.is_empty_at(found - 1)).then(|| format!("{found} fields, where {} are expected", self.fields))
    }

    fn field(&self, column: usize) -> Result<Option<&str>, String> {
        let field = self.order[column];
        let Some(bytes) = self.splitter.field(field) else { return Ok(None) };
        std::str::from_utf8(bytes).map(Some).map_err(|_| format!("column {}: not UTF-8", field + 1))
    }

    fn path(&self) -> &Path {
        self.splitter.path()
    }

    fn line(&self) -> u64 {
        self.splitter.record_line()
    }

    fn offset(&self) -> u64 {
        self.splitter.record_offset()
    }

    fn raw(&self) -> &[u8] {
        self.splitter.raw()
    }
}

impl TextFile {
    fn open(input: Input, options: &CsvOptions) -> Result<TextFile, InterchangeError> {
        let mut mark = [0; 3];
        let has_mark = input.bytes >= 3 && {
            pagefold_io::read_exact_at(&*input.file, &mut mark, 0)?;
            mark == *BYTE_ORDER_MARK
        };
        if mark.starts_with(b"\xFF\xFE") || mark.starts_with(b"\xFE\xFF") {
            return Err(InterchangeError::file(&input.path, "text in UTF-16: it has to be UTF-8"));
        }
        let mut start = if has_mark { 3 } else { 0 };
        for _ in 0..options.skip {
            start = next_line(&input, start)?;
        }
        let Sniffed { dialect, records, is_crlf } = sniff(&input.file, start, &input.extension, options)?;
        let fields = records.first().map_or(0, |record| record.fields.len());
        let (usual, share) = columns_of(&records);
        let first_line = options.skip + 1;
        if records.len() >= 3 && share >= 0.9 && fields != usual && usual > 1 && fields > 0 {
            let reason = format!(
                "{fields} fields, where nearly all lines have {usual}; --skip {} begins behind it",
                options.skip + records[1].line - 1
            );
            return Err(InterchangeError::line(&input.path, options.skip + records[0].line, reason));
        }
        let order = (0..fields).collect();
        Ok(TextFile { input, dialect, start, start_line: first_line, header: false, header_reason: "", is_crlf, records, fields, order })
    }

    fn first(&self) -> Option<&[Option<String>]> {
        self.records.first().map(|record| record.fields.as_slice())
    }

    /// Its rows, from the start or from a place.
    fn rows(&self, from: Option<Checkpoint>, done: &Arc<AtomicU64>) -> Box<dyn RowReader> {
        let (offset, line) = from.map_or((self.start, self.start_line), |from| (from.offset, from.line));
        let Input { file, path, .. } = &self.input;
        Box::new(CsvRows {
            splitter: Splitter::new(Arc::clone(file), path, self.dialect.clone(), offset, line, Arc::clone(done)),
            fields: self.fields,
            trailing: self.dialect.trailing,
            skip_header: self.header && from.is_none(),
            order: Arc::clone(&self.order),
        })
    }

    /// Its first records without the header.
    fn sample(&self) -> &[Record] {
        self.records.get(usize::from(self.header)..).unwrap_or_default()
    }
}

/// Where the next line starts.
fn next_line(input: &Input, start: u64) -> Result<u64, InterchangeError> {
    let (mut at, mut buffer) = (start, vec![0; 64 * 1024]);
    loop {
        let read = input.file.read_at(&mut buffer, at)?;
        if read == 0 {
            return Ok(at);
        }
        if let Some(end) = buffer[..read].iter().position(|b| *b == b'\n') {
            return Ok(at + end as u64 + 1);
        }
        at += read as u64;
    }
}

/// Decides which files have names. What one alone does not say, the others may.
fn find_headers(files: &mut [TextFile], options: &CsvOptions) {
    for file in &mut *files {
        (file.header, file.header_reason) = match options.header {
            Header::Yes => (!file.records.is_empty(), "told so"),
            Header::No => (false, "told so"),
            Header::Auto if file.dialect.is_tbl => (false, "a .tbl file has none"),
            Header::Auto => find_header(&file.records, options.date_order),
        };
    }
    if options.header != Header::Auto || files.len() < 2 {
        return;
    }
    let sorted = |fields: &[Option<String>]| {
        let mut names = names(fields);
        names.sort_unstable();
        names
    };
    let firsts: Vec<Option<Vec<String>>> = files.iter().map(|f| f.first().filter(|_| !f.dialect.is_tbl).map(sorted)).collect();
    let with_names: Vec<bool> = files.iter().map(|f| f.header).collect();
    for (i, file) in files.iter_mut().enumerate() {
        let Some(own) = &firsts[i] else { continue };
        let same = (0..firsts.len()).find(|j| *j != i && firsts[*j].as_ref() == Some(own));
        let same_header = (0..firsts.len()).any(|j| j != i && with_names[j] && firsts[j].as_ref() == Some(own));
        // A first line of several files is no row of each, unless their types say that it is one.
        if !file.header && (same_header || (same.is_some() && file.header_reason != "the first line fits the types of the others")) {
            (file.header, file.header_reason) = (true, "the first line is that of another file");
        }
    }
}

/// For each name the position of the field that has it.
fn positions(file: &TextFile, wanted: &[String]) -> Result<Vec<usize>, InterchangeError> {
    let own = names(file.first().unwrap_or_default());
    let line = file.start_line + file.records.first().map_or(1, |r| r.line) - 1;
    let missing: Vec<&str> = wanted.iter().filter(|n| !own.contains(n)).map(String::as_str).collect();
    let more: Vec<&str> = own.iter().filter(|n| !wanted.contains(n)).map(String::as_str).collect();
    if !missing.is_empty() || !more.is_empty() {
        let list = |names: &[&str]| names.iter().map(|n| format!("\"{n}\"")).collect::<Vec<_>>().join(", ");
        let mut reason = "its header is not that of the first file".to_owned();
        if !missing.is_empty() {
            reason += &format!(": {} missing", list(&missing));
        }
        if !more.is_empty() {
            reason += &format!("{} {} more", if missing.is_empty() { ":" } else { "," }, list(&more));
        }
        return Err(InterchangeError::line(&file.input.path, line, reason));
    }
    Ok(wanted.iter().filter_map(|name| own.iter().position(|n| n == name)).collect())
}

impl CsvSource {
    /// Opens the files; without a schema in the options, reads all of them once.
    ///
    /// # Errors
    /// A file that cannot be read or has no columns; [`InterchangeError::Line`] for another number of fields than in the first line, quotes that are not closed, text
    /// that is not UTF-8; files whose columns differ.
    pub fn open(storage: &dyn Storage, paths: &[PathBuf], options: &CsvOptions) -> Result<CsvSource, InterchangeError> {
        let inputs = paths.iter().map(|path| Input::open(storage, path)).collect::<Result<Vec<_>, _>>()?;
        CsvSource::of_inputs(storage, inputs, options)
    }

    pub(crate) fn of_inputs(_: &dyn Storage, inputs: Vec<Input>, options: &CsvOptions) -> Result<CsvSource, InterchangeError> {
        let Some(path) = inputs.first().map(|input| input.path.clone()) else {
            return Err(InterchangeError::Mismatch("no file to read".to_owned()));
        };
        let mut files = inputs.into_iter().map(|input| TextFile::open(input, options)).collect::<Result<Vec<_>, _>>()?;
        // An empty file has the columns of the others.
        if files.iter().all(|file| file.records.is_empty()) {
            let schema =
                options.schema.as_ref().ok_or_else(|| InterchangeError::file(&path, "the file has no rows, so its columns are unknown"))?;
            let columns = schema.len();
            let mut source = CsvSource::new(files, TableSchema::from_schema(schema.clone()), true, options);
            source.index = Some(RowIndex::default());
            source.format.values = vec![Default::default(); columns];
            return Ok(source);
        }
        find_headers(&mut files, options);
        match &options.schema {
            Some(schema) => CsvSource::with_schema(files, schema, options),
            None => CsvSource::with_types(files, options),
        }
    }

    fn new(files: Vec<TextFile>, table: TableSchema, has_names: bool, options: &CsvOptions) -> CsvSource {
        let format = RowFormat { values: Vec::new(), rejects: options.rejects.clone() };
        let notes = vec![None; table.schema().len()];
        CsvSource { files, table, has_names, index: None, format, notes, done: Arc::default() }
    }

    /// With known columns: a header, where there is one, says in which order they are.
    fn with_schema(mut files: Vec<TextFile>, schema: &Schema, options: &CsvOptions) -> Result<CsvSource, InterchangeError> {
        let mut wanted: Option<Vec<String>> = None;
        let mut columns = schema.columns().to_vec();
        for file in files.iter_mut().filter(|file| !file.records.is_empty()) {
            let own = names(file.first().unwrap_or_default());
            let known: Option<Vec<usize>> = own.iter().map(|n| schema.index_of(n).ok()).collect();
            let known = known.filter(|k| k.len() == schema.len() && (0..k.len()).all(|i| k.contains(&i)));
            if options.header == Header::Auto && !file.dialect.is_tbl {
                // Names of all columns are such, and not by chance the texts of a row.
                match &known {
                    Some(_) => (file.header, file.header_reason) = (true, "the first line names the columns of the table"),
                    None if file.header && file.header_reason != "the first line does not fit the types of the others" => {
                        (file.header, file.header_reason) = (false, "the first line does not name the columns of the table");
                    }
                    None => {}
                }
            }
            if !file.header {
                continue;
            }
            let line = file.start_line + file.records[0].line - 1;
            let known = known.ok_or_else(|| {
                let reason = format!("the header does not name the columns of the table; it has {}", own.join(", "));
                InterchangeError::line(&file.input.path, line, reason)
            })?;
            if wanted.is_none() {
                columns = known.iter().map(|i| schema.columns()[*i].clone()).collect();
                wanted = Some(own.clone());
            }
        }
        CsvSource::set_orders(&mut files, wanted.as_deref(), columns.len())?;
        let has_names = wanted.is_some();
        let mut source = CsvSource::new(files, TableSchema::from_schema(Schema::new(columns)?), has_names, options);
        // What the first rows say about the order of dates.
        let mut scratch = Vec::new();
        for (i, column) in source.table.schema().columns().iter().enumerate() {
            let mut guess = Guess::new(None, options.date_order);
            if matches!(column.data_type, DataType::Date | DataType::Timestamp { .. }) {
                for file in &source.files {
                    let rows = file.sample().iter().filter(|record| record.fields.len() == file.fields);
                    rows.for_each(|record| guess.add(record.fields[file.order[i]].as_deref(), Kind::Any, &mut scratch));
                }
            }
            source.format.values.push(guess.format());
        }
        Ok(source)
    }

    /// Gives each file the order of its fields; `wanted` are the columns' names as the headers have them.
    fn set_orders(files: &mut [TextFile], wanted: Option<&[String]>, columns: usize) -> Result<(), InterchangeError> {
        for file in files {
            file.order = match wanted {
                Some(wanted) if file.header => positions(file, wanted)?.into(),
                _ => (0..columns).collect(),
            };
            // A file without header has as many fields as there are columns: the first row that has not says so.
            file.fields = columns;
        }
        Ok(())
    }

    /// With types from the values: reads everything.
    fn with_types(mut files: Vec<TextFile>, options: &CsvOptions) -> Result<CsvSource, InterchangeError> {
        let with_header = files.iter().find(|file| file.header).and_then(TextFile::first).map(names);
        let first_columns = files.iter().find_map(TextFile::first).map_or(0, <[_]>::len);
        let columns = with_header.as_ref().map_or(first_columns, Vec::len);
        CsvSource::set_orders(&mut files, with_header.as_deref(), columns)?;
        let has_names = with_header.is_some();
        let names = with_header.unwrap_or_else(|| names(&vec![None; columns]));
        let types = given_types(&names, options)?;
        let hint = |i: usize| {
            let base = options.base.as_ref()?;
            let position = if has_names { base.index_of(&names[i]).ok()? } else { (base.len() == columns).then_some(i)? };
            Some(base.columns()[position].clone())
        };
        let hints: Vec<Option<Column>> = (0..columns).map(hint).collect();
        let mut guesses: Vec<Guess> = hints.iter().map(|hint| Guess::new(hint.as_ref().map(|c| c.data_type), options.date_order)).collect();
        let mut index = RowIndex::default();
        let mut scratch = Vec::new();
        for (number, file) in files.iter().enumerate() {
            let mut rows = file.rows(None, &Arc::default());
            while rows.next()? {
                let mut fault = rows.fault();
                for (column, guess) in guesses.iter_mut().enumerate() {
                    if fault.is_none() {
                        match rows.field(column) {
                            Ok(field) => guess.add(field, Kind::Any, &mut scratch),
                            Err(reason) => fault = Some(reason),
                        }
                    }
                }
                match fault {
                    Some(reason) if options.rejects.is_none() => {
                        return Err(InterchangeError::line(rows.path(), rows.line(), reason));
                    }
                    Some(_) => {}
                    None => index.add(number, rows.offset(), rows.line()),
                }
            }
        }
        let mut table = Vec::with_capacity(columns);
        let mut notes = Vec::with_capacity(columns);
        for (i, guess) in guesses.iter().enumerate() {
            let data_type = match types[i] {
                Some(given) => given,
                None => guess.data_type().map_err(|(had, found)| InterchangeError::Column {
                    column: names[i].clone(),
                    reason: format!("it is {had} in the table, but {found} in the source; --type says another type"),
                })?,
            };
            let name = hints[i].as_ref().map_or(&names[i], |c| &c.name);
            let nullable = guess.nullable() || hints[i].as_ref().is_some_and(|c| c.nullable);
            table.push(Column::new(name, data_type, nullable));
            notes.push(match types[i] {
                Some(_) => Some("told so"),
                None if data_type.is_text() && guess.is_ambiguous() => Some("dates: day or month first? --date-order says it"),
                None if !guess.is_as_written(&data_type) => Some("values are not all written as they will be"),
                None => None,
            });
        }
        let mut source = CsvSource::new(files, TableSchema::from_schema(Schema::new(table)?), has_names, options);
        source.format.values = guesses.iter().map(Guess::format).collect();
        source.index = Some(index);
        source.notes = notes;
        Ok(source)
    }

    fn index(&mut self) -> Result<&RowIndex, InterchangeError> {
        if self.index.is_none() {
            let files = &self.files;
            self.index = Some(index_rows(|number| files.get(number).map(|file| file.rows(None, &Arc::default())))?);
        }
        Ok(self.index.get_or_insert_default())
    }

    fn reader(&self) -> BatchReader<'_> {
        let open = |number: usize, from: Option<Checkpoint>| Some(self.files.get(number)?.rows(from, &self.done));
        BatchReader::new(Box::new(open), &self.table, &self.format)
    }
}

/// The types that were given for single columns.
pub(crate) fn given_types(names: &[String], options: &CsvOptions) -> Result<Vec<Option<DataType>>, InterchangeError> {
    let mut types = vec![None; names.len()];
    for (name, data_type) in &options.types {
        let exact = names.iter().position(|n| n == name);
        let position = exact.or_else(|| names.iter().position(|n| n.eq_ignore_ascii_case(name)));
        let unknown = || InterchangeError::Mismatch(format!("a type is given for column \"{name}\"; there are {}", names.join(", ")));
        types[position.ok_or_else(unknown)?] = Some(*data_type);
    }
    Ok(types)
}

impl Source for CsvSource {
    fn table(&self) -> &TableSchema {
        &self.table
    }

    fn has_names(&self) -> bool {
        self.has_names
    }

    fn row_count(&self) -> Option<u64> {
        // How many of them fit is not known before they are read.
        self.index.as_ref().filter(|_| self.format.rejects.is_none()).map(|i| i.rows)
    }

    fn bytes_total(&self) -> u64 {
        self.files.iter().map(|f| f.input.bytes).sum()
    }

    fn bytes_done(&self) -> u64 {
        self.done.load(Ordering::Relaxed)
    }

    fn decided(&self) -> Decided {
        let line_end = |file: &TextFile| match (file.dialect.line_end, file.is_crlf) {
            (b'\r', _) => "CR",
            (_, true) => "CR LF",
            _ => "LF",
        };
        let files = self.files.iter().map(|file| FileDecided {
            path: file.input.path.clone(),
            format: "csv",
            compression: file.input.compression,
            delimiter: Some(char::from(file.dialect.delimiter)),
            quote: file.dialect.quote.map(char::from),
            escape: file.dialect.escape.map(char::from),
            line_end: Some(line_end(file)),
            header: Some(file.header),
            header_reason: file.header_reason,
        });
        let columns = self.table.schema().columns().iter().zip(&self.format.values).zip(&self.notes).map(|((c, format), note)| {
            let is_date = matches!(c.data_type, DataType::Date | DataType::Timestamp { .. });
            ColumnDecided {
                name: c.name.clone(),
                data_type: c.data_type,
                nullable: c.nullable,
                order: format.order.filter(|order| is_date && *order != crate::text::DateOrder::YearMonthDay),
                note: *note,
            }
        });
        Decided { files: files.collect(), columns: columns.collect() }
    }

    fn place(&mut self, row: u64) -> Option<String> {
        check_rows(|number| Some(self.files.get(number)?.rows(None, &Arc::default())), &self.table, &self.format, row)
    }

    fn batches(&mut self) -> Result<Batches<'_>, InterchangeError> {
        self.done.store(0, Ordering::Relaxed);
        self.format.rejects.iter().for_each(crate::text::Rejects::clear);
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
