//! Changes of definitions that are made without SQL: whether they leave rules that mean nothing.
//!
//! Invariant: nothing is changed here; what has to be locked for a look is given back with the transaction.

use super::Defining;
use super::dependents::{Dependent, Going};
use crate::catalog::{Found, TableRef, find_if_any, refuse_system};
use crate::{SqlError, SqlResult};
use pagefold_engine::database::TableChange;
use pagefold_types::DataType;

impl Defining<'_> {
    /// Refuses a change of a table that one of its rules, a foreign key to it, or a view forbids.
    pub(crate) fn check_change(&mut self, name: &str, change: &TableChange) -> SqlResult<()> {
        let Some(Found::Table(table)) = find_if_any(self.transaction, name)? else { return Ok(()) };
        refuse_system(name)?;
        let (verb, column, data_type): (&str, &str, Option<&DataType>) = match change {
            TableChange::DropColumn(column) => ("drop", column, None),
            TableChange::RenameColumn { column, .. } => ("rename", column, None),
            TableChange::SetType { column, data_type } => ("alter type of", column, Some(data_type)),
            _ => return Ok(()),
        };
        let own = table.schema.columns();
        let Some(at) = (0..own.len()).find(|at| table.visible[*at] && own[*at].name == column) else { return Ok(()) };
        let needed = |rule: &str| {
            let message = format!("cannot {verb} column {column} of table {name} because {rule} depends on it");
            Err(SqlError::new("2BP01", message).with_hint("Drop that first."))
        };
        if let Some(data_type) = data_type {
            self.refuse_type_of_key(&table, at, data_type)?;
        }
        if verb == "drop" {
            let is_own = |columns: &[u32]| columns.iter().any(|own| *own as usize == at);
            if let Some((key, _)) = table.rules.foreign_keys().find(|(key, _)| is_own(&key.columns)) {
                return needed(&format!("constraint {}", key.name));
            }
            if let Some(key) = self.referring_to(name)?.into_iter().find(|key| is_own(&key.reference.columns)) {
                return needed(&format!("constraint {} of table {}", key.constraint.name, key.child.name));
            }
        }
        let going = Going::Column(name.to_owned(), at, column.to_owned());
        if let Some((Dependent::View(view), _)) = self.views_on(&[going]).first() {
            return needed(&format!("view {view}"));
        }
        match self.rule_of_column(&table, at)? {
            Some(rule) if table.rules.has_constraint(&rule) => needed(&format!("constraint {rule}")),
            Some(rule) => needed(&format!("generated column {rule}")),
            None => Ok(()),
        }
    }

    /// Refuses to drop a table or index on which foreign keys of others, views or defaults rely. What is damaged may go.
    pub(crate) fn check_drop(&mut self, name: &str) -> SqlResult<()> {
        match self.find_dependents(name) {
            Err(error) if matches!(error.sqlstate(), "2BP01" | "42501") => Err(error),
            _ => Ok(()),
        }
    }

    fn find_dependents(&mut self, name: &str) -> SqlResult<()> {
        if let Some(Found::Table(table)) = find_if_any(self.transaction, name)? {
            refuse_system(name)?;
            let mut dependents = self.keys_on(&table.name, &[])?;
            let mut going = vec![Going::Table(name.to_owned())];
            going.extend(self.owned_sequences(name).into_iter().map(Going::Sequence));
            dependents.extend(self.defaults_on(&going, &[name.to_owned()])?);
            dependents.extend(self.views_on(&going));
            return self.drop_dependents(Some(&format!("table {name}")), dependents, false);
        }
        let Ok(index) = self.transaction.index(name) else { return self.refuse_referred_partitioned_index(name) };
        refuse_system(name)?;
        let table = self.transaction.table_of_index(&index)?;
        let table = TableRef::find(self.transaction, table.name())?;
        match (0..table.index_count()).find(|at| table.index_name(*at) == name) {
            Some(at) => self.drop_referring_to_index(&format!("index {name}"), &table, at, false),
            None => Ok(()),
        }
    }
}
