//! SQLite files: their tables, keys and indexes.
//!
//! SQLite's own library reads the file, by itself: write-ahead logs and journals are as they should be, and nothing is written.
//!
//! Invariant: all is read within one read transaction of one connection, which others can write beside.

mod profile;
mod rows;
mod source;

use crate::foreign::{Foreign, ForeignColumn, ForeignIndex, ForeignTable};
use pagefold_interchange::{InterchangeError, Source};
use pagefold_types::{DataType, Direction, Value};
use rusqlite::{Connection, OpenFlags};
use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

pub use profile::Mixed;

/// What a SQLite file begins with.
const MAGIC: &[u8; 16] = b"SQLite format 3\0";

/// How long one that is locked is waited for.
const BUSY: Duration = Duration::from_secs(5);

/// Is there a file of this name, and is it SQLite's? Others may be, too, that are encrypted.
#[must_use]
pub fn is_sqlite(path: &Path) -> bool {
    let mut head = [0; MAGIC.len()];
    File::open(path).and_then(|mut file| file.read_exact(&mut head)).is_ok_and(|()| &head == MAGIC)
}

/// A path with a table behind it, as in `app.sqlite:orders`; the whole may be the name of a file, then it has none.
#[must_use]
pub fn with_table(path: &Path) -> Option<(PathBuf, String)> {
    if path.exists() {
        return None;
    }
    let (file, table) = path.to_str()?.rsplit_once(':')?;
    let file = PathBuf::from(file);
    (!table.is_empty() && is_sqlite(&file)).then(|| (file, table.to_owned()))
}

/// A SQLite file.
#[derive(Debug)]
pub struct SqliteFile {
    path: PathBuf,
    connection: Arc<Mutex<Connection>>,
    bytes: u64,
    tables: Vec<ForeignTable>,
    /// Of each table what its rows are read with.
    queries: Vec<String>,
    left_out: Vec<String>,
    mixed: Mixed,
}

fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// An error of SQLite, of a file.
fn refused(path: &Path, what: &str, error: &rusqlite::Error) -> InterchangeError {
    let reason = match error.sqlite_error_code() {
        Some(rusqlite::ErrorCode::DatabaseBusy | rusqlite::ErrorCode::DatabaseLocked) => {
            "it is locked by another process that writes".into()
        }
        Some(rusqlite::ErrorCode::NotADatabase) => "it is no SQLite database, or an encrypted one".into(),
        Some(rusqlite::ErrorCode::DatabaseCorrupt) => format!("it is damaged: {error}"),
        _ => error.to_string(),
    };
    let reason = if what.is_empty() { reason } else { format!("{what}: {reason}") };
    InterchangeError::File { path: path.to_owned(), reason }
}

impl SqliteFile {
    /// Opens a file for reading.
    ///
    /// # Errors
    /// When it is none of SQLite's, is damaged, or is locked by who writes it.
    pub fn open(path: &Path, mixed: Mixed) -> Result<SqliteFile, InterchangeError> {
        let failed = |error| refused(path, "", &error);
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(path, flags).map_err(failed)?;
        connection.busy_timeout(BUSY).map_err(failed)?;
        connection.execute_batch("BEGIN").map_err(failed)?;
        // The state is that of the first look.
        let schema = read_schema(&connection).map_err(failed)?;
        let pages: u64 = connection
            .query_row("SELECT page_count * page_size FROM pragma_page_count, pragma_page_size", [], |row| row.get(0))
            .map_err(failed)?;
        let mut file = SqliteFile {
            path: path.to_owned(),
            connection: Arc::new(Mutex::new(connection)),
            bytes: pages,
            tables: Vec::new(),
            queries: Vec::new(),
            left_out: Vec::new(),
            mixed,
        };
        file.read_tables(schema)?;
        Ok(file)
    }

    fn lock(&self) -> Result<MutexGuard<'_, Connection>, InterchangeError> {
        let broken = |_| InterchangeError::File { path: self.path.clone(), reason: "a thread that read it has failed".into() };
        self.connection.lock().map_err(broken)
    }

    /// The table of a name, in any case.
    #[must_use]
    pub fn table(&self, name: &str) -> Option<&ForeignTable> {
        self.tables
            .iter()
            .find(|table| table.name == name)
            .or_else(|| self.tables.iter().find(|table| table.name.eq_ignore_ascii_case(name)))
    }

    /// Looks through all pages of the file: what is wrong with it is an error.
    ///
    /// # Errors
    /// What SQLite says of it.
    pub fn check(&self) -> Result<(), InterchangeError> {
        let connection = self.lock()?;
        let found: String =
            connection.query_row("PRAGMA quick_check(1)", [], |row| row.get(0)).map_err(|error| refused(&self.path, "", &error))?;
        match found.as_str() {
            "ok" => Ok(()),
            // A constraint that rows do not keep is no damage.
            other if other.starts_with("NULL value in") || other.starts_with("CHECK constraint") => Ok(()),
            other => {
                Err(InterchangeError::File { path: self.path.clone(), reason: format!("it is damaged: {}", other.replace('\n', "; ")) })
            }
        }
    }

    fn read_tables(&mut self, schema: Vec<Entry>) -> Result<(), InterchangeError> {
        let connection = Arc::clone(&self.connection);
        let connection = connection.lock().map_err(|_| InterchangeError::Mismatch("a thread has failed".into()))?;
        let sizes = sizes(&connection);
        for entry in schema.iter().filter(|entry| entry.kind == "table") {
            if entry.name.starts_with("sqlite_") {
                continue;
            }
            if entry.sql.to_ascii_uppercase().starts_with("CREATE VIRTUAL") {
                self.left_out.push(format!("virtual table \"{}\" (its module makes the rows)", entry.name));
                continue;
            }
            if is_shadow(&connection, &entry.name) {
                continue;
            }
            let read = read_table(&connection, &entry.name, &sizes)
                .map_err(|error| refused(&self.path, &format!("table \"{}\"", entry.name), &error))?;
            self.tables.push(read.0);
            self.queries.push(read.1);
        }
        self.name_indexes();
        for entry in schema.iter().filter(|entry| entry.kind == "view" || entry.kind == "trigger") {
            self.left_out.push(format!("{} \"{}\"", entry.kind, entry.name));
        }
        Ok(())
    }

    /// No index has the name that the index of a primary key is to have here, nor that of another one.
    fn name_indexes(&mut self) {
        let keys = self.tables.iter().map(|table| format!("{}_pk", table.name));
        let mut known: HashSet<String> = self.tables.iter().map(|table| table.name.clone()).chain(keys).collect();
        for table in &mut self.tables {
            for index in &mut table.indexes {
                let there = index.name.clone();
                for number in 2.. {
                    if known.insert(index.name.clone()) {
                        break;
                    }
                    index.name = format!("{there}_{number}");
                }
                if index.name != there {
                    table.left_out.push(format!("the name of index \"{there}\": here it is \"{}\"", index.name));
                }
            }
        }
    }

    fn query_of(&self, table: &ForeignTable) -> Result<&str, InterchangeError> {
        let place = self.tables.iter().position(|own| own.name == table.name);
        let unknown = || InterchangeError::File { path: self.path.clone(), reason: format!("it has no table \"{}\"", table.name) };
        place.map(|place| self.queries[place].as_str()).ok_or_else(unknown)
    }
}

impl Foreign for SqliteFile {
    fn path(&self) -> &Path {
        &self.path
    }

    fn kind(&self) -> &'static str {
        "SQLite"
    }

    fn bytes(&self) -> u64 {
        self.bytes
    }

    fn tables(&self) -> &[ForeignTable] {
        &self.tables
    }

    fn left_out(&self) -> &[String] {
        &self.left_out
    }

    fn source(&self, table: &ForeignTable) -> Result<Box<dyn Source + '_>, InterchangeError> {
        let query = self.query_of(table)?;
        let schema = profile::schema(&*self.lock()?, &self.path, table, query, self.mixed)?;
        Ok(Box::new(source::SqliteSource::new(self, table, query, schema)))
    }

    fn visit_rows(
        &self,
        table: &ForeignTable,
        types: &[DataType],
        visit: &mut dyn FnMut(&[Value]) -> bool,
    ) -> Result<(), InterchangeError> {
        rows::visit(&*self.lock()?, &self.path, table, self.query_of(table)?, types, visit)
    }
}

/// A line of the schema.
struct Entry {
    kind: String,
    name: String,
    sql: String,
}

fn read_schema(connection: &Connection) -> rusqlite::Result<Vec<Entry>> {
    let mut statement = connection.prepare("SELECT type, name, coalesce(sql, '') FROM sqlite_schema ORDER BY name")?;
    let entries = statement.query_map([], |row| Ok(Entry { kind: row.get(0)?, name: row.get(1)?, sql: row.get(2)? }))?;
    entries.collect()
}

/// Is it one of those in which a virtual table keeps what it has?
fn is_shadow(connection: &Connection, name: &str) -> bool {
    let kind = connection
        .query_row("SELECT type FROM pragma_table_list WHERE schema = 'main' AND name = ?1", [name], |row| row.get::<_, String>(0));
    kind.is_ok_and(|kind| kind == "shadow")
}

/// A table, and what its rows are read with.
fn read_table(connection: &Connection, name: &str, sizes: &HashMap<String, u64>) -> rusqlite::Result<(ForeignTable, String)> {
    let (mut columns, mut key, mut left_out) = (Vec::new(), Vec::new(), Vec::new());
    let mut statement =
        connection.prepare("SELECT name, type, \"notnull\", dflt_value, pk, hidden FROM pragma_table_xinfo(?1) ORDER BY cid")?;
    let mut rows = statement.query([name])?;
    while let Some(row) = rows.next()? {
        let (column, declared, not_null): (String, String, bool) = (row.get(0)?, row.get(1)?, row.get(2)?);
        let (default, place, hidden): (Option<String>, usize, i64) = (row.get(3)?, row.get(4)?, row.get(5)?);
        if hidden == 1 {
            continue;
        }
        if hidden > 1 {
            left_out.push(format!("how column \"{column}\" is generated (its values come over)"));
        }
        if let Some(default) = default {
            left_out.push(format!("default of column \"{column}\": {default}"));
        }
        if place > 0 {
            key.push((place, columns.len()));
        }
        columns.push(ForeignColumn { name: column, declared, nullable: !not_null });
    }
    drop(rows);
    key.sort_unstable();
    let mut primary_key: Vec<usize> = key.into_iter().map(|(_, column)| column).collect();
    let table = quoted(name);
    // In the order of the rows' numbers, or of the key where they have none.
    let list: Vec<String> = columns.iter().map(|column| quoted(&column.name)).collect();
    // An index that has all columns may be wrong where the table is right, and has another order.
    let query = format!("SELECT {} FROM {table} NOT INDEXED", list.join(", "));
    if !primary_key.is_empty() {
        let has_null: Vec<String> = primary_key.iter().map(|column| format!("{} IS NULL", list[*column])).collect();
        let nulls: u64 =
            connection
                .query_row(&format!("SELECT count(*) FROM {table} NOT INDEXED WHERE {}", has_null.join(" OR ")), [], |row| row.get(0))?;
        if nulls > 0 {
            left_out.push(format!("the primary key: {nulls} rows have a NULL in it"));
            primary_key.clear();
        } else {
            primary_key.iter().for_each(|column| columns[*column].nullable = false);
        }
    }
    let rows = connection.query_row(&format!("SELECT count(*) FROM {table} NOT INDEXED"), [], |row| row.get(0))?;
    let mut statement = connection.prepare("SELECT name FROM sqlite_schema WHERE type = 'index' AND tbl_name = ?1")?;
    let of_indexes = statement.query_map([name], |row| row.get::<_, String>(0))?.collect::<rusqlite::Result<Vec<String>>>()?;
    let index_bytes = (!sizes.is_empty()).then(|| of_indexes.iter().filter_map(|index| sizes.get(index)).sum());
    let bytes = sizes.get(name).copied();
    let mut read = ForeignTable {
        name: name.into(),
        here: name.into(),
        columns,
        primary_key,
        indexes: Vec::new(),
        rows,
        bytes,
        index_bytes,
        left_out,
    };
    read_indexes(connection, &mut read)?;
    let references: u64 = connection.query_row("SELECT count(DISTINCT id) FROM pragma_foreign_key_list(?1)", [name], |row| row.get(0))?;
    if references > 0 {
        read.left_out.push(if references == 1 { "a foreign key".to_owned() } else { format!("{references} foreign keys") });
    }
    Ok((read, query))
}

/// Bytes of all trees, by name; nothing where SQLite was built without that.
fn sizes(connection: &Connection) -> HashMap<String, u64> {
    let read = || -> rusqlite::Result<HashMap<String, u64>> {
        let mut statement = connection.prepare("SELECT name, pgsize FROM dbstat WHERE aggregate = TRUE")?;
        let sizes = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
        sizes.collect()
    };
    read().unwrap_or_default()
}

/// The indexes of a table, without that of its primary key.
fn read_indexes(connection: &Connection, table: &mut ForeignTable) -> rusqlite::Result<()> {
    let mut statement = connection.prepare("SELECT name, \"unique\", origin, partial FROM pragma_index_list(?1) ORDER BY name")?;
    let indexes = statement.query_map([&table.name], |row| {
        Ok((row.get::<_, String>(0)?, row.get::<_, bool>(1)?, row.get::<_, String>(2)?, row.get::<_, bool>(3)?))
    })?;
    let mut named = 0;
    for index in indexes {
        let (name, unique, origin, partial) = index?;
        if origin == "pk" {
            let other = "SELECT coll FROM pragma_index_xinfo(?1) WHERE key = 1 AND coll <> 'BINARY'";
            if let Ok(order) = connection.query_row(other, [&name], |row| row.get::<_, String>(0)) {
                table.left_out.push(format!("the order {order} of the primary key: here it is that of the bytes"));
            }
            continue;
        }
        if partial {
            table.left_out.push(format!("index \"{name}\": it has a condition"));
            continue;
        }
        let mut statement = connection.prepare("SELECT name, \"desc\", coll FROM pragma_index_xinfo(?1) WHERE key = 1 ORDER BY seqno")?;
        let parts = statement
            .query_map([&name], |row| Ok((row.get::<_, Option<String>>(0)?, row.get::<_, bool>(1)?, row.get::<_, Option<String>>(2)?)))?;
        let (mut columns, mut collation) = (Vec::new(), None);
        let mut is_expression = false;
        for part in parts {
            let (column, descending, order) = part?;
            let place = column.and_then(|column| table.columns.iter().position(|own| own.name == column));
            collation = collation.or(order.filter(|order| order != "BINARY"));
            match place {
                Some(place) => columns.push((place, if descending { Direction::Descending } else { Direction::Ascending })),
                None => is_expression = true,
            }
        }
        if is_expression {
            table.left_out.push(format!("index \"{name}\": it is of an expression"));
            continue;
        }
        if columns.iter().enumerate().any(|(at, (column, _))| columns[..at].iter().any(|(other, _)| other == column)) {
            table.left_out.push(format!("index \"{name}\": a column comes twice"));
            continue;
        }
        // One that SQLite has named itself gets a name that can be used.
        let own_name = if name.starts_with("sqlite_") {
            named += 1;
            format!("{}_key{named}", table.name)
        } else {
            name
        };
        if let Some(order) = collation {
            table.left_out.push(format!("the order {order} of index \"{own_name}\": here it is that of the bytes"));
        }
        table.indexes.push(ForeignIndex { name: own_name, columns, unique });
    }
    Ok(())
}
