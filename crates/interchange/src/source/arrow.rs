//! Arrow IPC as a source: files and streams.

use super::arrow_lengths::{check_file, check_stream};
use super::input::Input;
use super::open::{Batches, Source};
use super::parquet::{chain, decided, guard, place, same_columns};
use super::sample::{clusters, of_clusters};
use crate::text::Decided;
use crate::{InterchangeError, TableSchema};
use arrow_array::RecordBatch;
use arrow_ipc::reader::{FileReader as IpcFileReader, StreamReader};
use arrow_schema::{ArrowError, SchemaRef};
use pagefold_io::{File, FileReader};
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Rows of a batch.
const BATCH_ROWS: usize = 8_192;

const FILE_MAGIC: &[u8; 6] = b"ARROW1";

struct ArrowFile {
    path: PathBuf,
    compression: Option<&'static str>,
    file: Arc<dyn File>,
    is_stream: bool,
    bytes: u64,
    rows: u64,
    schema: SchemaRef,
}

/// Arrow IPC files of one schema.
pub struct ArrowSource {
    files: Vec<ArrowFile>,
    table: TableSchema,
    /// Rows given so far, of all
    done: u64,
}

type IpcBatches = Box<dyn Iterator<Item = Result<RecordBatch, ArrowError>> + Send>;

fn damaged(path: &Path, error: impl std::fmt::Display) -> InterchangeError {
    InterchangeError::file(path, format!("not a readable Arrow file: {error}"))
}

impl ArrowFile {
    /// Its batches as they are, and their schema.
    fn open(&self) -> Result<(IpcBatches, SchemaRef), InterchangeError> {
        guard(&self.path, || {
            let reader = BufReader::new(FileReader::new(Arc::clone(&self.file)));
            let failed = |e: ArrowError| damaged(&self.path, e);
            if self.is_stream {
                let reader = StreamReader::try_new(reader, None).map_err(failed)?;
                let schema = reader.schema();
                return Ok((Box::new(reader) as IpcBatches, schema));
            }
            let reader = IpcFileReader::try_new(reader, None).map_err(failed)?;
            let schema = reader.schema();
            Ok((Box::new(reader) as IpcBatches, schema))
        })
    }

    /// Its batches in bounded pieces, with the schema of all files.
    fn batches(
        &self,
        schema: SchemaRef,
    ) -> Result<impl Iterator<Item = Result<RecordBatch, InterchangeError>> + Send + use<'_>, InterchangeError> {
        let (mut batches, _) = self.open()?;
        let mut rest: Option<RecordBatch> = None;
        Ok(std::iter::from_fn(move || {
            loop {
                if let Some(batch) = rest.take() {
                    let count = batch.num_rows().min(BATCH_ROWS);
                    if count < batch.num_rows() {
                        rest = Some(batch.slice(count, batch.num_rows() - count));
                    }
                    let columns = batch.slice(0, count).columns().to_vec();
                    return Some(RecordBatch::try_new(Arc::clone(&schema), columns).map_err(InterchangeError::from));
                }
                match guard(&self.path, || batches.next().transpose().map_err(|e| damaged(&self.path, e))) {
                    Ok(None) => return None,
                    Ok(Some(batch)) if batch.num_rows() == 0 => {}
                    Ok(Some(batch)) => rest = Some(batch),
                    Err(error) => return Some(Err(error)),
                }
            }
        }))
    }
}

impl ArrowSource {
    pub(crate) fn of_inputs(inputs: Vec<Input>) -> Result<ArrowSource, InterchangeError> {
        let mut files: Vec<ArrowFile> = Vec::with_capacity(inputs.len());
        for Input { path, file, bytes, compression, .. } in inputs {
            let mut magic = [0; 6];
            let is_stream = bytes < 6 || pagefold_io::read_exact_at(&*file, &mut magic, 0).is_err() || magic != *FILE_MAGIC;
            let schema = Arc::new(arrow_schema::Schema::empty());
            let mut found = ArrowFile { path, compression, file, is_stream, bytes, rows: 0, schema };
            let checked =
                guard(&found.path, || Ok(if is_stream { check_stream(&*found.file, bytes) } else { check_file(&*found.file, bytes) }))?;
            checked.map_err(|e| damaged(&found.path, e))?;
            let (batches, schema) = found.open()?;
            // One pass counts the rows.
            let mut batches = batches;
            let mut rows = 0u64;
            while let Some(batch) = guard(&found.path, || batches.next().transpose().map_err(|e| damaged(&found.path, e)))? {
                rows += batch.num_rows() as u64;
            }
            (found.rows, found.schema) = (rows, schema);
            files.push(found);
        }
        let Some(first) = files.first() else {
            return Err(InterchangeError::Mismatch("no file to read".to_owned()));
        };
        let schema = Arc::clone(&first.schema);
        let mut nullable = vec![false; schema.fields().len()];
        for file in &files {
            if !same_columns(&schema, &file.schema) {
                return Err(InterchangeError::file(&file.path, format!("its columns are not those of {}", first.path.display())));
            }
            nullable.iter_mut().zip(file.schema.fields()).for_each(|(n, f)| *n |= f.is_nullable());
        }
        let fields: Vec<_> = schema.fields().iter().zip(nullable).map(|(f, n)| Arc::new(f.as_ref().clone().with_nullable(n))).collect();
        let schema = Arc::new(arrow_schema::Schema::new_with_metadata(fields, schema.metadata().clone()));
        Ok(ArrowSource { files, table: TableSchema::from_arrow(schema)?, done: 0 })
    }
}

impl Source for ArrowSource {
    fn table(&self) -> &TableSchema {
        &self.table
    }

    fn has_names(&self) -> bool {
        true
    }

    fn row_count(&self) -> Option<u64> {
        Some(self.files.iter().map(|f| f.rows).sum())
    }

    fn bytes_total(&self) -> u64 {
        self.files.iter().map(|f| f.bytes).sum()
    }

    fn bytes_done(&self) -> u64 {
        self.done
    }

    fn decided(&self) -> Decided {
        decided("arrow", self.files.iter().map(|f| (f.path.as_path(), f.compression)), &self.table)
    }

    fn place(&mut self, row: u64) -> Option<String> {
        place(self.files.iter().map(|f| (f.path.as_path(), f.rows)), row)
    }

    fn batches(&mut self) -> Result<Batches<'_>, InterchangeError> {
        let schema = self.table.arrow();
        self.done = self.bytes_total();
        Ok(chain(self.files.iter().map(move |file| file.batches(Arc::clone(schema)))))
    }

    /// Reads everything, and gives the rows of the clusters.
    fn sample(&mut self, rows: u64, seed: u64) -> Result<Batches<'_>, InterchangeError> {
        let total = self.files.iter().map(|f| f.rows).sum();
        let Some(starts) = clusters(total, rows, seed) else { return self.batches() };
        let schema = Arc::clone(self.table.arrow());
        Ok(of_clusters(schema, self.batches()?, starts))
    }
}
