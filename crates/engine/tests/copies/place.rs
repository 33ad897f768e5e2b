//! A storage with the database `db` of the simulation's world.

use crate::world;
use pagefold_engine::backup::{CopyReport, RecoverOptions, Recovered, Until, copy_to_file};
use pagefold_engine::database::{Database, OpenMode, Settings};
use pagefold_engine::log::LogSettings;
use pagefold_engine::pool::PoolSettings;
use pagefold_engine::table_space::TableAttributes;
use pagefold_engine::{Result, Silent, backup};
use pagefold_io::{Clock, FaultOptions, FaultStorage, SimulatedClock, Storage};
use pagefold_types::{Column, DataType, Schema, ValueRef};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

pub(crate) struct Place {
    pub(crate) faults: FaultStorage,
    pub(crate) storage: Arc<dyn Storage>,
    pub(crate) clock: Arc<dyn Clock>,
}

pub(crate) fn settings() -> Settings {
    let pools = PoolSettings { memory_bytes: 2 << 20, background_threads: 0, ..PoolSettings::default() };
    let log = LogSettings { segment_bytes: 32 << 10, ..LogSettings::default() };
    Settings { pools, log, double_write_bytes: 64 << 10, ..Settings::default() }
}

impl Place {
    pub(crate) fn new(clock: Arc<dyn Clock>) -> Place {
        let faults = FaultStorage::new(FaultOptions::default());
        world::create(&faults, world::Shape { small_partitions: true, ..world::Shape::default() }).unwrap();
        Place::on(faults, clock)
    }

    pub(crate) fn on(faults: FaultStorage, clock: Arc<dyn Clock>) -> Place {
        Place { storage: Arc::new(faults.clone()), faults, clock }
    }

    /// With a clock that stands still.
    pub(crate) fn simulated() -> Place {
        Place::new(Arc::new(SimulatedClock::new(Duration::from_secs(1_000))))
    }

    pub(crate) fn open(&self, directory: &str, mode: OpenMode) -> Result<Database> {
        Database::open(Arc::clone(&self.storage), Arc::clone(&self.clock), Path::new(directory), mode, settings())
    }

    /// Another database, with a table.
    pub(crate) fn create(&self, directory: &str) {
        self.create_table(&self.open(directory, OpenMode::Create).unwrap(), "t", 3);
    }

    pub(crate) fn create_table(&self, database: &Database, name: &str, rows: i64) {
        self.try_create_table(database, name, rows).unwrap();
    }

    pub(crate) fn try_create_table(&self, database: &Database, name: &str, rows: i64) -> Result<()> {
        let mut change = database.change();
        let schema = Schema::new(vec![Column::new("n", DataType::BigInt, false)]).unwrap();
        let table = change.create_table(TableAttributes::new(name, schema))?;
        for n in 0..rows {
            table.insert(&[ValueRef::Int(n)])?;
        }
        change.commit()
    }

    pub(crate) fn drop_index(&self, database: &Database, name: &str) {
        let mut change = database.change();
        change.drop_index(name).unwrap();
        change.commit().unwrap();
    }

    /// As another process does it.
    pub(crate) fn copy_beside(&self, file: &Path, base: Option<&Path>) -> Result<CopyReport> {
        copy_to_file(&self.storage, &self.clock, Path::new("db"), file, base, &Silent)
    }

    /// What there is beside each other.
    pub(crate) fn names(&self) -> Vec<String> {
        let paths = self.storage.list(Path::new("/")).unwrap();
        paths.iter().map(|path| path.file_name().unwrap().to_str().unwrap().to_owned()).collect()
    }

    /// Segments in a directory, spare ones not counted.
    pub(crate) fn segments(&self, directory: &str) -> usize {
        let paths = self.storage.list(Path::new(directory)).unwrap();
        paths.iter().filter(|path| path.file_name().unwrap().len() == 20 && path.extension().is_some_and(|e| e == "pfl")).count()
    }
}

pub(crate) fn recover(place: &Place, target: &str, copies: &[impl AsRef<Path>], logs: &[&str], until: Until) -> Result<Recovered> {
    let copies: Vec<PathBuf> = copies.iter().map(|path| path.as_ref().to_path_buf()).collect();
    let options = RecoverOptions { logs: logs.iter().map(PathBuf::from).collect(), until };
    backup::recover(&place.storage, &place.clock, Path::new(target), &copies, &options, settings(), &Silent)
}
