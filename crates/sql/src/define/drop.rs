//! DROP and TRUNCATE.

use super::Defining;
use super::dependents::{Dependents, Going};
use super::foreign_key::Referring;
use crate::catalog::{Found, TableRef, find, refuse_system, table_names};
use crate::parse::object_name;
use crate::{SqlError, SqlResult};
use pagefold_engine::Error;
use pagefold_engine::database::split_partition_name;
use pagefold_format::catalog::DefinedKind;
use sqlparser::ast::{self, ObjectType};
use std::collections::BTreeSet;
use std::sync::Arc;

impl Defining<'_> {
    pub(super) fn drop_objects(
        &mut self,
        kind: ObjectType,
        if_exists: bool,
        names: &[ast::ObjectName],
        cascade: bool,
    ) -> SqlResult<String> {
        let tag = match kind {
            ObjectType::Table => "DROP TABLE",
            ObjectType::Index => "DROP INDEX",
            ObjectType::View => "DROP VIEW",
            ObjectType::Schema => "DROP SCHEMA",
            ObjectType::Sequence => "DROP SEQUENCE",
            other => return Err(SqlError::unsupported(format!("DROP {other}"))),
        };
        let mut all = names.iter().map(object_name).collect::<SqlResult<Vec<String>>>()?;
        all.dedup();
        if kind != ObjectType::Schema {
            all.iter().try_for_each(|name| refuse_system(name))?;
        }
        if matches!(kind, ObjectType::Index | ObjectType::Schema) {
            for name in &all {
                let dropped = if kind == ObjectType::Index { self.drop_index(name) } else { self.drop_schema(name, cascade) };
                self.unless_missing(dropped, if_exists)?;
            }
            return Ok(tag.into());
        }
        let mut there = Vec::with_capacity(all.len());
        for name in all {
            let found = self.find_to_drop(kind, &name);
            if self.unless_missing(found, if_exists)? {
                let name = if kind == ObjectType::Table { self.own_name(name) } else { name };
                if !there.contains(&name) {
                    there.push(name);
                }
            }
        }
        self.drop_together(kind, &there, cascade)?;
        Ok(tag.into())
    }

    /// Was it there? It may be missing where IF EXISTS stands.
    fn unless_missing(&mut self, done: SqlResult<()>, if_exists: bool) -> SqlResult<bool> {
        match done {
            Err(error) if if_exists && matches!(error.sqlstate(), "42P01" | "42704" | "3F000") => {
                self.notice(format!("{}, skipping", error.message()));
                Ok(false)
            }
            done => done.map(|()| true),
        }
    }

    /// Refuses what is not there, or of another kind.
    fn find_to_drop(&mut self, kind: ObjectType, name: &str) -> SqlResult<()> {
        let (defined, word) = match kind {
            ObjectType::Table => return self.find_table_to_drop(name),
            ObjectType::View => (DefinedKind::View, "view"),
            _ => (DefinedKind::Sequence, "sequence"),
        };
        match self.transaction.object(defined, name) {
            Err(Error::Unknown { .. }) => match find(self.transaction, name) {
                Ok(found) => Err(is_other(name, word, &found)),
                Err(_) => Err(SqlError::new("42P01", format!("{word} \"{name}\" does not exist"))),
            },
            found => Ok(found.map(drop)?),
        }
    }

    fn find_table_to_drop(&mut self, name: &str) -> SqlResult<()> {
        match find(self.transaction, name) {
            Ok(found @ Found::View(_)) => Err(is_other(name, "table", &found)),
            Err(error) if error.sqlstate() == "42P01" => Err(SqlError::new("42P01", format!("table \"{name}\" does not exist"))),
            // One that is damaged can go, too.
            _ => Ok(()),
        }
    }

    /// The name that the engine has for a table: that of a partition may be said otherwise.
    fn own_name(&mut self, name: String) -> String {
        match find(self.transaction, &name) {
            Ok(Found::Table(table)) => table.name.clone(),
            _ => name,
        }
    }

    /// Drops tables, views or sequences that are there, and what needs them.
    fn drop_together(&mut self, kind: ObjectType, names: &[String], cascade: bool) -> SqlResult<()> {
        let mut going = Vec::with_capacity(names.len());
        let mut dependents = Dependents::new();
        for name in names {
            match kind {
                ObjectType::Table => {
                    dependents.extend(self.keys_on(name, names)?);
                    going.push(Going::Table(name.clone()));
                }
                ObjectType::View => going.push(Going::View(name.clone())),
                _ => going.push(Going::Sequence(name.clone())),
            }
        }
        let mut owned = Vec::new();
        if kind == ObjectType::Table {
            for name in names {
                owned.extend(self.owned_sequences(name));
            }
        }
        going.extend(owned.iter().cloned().map(Going::Sequence));
        dependents.extend(self.defaults_on(&going, names)?);
        dependents.extend(self.views_on(&going));
        let what = if names.len() == 1 { going.first().map(Going::to_string) } else { None };
        self.drop_dependents(what.as_deref(), dependents, cascade)?;
        for name in names {
            match kind {
                // A partition of one that goes goes with it.
                ObjectType::Table if split_partition_name(name).is_some_and(|(whole, _)| names.iter().any(|other| other == whole)) => {}
                ObjectType::Table => self.drop_table(name)?,
                ObjectType::View => self.transaction.drop_object(DefinedKind::View, name)?,
                _ => self.transaction.drop_object(DefinedKind::Sequence, name)?,
            }
        }
        owned.iter().try_for_each(|name| match self.transaction.drop_object(DefinedKind::Sequence, name) {
            Err(Error::Unknown { .. }) => Ok(()),
            dropped => Ok(dropped?),
        })
    }

    /// Foreign keys of others that refer to a table.
    pub(super) fn keys_on(&mut self, name: &str, but_of: &[String]) -> SqlResult<Dependents> {
        let Ok(Found::Table(table)) = find(self.transaction, name) else { return Ok(Dependents::new()) };
        // Nobody makes a foreign key to it from here on.
        self.say(&table, |_| Ok(()))?;
        let mut referring = self.referring_to(name)?;
        referring.retain(|own| own.child.name != name && !but_of.contains(&own.child.name));
        Ok(Referring::dependents(referring, &format!("table {name}")))
    }

    /// Sequences of a table's columns. Those of a partition are the whole's.
    pub(super) fn owned_sequences(&mut self, name: &str) -> Vec<String> {
        let Ok(Found::Table(table)) = find(self.transaction, name) else { return Vec::new() };
        if table.whole_name().is_some() {
            return Vec::new();
        }
        table.rules.owned_sequences().filter_map(|number| self.sequence_numbered(number)).collect()
    }

    /// The name of a sequence by its object's number.
    pub(super) fn sequence_numbered(&self, number: u32) -> Option<String> {
        let mut names = self.transaction.object_names(DefinedKind::Sequence).into_iter();
        names.find(|name| self.transaction.object(DefinedKind::Sequence, name).is_ok_and(|found| found.object_id == number))
    }

    /// What is in a schema, in the order in which it can be dropped; indexes go with their tables.
    fn objects_of_schema(&self, schema: &str) -> [(ObjectType, Vec<String>); 3] {
        let views = self.transaction.object_names(DefinedKind::View);
        let sequences = self.transaction.object_names(DefinedKind::Sequence);
        let all = [(ObjectType::View, views), (ObjectType::Table, table_names(self.transaction)), (ObjectType::Sequence, sequences)];
        all.map(|(kind, mut names)| {
            names.retain(|name| name.split_once('.').is_some_and(|(own, _)| own == schema));
            (kind, names)
        })
    }

    fn drop_table(&mut self, name: &str) -> SqlResult<()> {
        match find(self.transaction, name) {
            Ok(Found::Table(table)) if table.is_divided() => Ok(self.transaction.drop_partitioned_table(name)?),
            Ok(Found::Table(table)) if table.whole_name().is_some() => self.drop_partition_by_name(name),
            Ok(_) => Ok(self.transaction.drop_table(name)?),
            // One that is damaged can go, too.
            Err(error) => self.transaction.drop_table(name).map_err(|_| error),
        }
    }

    /// A partition by the name of its table.
    fn drop_partition_by_name(&mut self, name: &str) -> SqlResult<()> {
        let Some((whole, partition)) = split_partition_name(name) else { return Ok(self.transaction.drop_table(name)?) };
        let whole = TableRef::find(self.transaction, whole)?;
        self.refuse_referred(&whole, "drop a partition of")?;
        self.drop_partition_called(&whole, partition)
    }

    fn drop_index(&mut self, name: &str) -> SqlResult<()> {
        let unknown = || SqlError::new("42704", format!("index \"{name}\" does not exist"));
        match self.transaction.index(name) {
            Ok(index) => {
                let key = self.transaction.table_of_index(&index)?;
                if index.attributes().is_of_key(&key.attributes().primary_key) {
                    let message = format!("cannot drop index {name} because the primary key of table {} requires it", key.name());
                    return Err(SqlError::new("2BP01", message));
                }
                let table = TableRef::find(self.transaction, key.name())?;
                if let Some(at) = (0..table.index_count()).find(|at| table.index_name(*at) == name) {
                    self.drop_referring_to_index(&format!("index {name}"), &table, at, false)?;
                }
                Ok(self.transaction.drop_index(name)?)
            }
            Err(Error::Unknown { .. }) => {
                match self.refuse_referred_partitioned_index(name).map(|()| self.transaction.drop_partitioned_index(name))? {
                    Err(Error::Unknown { .. }) => Err(unknown()),
                    dropped => Ok(dropped?),
                }
            }
            // One that is damaged can go, too.
            Err(_) => Ok(self.transaction.drop_index(name)?),
        }
    }

    /// An index of a table that is divided, which foreign keys may rely on.
    pub(super) fn refuse_referred_partitioned_index(&mut self, name: &str) -> SqlResult<()> {
        let references = self.transaction.references()?;
        let parents: BTreeSet<&String> = references.iter().map(|(_, parent)| parent).collect();
        for parent in parents {
            let Some(table) = TableRef::find_now(self.transaction, parent)?.filter(|table| table.is_divided()) else { continue };
            if let Some(at) = (0..table.index_count()).find(|at| table.index_name(*at) == name) {
                self.drop_referring_to_index(&format!("index {name}"), &table, at, false)?;
            }
        }
        Ok(())
    }

    /// All of a schema of temporary tables.
    pub(crate) fn drop_temporary(&mut self, schema: &str) -> SqlResult<()> {
        self.drop_schema(schema, true)
    }

    fn drop_schema(&mut self, name: &str, cascade: bool) -> SqlResult<()> {
        if name == "public" {
            return Err(SqlError::new("2BP01", "schema public cannot be dropped"));
        }
        let own = self.objects_of_schema(name);
        if !cascade && own.iter().any(|(_, names)| !names.is_empty()) {
            let error = SqlError::new("2BP01", format!("cannot drop schema {name} because other objects depend on it"));
            let lines = own.iter().flat_map(|(kind, names)| {
                let kind = kind.to_string().to_lowercase();
                names.iter().map(move |own| format!("{kind} {own} depends on schema {name}"))
            });
            let lines: Vec<String> = lines.collect();
            return Err(error.with_detail(lines.join("\n")).with_hint("Use DROP ... CASCADE to drop the dependent objects too."));
        }
        let lines = own.iter().flat_map(|(kind, names)| names.iter().map(move |own| format!("{} {own}", kind.to_string().to_lowercase())));
        self.cascades(lines.collect());
        for (kind, mut names) in own {
            // Sequences that count a column have gone with its table.
            names.retain(|name| kind != ObjectType::Sequence || self.transaction.object(DefinedKind::Sequence, name).is_ok());
            self.drop_together(kind, &names, cascade)?;
        }
        match self.transaction.drop_object(DefinedKind::Schema, name) {
            Err(Error::Unknown { .. }) => Err(SqlError::new("3F000", format!("schema \"{name}\" does not exist"))),
            dropped => Ok(dropped?),
        }
    }

    pub(super) fn truncate(&mut self, truncate: &ast::Truncate) -> SqlResult<String> {
        if truncate.partitions.is_some() {
            return Err(SqlError::unsupported("this form of TRUNCATE"));
        }
        let cascade = truncate.cascade == Some(ast::CascadeOption::Cascade);
        let mut tables: Vec<Arc<TableRef>> = Vec::new();
        for target in &truncate.table_names {
            let name = object_name(&target.name)?;
            match TableRef::find(self.transaction, &name) {
                Err(error) if error.sqlstate() == "42P01" && truncate.if_exists => {
                    self.notice(format!("{}, skipping", error.message()));
                }
                found => tables.push(found?),
            }
        }
        // Those that refer to one go with it, and come behind it.
        let mut at = 0;
        while let Some(table) = tables.get(at).cloned() {
            // Nobody makes a foreign key to it from here on.
            self.say(&table, |_| Ok(()))?;
            // A partition's rows are those of the whole.
            for own in self.referring_to(table.whole_name().unwrap_or(&table.name))? {
                if tables.iter().any(|other| other.name == own.child.name) {
                    continue;
                }
                if !cascade {
                    let (child, parent) = (&own.child.name, &table.name);
                    let error = SqlError::new("0A000", "cannot truncate a table referenced in a foreign key constraint");
                    return Err(error
                        .with_detail(format!("Table \"{child}\" references \"{parent}\"."))
                        .with_hint(format!("Truncate table \"{child}\" at the same time, or use TRUNCATE ... CASCADE.")));
                }
                tables.push(own.child);
            }
            at += 1;
        }
        for part in tables.iter().flat_map(|table| table.part_names()) {
            self.transaction.truncate_table(part)?;
        }
        if truncate.identity == Some(ast::TruncateIdentityOption::Restart) {
            let names: Vec<String> = tables.iter().map(|table| table.name.clone()).collect();
            names.iter().flat_map(|name| self.owned_sequences(name)).collect::<Vec<_>>().iter().try_for_each(|name| self.restart(name))?;
        }
        Ok("TRUNCATE TABLE".into())
    }
}

/// What has the name is of another kind.
fn is_other(name: &str, wanted: &str, found: &Found) -> SqlError {
    let (word, kind) = match found {
        Found::Table(_) => ("TABLE", "table"),
        Found::View(_) => ("VIEW", "view"),
    };
    SqlError::new("42809", format!("\"{name}\" is not a {wanted}")).with_hint(format!("Use DROP {word} to remove a {kind}."))
}
