//! Temporary tables: those of a session, which go with it.
//!
//! They are tables as all others, in a schema that is the session's own (`pg_temp_` and a number). While a statement of the session runs, a name without a schema means what is in that schema, if
//! something of this name is there. What is in the schema the catalog says, so it follows transactions.
//!
//! Invariants:
//! - names of views mean what they meant to their makers: while one is bound there are no temporary tables;
//! - what a process left that ended without ending its sessions goes before the next one makes a temporary table.

use crate::{SqlError, SqlResult};
use std::cell::RefCell;
use std::collections::HashSet;
use std::sync::Arc;

/// What the names of such schemas begin with.
pub(crate) const PREFIX: &str = "pg_temp_";
/// The schema of whoever asks.
const OWN: &str = "pg_temp";

/// What there is of a session.
#[derive(Clone, Debug)]
pub(crate) struct Temporary {
    pub(crate) schema: Arc<str>,
    /// Names of relations in it, without it.
    pub(crate) names: Arc<HashSet<String>>,
}

thread_local! {
    /// Of the session whose statement this thread runs.
    static CURRENT: RefCell<Option<Temporary>> = const { RefCell::new(None) };
}

/// Names mean what they do to a session, as long as this is there.
pub(crate) struct Entered(Option<Temporary>);

impl Entered {
    pub(crate) fn new(temporary: Option<Temporary>) -> Entered {
        Entered(CURRENT.replace(temporary))
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        CURRENT.set(self.0.take());
    }
}

/// A name as the engine has it: those of schema `public` alone, others behind the name of their schema and a point.
pub(crate) fn resolved(parts: &[String]) -> SqlResult<String> {
    match parts {
        [name] => {
            let own = CURRENT.with_borrow(|current| {
                let current = current.as_ref().filter(|current| current.names.contains(name))?;
                Some(in_schema(&current.schema, name))
            });
            Ok(own.unwrap_or_else(|| name.clone()))
        }
        _ => resolved_new(parts),
    }
}

/// The name of what is to be made: no temporary table takes its place.
pub(crate) fn resolved_new(parts: &[String]) -> SqlResult<String> {
    match parts {
        [name] => Ok(name.clone()),
        [schema, name] if schema == "public" => Ok(name.clone()),
        [schema, name] if schema == OWN => match own_schema() {
            Some(own) => Ok(in_schema(&own, name)),
            None => Err(SqlError::new("42P01", format!("relation \"{OWN}.{name}\" does not exist"))),
        },
        [schema, _] if schema.starts_with(PREFIX) && own_schema().is_none_or(|own| *own != **schema) => {
            Err(SqlError::new("0A000", "cannot access temporary tables of other sessions"))
        }
        [schema, name] => Ok(in_schema(schema, name)),
        parts => Err(SqlError::syntax(format!("{} has too many parts", parts.join(".")))),
    }
}

/// The schema of the session whose statement runs, if it has one.
pub(crate) fn own_schema() -> Option<Arc<str>> {
    CURRENT.with_borrow(|current| current.as_ref().map(|current| Arc::clone(&current.schema)))
}

/// One more of them: the statement that makes it may name it.
pub(crate) fn add_name(name: &str) {
    CURRENT.with_borrow_mut(|current| {
        if let Some(current) = current {
            Arc::make_mut(&mut current.names).insert(name.to_owned());
        }
    });
}

/// Is a relation in such a schema?
pub(crate) fn is_temporary(name: &str) -> bool {
    name.starts_with(PREFIX) && name.contains('.')
}

pub(crate) fn in_schema(schema: &str, name: &str) -> String {
    format!("{schema}.{name}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_mean_what_is_in_the_schema_of_the_session() {
        let of = |parts: &[&str]| resolved(&parts.iter().map(|part| (*part).to_owned()).collect::<Vec<_>>());
        assert_eq!(of(&["t"]).unwrap(), "t");
        let names = Arc::new(HashSet::from(["t".to_owned()]));
        let entered = Entered::new(Some(Temporary { schema: "pg_temp_3".into(), names }));
        assert_eq!(of(&["t"]).unwrap(), "pg_temp_3.t");
        assert_eq!(of(&["public", "t"]).unwrap(), "t");
        assert_eq!(of(&["u"]).unwrap(), "u");
        assert_eq!(of(&["pg_temp", "u"]).unwrap(), "pg_temp_3.u");
        assert_eq!(of(&["pg_temp_4", "u"]).unwrap_err().sqlstate(), "0A000");
        assert_eq!(resolved_new(&["t".to_owned()]).unwrap(), "t");
        {
            let _view = Entered::new(None);
            assert_eq!(of(&["t"]).unwrap(), "t");
        }
        assert_eq!(of(&["t"]).unwrap(), "pg_temp_3.t");
        drop(entered);
        assert_eq!(of(&["t"]).unwrap(), "t");
    }
}
