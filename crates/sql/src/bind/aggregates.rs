//! Aggregates, and expressions of groups.
//!
//! Of a query with groups, what stands in SELECT, HAVING and ORDER BY is an expression of the groups: of keys ([`KEYS`]) and aggregates ([`AGGREGATES`]). It is bound
//! as any other, aggregates are noted on the way; then what equals a key becomes that key, and a column that is left is an error.

use super::grouping::GROUPINGS;
use super::{Binder, WINDOWS};
use crate::expression::aggregate::Aggregate;
use crate::expression::{Expr, Typed};
use crate::{SqlError, SqlResult};
use pagefold_types::DataType;

/// Number of the relation of a query's group keys.
pub(crate) const KEYS: usize = usize::MAX;
/// Number of the relation of its aggregates.
pub(crate) const AGGREGATES: usize = usize::MAX - 1;

/// What an aggregate means at a place.
#[derive(Debug, Default)]
pub(crate) enum Place {
    /// It cannot be here: what this place is called.
    #[default]
    Nowhere,
    In(&'static str),
    /// It is noted.
    Noted(Vec<Noted>),
}

/// An aggregate, with its FILTER.
#[derive(Clone, Debug)]
pub(crate) struct Noted {
    pub(crate) aggregate: Aggregate,
    pub(crate) filter: Option<Expr>,
}

impl Place {
    /// The aggregates that were noted.
    pub(crate) fn take(&mut self) -> Vec<Noted> {
        match std::mem::take(self) {
            Place::Noted(noted) => noted,
            _ => Vec::new(),
        }
    }
}

impl Binder<'_> {
    /// Notes an aggregate of the query that is bound; gives what stands for it.
    pub(crate) fn note_aggregate(&mut self, name: &str, noted: Noted) -> SqlResult<Typed> {
        let data_type = noted.aggregate.data_type;
        match &mut self.scope().aggregates {
            Place::Noted(all) => {
                let same = |own: &Noted| own.aggregate == noted.aggregate && own.filter == noted.filter;
                let column = all.iter().position(same).unwrap_or_else(|| {
                    all.push(noted);
                    all.len() - 1
                });
                Ok(Typed { expr: Expr::Column { relation: AGGREGATES, column }, data_type: Some(data_type) })
            }
            Place::In(place) => Err(SqlError::new("42803", format!("aggregate functions are not allowed in {place}: {name}"))),
            Place::Nowhere => Err(SqlError::new("42803", format!("aggregate functions are not allowed here: {name}"))),
        }
    }

    /// Runs something at a place where aggregates cannot be.
    pub(crate) fn without_aggregates<R>(&mut self, place: &'static str, run: impl FnOnce(&mut Self) -> SqlResult<R>) -> SqlResult<R> {
        let before = std::mem::replace(&mut self.scope().aggregates, Place::In(place));
        let done = run(self);
        self.scope().aggregates = before;
        done
    }
}

/// The keys of groups.
pub(crate) struct Keys {
    pub(crate) keys: Vec<(Expr, DataType)>,
    /// So many of them stand in GROUP BY. Others are the same wherever these are, and in all sets.
    pub(crate) written: usize,
    /// Relations all whose columns are the same within a group, as their primary keys are among the keys.
    whole: Vec<usize>,
}

impl Keys {
    /// Of groups by these keys, in these sets.
    pub(crate) fn new(keys: Vec<(Expr, DataType)>, sets: &[Vec<usize>], scope: &super::Scope) -> Keys {
        let is_key = |relation: usize, column: usize| {
            let is_it = |key: &Expr| matches!(key, Expr::Column { relation: r, column: c } if (*r, *c) == (relation, column));
            keys.iter().enumerate().any(|(at, (key, _))| is_it(key) && sets.iter().all(|set| set.contains(&at)))
        };
        let whole = scope.relations.iter().enumerate().filter_map(|(at, relation)| {
            let super::Source::Table(table) = &relation.source else { return None };
            (!table.primary_key.is_empty() && table.primary_key.iter().all(|column| is_key(at, *column))).then_some(at)
        });
        let whole = whole.collect();
        Keys { written: keys.len(), keys, whole }
    }

    /// An expression of the groups, of one of rows.
    pub(crate) fn of_groups(&mut self, expr: Expr, scope: &super::Scope) -> SqlResult<Expr> {
        // A constant is none: its value says nothing of where it comes from.
        let is_constant = matches!(expr, Expr::Literal(_));
        if let Some(at) = self.keys.iter().position(|(key, _)| !is_constant && *key == expr) {
            return Ok(Expr::Column { relation: KEYS, column: at });
        }
        match expr {
            Expr::Column { relation: AGGREGATES | WINDOWS | GROUPINGS, .. } => Ok(expr),
            Expr::Column { relation, column } => {
                if self.whole.contains(&relation) {
                    self.keys.push((expr, scope.relations[relation].columns[column].data_type));
                    return Ok(Expr::Column { relation: KEYS, column: self.keys.len() - 1 });
                }
                let own = &scope.relations[relation];
                let name = format!("{}.{}", own.name, own.columns[column].name);
                let error = SqlError::new(
                    "42803",
                    format!("column \"{name}\" must appear in the GROUP BY clause or be used in an aggregate function"),
                );
                Err(error)
            }
            mut other => {
                let mut failed = None;
                other.parts_mut(&mut |child| {
                    let inner = std::mem::replace(child, Expr::Literal(pagefold_types::Value::Null));
                    match self.of_groups(inner, scope) {
                        Ok(done) => *child = done,
                        Err(error) => {
                            failed.get_or_insert(error);
                        }
                    }
                });
                failed.map_or(Ok(other), Err)
            }
        }
    }
}
