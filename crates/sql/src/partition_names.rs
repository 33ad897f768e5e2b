//! Names of partitions as those of relations.
//!
//! A table that is made before its partitions has them as PostgreSQL does: each is a relation of its own name, in the schema of the table. In the engine it is called as every partition is,
//! `<table>/<partition>`, and that name is known, too. Partitions of a table that is made with them have no other name than that.
//!
//! Invariant: what else has the name comes first. So a partition that gets its name from outside SQL, beside a table of this name, hides nothing.

use crate::parse::short_name;
use crate::{SqlError, SqlResult};
use pagefold_engine::database::{PartitionedTable, Transaction, partition_name};
use pagefold_engine::{Error, Result};
use pagefold_format::catalog::DefinedKind;
use std::sync::Arc;

/// What stands before the name of a relation without its schema, in a name of the engine.
fn schema_of(name: &str) -> Option<&str> {
    name.rsplit_once('.').map(|(schema, _)| schema)
}

/// A name in the schema of another relation.
pub(crate) fn beside(relation: &str, name: &str) -> String {
    schema_of(relation).map_or_else(|| name.to_owned(), |schema| format!("{schema}.{name}"))
}

/// Tables that were made before their partitions.
fn open_tables(transaction: &mut Transaction<'_>, schema: Option<&str>) -> Result<Vec<Arc<PartitionedTable>>> {
    let mut found = Vec::new();
    for name in transaction.object_names(DefinedKind::PartitionedTable) {
        if schema_of(&name) != schema {
            continue;
        }
        match transaction.partitioned_table(&name) {
            Ok(whole) if whole.is_open() => found.push(whole),
            // It has come since the snapshot, or goes at this moment.
            Ok(_) | Err(Error::Unknown { .. } | Error::Stale { .. }) => {}
            // One that is damaged is in the way of who needs it.
            Err(error) if error.is_damage() || error.is_refusal() => {}
            Err(error) => return Err(error),
        }
    }
    Ok(found)
}

/// The engine's name of the partition that is a relation of this name, if there is one.
///
/// # Errors
/// 42P09 when partitions of two tables have it; when a table cannot be opened.
pub fn partition_called(transaction: &mut Transaction<'_>, name: &str) -> SqlResult<Option<String>> {
    let short = short_name(name);
    let mut found: Option<String> = None;
    for whole in open_tables(transaction, schema_of(name))? {
        if whole.partition(short).is_err() {
            continue;
        }
        if let Some(other) = &found {
            let own = partition_name(whole.name(), short);
            return Err(SqlError::new("42P09", format!("relation \"{name}\" is ambiguous: there are \"{other}\" and \"{own}\"")));
        }
        found = Some(partition_name(whole.name(), short));
    }
    Ok(found)
}

/// Names of all partitions that are relations of their own, with those that the engine has for them.
pub(crate) fn partition_relations(transaction: &mut Transaction<'_>) -> SqlResult<Vec<(String, String)>> {
    let mut schemas: Vec<Option<String>> =
        transaction.object_names(DefinedKind::PartitionedTable).iter().map(|name| schema_of(name).map(str::to_owned)).collect();
    schemas.sort();
    schemas.dedup();
    let mut found = Vec::new();
    for schema in schemas {
        for whole in open_tables(transaction, schema.as_deref())? {
            let own = |name: &str| (beside(whole.name(), name), partition_name(whole.name(), name));
            found.extend(whole.own_partitions().iter().map(|partition| own(partition.name())));
        }
    }
    Ok(found)
}
