//! SQLite, by rusqlite: a WITHOUT ROWID table, decimals as integers of hundredths, everything cached, no sync.

use super::{Columns, Engine, ROWS_PER_TRANSACTION};
use pagefold_lab_engine::data::{Lineitem, Outcome};
use pagefold_types::{ValueRef, text};
use rusqlite::{Connection, params};
use std::path::{Path, PathBuf};

/// SQLite: a WITHOUT ROWID table, decimals as integers of hundredths, everything cached, no sync.
pub(crate) struct Sqlite {
    connection: Connection,
    path: PathBuf,
}

impl Sqlite {
    /// Loads in one transaction, in key order.
    pub(crate) fn load(path: &Path, data: &Lineitem) -> Outcome<Sqlite> {
        let mut connection = Connection::open(path)?;
        connection.execute_batch(
            "pragma page_size = 4096; pragma journal_mode = wal; pragma synchronous = off; pragma cache_size = -4000000; pragma mmap_size = 0;
             create table lineitem (l_orderkey integer, l_partkey integer, l_suppkey integer, l_linenumber integer, l_quantity integer,
             l_extendedprice integer, l_discount integer, l_tax integer, l_returnflag text, l_linestatus text, l_shipdate integer,
             l_commitdate integer, l_receiptdate integer, l_shipinstruct text, l_shipmode text, l_comment text,
             primary key (l_orderkey, l_linenumber)) without rowid;",
        )?;
        let layout = &data.layout;
        let transaction = connection.transaction()?;
        {
            let mut insert = transaction.prepare("insert into lineitem values (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)")?;
            data.records(|record| {
                for column in 0..layout.column_count() {
                    match layout.value(record, column)? {
                        ValueRef::Int(v) => insert.raw_bind_parameter(column + 1, v)?,
                        ValueRef::Decimal(v) => insert.raw_bind_parameter(column + 1, v as i64)?,
                        ValueRef::Text(v) => insert.raw_bind_parameter(column + 1, v)?,
                        other => insert.raw_bind_parameter(column + 1, text::to_text(other, &layout.data_type(column)))?,
                    }
                }
                insert.raw_execute()?;
                Ok(())
            })?;
        }
        transaction.commit()?;
        connection.execute_batch("pragma wal_checkpoint(truncate)")?;
        Ok(Sqlite { connection, path: path.into() })
    }
}

impl Engine for Sqlite {
    fn name(&self) -> String {
        "SQLite, no sync".into()
    }

    fn size_bytes(&self) -> Outcome<u64> {
        Ok(std::fs::metadata(&self.path)?.len())
    }

    fn seek(&mut self, keys: &[(i64, i64)], columns: Columns) -> Outcome<i64> {
        let names = if columns == Columns::Two { "" } else { ", *" };
        let mut query = self.connection.prepare_cached(&format!(
            "select l_quantity, l_extendedprice{names} from lineitem where l_orderkey = ? and l_linenumber = ?"
        ))?;
        let count = query.column_count();
        let mut sum = 0;
        let transaction = self.connection.unchecked_transaction()?;
        for (order, line) in keys {
            sum += query.query_row(params![order, line], |row| {
                (2..count).try_for_each(|column| row.get_ref(column).map(drop))?;
                Ok(row.get::<_, i64>(0)? + row.get::<_, i64>(1)?)
            })?;
        }
        drop(transaction);
        Ok(sum)
    }

    fn scan(&mut self, columns: Columns) -> Outcome<i64> {
        if columns == Columns::Two {
            return Ok(self.connection.query_row("select sum(l_quantity) + sum(l_extendedprice) from lineitem", [], |row| row.get(0))?);
        }
        let mut query = self.connection.prepare_cached("select l_quantity, l_extendedprice, * from lineitem")?;
        let count = query.column_count();
        let mut rows = query.query([])?;
        let mut sum = 0;
        while let Some(row) = rows.next()? {
            (2..count).try_for_each(|column| row.get_ref(column).map(drop))?;
            sum += row.get::<_, i64>(0)? + row.get::<_, i64>(1)?;
        }
        Ok(sum)
    }

    fn update(&mut self, keys: &[(i64, i64)], quantity: i64) -> Outcome<()> {
        for group in keys.chunks(ROWS_PER_TRANSACTION) {
            let transaction = self.connection.transaction()?;
            {
                let mut update =
                    transaction.prepare_cached("update lineitem set l_quantity = ? where l_orderkey = ? and l_linenumber = ?")?;
                for (order, line) in group {
                    update.execute(params![quantity, order, line])?;
                }
            }
            transaction.commit()?;
        }
        Ok(())
    }
}
