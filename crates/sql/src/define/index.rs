//! CREATE INDEX.

use super::constraint::base_name;
use super::{Defining, options, taken};
use crate::bind::change::column_of;
use crate::catalog::TableRef;
use crate::parse::{new_object_name, object_name};
use crate::{SqlError, SqlResult};
use pagefold_engine::index::{IndexAttributes, IndexFormat};
use pagefold_types::Direction;
use sqlparser::ast;

/// Page size of an index, where none is said.
const PAGE_BYTES: usize = 8 * 1024;

impl Defining<'_> {
    pub(super) fn create_index(&mut self, create: &ast::CreateIndex) -> SqlResult<String> {
        if create.predicate.is_some() {
            return Err(SqlError::unsupported("an index of some rows (WHERE)"));
        }
        if !create.include.is_empty()
            || create.nulls_distinct == Some(false)
            || !create.alter_options.is_empty()
            || !create.index_options.is_empty()
        {
            return Err(SqlError::unsupported("this form of CREATE INDEX"));
        }
        match &create.using {
            None | Some(ast::IndexType::BTree) => {}
            Some(other) => return Err(SqlError::unsupported(format!("an index of type {other}"))),
        }
        let table = TableRef::find(self.transaction, &object_name(&create.table_name)?)?;
        let mut columns = Vec::with_capacity(create.columns.len());
        for column in &create.columns {
            let ast::Expr::Identifier(name) = &column.column.expr else {
                return Err(SqlError::unsupported(format!("an index of the expression {}", column.column.expr)));
            };
            let descending = column.column.options.asc == Some(false);
            if column.column.options.nulls_first.is_some_and(|first| first != descending) {
                return Err(SqlError::unsupported("NULLS FIRST of an ascending column, or NULLS LAST of a descending one, in an index"));
            }
            columns.push((column_of(&table, name)?, if descending { Direction::Descending } else { Direction::Ascending }));
        }
        let name = match &create.name {
            // That of a temporary table is where its table is.
            Some(name) if crate::temporary::is_temporary(&table.name) => match table.name.split_once('.') {
                Some((schema, _)) if name.0.len() == 1 => crate::temporary::in_schema(schema, &new_object_name(name)?),
                _ => new_object_name(name)?,
            },
            Some(name) => new_object_name(name)?,
            None => {
                let names: Vec<&str> = columns.iter().map(|(column, _)| table.schema.columns()[*column].name.as_str()).collect();
                self.free_name(base_name(&table.name, &names, "idx"), |_| false)
            }
        };
        if self.transaction.index(&name).is_ok() {
            if create.if_not_exists {
                self.skips("relation", &name);
                return Ok("CREATE INDEX".into());
            }
            return Err(SqlError::new("42P07", format!("relation \"{name}\" already exists")));
        }
        self.refuse_taken(&name)?;
        let attributes = IndexAttributes::new(name.clone(), columns, create.unique).with_format(IndexFormat::Prefix, PAGE_BYTES);
        let attributes = options::of_index(attributes, &options::index_pairs(&create.with)?, "")?;
        attributes.check(&table.schema)?;
        if table.is_divided() {
            self.transaction.create_partitioned_index(&table.name, &attributes).map_err(|error| taken(error, &name))?;
        } else {
            self.transaction.create_index(&table.first().table, attributes).map_err(|error| taken(error, &name))?;
        }
        Ok("CREATE INDEX".into())
    }
}
