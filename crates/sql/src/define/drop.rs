//! DROP and TRUNCATE.

use super::Defining;
use super::sequence::of_default;
use crate::catalog::{Found, TableRef, find, refuse_system, table_names};
use crate::parse::object_name;
use crate::{SqlError, SqlResult};
use pagefold_engine::Error;
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
        let all = names.iter().map(object_name).collect::<SqlResult<Vec<String>>>()?;
        for name in &all {
            match self.drop_one(kind, name, &all, cascade) {
                Err(error) if if_exists && is_unknown(&error) => {}
                other => other?,
            }
        }
        Ok(tag.into())
    }

    /// `with`: what goes in the same statement.
    fn drop_one(&mut self, kind: ObjectType, name: &str, with: &[String], cascade: bool) -> SqlResult<()> {
        if kind != ObjectType::Schema {
            refuse_system(name)?;
        }
        match kind {
            ObjectType::Table => self.drop_table(name, with, cascade),
            ObjectType::Index => self.drop_index(name),
            ObjectType::View => self.drop_view(name),
            ObjectType::Sequence => self.drop_sequence(name),
            _ => self.drop_schema(name, cascade),
        }
    }

    /// What is in a schema, in the order in which it can be dropped; indexes go with their tables.
    fn objects_of_schema(&self, schema: &str) -> Vec<(ObjectType, String)> {
        let tables = table_names(self.transaction);
        let views = self.transaction.object_names(DefinedKind::View);
        let sequences = self.transaction.object_names(DefinedKind::Sequence);
        let all = [(ObjectType::View, views), (ObjectType::Table, tables), (ObjectType::Sequence, sequences)];
        let is_own = |name: &String| name.split_once('.').is_some_and(|(own, _)| own == schema);
        all.into_iter().flat_map(|(kind, names)| names.into_iter().filter(is_own).map(move |name| (kind, name))).collect()
    }

    fn drop_table(&mut self, name: &str, with: &[String], cascade: bool) -> SqlResult<()> {
        match find(self.transaction, name) {
            Ok(Found::Table(table)) => {
                // Nobody makes a foreign key to it from here on.
                self.say(&table, |_| Ok(()))?;
                let mut referring = self.referring_to(name)?;
                referring.retain(|own| own.child.name != name && !with.contains(&own.child.name));
                let what = format!("table {name}");
                self.drop_referring(&what, &what, &referring, cascade)?;
                // Sequences of its columns go with it.
                let owned: Vec<String> = table.rules.owned_sequences().filter_map(of_default).collect();
                if table.is_divided() {
                    self.transaction.drop_partitioned_table(name)?
                } else {
                    self.transaction.drop_table(name)?
                }
                for sequence in owned {
                    match self.drop_sequence(&sequence) {
                        Err(error) if is_unknown(&error) => {}
                        dropped => dropped?,
                    }
                }
                Ok(())
            }
            Ok(Found::View(_)) => {
                Err(SqlError::new("42809", format!("\"{name}\" is not a table")).with_hint("Use DROP VIEW to remove a view."))
            }
            // One that is damaged can go, too.
            Err(error) if error.sqlstate() == "42P01" => Err(SqlError::new("42P01", format!("table \"{name}\" does not exist"))),
            Err(error) => match self.transaction.drop_table(name) {
                Ok(()) => Ok(()),
                Err(_) => Err(error),
            },
        }
    }

    fn drop_index(&mut self, name: &str) -> SqlResult<()> {
        let unknown = || SqlError::new("42704", format!("index \"{name}\" does not exist"));
        match self.transaction.index(name) {
            Ok(index) => {
                let key = self.transaction.table(self.run.database.engine().table_of(&index)?.name())?;
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

    fn drop_view(&mut self, name: &str) -> SqlResult<()> {
        match self.transaction.drop_object(DefinedKind::View, name) {
            Err(Error::Unknown { .. }) => match find(self.transaction, name) {
                Ok(Found::Table(_)) => {
                    Err(SqlError::new("42809", format!("\"{name}\" is not a view")).with_hint("Use DROP TABLE to remove a table."))
                }
                _ => Err(SqlError::new("42P01", format!("view \"{name}\" does not exist"))),
            },
            dropped => Ok(dropped?),
        }
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
        if !own.is_empty() && !cascade {
            let error = SqlError::new("2BP01", format!("cannot drop schema {name} because other objects depend on it"));
            let names: Vec<&str> = own.iter().map(|(_, name)| name.as_str()).collect();
            return Err(error.with_detail(names.join(", ")).with_hint("Use DROP ... CASCADE to drop the dependent objects too."));
        }
        for (kind, own) in own {
            match self.drop_one(kind, &own, &[], cascade) {
                // One that counts a column has gone with its table.
                Err(error) if kind == ObjectType::Sequence && is_unknown(&error) => {}
                dropped => dropped?,
            }
        }
        match self.transaction.drop_object(DefinedKind::Schema, name) {
            Err(Error::Unknown { .. }) => Err(SqlError::new("3F000", format!("schema \"{name}\" does not exist"))),
            dropped => Ok(dropped?),
        }
    }

    pub(super) fn truncate(&mut self, truncate: &ast::Truncate) -> SqlResult<String> {
        if truncate.partitions.is_some() || truncate.identity.is_some() {
            return Err(SqlError::unsupported("this form of TRUNCATE"));
        }
        let cascade = truncate.cascade == Some(ast::CascadeOption::Cascade);
        let mut tables: Vec<Arc<TableRef>> = Vec::new();
        for target in &truncate.table_names {
            let name = object_name(&target.name)?;
            match TableRef::find(self.transaction, &name) {
                Err(error) if error.sqlstate() == "42P01" && truncate.if_exists => {}
                found => tables.push(found?),
            }
        }
        // Those that refer to one go with it, and come behind it.
        let mut at = 0;
        while let Some(table) = tables.get(at).cloned() {
            // Nobody makes a foreign key to it from here on.
            self.say(&table, |_| Ok(()))?;
            for own in self.referring_to(&table.name)? {
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
        for part in tables.iter().flat_map(|table| &table.parts) {
            self.transaction.truncate_table(part.table.name())?;
        }
        Ok("TRUNCATE TABLE".into())
    }
}

fn is_unknown(error: &SqlError) -> bool {
    matches!(error.sqlstate(), "42P01" | "42704" | "3F000")
}
