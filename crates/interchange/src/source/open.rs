//! What every source gives, and which source a file needs.

use super::ParquetSource;
use crate::csv::{CsvOptions, CsvSource};
use crate::{InterchangeError, TableSchema};
use arrow_array::RecordBatch;
use pagefold_io::{OpenOptions, Storage};
use std::path::{Path, PathBuf};

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

/// How to read text files, when the files are such.
#[derive(Clone, Debug, Default)]
pub struct OpenSource {
    /// Options of CSV and the like
    pub csv: CsvOptions,
}

const PARQUET_MAGIC: &[u8; 4] = b"PAR1";

fn extension(path: &Path) -> String {
    path.extension().map(|e| e.to_string_lossy().to_ascii_lowercase()).unwrap_or_default()
}

fn is_parquet(storage: &dyn Storage, path: &Path) -> Result<bool, InterchangeError> {
    match extension(path).as_str() {
        "parquet" | "pq" => return Ok(true),
        "csv" | "tsv" | "tbl" | "txt" => return Ok(false),
        _ => {}
    }
    let file = storage.open(path, &OpenOptions::read_only())?;
    let mut magic = [0; 4];
    Ok(file.len()? >= 12 && pagefold_io::read_exact_at(&*file, &mut magic, 0).is_ok() && magic == *PARQUET_MAGIC)
}

/// Opens files that together are one table: Parquet by extension or first bytes, else text.
///
/// # Errors
/// A file that is not there or not readable, columns that differ between files, types that cannot be stored, and for text all that the first pass finds.
pub fn open_source(storage: &dyn Storage, paths: &[PathBuf], options: &OpenSource) -> Result<Box<dyn Source>, InterchangeError> {
    let [first, rest @ ..] = paths else {
        return Err(InterchangeError::Mismatch("no file to read".to_owned()));
    };
    let parquet = is_parquet(storage, first)?;
    for path in rest {
        if is_parquet(storage, path)? != parquet {
            return Err(InterchangeError::file(path, format!("is not of the same format as {}", first.display())));
        }
    }
    if parquet { Ok(Box::new(ParquetSource::open(storage, paths)?)) } else { Ok(Box::new(CsvSource::open(storage, paths, &options.csv)?)) }
}
