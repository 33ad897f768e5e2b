//! Names of relations and columns.

use super::{Binder, Output};
use crate::catalog::TableRef;
use crate::expression::{Expr, Typed};
use crate::parse::{At, identifier, nearest};
use crate::plan::Plan;
use crate::{SqlError, SqlResult};
use sqlparser::ast::Ident;
use std::collections::BTreeSet;
use std::sync::Arc;

/// What the name of a column begins with that no statement can name, and `*` leaves out.
pub(crate) const NAMELESS: char = '\0';

/// What a query selects from.
#[derive(Debug, Default)]
pub(crate) struct Scope {
    pub(crate) relations: Vec<Relation>,
    /// Expressions of the query around that this one needs: its outer row.
    pub(crate) outer: Vec<Expr>,
    /// Aggregates may stand here, and are noted, or not (what stands there instead).
    pub(crate) aggregates: super::aggregates::Place,
    /// Arguments of calls of GROUPING.
    pub(crate) groupings: Vec<Vec<Expr>>,
    /// Windows of the query, and calls of their functions.
    pub(crate) windows: super::windows::Windows,
    /// The relation whose rows a function in the SELECT list gives.
    pub(crate) series: Option<usize>,
    /// Columns that USING and NATURAL have made one: name, and the two that they are of.
    pub(crate) merged: Vec<Merged>,
}

/// A column of a join by USING.
#[derive(Clone, Debug)]
pub(crate) struct Merged {
    pub(crate) name: String,
    pub(crate) typed: Typed,
    /// Columns that the name does not mean any more, and `*` leaves out.
    pub(crate) hides: Vec<(usize, usize)>,
}

/// A relation in FROM.
#[derive(Debug)]
pub(crate) struct Relation {
    pub(crate) name: String,
    pub(crate) columns: Vec<Output>,
    pub(crate) source: Source,
    /// Columns that somebody needs.
    pub(crate) used: BTreeSet<usize>,
    /// Of a table that is changed by the name of a view: the columns of that, of those of the table as relation 0. Names mean these alone.
    pub(crate) seen: Option<Vec<(Output, Expr)>>,
    /// It can be named: not what stands beside within the same FROM for other reasons.
    pub(crate) is_visible: bool,
}

/// Where its rows come from.
#[derive(Clone, Debug)]
pub(crate) enum Source {
    Table(Arc<TableRef>),
    Plan(Plan),
    /// A query that needs values of relations before it, as its outer row.
    Lateral(Plan, Vec<Expr>),
    /// A row that whoever runs the statement has: `excluded` of ON CONFLICT, a row that is changed.
    Given,
}

impl Relation {
    /// Columns that can be named.
    fn named(&self) -> Box<dyn Iterator<Item = &Output> + '_> {
        match &self.seen {
            Some(seen) => Box::new(seen.iter().map(|(output, _)| output)),
            None => Box::new(self.columns.iter()),
        }
    }
}

impl Scope {
    /// Adds a relation; gives its number.
    pub(crate) fn add(&mut self, name: String, columns: Vec<Output>, source: Source) -> SqlResult<usize> {
        if self.relations.iter().any(|relation| relation.is_visible && relation.name == name) {
            return Err(SqlError::new("42712", format!("table name \"{name}\" specified more than once")));
        }
        self.relations.push(Relation { name, columns, source, used: BTreeSet::new(), seen: None, is_visible: true });
        Ok(self.relations.len() - 1)
    }

    /// A column by its numbers.
    pub(crate) fn column(&mut self, relation: usize, column: usize) -> Typed {
        self.relations[relation].used.insert(column);
        let data_type = self.relations[relation].columns[column].data_type;
        Typed { expr: Expr::Column { relation, column }, data_type: Some(data_type) }
    }

    /// A column by its number among those that can be named.
    fn named_column(&mut self, relation: usize, column: usize) -> Typed {
        let Some(seen) = &self.relations[relation].seen else { return self.column(relation, column) };
        let (Output { data_type, .. }, mut expr) = seen[column].clone();
        self.needs(relation, &mut expr);
        Typed { expr, data_type: Some(data_type) }
    }

    /// An expression of columns of relation 0 becomes one of this relation, which then needs them.
    pub(crate) fn needs(&mut self, relation: usize, expr: &mut Expr) {
        let own = &mut self.relations[relation];
        expr.rewrite(&mut |part| {
            if let Expr::Column { relation: of, column } = part {
                *of = relation;
                own.used.insert(*column);
            }
        });
    }

    /// Columns of this name, of one relation or of all. What is quoted is compared as it is, other names without regard to case where there is no column of just this name.
    fn columns_named(&self, relation: Option<usize>, name: &Ident) -> Vec<(usize, usize)> {
        let folded = identifier(name);
        let all = || {
            let relations = self.relations.iter().enumerate().filter(|(at, r)| relation.map_or(r.is_visible, |wanted| wanted == *at));
            relations.flat_map(|(at, relation)| relation.named().enumerate().map(move |(column, output)| (at, column, &output.name)))
        };
        let exact: Vec<(usize, usize)> = all().filter(|(.., own)| **own == folded).map(|(r, c, _)| (r, c)).collect();
        if !exact.is_empty() || name.quote_style.is_some() {
            return exact;
        }
        all().filter(|(.., own)| own.eq_ignore_ascii_case(&folded)).map(|(r, c, _)| (r, c)).collect()
    }

    /// Number of the relation of this name.
    pub(crate) fn relation_named(&self, name: &Ident) -> Option<usize> {
        let folded = identifier(name);
        let by = |matches: &dyn Fn(&str) -> bool| self.relations.iter().position(|relation| relation.is_visible && matches(&relation.name));
        by(&|own| own == folded).or_else(|| name.quote_style.is_none().then(|| by(&|own| own.eq_ignore_ascii_case(&folded))).flatten())
    }

    /// The column of this name: `None` when there is none here.
    fn find(&mut self, relation: Option<&Ident>, name: &Ident) -> SqlResult<Option<Typed>> {
        let wanted = match relation {
            Some(relation) => match self.relation_named(relation) {
                Some(at) => Some(at),
                None => return Ok(None),
            },
            None => None,
        };
        let folded = identifier(name);
        if wanted.is_none()
            && let Some(merged) = self.merged.iter().rev().find(|merged| merged.name == folded)
        {
            return Ok(Some(merged.typed.clone()));
        }
        match self.columns_named(wanted, name).as_slice() {
            [] => Ok(None),
            [(relation, column)] => Ok(Some(self.named_column(*relation, *column))),
            _ => {
                let error = SqlError::new("42702", format!("column reference \"{}\" is ambiguous", identifier(name)));
                Err(error.with_hint("Name its table, too.").at_span(name.span))
            }
        }
    }

    /// All columns that `*` means, of one relation or of all, each with its relation; those of USING once, first, and of none.
    pub(crate) fn all_columns(&mut self, relation: Option<usize>) -> Vec<(Option<usize>, String, Typed)> {
        let mut all: Vec<(Option<usize>, String, Typed)> = Vec::new();
        let mut hidden = Vec::new();
        if relation.is_none() {
            for merged in &self.merged {
                hidden.extend(merged.hides.iter().copied());
            }
            // A name that was made one twice stands for the last.
            for (at, merged) in self.merged.iter().enumerate() {
                if !self.merged[at + 1..].iter().any(|later| later.name == merged.name) {
                    all.push((None, merged.name.clone(), merged.typed.clone()));
                }
            }
        }
        let places: Vec<(usize, usize, String)> = (self.relations.iter().enumerate())
            .filter(|(at, own)| relation.map_or(own.is_visible, |wanted| wanted == *at))
            .flat_map(|(at, own)| own.named().enumerate().map(move |(column, output)| (at, column, output.name.clone())))
            .filter(|(.., name)| !name.starts_with(NAMELESS))
            .collect();
        for (relation, column, name) in places {
            if !hidden.contains(&(relation, column)) {
                all.push((Some(relation), name, self.named_column(relation, column)));
            }
        }
        all
    }
}

impl Binder<'_> {
    /// A column by name, of this query or of one around it.
    pub(crate) fn find_column(&mut self, relation: Option<&Ident>, name: &Ident) -> SqlResult<Typed> {
        let found = self.find_in(self.scopes.len(), relation, name)?;
        found.ok_or_else(|| self.unknown_column(relation, name))
    }

    /// In the scope below `depth`, or one further out.
    fn find_in(&mut self, depth: usize, relation: Option<&Ident>, name: &Ident) -> SqlResult<Option<Typed>> {
        let Some(at) = depth.checked_sub(1) else { return Ok(None) };
        if let Some(found) = self.scopes[at].find(relation, name)? {
            return Ok(Some(found));
        }
        let Some(Typed { expr, data_type }) = self.find_in(at, relation, name)? else { return Ok(None) };
        // An expression of the query around: this one has its value in its outer row.
        let expr = self.outer_expr(at, expr);
        Ok(Some(Typed { expr, data_type }))
    }

    fn outer_expr(&mut self, at: usize, expr: Expr) -> Expr {
        let outer = &mut self.scopes[at].outer;
        let place = outer.iter().position(|known| *known == expr).unwrap_or_else(|| {
            outer.push(expr);
            outer.len() - 1
        });
        Expr::Outer(place)
    }

    fn unknown_column(&self, relation: Option<&Ident>, name: &Ident) -> SqlError {
        let written = identifier(name);
        if let Some(relation) = relation {
            let qualifier = identifier(relation);
            let Some(own) = self.scopes.iter().rev().find_map(|scope| scope.relation_named(relation).map(|at| &scope.relations[at])) else {
                let known = self.scopes.iter().flat_map(|scope| scope.relations.iter().map(|relation| relation.name.as_str()));
                let error = SqlError::new("42P01", format!("missing FROM-clause entry for table \"{qualifier}\"")).at_span(relation.span);
                return match nearest(&qualifier, known) {
                    Some(near) => error.with_hint(format!("Perhaps you meant \"{near}\".")),
                    None => error,
                };
            };
            let error = SqlError::new("42703", format!("column {qualifier}.{written} does not exist")).at_span(name.span);
            return match nearest(&written, own.named().map(|column| column.name.as_str())) {
                Some(near) => error.with_hint(format!("Perhaps you meant \"{qualifier}.{near}\".")),
                None => error,
            };
        }
        let error = SqlError::new("42703", format!("column \"{written}\" does not exist")).at_span(name.span);
        let known = self.scopes.iter().flat_map(|scope| scope.relations.iter());
        let known = known.flat_map(|relation| relation.named().map(|column| column.name.as_str()));
        match nearest(&written, known) {
            Some(near) => error.with_hint(format!("Perhaps you meant \"{near}\".")),
            None => error,
        }
    }
}

/// Columns of a table, as a relation has them.
pub(crate) fn table_columns(table: &TableRef) -> Vec<Output> {
    let output = |(column, visible): (&pagefold_types::Column, &bool)| {
        // Nobody can name one that was dropped.
        let name = if *visible { column.name.clone() } else { format!("{NAMELESS}dropped") };
        Output { name, data_type: column.data_type }
    };
    table.schema.columns().iter().zip(&table.visible).map(output).collect()
}
