//! RocksDB: the packed record under a key of 12 bytes, zstd with a dictionary; log on, no sync.

use crate::engine::{Change, Engine, Sum};
use crate::rivals::{add, changed, key_bytes};
use pagefold_lab::lineitem::layout;
use pagefold_lab_engine::data::Outcome;
use pagefold_lab_engine::rocks::options;
use pagefold_types::RowLayout;
use rocksdb::{BottommostLevelCompaction, CompactOptions, OptimisticTransactionDB};
use std::path::{Path, PathBuf};

const CACHE_BYTES: usize = 1000 << 20;

pub(crate) struct RocksDb {
    database: OptimisticTransactionDB,
    folder: PathBuf,
    layout: RowLayout,
}

impl RocksDb {
    pub(crate) fn create(folder: &Path) -> Outcome<RocksDb> {
        Ok(RocksDb { database: OptimisticTransactionDB::open(&options(CACHE_BYTES), folder)?, folder: folder.into(), layout: layout() })
    }
}

impl Engine for RocksDb {
    fn transaction(&mut self, changes: &[Change<'_>]) -> Outcome<()> {
        let transaction = self.database.transaction();
        let mut record = Vec::new();
        for change in changes {
            match *change {
                Change::Insert(row) => {
                    let key = key_bytes(row.key);
                    // As with a primary key: one that is there is not replaced.
                    if transaction.get_pinned(key)?.is_some() {
                        return Err("a key is there already".into());
                    }
                    record.clear();
                    self.layout.encode(&row.values, &mut record)?;
                    transaction.put(key, &record)?;
                }
                Change::Update(key, quantity, comment) => {
                    let key = key_bytes(key);
                    let before = transaction.get(key)?.ok_or("a key is missing")?;
                    changed(&self.layout, &before, quantity, comment, &mut record)?;
                    transaction.put(key, &record)?;
                }
                Change::Delete(key) => transaction.delete(key_bytes(key))?,
            }
        }
        Ok(transaction.commit()?)
    }

    fn sum(&mut self) -> Outcome<Sum> {
        let mut sum = Sum::default();
        let mut rows = self.database.raw_iterator();
        rows.seek_to_first();
        while let Some(record) = rows.value() {
            add(&self.layout, record, &mut sum)?;
            rows.next();
        }
        rows.status()?;
        Ok(sum)
    }

    fn compact(&mut self) -> Outcome<()> {
        self.database.flush()?;
        let mut options = CompactOptions::default();
        options.set_bottommost_level_compaction(BottommostLevelCompaction::Force);
        self.database.compact_range_opt(None::<&[u8]>, None::<&[u8]>, &options);
        Ok(())
    }

    /// Of its tables; the log goes with the next flush.
    fn size_bytes(&mut self) -> Outcome<u64> {
        self.database.flush()?;
        let mut bytes = 0;
        for entry in std::fs::read_dir(&self.folder)? {
            let entry = entry?;
            if entry.path().extension().is_some_and(|extension| extension == "sst") {
                bytes += entry.metadata()?.len();
            }
        }
        Ok(bytes)
    }
}
