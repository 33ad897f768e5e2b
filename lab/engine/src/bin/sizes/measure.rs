//! Loads a table under each method, checks what is stored, and counts pages and bytes.

use crate::profile::{Profile, profile};
use crate::reference;
use arrow_array::RecordBatch;
use pagefold_engine::database::{Database, OpenMode, Settings};
use pagefold_engine::index::IndexFormat;
use pagefold_engine::pool::PoolSettings;
use pagefold_engine::table_space::{Method, Table};
use pagefold_interchange::{InterchangeError, Packer, ParquetOptions, ParquetSink, Sink, Source, TableSchema};
use pagefold_io::{MemoryStorage, OsClock};
use pagefold_lab::lz_tree::Growth;
use pagefold_lab_engine::data::Outcome;
use pagefold_lab_engine::inputs::{Group, Input};
use pagefold_types::{PackedRow, PackedRows};
use pagefold_utility::{LoadOptions, Scan, ScanOptions, Silent, load_source, report, sample_source, table_schema};
use std::hash::{DefaultHasher, Hasher};
use std::path::Path;
use std::sync::Arc;

/// Page size of the index of the primary key.
const KEY_PAGE_BYTES: usize = 8192;
/// Memory of the pools.
const MEMORY_BYTES: usize = 256 << 20;

/// What a table takes under a method.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Size {
    pub(crate) method: Method,
    /// Pages that hold rows.
    pub(crate) npages: u64,
    pub(crate) dictionary_pages: u64,
    /// All pages of the table.
    pub(crate) table_bytes: u64,
    /// All pages of the index of its primary key.
    pub(crate) key_bytes: u64,
}

/// What came out for a table.
#[derive(Clone, Debug)]
pub(crate) struct Measured {
    pub(crate) name: String,
    pub(crate) group: Group,
    pub(crate) rows: u64,
    pub(crate) record_bytes: u64,
    /// In the order of [`Method::ALL`].
    pub(crate) sizes: Vec<Size>,
    /// Pages with rows of the reference.
    pub(crate) lz_tree_pages: u64,
    /// The same, of a tree that is not pruned.
    pub(crate) frozen_pages: Option<u64>,
    pub(crate) profile: Option<Profile>,
    pub(crate) parquet_bytes: u64,
    pub(crate) sqlite_bytes: Option<u64>,
}

impl Measured {
    /// What it takes under a method.
    pub(crate) fn size(&self, method: Method) -> Option<&Size> {
        self.sizes.iter().find(|size| size.method == method)
    }
}

/// Rows and their records, in order, as two numbers.
struct Fingerprint<'t> {
    packer: Packer<'t>,
    packed: PackedRows,
    rows: u64,
    hasher: DefaultHasher,
}

impl<'t> Fingerprint<'t> {
    fn new(schema: &'t TableSchema, table: &'t Table) -> Fingerprint<'t> {
        let layout = table.layout();
        let packer = Packer::new(schema, layout, (0..layout.column_count()).collect(), table.record_bytes_max());
        Fingerprint { packer, packed: PackedRows::default(), rows: 0, hasher: DefaultHasher::new() }
    }

    fn value(&self) -> (u64, u64) {
        (self.rows, self.hasher.finish())
    }
}

impl Sink for Fingerprint<'_> {
    fn write(&mut self, batch: &RecordBatch) -> Result<(), InterchangeError> {
        self.packed.clear();
        self.packer.pack(batch, &mut self.packed)?;
        for row in self.packed.iter() {
            self.rows += 1;
            match row {
                PackedRow::Record(record) => {
                    self.hasher.write_usize(record.len());
                    self.hasher.write(record);
                }
                PackedRow::Wide(values) => self.hasher.write(format!("{values:?}").as_bytes()),
            }
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<(), InterchangeError> {
        Ok(())
    }
}

/// Compares what is stored with the source: the same rows in the same order.
fn check(database: &Database, table: &Table, input: &Input) -> Outcome<()> {
    let schema = table_schema(table)?;
    let mut expected = Fingerprint::new(&schema, table);
    input.rows().iter().try_for_each(|batch| expected.write(batch))?;
    let mut found = Fingerprint::new(&schema, table);
    Scan::new(database, table.name(), &ScanOptions::default())?.run(&mut found, &Silent)?;
    if expected.value() == found.value() {
        return Ok(());
    }
    let method = table.attributes().method;
    Err(format!("{}, {method}: {:?} is stored, not {:?}", table.name(), found.value(), expected.value()).into())
}

/// Loads a table under every method.
pub(crate) fn measure(input: &mut Input, page_bytes: usize, frozen: bool, profiled: bool) -> Outcome<Measured> {
    let mut measured = Measured {
        name: input.name.clone(),
        group: input.group,
        rows: 0,
        record_bytes: 0,
        sizes: Vec::new(),
        lz_tree_pages: 0,
        frozen_pages: None,
        profile: None,
        parquet_bytes: parquet_bytes(input)?,
        sqlite_bytes: sqlite_bytes(input)?,
    };
    for method in Method::ALL {
        let settings = Settings { pools: PoolSettings { memory_bytes: MEMORY_BYTES, ..PoolSettings::default() }, ..Settings::default() };
        let storage = Arc::new(MemoryStorage::new());
        let database = Database::open(storage, Arc::new(OsClock), Path::new("db"), OpenMode::Create, settings)?;
        let options = LoadOptions {
            method: method.into(),
            page_bytes,
            primary_key: input.primary_key.clone(),
            key_format: IndexFormat::Prefix.into(),
            key_page_bytes: Some(KEY_PAGE_BYTES),
            ..LoadOptions::default()
        };
        let name = input.name.clone();
        let loaded = load_source(&database, &name, input, &options, &Silent)?;
        let table = database.table(&name)?;
        check(&database, &table, input)?;
        let statistics = report(&database, Some(&name), &Silent)?.tables;
        let statistics = statistics.first().ok_or("no table to report on")?;
        (measured.rows, measured.record_bytes) = (loaded.rows, loaded.record_bytes);
        measured.sizes.push(Size {
            method,
            npages: statistics.npages,
            dictionary_pages: statistics.dictionary_pages,
            table_bytes: statistics.size_bytes,
            key_bytes: loaded.index_bytes,
        });
        if method == Method::Huffman && profiled {
            let sample = sample_source(input, &table_schema(&table)?, table.layout(), table.record_bytes_max())?.into_sample();
            measured.profile = profile(&table, &sample);
        }
        if method == Method::None {
            let sample = sample_source(input, &table_schema(&table)?, table.layout(), table.record_bytes_max())?.into_sample();
            measured.lz_tree_pages = reference::pages(&database, &table, &sample, Growth::Pruned)?;
            measured.frozen_pages = frozen.then(|| reference::pages(&database, &table, &sample, Growth::Frozen)).transpose()?;
        }
    }
    Ok(measured)
}

/// Bytes of a Parquet file with zstd -3.
fn parquet_bytes(input: &Input) -> Outcome<u64> {
    let mut bytes = Vec::new();
    let mut sink = ParquetSink::new(&mut bytes, input.table(), &ParquetOptions::default())?;
    input.rows().iter().try_for_each(|batch| sink.write(batch))?;
    sink.finish()?;
    drop(sink);
    Ok(bytes.len() as u64)
}

#[cfg(feature = "rivals")]
fn sqlite_bytes(input: &Input) -> Outcome<Option<u64>> {
    pagefold_lab_engine::inputs::sqlite::file_bytes(input).map(Some)
}

#[cfg(not(feature = "rivals"))]
fn sqlite_bytes(_: &Input) -> Outcome<Option<u64>> {
    Ok(None)
}
