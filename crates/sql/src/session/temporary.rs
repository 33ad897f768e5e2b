//! Temporary tables of a session.
//!
//! Invariant: they go when the session does, also when it ends within a transaction.

use super::{Session, define};
use crate::SqlResult;
use crate::cursor::CursorStatement;
use crate::parse::Syntax;
use crate::temporary::{Entered, PREFIX, Temporary};
use pagefold_engine::database::Transaction;
use pagefold_format::catalog::DefinedKind;
use sqlparser::ast::Statement as Node;
use std::collections::HashSet;
use std::sync::Arc;

impl Session {
    /// Lets names mean temporary tables as long as a statement is looked at, if the session has some or is about to.
    pub(super) fn enter_temporary(&mut self, syntax: &Syntax) -> SqlResult<Option<Entered>> {
        if matches!(syntax, Syntax::Sql(node) if matches!(&**node, Node::CreateTable(create) if create.temporary))
            && self.temporary.is_none()
        {
            self.temporary = Some(self.database.temporary_schema()?);
        }
        let Some(schema) = self.temporary.clone().filter(|_| names_relations(syntax)) else { return Ok(None) };
        let names = self.look(|transaction| names_in(transaction, &schema))??;
        Ok(Some(Entered::new(Some(Temporary { schema, names: Arc::new(names) }))))
    }

    pub(super) fn drop_temporary(&mut self) -> SqlResult<()> {
        let Some(schema) = self.temporary.take() else { return Ok(()) };
        self.drop_schema_of_temporary(&schema)
    }

    /// Drops what sessions have left of a process that did not end them.
    pub(crate) fn drop_left_temporary(&mut self) -> SqlResult<()> {
        let schemas = self.look(|transaction| transaction.object_names(DefinedKind::Schema))?;
        schemas.iter().filter(|schema| schema.starts_with(PREFIX)).try_for_each(|schema| self.drop_schema_of_temporary(schema))
    }

    fn drop_schema_of_temporary(&mut self, schema: &str) -> SqlResult<()> {
        let _entered = Entered::new(Some(Temporary { schema: schema.into(), names: Arc::default() }));
        let mut open = self.opened_apart();
        let run = self.run_of(&open);
        match define::Defining::new(&mut open.transaction, run).drop_temporary(schema) {
            Ok(()) => self.settle(open),
            // What made them was taken back.
            Err(error) if error.sqlstate() == "3F000" => Ok(open.transaction.rollback()?),
            Err(error) => {
                drop(open.transaction.rollback());
                Err(error)
            }
        }
    }
}

/// Names of tables, indexes and sequences in a schema.
fn names_in(transaction: &mut Transaction<'static>, schema: &str) -> SqlResult<HashSet<String>> {
    let prefix = format!("{schema}.");
    let short = |name: &str| name.strip_prefix(&prefix).map(str::to_owned);
    let mut names: HashSet<String> = transaction.object_names(DefinedKind::Sequence).iter().filter_map(|name| short(name)).collect();
    for name in transaction.table_names() {
        let Some(own) = short(&name) else { continue };
        names.insert(own);
        let table = transaction.table(&name)?;
        names.extend(transaction.indexes(&table)?.iter().filter_map(|index| short(index.name())));
    }
    for kind in [DefinedKind::PartitionedTable, DefinedKind::PartitionedIndex] {
        names.extend(transaction.object_names(kind).iter().filter_map(|name| short(name)));
    }
    Ok(names)
}

/// May a statement name relations?
fn names_relations(syntax: &Syntax) -> bool {
    match syntax {
        Syntax::Copy(_) | Syntax::Utility(_) | Syntax::Sequence(_) => true,
        Syntax::Cursor(cursor) => matches!(cursor, CursorStatement::Declare { .. }),
        Syntax::Sql(node) => !matches!(
            **node,
            Node::StartTransaction { .. }
                | Node::Commit { .. }
                | Node::Rollback { .. }
                | Node::Savepoint { .. }
                | Node::ReleaseSavepoint { .. }
                | Node::Set(_)
                | Node::Reset(_)
                | Node::ShowVariable { .. }
                | Node::Prepare { .. }
                | Node::Deallocate { .. }
        ),
    }
}
