//! DuckDB: a table with a primary key, loaded from the same Parquet file; one thread once it is loaded. It is measured by scans only: a look-up by key takes it as long as thousands of rows.

use super::{Columns, Engine, What, folder_bytes};
use duckdb::Connection;
use duckdb::arrow::array::AsArray;
use duckdb::arrow::datatypes::Decimal128Type;
use pagefold_lab_engine::data::{EXTENDED_PRICE, Lineitem, Outcome, QUANTITY};
use std::path::{Path, PathBuf};

/// Columns of the table.
const COLUMNS: usize = 16;

pub(crate) struct DuckDb {
    connection: Connection,
    folder: PathBuf,
}

impl DuckDb {
    /// Loads with all threads.
    pub(crate) fn load(folder: &Path, data: &Lineitem) -> Outcome<DuckDb> {
        std::fs::create_dir_all(folder)?;
        let connection = Connection::open(folder.join("lineitem.duckdb"))?;
        let file = data.path.to_str().ok_or("a path that is no UTF-8")?.replace('\'', "''");
        connection.execute_batch(&format!(
            "create table lineitem as from read_parquet('{file}') limit 0;
             alter table lineitem add primary key (l_orderkey, l_linenumber);
             insert into lineitem from read_parquet('{file}');
             checkpoint; set threads = 1;"
        ))?;
        Ok(DuckDb { connection, folder: folder.into() })
    }
}

impl Engine for DuckDb {
    fn name(&self) -> String {
        "DuckDB, with its key".into()
    }

    fn size_bytes(&self) -> Outcome<u64> {
        folder_bytes(&self.folder)
    }

    fn offers(&self, what: What) -> bool {
        matches!(what, What::Scan(Columns::Two | Columns::Batches))
    }

    fn seek(&mut self, keys: &[(i64, i64)], _: Columns) -> Outcome<i64> {
        let mut query = self.connection.prepare_cached(
            "select cast(100 * (l_quantity + l_extendedprice) as bigint) from lineitem where l_orderkey = ? and l_linenumber = ?",
        )?;
        let mut sum = 0;
        for (order, line) in keys {
            sum += query.query_row([order, line], |row| row.get::<_, i64>(0))?;
        }
        Ok(sum)
    }

    fn scan(&mut self, columns: Columns) -> Outcome<i64> {
        if columns == Columns::Two {
            let query = "select cast(100 * (sum(l_quantity) + sum(l_extendedprice)) as bigint) from lineitem";
            return Ok(self.connection.query_row(query, [], |row| row.get(0))?);
        }
        let mut query = self.connection.prepare_cached("from lineitem")?;
        let mut sum = 0;
        for batch in query.stream_arrow([])? {
            if batch.num_columns() != COLUMNS {
                return Err("columns are missing".into());
            }
            for column in [QUANTITY, EXTENDED_PRICE] {
                let values = batch.column(column).as_primitive::<Decimal128Type>();
                sum += (0..values.len()).map(|row| values.value(row) as i64).sum::<i64>();
            }
        }
        Ok(sum)
    }

    fn update(&mut self, _: &[(i64, i64)], _: i64) -> Outcome<()> {
        Err("not measured".into())
    }
}
