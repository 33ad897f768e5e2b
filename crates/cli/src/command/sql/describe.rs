//! Commands that show what there is.

use super::catalog::{self, Kind, Writer};
use super::{Shell, words};
use crate::failure::{Failure, Result};
use crate::size::size_text;
use pagefold::Value;
use pagefold::io::{OpenOptions, OsStorage, Storage};
use pagefold::types::DataType;
use std::path::Path;

fn text(text: impl Into<String>) -> Value {
    Value::Text(text.into())
}

fn rows(number: u64) -> Value {
    Value::Int(i64::try_from(number).unwrap_or(i64::MAX))
}

/// Does a name fit what was written? Without anything all do.
fn is_wanted(pattern: Option<&str>, name: &str) -> bool {
    pattern.is_none_or(|pattern| words::meant(pattern) == name || words::fits(pattern, name))
}

/// Bytes of the files below.
fn directory_bytes(path: &Path, depth: u32) -> std::io::Result<u64> {
    let mut bytes = 0;
    for inside in OsStorage.list(path)? {
        bytes += match OsStorage.open(&inside, &OpenOptions::read_only()).and_then(|file| file.len()) {
            Ok(length) => length,
            Err(_) if depth > 0 => directory_bytes(&inside, depth - 1).unwrap_or(0),
            Err(_) => 0,
        };
    }
    Ok(bytes)
}

impl Shell<'_> {
    /// Tables and views.
    pub(super) fn list_tables(&mut self, pattern: Option<&str>) -> Result<()> {
        let lines = self.look(|transaction| {
            let mut lines = Vec::new();
            for (name, kind) in catalog::relations(transaction)?.into_iter().filter(|(name, _)| is_wanted(pattern, name)) {
                match kind {
                    Kind::Table | Kind::Partitioned => {
                        if let Some(found) = catalog::table(transaction, &name)? {
                            let attributes = found.table.attributes();
                            let compression = attributes.method.to_string();
                            lines.push(vec![
                                text(&name),
                                text(kind.name()),
                                rows(found.rows),
                                text(compression),
                                text(found.comment().unwrap_or_default()),
                            ]);
                        }
                    }
                    Kind::View => lines.push(vec![text(&name), text(kind.name()), Value::Null, Value::Null, text("")]),
                    Kind::Sequence => {}
                }
            }
            Ok(lines)
        })?;
        self.table(&["name", "kind", "rows", "compression", "comment"], lines)
    }

    /// All relations.
    pub(super) fn list_relations(&mut self) -> Result<()> {
        let relations = self.look(catalog::relations)?;
        let rows = relations.into_iter().map(|(name, kind)| vec![text(name), text(kind.name())]);
        self.table(&["name", "kind"], rows.collect())
    }

    pub(super) fn list_others(&mut self, kind: Kind, pattern: Option<&str>) -> Result<()> {
        let relations = self.look(catalog::relations)?;
        let wanted = relations.into_iter().filter(|(name, own)| *own == kind && is_wanted(pattern, name));
        self.table(&["name"], wanted.map(|(name, _)| vec![text(name)]).collect())
    }

    /// Indexes, of all tables or of those that fit.
    pub(super) fn list_indexes(&mut self, pattern: Option<&str>) -> Result<()> {
        let lines = self.look(|transaction| {
            let mut lines = Vec::new();
            for (name, _) in catalog::relations(transaction)?.into_iter().filter(|(name, _)| is_wanted(pattern, name)) {
                if let Some(found) = catalog::table(transaction, &name)? {
                    lines.extend(found.index_lines().into_iter().map(|line| vec![text(&name), text(line)]));
                }
            }
            Ok(lines)
        })?;
        self.table(&["table", "index"], lines)
    }

    /// The relation that a name means to the session: a temporary one, if there is one of this name.
    fn meant(&mut self, written: &str) -> Result<String> {
        let name = words::meant(written);
        let Some(schema) = self.sql.temporary_schema() else { return Ok(name) };
        let own = match name.split_once('.') {
            // Not what is said to be in the schema `public`.
            None if !written.contains('.') => format!("{schema}.{name}"),
            Some(("pg_temp", short)) => format!("{schema}.{short}"),
            _ => return Ok(name),
        };
        let is_there = self.look(|transaction| Ok(catalog::relations(transaction)?.iter().any(|(known, _)| *known == own)))?;
        Ok(if is_there { own } else { name })
    }

    /// One relation.
    pub(super) fn describe(&mut self, written: &str) -> Result<()> {
        let name = self.meant(written)?;
        let found = self.look(|transaction| {
            if let Some(found) = catalog::table(transaction, &name)? {
                let keys = Writer::new(transaction).foreign_keys(&found)?;
                return Ok(Some((Some(found), keys)));
            }
            let lines = Writer::new(transaction).one(&name)?;
            Ok(Some((None, lines)).filter(|(_, lines)| !lines.is_empty()))
        })?;
        match found {
            None => match pagefold::sql::system_relations().find(|(own, _)| *own == name) {
                Some((_, columns)) => {
                    let line = |(column, data_type): &(&str, DataType)| vec![text(*column), text(data_type.to_string().to_lowercase())];
                    self.table(&["column", "type"], columns.iter().map(line).collect())
                }
                None => Err(Failure::Failed(format!("there is no relation \"{name}\"; .tables lists those that there are"))),
            },
            Some((None, lines)) => self.output.text(&lines.join("\n")),
            Some((Some(found), keys)) => {
                let columns = found.columns();
                let line = |column: catalog::ColumnLine| {
                    let not_null = if column.is_nullable { "" } else { "not null" };
                    vec![text(column.name), text(column.data_type), text(not_null), text(column.default), text(column.comment)]
                };
                self.table(&["column", "type", "null", "default", "comment"], columns.into_iter().map(line).collect())?;
                if self.style.format != crate::arguments::RowsFormat::Box {
                    // The other formats are for programs: one result.
                    return Ok(());
                }
                let mut more = Vec::new();
                for (title, lines) in [
                    ("Indexes:", found.index_lines()),
                    ("Check constraints:", found.check_lines()),
                    ("Foreign keys:", keys),
                    ("Storage:", found.storage_lines()),
                ] {
                    if !lines.is_empty() {
                        more.push(title.to_owned());
                        more.extend(lines.into_iter().map(|line| format!("    {line}")));
                    }
                }
                if let Some(comment) = found.comment() {
                    more.push(format!("Comment: {comment}"));
                }
                self.output.text(&more.join("\n"))
            }
        }
    }

    /// Definitions as SQL.
    pub(super) fn schema(&mut self, pattern: Option<&str>) -> Result<()> {
        let meant = pattern.map(|pattern| self.meant(pattern)).transpose()?;
        let temporary = meant.filter(|name| catalog::is_temporary_relation(name));
        let statements = self.look(|transaction| match pattern {
            None => Writer::new(transaction).all(),
            Some(pattern) => {
                let is_wanted = |name: &String| temporary.as_ref().map_or_else(|| is_wanted(Some(pattern), name), |own| own == name);
                let names = catalog::relations(transaction)?.into_iter().map(|(name, _)| name).filter(is_wanted);
                let names: Vec<String> = names.collect();
                let mut writer = Writer::new(transaction);
                let mut statements = Vec::new();
                for name in names {
                    statements.extend(writer.one(&name)?);
                }
                Ok(statements)
            }
        })?;
        match (statements.is_empty(), pattern) {
            (true, Some(pattern)) => {
                Err(Failure::Failed(format!("there is no relation \"{pattern}\"; .tables lists those that there are")))
            }
            (true, None) => Ok(()),
            _ => self.output.text(&statements.join("\n")),
        }
    }

    pub(super) fn list_database(&mut self) -> Result<()> {
        let tables = self.look(catalog::relations)?.iter().filter(|(_, kind)| matches!(kind, Kind::Table | Kind::Partitioned)).count();
        let bytes = directory_bytes(self.directory, 2)?;
        let name = self.directory.display().to_string();
        self.table(&["database", "tables", "size"], vec![vec![text(name), rows(tables as u64), text(size_text(bytes))]])
    }
}
