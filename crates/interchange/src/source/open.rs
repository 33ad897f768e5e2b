//! What every source gives, and which source a file needs.

use super::input::{FileKind, Input, STANDARD_INPUT};
use super::{ArrowSource, ParquetSource};
use crate::csv::{CsvOptions, CsvSource};
use crate::json::JsonSource;
use crate::text::Decided;
use crate::{InterchangeError, TableSchema};
use arrow_array::RecordBatch;
use pagefold_io::Storage;
use std::path::PathBuf;

/// The batches of a source, in order; behind an error there are no more.
pub type Batches<'s> = Box<dyn Iterator<Item = Result<RecordBatch, InterchangeError>> + Send + 's>;

/// Rows from files. Batches are bounded, and so is the memory of a source, whatever the files hold.
pub trait Source: Send {
    /// The columns.
    fn table(&self) -> &TableSchema;

    /// Do the column names mean something? Not in a text file without header.
    fn has_names(&self) -> bool;

    /// How many rows there are, where that is known.
    fn row_count(&self) -> Option<u64>;

    /// Bytes of all files.
    fn bytes_total(&self) -> u64;

    /// How far the batches have come, in bytes of the files, for progress.
    fn bytes_done(&self) -> u64;

    /// What was decided about the files.
    fn decided(&self) -> Decided {
        Decided::default()
    }

    /// Where a row is (from 0, in the order of the batches): file and line, or file and row. Reads the files up to it.
    fn place(&mut self, row: u64) -> Option<String> {
        let _ = row;
        None
    }

    /// All rows from the start; can be asked for again.
    ///
    /// # Errors
    /// When the files cannot be read; the iterator gives errors of its own.
    fn batches(&mut self) -> Result<Batches<'_>, InterchangeError>;

    /// All rows, but of these columns (positions, ascending) only.
    ///
    /// # Errors
    /// As [`Source::batches`].
    fn batches_of(&mut self, columns: &[usize]) -> Result<Batches<'_>, InterchangeError> {
        let columns = columns.to_vec();
        Ok(Box::new(self.batches()?.map(move |batch| Ok(batch?.project(&columns)?))))
    }

    /// About `rows` rows, in clusters of neighbours spread over the whole of the files by `seed`; each batch is one cluster. All rows when there are no more.
    ///
    /// # Errors
    /// As [`Source::batches`].
    fn sample(&mut self, rows: u64, seed: u64) -> Result<Batches<'_>, InterchangeError>;

    /// As [`Source::sample`], but of these columns (positions, ascending) only.
    ///
    /// # Errors
    /// As [`Source::batches`].
    fn sample_of(&mut self, columns: &[usize], rows: u64, seed: u64) -> Result<Batches<'_>, InterchangeError> {
        let columns = columns.to_vec();
        Ok(Box::new(self.sample(rows, seed)?.map(move |batch| Ok(batch?.project(&columns)?))))
    }

    /// As [`Source::sample`], but from some random parts of the files only, where each cluster by itself would make nearly all of them be decoded: so many batches (the number
    /// beside them), one behind the other, are from one part. The parts are what is random and independent, not the clusters within.
    ///
    /// # Errors
    /// As [`Source::batches`].
    fn sample_of_parts(&mut self, rows: u64, seed: u64) -> Result<(Batches<'_>, usize), InterchangeError> {
        Ok((self.sample(rows, seed)?, 1))
    }
}

/// How to read files that say little of themselves.
#[derive(Clone, Debug, Default)]
pub struct OpenSource {
    /// Options of CSV and the like; types and rows that do not fit also of JSON lines
    pub csv: CsvOptions,
}

/// Opens files that together are one table: by extension or first bytes Parquet, Arrow or JSON lines, else text. Each may be compressed (gzip, zstd); `-` is standard input.
///
/// # Errors
/// A file that is not there or not readable, columns that differ between files, types that cannot be stored, and for text all that the first pass finds.
pub fn open_source(storage: &dyn Storage, paths: &[PathBuf], options: &OpenSource) -> Result<Box<dyn Source>, InterchangeError> {
    Inputs::open(storage, paths)?.source(storage, options)
}

fn open_inputs(storage: &dyn Storage, inputs: Vec<Input>, options: &OpenSource) -> Result<Box<dyn Source>, InterchangeError> {
    let Some(first) = inputs.first() else {
        return Err(InterchangeError::Mismatch("no file to read".to_owned()));
    };
    let kind = first.kind;
    if let Some(other) = inputs.iter().find(|input| input.kind != kind) {
        return Err(InterchangeError::file(&other.path, format!("is not of the same format as {}", first.path.display())));
    }
    Ok(match kind {
        FileKind::Parquet => Box::new(ParquetSource::of_inputs(inputs)?),
        FileKind::Arrow => Box::new(ArrowSource::of_inputs(inputs)?),
        FileKind::Json => Box::new(JsonSource::of_inputs(inputs, &options.csv)?),
        FileKind::Text => Box::new(CsvSource::of_inputs(storage, inputs, &options.csv)?),
    })
}

/// Files that were opened and, as far as they had to be, unpacked: they can be read in one way and then in another, standard input too.
#[derive(Clone, Debug)]
pub struct Inputs(Vec<Input>);

impl Inputs {
    /// Opens the files.
    ///
    /// # Errors
    /// As [`open_source`].
    pub fn open(storage: &dyn Storage, paths: &[PathBuf]) -> Result<Inputs, InterchangeError> {
        if paths.iter().filter(|path| path.as_os_str() == STANDARD_INPUT).count() > 1 {
            return Err(InterchangeError::Mismatch("standard input can be read once".to_owned()));
        }
        Ok(Inputs(paths.iter().map(|path| Input::open(storage, path)).collect::<Result<_, _>>()?))
    }

    /// What the first of them is: "Parquet", "Arrow", "JSON lines" or "text".
    #[must_use]
    pub fn format(&self) -> Option<&'static str> {
        self.0.first().map(|input| match input.kind {
            FileKind::Parquet => "Parquet",
            FileKind::Arrow => "Arrow",
            FileKind::Json => "JSON lines",
            FileKind::Text => "text",
        })
    }

    /// A source of their rows.
    ///
    /// # Errors
    /// As [`open_source`].
    pub fn source(&self, storage: &dyn Storage, options: &OpenSource) -> Result<Box<dyn Source>, InterchangeError> {
        open_inputs(storage, self.0.clone(), options)
    }
}
