//! LINEITEM in a Parquet file, and its rows as packed records, so that every engine reads the same bytes.

use pagefold_interchange::{Packer, ParquetOptions, ParquetSink, ParquetSource, Sink, Source, TableSchema};
use pagefold_io::{OsStorage, Storage};
use pagefold_types::{PackedRow, PackedRows, RowLayout};
use std::error::Error;
use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use tpchgen::generators::LineItemGenerator;
use tpchgen_arrow::LineItemArrow;

/// Result of this program.
pub type Outcome<T> = Result<T, Box<dyn Error>>;

/// Columns by number.
pub const ORDER_KEY: usize = 0;
/// Line number.
pub const LINE_NUMBER: usize = 3;
/// Quantity: one of the two columns read, and the one updated.
pub const QUANTITY: usize = 4;
/// Extended price: the other column read.
pub const EXTENDED_PRICE: usize = 5;

/// The rows in one place.
pub struct Lineitem {
    /// The Parquet file.
    pub path: PathBuf,
    /// Its columns.
    pub table: TableSchema,
    /// Layout of the records.
    pub layout: RowLayout,
}

impl Lineitem {
    /// Generates the file.
    pub fn generate(folder: &Path, scale_factor: f64) -> Outcome<Lineitem> {
        let path = folder.join("lineitem.parquet");
        let batches = LineItemArrow::new(LineItemGenerator::new(scale_factor, 1, 1)).with_batch_size(8192);
        let table = TableSchema::from_arrow(LineItemArrow::schema_ref())?;
        let mut sink = ParquetSink::new(BufWriter::new(File::create(&path)?), &table, &ParquetOptions::default())?;
        for batch in batches {
            sink.write(&batch?)?;
        }
        sink.finish()?;
        Lineitem::open(path)
    }

    /// Opens a file that is there.
    pub fn open(path: PathBuf) -> Outcome<Lineitem> {
        let storage: &dyn Storage = &OsStorage;
        let source = ParquetSource::open(storage, std::slice::from_ref(&path))?;
        let table = source.table().clone();
        let layout = RowLayout::new(table.schema())?;
        Ok(Lineitem { path, table, layout })
    }

    /// Calls `visit` with every record, in the order of the file: by primary key.
    pub fn records(&self, mut visit: impl FnMut(&[u8]) -> Outcome<()>) -> Outcome<u64> {
        let mut source = ParquetSource::open(&OsStorage, std::slice::from_ref(&self.path))?;
        let packer = Packer::new(&self.table, &self.layout, (0..self.layout.column_count()).collect(), 32_000);
        let mut rows = PackedRows::default();
        let mut count = 0;
        for batch in source.batches()? {
            rows.clear();
            packer.pack(&batch?, &mut rows)?;
            for row in rows.iter() {
                let PackedRow::Record(record) = row else { return Err("a row wider than a page".into()) };
                visit(record)?;
                count += 1;
            }
        }
        Ok(count)
    }

    /// The primary key of a record: order key and line number.
    pub fn key(&self, record: &[u8]) -> Outcome<(i64, i64)> {
        let order = self.layout.int_at(record, ORDER_KEY)?.ok_or("a NULL key")?;
        let line = self.layout.int_at(record, LINE_NUMBER)?.ok_or("a NULL key")?;
        Ok((order, line))
    }
}
