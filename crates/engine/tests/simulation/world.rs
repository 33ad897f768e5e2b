//! A small database that is made in many shapes: pages so small that everything happens often.

use crate::values::{schema, text_of};
use pagefold_codec::row::{DictionaryChoice, RowDictionary, RowSample, TrainOptions, train_row_dictionary};
use pagefold_engine::database::{Change, Database, OpenMode, Settings};
use pagefold_engine::index::{IndexAttributes, IndexFormat};
use pagefold_engine::log::LogSettings;
use pagefold_engine::pool::PoolSettings;
use pagefold_engine::table_space::{Method, Table, TableAttributes};
use pagefold_engine::{Extents, Result};
use pagefold_io::{Clock, FaultStorage, SimulatedClock, Storage};
use pagefold_types::{Direction, ValueRef};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

pub(crate) const TABLES: [&str; 2] = ["first", "second"];
pub(crate) const DIRECTORY: &str = "db";

/// Pseudo-random numbers: SplitMix64 (Steele, Lea, Flood 2014).
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (z ^ (z >> 31)) % n
    }

    pub(crate) fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    pub(crate) fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len() as u64) as usize]
    }
}

pub(crate) fn settings() -> Settings {
    // Without background threads the calls come in the same order each time.
    let pools = PoolSettings { memory_bytes: 2 << 20, background_threads: 0, ..PoolSettings::default() };
    let log = LogSettings { segment_bytes: 128 << 10, spare_segments: 2, ..LogSettings::default() };
    // Versions go to their file and come back.
    Settings { pools, log, double_write_bytes: 64 << 10, version_bytes: 96_000, ..Settings::default() }
}

pub(crate) fn open(storage: &FaultStorage, mode: OpenMode) -> Result<Database> {
    let clock: Arc<dyn Clock> = Arc::new(SimulatedClock::new(Duration::from_secs(1)));
    let storage: Arc<dyn Storage> = Arc::new(storage.clone());
    Database::open(storage, clock, Path::new(DIRECTORY), mode, settings())
}

/// What a table is like.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TableShape {
    pub(crate) method: Method,
    pub(crate) page_bytes: usize,
    /// Formats of its indexes, in the order of [`INDEXES`].
    pub(crate) formats: [IndexFormat; 4],
    /// The long key column belongs to the primary key: it never goes to large-value pages, so that rows can be too wide.
    pub(crate) wide_stays: bool,
    /// It soon needs further partitions.
    pub(crate) small_partitions: bool,
    /// Its files grow by little.
    pub(crate) small_extents: bool,
}

impl TableShape {
    /// So small that a full disk is met soon, or as they are by themselves.
    fn extents(&self) -> Extents {
        if self.small_extents { Extents { first_bytes: 16 << 10, second_bytes: 8 << 10 } } else { Extents::default() }
    }
}

/// What the tables are like.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape(pub(crate) [TableShape; 2]);

impl Default for Shape {
    fn default() -> Shape {
        let formats = [IndexFormat::Plain, IndexFormat::Fold, IndexFormat::Prefix, IndexFormat::Plain];
        let plain = TableShape {
            method: Method::None,
            page_bytes: 2048,
            formats,
            wide_stays: false,
            small_partitions: false,
            small_extents: false,
        };
        let formats = [IndexFormat::Fold, IndexFormat::Plain, IndexFormat::Plain, IndexFormat::Prefix];
        Shape([plain, TableShape { method: Method::Fixed, page_bytes: 4096, formats, ..plain }])
    }
}

impl Shape {
    /// Each by itself: so with enough seeds they come together in every way.
    pub(crate) fn of(seed: u64) -> Shape {
        let mut random = Random(seed ^ 0x5EED);
        let mut table = || TableShape {
            method: random.pick(&Method::ALL),
            page_bytes: random.pick(&[2048, 2048, 4096]),
            formats: [(); 4].map(|()| random.pick(&IndexFormat::ALL)),
            wide_stays: random.one_in(2),
            small_partitions: random.one_in(3),
            small_extents: random.below(3) > 0,
        };
        Shape([table(), table()])
    }

    /// Files that grow by little: the disk is full at once. The rows of the first table lie by column. Further partitions come in the second table only, and not every other time.
    pub(crate) fn tight(seed: u64) -> Shape {
        let mut shape = Shape::of(seed);
        shape.0.iter_mut().for_each(|table| table.small_extents = true);
        (shape.0[0].method, shape.0[0].small_partitions) = (Method::Page, false);
        shape.0[1].small_partitions &= seed % 8 >= 4;
        shape
    }

    /// In words, each of which many shapes share.
    pub(crate) fn labels(&self) -> Vec<String> {
        let of_table = |table: &TableShape| {
            let formats = table.formats.map(|format| format!("shape: indexes {format}"));
            let partitions = format!("shape: {} partitions", if table.small_partitions { "small" } else { "large" });
            [formats.as_slice(), &[format!("shape: tables under {}", table.method), partitions]].concat()
        };
        let mut labels: Vec<String> = self.0.iter().flat_map(of_table).collect();
        labels.sort_unstable();
        labels.dedup();
        labels
    }
}

/// Suffix of its name, columns, and whether two rows may have the same key.
type IndexShape = (&'static str, &'static [(usize, Direction)], bool);

/// The indexes of each table: ascending and descending, unique and not, of columns that may be NULL and of others.
const INDEXES: [IndexShape; 4] = [
    ("pk", &[(0, Direction::Ascending)], true),
    ("m_wide", &[(2, Direction::Descending), (3, Direction::Ascending)], false),
    ("u", &[(6, Direction::Descending)], true),
    ("m", &[(2, Direction::Ascending)], false),
];

/// The tables with their indexes, empty.
pub(crate) fn create(storage: &FaultStorage, shape: Shape) -> Result<()> {
    let database = open(storage, OpenMode::Create)?;
    let mut change = database.change();
    for (name, table) in TABLES.iter().zip(shape.0) {
        create_table(&mut change, name, table)?;
    }
    change.commit()
}

/// A table as it is to be.
pub(crate) fn table_attributes(name: &str, shape: TableShape) -> TableAttributes {
    let mut attributes = TableAttributes::new(name, schema()).with_page_bytes(shape.page_bytes);
    attributes.method = shape.method;
    attributes.extents = shape.extents();
    if shape.small_partitions {
        // Enough pages for the larger page size that it may get.
        (attributes.maxrows, attributes.partition_bytes) = (2, 24 * 4096);
    }
    attributes.primary_key = if shape.wide_stays { vec![0, 3] } else { vec![0] };
    attributes
}

/// Its indexes.
pub(crate) fn index_attributes(name: &str, shape: TableShape) -> impl Iterator<Item = IndexAttributes> {
    INDEXES.into_iter().zip(shape.formats).map(move |((suffix, columns, unique), format)| {
        let mut attributes = IndexAttributes::new(format!("{name}_{suffix}"), columns.to_vec(), unique);
        attributes.extents = shape.extents();
        attributes.with_format(format, index_page_bytes(format))
    })
}

/// A table with its indexes, empty.
pub(crate) fn create_table(change: &mut Change<'_>, name: &str, shape: TableShape) -> Result<Arc<Table>> {
    let table = change.create_table(table_attributes(name, shape))?;
    if shape.method.dictionary_type().is_some() {
        table.set_dictionary(dictionary(shape.method, 1))?;
        // The dictionary comes with the first page.
        let mut nothing = vec![ValueRef::Null; schema().columns().len()];
        (nothing[0], nothing[1], nothing[3]) = (ValueRef::Int(0), ValueRef::Text(""), ValueRef::Text(""));
        let rid = table.insert(&nothing)?;
        table.delete(rid)?;
    }
    for attributes in index_attributes(name, shape) {
        change.create_index(&table, attributes)?;
    }
    Ok(table)
}

/// The smallest there is.
pub(crate) fn index_page_bytes(format: IndexFormat) -> usize {
    if format == IndexFormat::Fold { 8192 } else { 2048 }
}

/// A dictionary for the texts of rows; another one for another seed.
pub(crate) fn dictionary(method: Method, seed: u64) -> RowDictionary {
    let mut random = Random(seed);
    let sample: Vec<String> = (0..300).map(|_| text_of(&mut random)).collect();
    let ends: Vec<u32> = sample
        .iter()
        .scan(0, |end, text| {
            *end += text.len() as u32;
            Some(*end)
        })
        .collect();
    let bytes = sample.concat();
    let rows = RowSample::new(bytes.as_bytes(), &ends).unwrap();
    let choice = if method == Method::Huffman { DictionaryChoice::Huffman } else { DictionaryChoice::Fixed };
    train_row_dictionary(&rows, &TrainOptions::default(), choice)
}
