//! What the database of a program is like: its tables, indexes and settings.

use crate::random::Random;
use crate::values::TYPES;
use pagefold_codec::row::{DictionaryChoice, RowDictionary, RowSample, TrainOptions, train_row_dictionary};
use pagefold_engine::database::{Database, OpenMode, Settings};
use pagefold_engine::index::{Index, IndexAttributes, IndexFormat};
use pagefold_engine::log::LogSettings;
use pagefold_engine::pool::PoolSettings;
use pagefold_engine::table_space::{Method, Table, TableAttributes};
use pagefold_engine::{Error, Result};
use pagefold_io::{MemoryStorage, SimulatedClock, Storage};
use pagefold_types::{Column, DataType, Direction, Schema};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

#[derive(Clone, Debug)]
pub(crate) struct ColumnShape {
    pub(crate) data_type: DataType,
    pub(crate) nullable: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct IndexShape {
    /// Columns; true: descending.
    pub(crate) columns: Vec<(usize, bool)>,
    pub(crate) unique: bool,
    pub(crate) format: IndexFormat,
    pub(crate) page_bytes: usize,
}

#[derive(Clone, Debug)]
pub(crate) struct TableShape {
    pub(crate) columns: Vec<ColumnShape>,
    pub(crate) indexes: Vec<IndexShape>,
    pub(crate) method: Method,
    pub(crate) page_bytes: usize,
    pub(crate) maxrows: u16,
    pub(crate) small_partitions: bool,
    /// The first index is that of the primary key.
    pub(crate) primary_key: bool,
    /// It begins with a dictionary of this seed.
    pub(crate) dictionary: Option<u64>,
}

#[derive(Clone, Debug)]
pub(crate) struct Shape {
    pub(crate) tables: Vec<TableShape>,
    pub(crate) memory_bytes: usize,
    pub(crate) checkpoint_bytes: u64,
}

impl TableShape {
    pub(crate) fn schema(&self) -> Schema {
        let columns = self.columns.iter().enumerate().map(|(i, c)| Column::new(format!("c{i}"), c.data_type, c.nullable));
        Schema::new(columns.collect()).unwrap()
    }
}

/// What memory of frames is given out in.
const CHUNK_BYTES: usize = 256 << 10;

/// Tables under this method with indexes of this format.
pub(crate) fn random_shape(random: &mut Random, method: Method, format: IndexFormat) -> Shape {
    let count = 1 + random.below(5).saturating_sub(2) as usize;
    let tables: Vec<TableShape> = (0..count).map(|_| random_table(random, method, format)).collect();
    // One chunk of frames for each pool, and one more: where there is little of anything, it still changes hands.
    let of_indexes = tables.iter().flat_map(|table| table.indexes.iter().map(|index| (1, index.page_bytes)));
    let pools: BTreeSet<(u8, usize)> = tables.iter().map(|table| (0, table.page_bytes)).chain(of_indexes).collect();
    let memory_bytes = (pools.len() + 3) * CHUNK_BYTES;
    Shape {
        tables,
        memory_bytes: if random.one_in(3) { 8 << 20 } else { memory_bytes },
        checkpoint_bytes: if random.one_in(3) { 40 << 10 } else { 256 << 20 },
    }
}

fn random_table(random: &mut Random, method: Method, format: IndexFormat) -> TableShape {
    let page_bytes = random.of(&[2048, 2048, 2048, 4096, 4096, 6144, 8192, 16384, 32768]);
    let wide = random.one_in(12);
    let count = if wide { 20 + random.below(40) } else { 1 + random.below(7) };
    let columns: Vec<ColumnShape> = (0..count).map(|_| ColumnShape { data_type: random.of(&TYPES), nullable: random.one_in(2) }).collect();
    let indexes = 1 + random.below(4);
    let indexes: Vec<IndexShape> = (0..indexes)
        .map(|_| {
            let mut of: Vec<(usize, bool)> = Vec::new();
            for _ in 0..1 + random.below(3) {
                let column = random.below(count) as usize;
                if of.iter().all(|(other, _)| *other != column) {
                    of.push((column, random.one_in(3)));
                }
            }
            let page_bytes = if format == IndexFormat::Fold {
                random.of(&[8192, 8192, 16384, 32768])
            } else {
                random.of(&[2048, 2048, 2048, 4096, 8192, 32768])
            };
            IndexShape { columns: of, unique: random.one_in(2), format, page_bytes }
        })
        .collect();
    TableShape {
        columns,
        indexes,
        method,
        page_bytes,
        maxrows: random.of(&[4096, 4096, 4096, 40, 5, 1]),
        small_partitions: random.one_in(8),
        primary_key: random.one_in(2),
        dictionary: random.one_in(2).then(|| random.below(4)),
    }
}

/// A dictionary for the words of texts.
pub(crate) fn dictionary(method: Method, seed: u64) -> RowDictionary {
    let mut random = Random(seed);
    let words = ["carefully ", "final ", "deposits ", "sleep ", "furiously ", "xq", "\0\0\0", "aaaa"];
    let sample: Vec<String> = (0..40).map(|_| (0..6 + seed).map(|_| random.of(&words)).collect()).collect();
    let mut ends = Vec::new();
    let mut end = 0;
    for text in &sample {
        end += text.len() as u32;
        ends.push(end);
    }
    let bytes = sample.concat();
    let sample = RowSample::new(bytes.as_bytes(), &ends).unwrap();
    let choice = if method == Method::Huffman { DictionaryChoice::Huffman } else { DictionaryChoice::Fixed };
    train_row_dictionary(&sample, &TrainOptions::default(), choice)
}

/// An open database.
pub(crate) struct World {
    pub(crate) database: Database,
    pub(crate) tables: Vec<Arc<Table>>,
    pub(crate) indexes: Vec<Vec<Arc<Index>>>,
}

fn table_name(table: usize) -> String {
    format!("t{table}")
}

fn index_name(table: usize, index: usize) -> String {
    format!("t{table}_i{index}")
}

pub(crate) fn open(storage: &MemoryStorage, shape: &Shape, mode: OpenMode, threads: usize) -> Result<World> {
    let pools = PoolSettings { memory_bytes: shape.memory_bytes, background_threads: threads, ..PoolSettings::default() };
    let clock = Arc::new(SimulatedClock::new(Duration::from_secs(1)));
    let log = LogSettings { segment_bytes: 64 << 10, ..LogSettings::default() };
    let settings = Settings { pools, log, double_write_bytes: 128 << 10, checkpoint_bytes: shape.checkpoint_bytes, ..Settings::default() };
    let storage: Arc<dyn Storage> = Arc::new(storage.clone());
    let database = Database::open(storage, clock, Path::new("db"), mode, settings)?;
    if mode == OpenMode::Create {
        let mut change = database.change();
        for (number, table) in shape.tables.iter().enumerate() {
            let mut attributes = TableAttributes::new(table_name(number), table.schema()).with_page_bytes(table.page_bytes);
            attributes.method = table.method;
            attributes.maxrows = table.maxrows;
            if table.small_partitions {
                attributes.partition_bytes = 16 * table.page_bytes as u64;
            }
            if table.primary_key {
                attributes.primary_key = table.indexes[0].columns.iter().map(|(column, _)| *column).collect();
            }
            let made = change.create_table(attributes)?;
            if let Some(seed) = table.dictionary.filter(|_| table.method.dictionary_type().is_some()) {
                made.set_dictionary(dictionary(table.method, seed))?;
            }
            for (i, index) in table.indexes.iter().enumerate() {
                let columns = index
                    .columns
                    .iter()
                    .map(|(column, descending)| (*column, if *descending { Direction::Descending } else { Direction::Ascending }))
                    .collect();
                let attributes = IndexAttributes::new(index_name(number, i), columns, index.unique);
                change.create_index(&made, attributes.with_format(index.format, index.page_bytes))?;
            }
        }
        change.commit()?;
    }
    let tables = (0..shape.tables.len()).map(|t| database.table(&table_name(t))).collect::<Result<Vec<_>>>()?;
    let indexes = shape.tables.iter().enumerate();
    let indexes = indexes.map(|(t, table)| (0..table.indexes.len()).map(|i| database.index(&index_name(t, i))).collect());
    let indexes = indexes.collect::<Result<Vec<Vec<_>>>>()?;
    Ok(World { database, tables, indexes })
}

/// An error that the shape itself is refused with: keys too long for the pages.
pub(crate) fn is_refused(error: &Error) -> bool {
    matches!(error, Error::Parameter(_))
}
