//! RocksDB: the packed record under a key of 12 bytes, zstd with a dictionary, blocks of 16 KB cached as they are when decompressed; log on, no sync.

use super::{Columns, Engine, ROWS_PER_TRANSACTION, folder_bytes, key_bytes, two};
use pagefold_lab_engine::data::{Lineitem, Outcome, QUANTITY};
use pagefold_lab_engine::rocks::options;
use pagefold_types::{RowLayout, ValueRef};
use rocksdb::{CompactOptions, DB, WriteBatch};
use std::path::{Path, PathBuf};

/// Records in a batch of the load.
const LOAD_BATCH: usize = 1000;

pub(crate) struct RocksDb {
    database: DB,
    folder: PathBuf,
    layout: RowLayout,
}

impl RocksDb {
    /// Loads in key order and compacts.
    pub(crate) fn load(folder: &Path, data: &Lineitem, memory_bytes: usize) -> Outcome<RocksDb> {
        let database = DB::open(&options(memory_bytes), folder)?;
        let mut batch = WriteBatch::default();
        data.records(|record| {
            batch.put(key_bytes(data.key(record)?), record);
            if batch.len() == LOAD_BATCH {
                database.write(std::mem::take(&mut batch))?;
            }
            Ok(())
        })?;
        database.write(batch)?;
        database.flush()?;
        let mut compaction = CompactOptions::default();
        compaction.set_bottommost_level_compaction(rocksdb::BottommostLevelCompaction::Force);
        database.compact_range_opt(None::<&[u8]>, None::<&[u8]>, &compaction);
        Ok(RocksDb { database, folder: folder.into(), layout: RowLayout::new(data.table.schema())? })
    }
}

impl Engine for RocksDb {
    fn name(&self) -> String {
        "RocksDB, zstd with a dictionary, no sync".into()
    }

    fn size_bytes(&self) -> Outcome<u64> {
        folder_bytes(&self.folder)
    }

    fn seek(&mut self, keys: &[(i64, i64)], _: Columns) -> Outcome<i64> {
        let mut sum = 0;
        for key in keys {
            let record = self.database.get_pinned(key_bytes(*key))?.ok_or("a key is missing")?;
            sum += two(&self.layout, &record)?;
        }
        Ok(sum)
    }

    fn scan(&mut self, _: Columns) -> Outcome<i64> {
        let mut sum = 0;
        let mut rows = self.database.raw_iterator();
        rows.seek_to_first();
        while let Some(record) = rows.value() {
            sum += two(&self.layout, record)?;
            rows.next();
        }
        rows.status()?;
        Ok(sum)
    }

    fn update(&mut self, keys: &[(i64, i64)], quantity: i64) -> Outcome<()> {
        let mut record = Vec::new();
        for group in keys.chunks(ROWS_PER_TRANSACTION) {
            let mut batch = WriteBatch::default();
            for key in group {
                let key = key_bytes(*key);
                record.clear();
                record.extend_from_slice(&self.database.get_pinned(key)?.ok_or("a key is missing")?);
                self.layout.patch_fixed(&mut record, QUANTITY, ValueRef::Decimal(i128::from(quantity)))?;
                batch.put(key, &record);
            }
            self.database.write(batch)?;
        }
        Ok(())
    }
}
