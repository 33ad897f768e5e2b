//! ALTER: changes what a table or index is: names, columns and attributes at once; compression, page size and format by a REORG beside writers.

use crate::drop::no_object;
use crate::{Error, Progress, ReorgOptions, ReorgReport, Result, reorg};
use pagefold_engine::database::{Database, IndexChange, TableChange, TransactionOptions};
use pagefold_format::catalog::DefinedKind;
use pagefold_types::{Column, DataType, Value, text};
use std::str::FromStr;

/// What is to be changed.
#[derive(Clone, Debug)]
pub enum Alteration {
    /// Names, columns and attributes of a table.
    Table(Vec<TableChange>),
    /// The name.
    Rename(String),
    /// Attributes, for a table or an index.
    Set(Attributes),
}

/// Attributes that are to be others.
#[derive(Clone, Debug, Default)]
pub struct Attributes {
    /// Percent of each page that stays free when it is filled.
    pub pctfree: Option<u8>,
    /// The most rows on a page.
    pub maxrows: Option<u16>,
    /// The buffer pool.
    pub pool: Option<String>,
    /// What is written anew: compression, page size, format.
    pub anew: ReorgOptions,
}

/// What was changed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AlterReport {
    /// "table", "partitioned table" or "index".
    pub kind: &'static str,
    /// Its name now.
    pub name: String,
    /// What was written anew, if something was.
    pub reorg: Option<ReorgReport>,
}

impl Attributes {
    /// Is something written anew?
    fn reorganizes(&self) -> bool {
        self.anew.method.is_some() || self.anew.page_bytes.is_some() || self.anew.format.is_some()
    }

    /// PCTFREE, unless what is written anew has it then: it changes with that, or not at all.
    fn pctfree_alone(&self) -> Option<u8> {
        self.pctfree.filter(|_| !self.reorganizes())
    }
}

/// Alters a table, partitioned table or index. What is to be written anew is so after MAXROWS and the pool are committed.
///
/// # Errors
/// When there is none of this name, or it cannot be so; a value that forbids it is named with its row. Nothing has changed then, unless a REORG failed, which MAXROWS and the pool do not wait for.
pub fn alter(database: &Database, name: &str, alteration: &Alteration, progress: &dyn Progress) -> Result<AlterReport> {
    let is_index = database.table(name).is_err() && database.partitioned_table(name).is_err() && database.index(name).is_ok();
    if let Alteration::Rename(to) = alteration
        && !is_index
        && database.object_names(DefinedKind::PartitionedIndex).iter().any(|own| own == name)
    {
        let mut transaction = database.begin(TransactionOptions::default());
        transaction.rename_partitioned_index(name, to)?;
        transaction.commit()?;
        return finish(database, "index", name, alteration, progress);
    }
    if is_index { alter_index(database, name, alteration, progress) } else { alter_table(database, name, alteration, progress) }
}

fn alter_table(database: &Database, name: &str, alteration: &Alteration, progress: &dyn Progress) -> Result<AlterReport> {
    let is_whole = database.table(name).is_err() && database.partitioned_table(name).is_ok();
    let changes = match alteration {
        Alteration::Table(changes) => changes.clone(),
        Alteration::Rename(to) => vec![TableChange::Rename(to.clone())],
        Alteration::Set(set) => {
            // Partitions are written anew one by one, and what comes later is as the whole.
            let pctfree = if is_whole { set.pctfree } else { set.pctfree_alone() };
            let changes =
                [pctfree.map(TableChange::Pctfree), set.maxrows.map(TableChange::Maxrows), set.pool.clone().map(TableChange::Pool)];
            changes.into_iter().flatten().collect()
        }
    };
    if matches!(alteration, Alteration::Set(set) if set.anew.format.is_some()) {
        return Err(Error::Usage(format!("\"{name}\" is no index: it has a compression, not a format")));
    }
    if !changes.is_empty() {
        let mut transaction = database.begin(TransactionOptions::default());
        match is_whole {
            true => transaction.change_partitioned_table(name, &changes)?,
            false => transaction.change_table(name, &changes).map(drop).map_err(|error| or_none(database, name, error))?,
        }
        transaction.commit()?;
    } else if !is_whole {
        database.table(name).map_err(|error| or_none(database, name, error))?;
    }
    let kind = if is_whole { "partitioned table" } else { "table" };
    finish(database, kind, name, alteration, progress)
}

fn alter_index(database: &Database, name: &str, alteration: &Alteration, progress: &dyn Progress) -> Result<AlterReport> {
    let changes: Vec<IndexChange> = match alteration {
        Alteration::Table(_) => return Err(Error::Usage(format!("\"{name}\" is an index: it has no columns of its own"))),
        Alteration::Rename(to) => vec![IndexChange::Rename(to.clone())],
        Alteration::Set(set) if set.maxrows.is_some() => {
            return Err(Error::Usage(format!("\"{name}\" is an index: MAXROWS is one of tables")));
        }
        Alteration::Set(set) => {
            [set.pctfree_alone().map(IndexChange::Pctfree), set.pool.clone().map(IndexChange::Pool)].into_iter().flatten().collect()
        }
    };
    if !changes.is_empty() {
        let mut transaction = database.begin(TransactionOptions::default());
        transaction.change_index(name, &changes)?;
        transaction.commit()?;
    }
    finish(database, "index", name, alteration, progress)
}

fn or_none(database: &Database, name: &str, error: pagefold_engine::Error) -> Error {
    match error {
        pagefold_engine::Error::Unknown { .. } => no_object(database, name),
        other => other.into(),
    }
}

fn finish(database: &Database, kind: &'static str, name: &str, alteration: &Alteration, progress: &dyn Progress) -> Result<AlterReport> {
    let report = AlterReport { kind, name: name.into(), reorg: None };
    match alteration {
        Alteration::Rename(to) => Ok(AlterReport { name: to.clone(), ..report }),
        Alteration::Set(set) if set.reorganizes() => {
            let anew = ReorgOptions { pctfree: set.pctfree.or(set.anew.pctfree), ..set.anew.clone() };
            Ok(AlterReport { reorg: Some(reorg(database, name, &anew, progress)?), ..report })
        }
        _ => Ok(report),
    }
}

/// A column that is to come, as text: `name TYPE [NOT NULL] [DEFAULT value]`. The value is what the rows that are there have.
#[derive(Clone, Debug, PartialEq)]
pub struct ColumnText {
    /// The column.
    pub column: Column,
    /// What the rows that are there have in it.
    pub value: Value,
}

impl FromStr for ColumnText {
    type Err = String;

    fn from_str(given: &str) -> std::result::Result<ColumnText, String> {
        let (name, rest) = split_name(given.trim())?;
        let (rest, value) = match find_word(rest, "DEFAULT") {
            Some(at) => (&rest[..at], Some(rest[at + "DEFAULT".len()..].trim())),
            None => (rest, None),
        };
        let rest = rest.trim();
        let (data_type, nullable) = match find_word(rest, "NOT") {
            Some(at) if rest[at..].split_whitespace().map(str::to_uppercase).eq(["NOT", "NULL"]) => (&rest[..at], false),
            Some(_) => return Err(format!("\"{given}\": NOT without NULL at its end")),
            None => (rest, true),
        };
        let data_type: DataType = data_type.trim().parse().map_err(|e| format!("\"{given}\": {e}"))?;
        let value = match value {
            None => Value::Null,
            Some(word) if word.eq_ignore_ascii_case("null") => Value::Null,
            Some(word) => {
                let quoted = word.strip_prefix('\'').and_then(|word| word.strip_suffix('\''));
                let word = quoted.map_or_else(|| word.to_owned(), |word| word.replace("''", "'"));
                text::parse(&word, &data_type).map_err(|e| format!("\"{given}\": {e}"))?
            }
        };
        if !nullable && value.as_ref().is_null() {
            return Err(format!("\"{given}\": a column that may not be NULL needs a DEFAULT, which the rows that are there have"));
        }
        Ok(ColumnText { column: Column::new(name, data_type, nullable), value })
    }
}

/// The name at the beginning, perhaps in quotes, and what follows.
fn split_name(given: &str) -> std::result::Result<(String, &str), String> {
    let none = || format!("\"{given}\" is no column: name TYPE [NOT NULL] [DEFAULT value]");
    if let Some(quoted) = given.strip_prefix('"') {
        let end = quoted.find('"').filter(|end| *end > 0).ok_or_else(none)?;
        return Ok((quoted[..end].to_owned(), &quoted[end + 1..]));
    }
    let (name, rest) = given.split_once(char::is_whitespace).ok_or_else(none)?;
    Ok((name.to_owned(), rest))
}

/// Where a word begins that stands by itself and not in quotes.
fn find_word(text: &str, word: &str) -> Option<usize> {
    let mut quoted = false;
    text.char_indices().find_map(|(at, c)| {
        quoted ^= c == '\'';
        let is_begin = !quoted && text[..at].chars().next_back().is_none_or(char::is_whitespace);
        let found = text.get(at..at + word.len()).is_some_and(|found| found.eq_ignore_ascii_case(word));
        let ends = || text[at + word.len()..].chars().next().is_none_or(char::is_whitespace);
        (is_begin && found && ends()).then_some(at)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_as_text() {
        let column = |text: &str| text.parse::<ColumnText>();
        let of = |name: &str, data_type: &str, nullable, value| ColumnText {
            column: Column::new(name, data_type.parse().unwrap(), nullable),
            value,
        };
        assert_eq!(column("a integer"), Ok(of("a", "integer", true, Value::Null)));
        assert_eq!(column(" a  decimal(9, 2) not  null default 1.50"), Ok(of("a", "decimal(9,2)", false, Value::Decimal(150))));
        assert_eq!(column("\"a b\" text DEFAULT 'not null, it''s'"), Ok(of("a b", "text", true, Value::Text("not null, it's".into()))));
        assert_eq!(column("a date DEFAULT NULL"), Ok(of("a", "date", true, Value::Null)));
        for (bad, says) in [
            ("a", "is no column"),
            ("\"a integer", "is no column"),
            ("a integer NOT NULL", "needs a DEFAULT"),
            ("a integer NOT DEFAULT 1", "NOT without NULL"),
            ("a integer DEFAULT x", "x"),
            ("a nothing", "nothing"),
            ("", "is no column"),
        ] {
            let error = column(bad).unwrap_err();
            assert!(error.contains(says), "{bad}: {error}");
        }
    }
}
