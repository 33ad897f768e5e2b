//! Parquet files as a source.

use super::input::Input;
use super::open::{Batches, Source};
use super::sample::{CLUSTER_ROWS, Part, clusters, clusters_of_parts};
use super::seam::SeamFile;
use crate::text::{ColumnDecided, Decided, FileDecided};
use crate::{InterchangeError, TableSchema};
use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use pagefold_io::Storage;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder, RowSelection, RowSelector,
};
use parquet::file::metadata::{ColumnChunkMetaData, PageIndexPolicy, RowGroupMetaData};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Rows of a batch: few enough that wide rows stay bounded.
const BATCH_ROWS: usize = 8_192;

/// Bytes of one row group's batch are bounded too: wide rows come in smaller batches.
const BATCH_BYTES: i64 = 16 << 20;

struct ParquetFile {
    path: PathBuf,
    compression: Option<&'static str>,
    file: SeamFile,
    metadata: ArrowReaderMetadata,
    /// The same with the places of all pages, once a sample has asked for them.
    page_index: Option<ArrowReaderMetadata>,
    rows: u64,
    bytes: u64,
    batch_rows: usize,
}

/// Row groups by number, and rows of those one behind the other.
struct Selection {
    groups: Vec<usize>,
    selectors: Vec<RowSelector>,
}

/// Parquet files of one schema.
pub struct ParquetSource {
    files: Vec<ParquetFile>,
    table: TableSchema,
    read: Arc<AtomicU64>,
}

fn damaged(path: &Path, error: impl std::fmt::Display) -> InterchangeError {
    InterchangeError::file(path, format!("not a readable Parquet file: {error}"))
}

std::thread_local! {
    static DECODING: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
}

/// Is this thread decoding a file of others, so that a panic will be told as an error of that file? A panic hook is not to tell of it then.
#[must_use]
pub fn is_decoding() -> bool {
    DECODING.get()
}

/// Runs what decodes a file. The libraries panic on some damaged files; for us that is one more way to say that the file is damaged.
pub(super) fn guard<T>(path: &Path, decode: impl FnOnce() -> Result<T, InterchangeError>) -> Result<T, InterchangeError> {
    // What `decode` has changed is not used after a panic: the reader is dropped.
    DECODING.set(true);
    let decoded = catch_unwind(AssertUnwindSafe(decode));
    DECODING.set(false);
    decoded.unwrap_or_else(|cause| {
        let reason = cause.downcast_ref::<String>().map(String::as_str).or_else(|| cause.downcast_ref::<&str>().copied());
        Err(damaged(path, reason.unwrap_or("it is damaged")))
    })
}

/// What is known of files that say all of their columns.
pub(super) fn decided<'f>(
    format: &'static str,
    files: impl Iterator<Item = (&'f Path, Option<&'static str>)>,
    table: &TableSchema,
) -> Decided {
    let files = files.map(|(path, compression)| FileDecided { path: path.to_owned(), format, compression, ..FileDecided::default() });
    let columns = table.schema().columns().iter().map(|c| ColumnDecided {
        name: c.name.clone(),
        data_type: c.data_type,
        nullable: c.nullable,
        order: None,
        note: None,
    });
    Decided { files: files.collect(), columns: columns.collect() }
}

/// The file that a row is in, and which row of it, from 1.
pub(super) fn place<'f>(files: impl Iterator<Item = (&'f Path, u64)>, mut row: u64) -> Option<String> {
    for (path, rows) in files {
        if row < rows {
            return Some(format!("{}, row {}", path.display(), row + 1));
        }
        row -= rows;
    }
    None
}

/// The same columns? Metadata of fields may differ between writers.
pub(super) fn same_columns(a: &SchemaRef, b: &SchemaRef) -> bool {
    a.fields().len() == b.fields().len()
        && a.fields().iter().zip(b.fields()).all(|(a, b)| a.name() == b.name() && a.data_type() == b.data_type())
}

impl ParquetSource {
    /// Opens the files and reads their footers.
    ///
    /// # Errors
    /// A file that cannot be opened or is no Parquet; columns that differ between files; types that cannot be stored, naming the column.
    pub fn open(storage: &dyn Storage, paths: &[PathBuf]) -> Result<ParquetSource, InterchangeError> {
        ParquetSource::of_inputs(paths.iter().map(|path| Input::open(storage, path)).collect::<Result<Vec<_>, _>>()?)
    }

    pub(crate) fn of_inputs(inputs: Vec<Input>) -> Result<ParquetSource, InterchangeError> {
        let read = Arc::new(AtomicU64::new(0));
        let mut files: Vec<ParquetFile> = Vec::with_capacity(inputs.len());
        for Input { path, file, bytes, compression, .. } in inputs {
            let file = SeamFile::new(file, Arc::clone(&read))?;
            let load = || ArrowReaderMetadata::load(&file, ArrowReaderOptions::new()).map_err(|e| damaged(&path, e));
            let metadata = guard(&path, load)?;
            let group_rows = metadata.metadata().row_groups().iter().map(|g| u64::try_from(g.num_rows()).unwrap_or(0));
            // A damaged file may say anything.
            let rows = group_rows.fold(0, u64::saturating_add);
            let told = metadata.metadata().file_metadata().num_rows();
            if u64::try_from(told) != Ok(rows) {
                return Err(damaged(&path, format!("it says that it has {told} rows, and {rows} in its row groups")));
            }
            let batch_rows = batch_rows(&metadata);
            files.push(ParquetFile { path, compression, file, metadata, page_index: None, rows, bytes, batch_rows });
        }
        let Some(first) = files.first() else {
            return Err(InterchangeError::Mismatch("no file to read".to_owned()));
        };
        let schema = Arc::clone(first.metadata.schema());
        let mut nullable = vec![false; schema.fields().len()];
        for file in &files {
            if !same_columns(&schema, file.metadata.schema()) {
                return Err(InterchangeError::file(&file.path, format!("its columns are not those of {}", first.path.display())));
            }
            nullable.iter_mut().zip(file.metadata.schema().fields()).for_each(|(n, f)| *n |= f.is_nullable());
        }
        let fields: Vec<_> = schema.fields().iter().zip(nullable).map(|(f, n)| Arc::new(f.as_ref().clone().with_nullable(n))).collect();
        let schema = Arc::new(arrow_schema::Schema::new_with_metadata(fields, schema.metadata().clone()));
        let table = TableSchema::from_arrow(schema)?;
        Ok(ParquetSource { files, table, read })
    }
}

fn batch_rows(metadata: &ArrowReaderMetadata) -> usize {
    // Long values that come often take little of the file, and all of their length here.
    let bytes = |group: &RowGroupMetaData| {
        let in_memory =
            |column: &ColumnChunkMetaData| column.unencoded_byte_array_data_bytes().unwrap_or(0).max(column.uncompressed_size());
        group.columns().iter().map(in_memory).fold(0, i64::saturating_add).max(group.total_byte_size())
    };
    let widest = metadata.metadata().row_groups().iter().map(|g| bytes(g) / g.num_rows().max(1)).max().unwrap_or(0);
    usize::try_from(BATCH_BYTES / widest.max(1)).unwrap_or(1).clamp(1, BATCH_ROWS)
}

impl ParquetFile {
    /// Reads where pages lie, so that a sample need not look at every page's header to find its own. A file without page index, or with one that cannot be read, is sampled by
    /// the headers.
    fn find_pages(&mut self) {
        if self.page_index.is_none() {
            let options = ArrowReaderOptions::new().with_offset_index_policy(PageIndexPolicy::Optional);
            let load = || ArrowReaderMetadata::load(&self.file, options).map_err(|e| damaged(&self.path, e));
            self.page_index = Some(guard(&self.path, load).unwrap_or_else(|_| self.metadata.clone()));
        }
    }

    /// Rows of each row group.
    fn group_rows(&self) -> impl Iterator<Item = u64> + '_ {
        self.metadata.metadata().row_groups().iter().map(|group| u64::try_from(group.num_rows()).unwrap_or(0))
    }

    /// Parts of the file, `first` being the number of its first row: row groups, or as many pieces of each as it has pages if it is known where those lie.
    fn parts(&self, mut first: u64) -> Vec<Part> {
        let pages = self.page_index.as_ref().and_then(|metadata| metadata.metadata().offset_index());
        let mut parts = Vec::new();
        for (number, rows) in self.group_rows().enumerate() {
            let columns = pages.and_then(|pages| pages.get(number)).map(Vec::as_slice).unwrap_or_default();
            let pieces = columns.iter().map(|column| column.page_locations().len() as u64).max().unwrap_or(1).clamp(1, rows.max(1));
            let cut = |piece: u64| ((u128::from(rows) * u128::from(piece)) / u128::from(pieces)) as u64;
            parts.extend((0..pieces).map(|piece| Part { first: first.saturating_add(cut(piece)), rows: cut(piece + 1) - cut(piece) }));
            first = first.saturating_add(rows);
        }
        parts
    }

    /// Row groups that have clusters with these first rows (ascending, as numbers within the file), and which of their rows are wanted. Other row groups are not touched.
    fn select(&self, starts: &[u64]) -> Selection {
        let mut selection = Selection { groups: Vec::new(), selectors: Vec::new() };
        let (mut first, mut starts) = (0u64, starts.iter().copied().peekable());
        // Rows of a cluster that began in the row group before.
        let mut rest = 0u64;
        for (number, rows) in self.group_rows().enumerate() {
            let (behind, mut at) = (first.saturating_add(rows), first);
            let before = selection.selectors.len();
            let mut take = |from: u64, count: u64, at: &mut u64| {
                let count = count.min(behind - from);
                selection.selectors.push(RowSelector::skip((from - *at) as usize));
                selection.selectors.push(RowSelector::select(count as usize));
                *at = from + count;
                count
            };
            if rest > 0 && rows > 0 {
                rest -= take(first, rest, &mut at);
            }
            while let Some(start) = starts.next_if(|start| *start < behind) {
                rest = CLUSTER_ROWS - take(start, CLUSTER_ROWS, &mut at);
            }
            if selection.selectors.len() > before {
                selection.groups.push(number);
                selection.selectors.push(RowSelector::skip((behind - at) as usize));
            }
            first = behind;
        }
        selection
    }

    fn reader(
        &self,
        batch_rows: usize,
        selection: Option<Selection>,
        columns: Option<&[usize]>,
    ) -> Result<ParquetRecordBatchReader, InterchangeError> {
        let metadata = self.page_index.as_ref().filter(|_| selection.is_some()).unwrap_or(&self.metadata);
        let mut builder =
            ParquetRecordBatchReaderBuilder::new_with_metadata(self.file.clone(), metadata.clone()).with_batch_size(batch_rows);
        if let Some(selection) = selection {
            builder = builder.with_row_groups(selection.groups).with_row_selection(RowSelection::from(selection.selectors));
        }
        if let Some(columns) = columns {
            let mask = ProjectionMask::roots(builder.parquet_schema(), columns.iter().copied());
            builder = builder.with_projection(mask);
        }
        builder.build().map_err(|e| damaged(&self.path, e))
    }

    /// The batches of a reader, with the schema of all files. Columns that are not asked for are not read.
    fn batches<'s>(
        &'s self,
        batch_rows: usize,
        selection: Option<Selection>,
        columns: Option<&[usize]>,
        schema: SchemaRef,
    ) -> Result<impl Iterator<Item = Result<RecordBatch, InterchangeError>> + Send + use<'s>, InterchangeError> {
        let mut reader = guard(&self.path, || self.reader(batch_rows, selection, columns))?;
        Ok(std::iter::from_fn(move || {
            let next = guard(&self.path, || reader.next().transpose().map_err(|e| damaged(&self.path, e)));
            let batch = next.transpose()?;
            Some(batch.and_then(|batch| Ok(RecordBatch::try_new(Arc::clone(&schema), batch.columns().to_vec())?)))
        }))
    }
}

/// Chains what each file gives, opening one after the other, until an error.
pub(super) fn chain<'s, I>(readers: impl Iterator<Item = Result<I, InterchangeError>> + Send + 's) -> Batches<'s>
where
    I: Iterator<Item = Result<RecordBatch, InterchangeError>> + Send + 's,
{
    let mut failed = false;
    let batches = readers.flat_map(|reader| {
        let (batches, error) = match reader {
            Ok(batches) => (Some(batches), None),
            Err(error) => (None, Some(Err(error))),
        };
        batches.into_iter().flatten().chain(error)
    });
    Box::new(batches.take_while(move |batch| !std::mem::replace(&mut failed, batch.is_err())))
}

impl Source for ParquetSource {
    fn table(&self) -> &TableSchema {
        &self.table
    }

    fn has_names(&self) -> bool {
        true
    }

    fn row_count(&self) -> Option<u64> {
        Some(self.files.iter().fold(0, |sum, f| sum.saturating_add(f.rows)))
    }

    fn bytes_total(&self) -> u64 {
        self.files.iter().map(|f| f.bytes).sum()
    }

    fn bytes_done(&self) -> u64 {
        self.read.load(Ordering::Relaxed)
    }

    fn decided(&self) -> Decided {
        decided("parquet", self.files.iter().map(|f| (f.path.as_path(), f.compression)), &self.table)
    }

    fn place(&mut self, row: u64) -> Option<String> {
        place(self.files.iter().map(|f| (f.path.as_path(), f.rows)), row)
    }

    fn batches(&mut self) -> Result<Batches<'_>, InterchangeError> {
        self.read.store(0, Ordering::Relaxed);
        let schema = self.table.arrow();
        Ok(chain(self.files.iter().map(move |file| file.batches(file.batch_rows, None, None, Arc::clone(schema)))))
    }

    fn batches_of(&mut self, columns: &[usize]) -> Result<Batches<'_>, InterchangeError> {
        self.read.store(0, Ordering::Relaxed);
        let schema = Arc::new(self.table.arrow().project(columns)?);
        let columns = columns.to_vec();
        Ok(chain(self.files.iter().map(move |file| file.batches(file.batch_rows, None, Some(&columns), Arc::clone(&schema)))))
    }

    fn sample(&mut self, rows: u64, seed: u64) -> Result<Batches<'_>, InterchangeError> {
        self.sample_of(&(0..self.table.arrow().fields().len()).collect::<Vec<_>>(), rows, seed)
    }

    fn sample_of(&mut self, columns: &[usize], rows: u64, seed: u64) -> Result<Batches<'_>, InterchangeError> {
        let total = self.files.iter().fold(0, |sum: u64, f| sum.saturating_add(f.rows));
        let Some(starts) = clusters(total, rows, seed) else { return self.batches_of(columns) };
        self.files.iter_mut().for_each(ParquetFile::find_pages);
        self.batches_at(&starts, columns)
    }

    fn sample_of_parts(&mut self, rows: u64, seed: u64) -> Result<(Batches<'_>, usize), InterchangeError> {
        self.files.iter_mut().for_each(ParquetFile::find_pages);
        let (mut parts, mut first) = (Vec::new(), 0u64);
        for file in &self.files {
            parts.extend(file.parts(first));
            first = first.saturating_add(file.rows);
        }
        match clusters_of_parts(&parts, rows, seed) {
            Some((starts, each)) => {
                let columns: Vec<usize> = (0..self.table.arrow().fields().len()).collect();
                Ok((self.batches_at(&starts, &columns)?, each))
            }
            None => Ok((self.sample(rows, seed)?, 1)),
        }
    }
}

impl ParquetSource {
    /// The clusters with these first rows (ascending).
    fn batches_at(&self, starts: &[u64], columns: &[usize]) -> Result<Batches<'_>, InterchangeError> {
        let schema = Arc::new(self.table.arrow().project(columns)?);
        let columns = columns.to_vec();
        let mut first_row = 0u64;
        let mut plan = Vec::with_capacity(self.files.len());
        for file in &self.files {
            let behind = first_row.saturating_add(file.rows);
            // Of a cluster that spans two files the first one gives all its rows.
            let own: Vec<u64> = starts.iter().filter(|s| (first_row..behind).contains(s)).map(|s| s - first_row).collect();
            if !own.is_empty() {
                plan.push((file, file.select(&own)));
            }
            first_row = behind;
        }
        Ok(chain(
            plan.into_iter()
                .map(move |(file, selection)| file.batches(CLUSTER_ROWS as usize, Some(selection), Some(&columns), Arc::clone(&schema))),
        ))
    }
}
