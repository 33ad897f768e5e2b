//! Secondary indexes in SQLite and LMDB.

use super::run::{Built, Contender, Digest, IndexKeys};
use heed::types::Bytes;
use heed::{Database, DatabaseFlags, Env, EnvFlags, EnvOpenOptions, PutFlags};
use pagefold_lab_engine::data::{Lineitem, Outcome};
use pagefold_types::{Value, ValueRef};
use rusqlite::Connection;
use rusqlite::types::ValueRef as SqliteValue;
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// Bytes of a reference to a row, as long as a RID.
const REFERENCE_BYTES: usize = 7;

/// All rival contenders. `columns`: those that the indexes need.
pub(super) fn contenders(folder: &Path, data: &Lineitem, columns: &[&str]) -> Outcome<Vec<Box<dyn Contender>>> {
    let positions = columns.iter().map(|name| data.table.schema().index_of(name)).collect::<Result<Vec<_>, _>>()?;
    let mut rows: Vec<Vec<Value>> = Vec::new();
    data.records(|record| {
        rows.push(positions.iter().map(|column| Ok(data.layout.value(record, *column)?.to_owned())).collect::<Outcome<_>>()?);
        Ok(())
    })?;
    let sqlite = Sqlite::load(&folder.join("secondary.sqlite"), columns, &positions, &rows)?;
    let rows = Rc::new(Rows { positions, rows });
    let lmdb = |duplicates: bool| Lmdb { rows: Rc::clone(&rows), folder: folder.join("lmdb-index"), duplicates, open: None };
    Ok(vec![Box::new(sqlite), Box::new(lmdb(false)), Box::new(lmdb(true))])
}

/// The columns of the rows, in memory.
struct Rows {
    positions: Vec<usize>,
    rows: Vec<Vec<Value>>,
}

impl Rows {
    fn column(&self, position: usize) -> Outcome<usize> {
        self.positions.iter().position(|p| *p == position).ok_or_else(|| "a column that was not kept".into())
    }
}

/// SQLite: CREATE INDEX on a table of the key columns alone with a rowid, everything cached, no sync.
struct Sqlite {
    connection: Connection,
}

impl Sqlite {
    fn load(path: &Path, columns: &[&str], positions: &[usize], rows: &[Vec<Value>]) -> Outcome<Sqlite> {
        let mut connection = Connection::open(path)?;
        let declared: Vec<String> = columns
            .iter()
            .zip(&rows[0])
            .map(|(name, value)| format!("{name} {}", if matches!(value, Value::Text(_)) { "text" } else { "integer" }))
            .collect();
        connection.execute_batch(&format!(
            "pragma page_size = 4096; pragma journal_mode = wal; pragma synchronous = off; pragma cache_size = -4000000; pragma mmap_size = 0;
             pragma temp_store = memory; create table lineitem ({});",
            declared.join(", ")
        ))?;
        let transaction = connection.transaction()?;
        {
            let places = vec!["?"; positions.len()].join(", ");
            let mut insert = transaction.prepare(&format!("insert into lineitem values ({places})"))?;
            for row in rows {
                for (i, value) in row.iter().enumerate() {
                    match value.as_ref() {
                        ValueRef::Int(v) => insert.raw_bind_parameter(i + 1, v)?,
                        ValueRef::Text(v) => insert.raw_bind_parameter(i + 1, v)?,
                        _ => return Err("a key column that is neither a number nor a text".into()),
                    }
                }
                insert.raw_execute()?;
            }
        }
        transaction.commit()?;
        connection.execute_batch("pragma wal_checkpoint(truncate)")?;
        Ok(Sqlite { connection })
    }

    fn pages(&self) -> Outcome<u64> {
        let count = |what: &str| self.connection.query_row(&format!("pragma {what}"), [], |row| row.get::<_, i64>(0));
        Ok((count("page_count")? - count("freelist_count")?) as u64)
    }
}

impl Contender for Sqlite {
    fn name(&self) -> String {
        "SQLite, no sync".into()
    }

    fn build(&mut self, index: &IndexKeys) -> Outcome<Built> {
        let before = self.pages()?;
        self.connection.execute_batch(&format!("create index secondary on lineitem ({})", index.columns.join(", ")))?;
        self.connection.execute_batch("pragma wal_checkpoint(truncate)")?;
        Ok(Built { size_bytes: (self.pages()? - before) * 4096, leaf_pages_and_allowed: None })
    }

    fn digest(&mut self, index: &IndexKeys) -> Outcome<Digest> {
        let columns = index.columns.join(", ");
        let mut query = self.connection.prepare(&format!("select {columns} from lineitem indexed by secondary order by {columns}"))?;
        let mut rows = query.query([])?;
        let mut digest = Digest::default();
        let mut key = Vec::new();
        while let Some(row) = rows.next()? {
            let mut values = Vec::with_capacity(index.columns.len());
            for i in 0..index.columns.len() {
                values.push(match row.get_ref(i)? {
                    SqliteValue::Integer(v) => ValueRef::Int(v),
                    SqliteValue::Text(v) => ValueRef::Text(std::str::from_utf8(v)?),
                    other => return Err(format!("{other:?} in a key").into()),
                });
            }
            key.clear();
            index.layout.encode(&values, &mut key)?;
            digest.see(&key);
        }
        Ok(digest)
    }

    fn remove(&mut self) -> Outcome<()> {
        Ok(self.connection.execute_batch("drop index secondary")?)
    }
}

/// LMDB: pagefold's keys with a reference of 7 bytes, sorted in memory, then appended; no sync. Either one entry a row, or one a key with its references as duplicates.
struct Lmdb {
    rows: Rc<Rows>,
    folder: PathBuf,
    duplicates: bool,
    open: Option<(Env, Database<Bytes, Bytes>)>,
}

impl Contender for Lmdb {
    fn name(&self) -> String {
        format!("LMDB, {}, no sync", if self.duplicates { "duplicates" } else { "entries" })
    }

    fn build(&mut self, index: &IndexKeys) -> Outcome<Built> {
        let columns = index.positions.iter().map(|position| self.rows.column(*position)).collect::<Outcome<Vec<_>>>()?;
        let (mut bytes, mut entries) = (Vec::new(), Vec::with_capacity(self.rows.rows.len()));
        for (number, row) in self.rows.rows.iter().enumerate() {
            let values: Vec<ValueRef<'_>> = columns.iter().map(|column| row[*column].as_ref()).collect();
            let start = bytes.len();
            index.layout.encode(&values, &mut bytes)?;
            bytes.extend_from_slice(&(number as u64).to_be_bytes()[8 - REFERENCE_BYTES..]);
            entries.push((start, bytes.len()));
        }
        entries.sort_unstable_by(|a, b| bytes[a.0..a.1].cmp(&bytes[b.0..b.1]));
        std::fs::create_dir_all(&self.folder)?;
        let mut options = EnvOpenOptions::new();
        options.map_size(16 << 30).max_dbs(1);
        // SAFETY: the folder is this program's own; nobody else opens or changes the files.
        #[expect(unsafe_code, reason = "heed's interface")]
        let env = unsafe {
            options.flags(EnvFlags::NO_SYNC | EnvFlags::WRITE_MAP | EnvFlags::NO_READ_AHEAD);
            options.open(&self.folder)?
        };
        let mut transaction = env.write_txn()?;
        let flags = if self.duplicates { DatabaseFlags::DUP_SORT | DatabaseFlags::DUP_FIXED } else { DatabaseFlags::empty() };
        let database = env.database_options().types::<Bytes, Bytes>().name("index").flags(flags).create(&mut transaction)?;
        for (start, end) in entries {
            let entry = &bytes[start..end];
            let (key, reference) = entry.split_at(entry.len() - REFERENCE_BYTES);
            if self.duplicates {
                database.put_with_flags(&mut transaction, PutFlags::APPEND_DUP, key, reference)?;
            } else {
                database.put_with_flags(&mut transaction, PutFlags::APPEND, entry, &[])?;
            }
        }
        transaction.commit()?;
        // Everything was written in one transaction: no page is free.
        let size_bytes = (env.info().last_page_number as u64 + 1) * 4096;
        self.open = Some((env, database));
        Ok(Built { size_bytes, leaf_pages_and_allowed: None })
    }

    fn digest(&mut self, _: &IndexKeys) -> Outcome<Digest> {
        let (env, database) = self.open.as_ref().ok_or("no index")?;
        let transaction = env.read_txn()?;
        let mut digest = Digest::default();
        for entry in database.iter(&transaction)? {
            let key = entry?.0;
            digest.see(if self.duplicates { key } else { &key[..key.len() - REFERENCE_BYTES] });
        }
        Ok(digest)
    }

    fn remove(&mut self) -> Outcome<()> {
        if let Some((env, _)) = self.open.take() {
            env.prepare_for_closing().wait();
        }
        Ok(std::fs::remove_dir_all(&self.folder)?)
    }
}
