//! LMDB, by heed: the packed record under a key of 12 bytes, no sync.

use super::{Columns, Engine, ROWS_PER_TRANSACTION, key_bytes, two};
use heed::types::Bytes;
use heed::{Database, Env, EnvFlags, EnvOpenOptions, PutFlags};
use pagefold_lab_engine::data::{Lineitem, Outcome, QUANTITY};
use pagefold_types::{RowLayout, ValueRef};
use std::path::Path;

/// LMDB by heed: the packed record under a key of 12 bytes, no sync.
pub(crate) struct Lmdb {
    env: Env,
    database: Database<Bytes, Bytes>,
    layout: RowLayout,
}

impl Lmdb {
    /// Loads, in key order with MDB_APPEND.
    pub(crate) fn load(folder: &Path, data: &Lineitem) -> Outcome<Lmdb> {
        std::fs::create_dir_all(folder)?;
        let mut options = EnvOpenOptions::new();
        options.map_size(64 << 30).max_dbs(1);
        // SAFETY: the folder is this program's own; nobody else opens or changes the files.
        #[expect(unsafe_code, reason = "heed's interface")]
        let env = unsafe {
            options.flags(EnvFlags::NO_SYNC | EnvFlags::WRITE_MAP | EnvFlags::NO_READ_AHEAD);
            options.open(folder)?
        };
        let mut transaction = env.write_txn()?;
        let database: Database<Bytes, Bytes> = env.create_database(&mut transaction, Some("lineitem"))?;
        data.records(|record| {
            let key = key_bytes(data.key(record)?);
            Ok(database.put_with_flags(&mut transaction, PutFlags::APPEND, &key, record)?)
        })?;
        transaction.commit()?;
        Ok(Lmdb { env, database, layout: RowLayout::new(data.table.schema())? })
    }
}

impl Engine for Lmdb {
    fn name(&self) -> String {
        "LMDB, no sync".into()
    }

    fn size_bytes(&self) -> Outcome<u64> {
        // The file is as long as the pages in use: it grows at its end only.
        let transaction = self.env.read_txn()?;
        let stat = self.database.stat(&transaction)?;
        let pages = stat.branch_pages + stat.leaf_pages + stat.overflow_pages;
        Ok(pages as u64 * u64::from(stat.page_size))
    }

    fn seek(&mut self, keys: &[(i64, i64)], _: Columns) -> Outcome<i64> {
        let transaction = self.env.read_txn()?;
        let mut sum = 0;
        for key in keys {
            let record = self.database.get(&transaction, &key_bytes(*key))?.ok_or("a key is missing")?;
            sum += two(&self.layout, record)?;
        }
        Ok(sum)
    }

    fn scan(&mut self, _: Columns) -> Outcome<i64> {
        let transaction = self.env.read_txn()?;
        let mut sum = 0;
        for entry in self.database.iter(&transaction)? {
            sum += two(&self.layout, entry?.1)?;
        }
        Ok(sum)
    }

    fn update(&mut self, keys: &[(i64, i64)], quantity: i64) -> Outcome<()> {
        let mut record = Vec::new();
        for group in keys.chunks(ROWS_PER_TRANSACTION) {
            let mut transaction = self.env.write_txn()?;
            for key in group {
                let key = key_bytes(*key);
                record.clear();
                record.extend_from_slice(self.database.get(&transaction, &key)?.ok_or("a key is missing")?);
                self.layout.patch_fixed(&mut record, QUANTITY, ValueRef::Decimal(i128::from(quantity)))?;
                self.database.put(&mut transaction, &key, &record)?;
            }
            transaction.commit()?;
        }
        Ok(())
    }
}
