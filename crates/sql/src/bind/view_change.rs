//! Views whose rows are changed: those of plain columns of one table, or of another such view.
//!
//! A statement that changes rows of a view changes those of its table. The table stands in the statement's scope with the columns that the view
//! has ([`Relation::seen`](super::Relation)): names mean these, and are expressions of the table's columns.
//!
//! Invariants:
//! - names in a view are those that its maker meant: neither WITH nor temporary tables of the statement;
//! - conditions and columns of all views on the way are expressions of the table's columns, as relation 0;
//! - a row that a view WITH CHECK OPTION would not show is refused before it is written.

use super::from::{conjuncts, renamed};
use super::series::gives_rows;
use super::{Binder, Output, Source};
use crate::catalog::{Found, TableRef, find};
use crate::expression::Expr;
use crate::forms::without_only;
use crate::parse::{At, identifier, nearest, object_name, parse_query, short_name};
use crate::{SqlError, SqlResult};
use pagefold_format::catalog::{Constraint, ConstraintKind, DefinedKind, Notes};
use sqlparser::ast::{self, GroupByExpr, SetExpr, Spanned, TableFactor};
use std::sync::Arc;

/// Which rows a view lets in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CheckOption {
    /// Those that it would show, whatever the views below it would.
    Local,
    /// Those that it and all views below it would show.
    Cascaded,
}

impl CheckOption {
    /// As what the catalog keeps it: a condition of the view.
    const NAME: &str = "check_option";

    pub(crate) fn of(notes: &Notes) -> Option<CheckOption> {
        let constraint = notes.constraints().into_iter().find(|constraint| constraint.name == CheckOption::NAME)?;
        match constraint.condition.as_deref() {
            Some("local") => Some(CheckOption::Local),
            Some("cascaded") => Some(CheckOption::Cascaded),
            _ => None,
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            CheckOption::Local => "local",
            CheckOption::Cascaded => "cascaded",
        }
    }

    pub(crate) fn constraint(self) -> Constraint {
        let mut constraint = Constraint::new(ConstraintKind::Check, CheckOption::NAME);
        constraint.condition = Some(self.name().into());
        constraint
    }
}

/// What is done with the rows of a view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Doing {
    Insert,
    Update,
    Delete,
    /// It is asked whether any of these can be.
    Ask,
}

impl Doing {
    fn refused(self, view: &str) -> String {
        match self {
            Doing::Insert => format!("cannot insert into view \"{view}\""),
            Doing::Update => format!("cannot update view \"{view}\""),
            Doing::Delete => format!("cannot delete from view \"{view}\""),
            Doing::Ask => format!("view \"{view}\" cannot be changed"),
        }
    }
}

/// A table, as a statement changes it: by its own name, or as a view shows it.
#[derive(Debug)]
pub(crate) struct Target {
    pub(crate) table: Arc<TableRef>,
    pub(crate) view: Option<ViewTarget>,
    /// As the statement calls it, with its schema.
    name: String,
}

/// What a view shows of its table.
#[derive(Debug)]
pub(crate) struct ViewTarget {
    pub(crate) name: String,
    /// Its columns, of those of the table.
    pub(crate) columns: Vec<(Output, Expr)>,
    /// Those of the views below it come first.
    pub(crate) conditions: Vec<Expr>,
    /// What new rows have to meet, and the view that says so.
    pub(crate) checks: Vec<(String, Expr)>,
}

impl Target {
    /// For the relation that it is in a scope.
    pub(crate) fn seen(&self) -> Option<Vec<(Output, Expr)>> {
        self.view.as_ref().map(|view| view.columns.clone())
    }

    /// As it is called without an alias.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// The columns that can be seen, each with that of the table which it is.
    fn places(view: &ViewTarget) -> impl Iterator<Item = (&Output, Option<usize>)> {
        view.columns.iter().map(|(output, expr)| {
            let place = if let Expr::Column { relation: 0, column } = expr { Some(*column) } else { None };
            (output, place)
        })
    }

    /// The column of the table that a name stands for, which is given a value.
    pub(crate) fn column_of(&self, name: &ast::Ident, doing: Doing) -> SqlResult<usize> {
        let Some(view) = &self.view else { return super::change::column_of(&self.table, name) };
        let wanted = identifier(name);
        let exact = Target::places(view).find(|(output, _)| output.name == wanted);
        let found = exact.or_else(|| {
            let mut like =
                Target::places(view).filter(|(output, _)| name.quote_style.is_none() && output.name.eq_ignore_ascii_case(&wanted));
            like.next().filter(|_| like.next().is_none())
        });
        match found {
            Some((output, place)) => place.ok_or_else(|| view.is_computed(&output.name, doing).at_span(name.span)),
            None => {
                let message = format!("column \"{wanted}\" of relation \"{}\" does not exist", view.name);
                let error = SqlError::new("42703", message).at_span(name.span);
                Err(match nearest(&wanted, view.columns.iter().map(|(output, _)| output.name.as_str())) {
                    Some(near) => error.with_hint(format!("Perhaps you meant \"{near}\".")),
                    None => error,
                })
            }
        }
    }

    /// The columns that INSERT gives values where it names none, the first `given` of them.
    pub(crate) fn all_columns(&self, given: usize) -> SqlResult<Vec<usize>> {
        let Some(view) = &self.view else {
            return Ok((0..self.table.schema.len()).filter(|column| self.table.visible[*column]).collect());
        };
        if given > view.columns.len() {
            return Err(SqlError::syntax("INSERT has more expressions than target columns"));
        }
        let mut columns = Vec::with_capacity(view.columns.len());
        for (at, (output, place)) in Target::places(view).enumerate() {
            match place {
                Some(place) if columns.contains(&place) && at < given => {
                    let message = format!("column \"{}\" specified more than once", self.table.schema.columns()[place].name);
                    return Err(SqlError::new("42701", message));
                }
                Some(place) if columns.contains(&place) => break,
                Some(place) => columns.push(place),
                None if at < given => return Err(view.is_computed(&output.name, Doing::Insert)),
                // Nothing behind it gets a value either.
                None => break,
            }
        }
        Ok(columns)
    }
}

impl ViewTarget {
    fn is_computed(&self, column: &str, doing: Doing) -> SqlError {
        let message = match doing {
            Doing::Insert => format!("cannot insert into column \"{column}\" of view \"{}\"", self.name),
            _ => format!("cannot update column \"{column}\" of view \"{}\"", self.name),
        };
        SqlError::new("0A000", message).with_detail("View columns that are not columns of their base relation are not updatable.")
    }

    /// Has it a column that can be given a value?
    pub(crate) fn is_updatable(&self) -> bool {
        Target::places(self).any(|(_, place)| place.is_some())
    }
}

/// What a view selects from, and of that.
struct Parts<'q> {
    from: &'q TableFactor,
    select: &'q ast::Select,
}

/// The parts of a view whose rows can be changed; else why they cannot.
fn parts(query: &ast::Query) -> Result<Parts<'_>, &'static str> {
    if query.with.is_some() {
        return Err("Views containing WITH are not automatically updatable.");
    }
    if query.limit_clause.is_some() || query.fetch.is_some() {
        return Err("Views containing LIMIT or OFFSET are not automatically updatable.");
    }
    let select = match &*query.body {
        SetExpr::Select(select) => select,
        SetExpr::SetOperation { .. } => return Err("Views containing UNION, INTERSECT, or EXCEPT are not automatically updatable."),
        SetExpr::Query(query) => return parts(query),
        _ => return Err("Views that do not select from a single table or view are not automatically updatable."),
    };
    if select.distinct.is_some() {
        return Err("Views containing DISTINCT are not automatically updatable.");
    }
    if !matches!(&select.group_by, GroupByExpr::Expressions(keys, more) if keys.is_empty() && more.is_empty()) {
        return Err("Views containing GROUP BY are not automatically updatable.");
    }
    if select.having.is_some() {
        return Err("Views containing HAVING are not automatically updatable.");
    }
    match select.from.as_slice() {
        [item] if item.joins.is_empty() => Ok(Parts { from: &item.relation, select }),
        _ => Err("Views that do not select from a single table or view are not automatically updatable."),
    }
}

impl Binder<'_> {
    /// The table that is changed, by its name or that of a view.
    pub(crate) fn target(&mut self, name: &ast::ObjectName, doing: Doing) -> SqlResult<Target> {
        let (own, is_only) = without_only(name);
        let target = self.target_named(&object_name(&own)?, doing).at_span(name.span())?;
        if is_only && target.view.is_none() && target.table.is_divided() {
            return Err(SqlError::unsupported(format!("ONLY of \"{}\", which is divided", target.table.name)).at_span(name.span()));
        }
        Ok(target)
    }

    fn target_named(&mut self, name: &str, doing: Doing) -> SqlResult<Target> {
        crate::catalog::refuse_system(name)?;
        match find(self.transaction, name)? {
            Found::Table(table) => Ok(Target { table, view: None, name: name.to_owned() }),
            Found::View(_) => {
                let (table, view) = self.view_target(name, doing, false)?;
                Ok(Target { table, view: Some(view), name: name.to_owned() })
            }
        }
    }

    /// What a view shows of its table. `is_checked`: a view above it lets in only rows that this one would show.
    pub(crate) fn view_target(&mut self, name: &str, doing: Doing, is_checked: bool) -> SqlResult<(Arc<TableRef>, ViewTarget)> {
        let view = self.transaction.object(DefinedKind::View, name)?;
        let query = parse_query(view.notes.text().unwrap_or_default())?;
        self.query_target(&query, name, (doing, CheckOption::of(&view.notes), is_checked))
    }

    /// The same of the query of one.
    pub(crate) fn query_target(
        &mut self,
        query: &ast::Query,
        name: &str,
        how: (Doing, Option<CheckOption>, bool),
    ) -> SqlResult<(Arc<TableRef>, ViewTarget)> {
        // Names in a view are those that its maker meant.
        let (with, scopes) = (std::mem::take(&mut self.with), std::mem::take(&mut self.scopes));
        let entered = crate::temporary::Entered::new(None);
        self.failed = None;
        let found = self.deeper(|binder| binder.shown(query, name, how));
        drop(entered);
        (self.with, self.scopes) = (with, scopes);
        found.map_err(|error| if error.sqlstate() == "55000" { error } else { error.in_view(name, self.failed.as_deref()) })
    }

    fn shown(
        &mut self,
        query: &ast::Query,
        name: &str,
        (doing, option, is_checked): (Doing, Option<CheckOption>, bool),
    ) -> SqlResult<(Arc<TableRef>, ViewTarget)> {
        let refuse = |why: &str| SqlError::new("55000", doing.refused(name)).with_detail(why);
        let Parts { from, select } = parts(query).map_err(refuse)?;
        let checks_below = is_checked || option == Some(CheckOption::Cascaded);
        let (table, below, alias, short) = match from {
            TableFactor::Table { name: own, alias, args: None, sample: None, .. } => {
                let (own, _) = without_only(own);
                let wanted = object_name(&own)?;
                if crate::system::SystemTable::named(&wanted).is_some() {
                    return Err(refuse("Views that select from a table of the database itself are not automatically updatable."));
                }
                let short = short_name(&wanted).to_owned();
                match find(self.transaction, &wanted)? {
                    Found::Table(table) => (table, None, alias, short),
                    Found::View(_) => {
                        let (table, view) = self.view_target(&wanted, doing, checks_below)?;
                        (table, Some(view), alias, short)
                    }
                }
            }
            // A view with a list of columns is kept so.
            TableFactor::Derived { lateral: false, subquery, alias, sample: None } => {
                let (table, view) = self.query_target(subquery, name, (doing, option, is_checked))?;
                (table, Some(view), alias, name.to_owned())
            }
            _ => return Err(refuse("Views that do not select from a single table or view are not automatically updatable.")),
        };
        let (mut conditions, mut checks) = (Vec::new(), Vec::new());
        let columns = match below {
            Some(below) => {
                (conditions, checks) = (below.conditions, below.checks);
                below.columns
            }
            None => all_of(&table),
        };
        let names: Vec<String> = alias.iter().flat_map(|alias| &alias.columns).map(|column| identifier(&column.name)).collect();
        let (outputs, exprs): (Vec<Output>, Vec<Expr>) = columns.into_iter().unzip();
        let columns = renamed(outputs, &names)?.into_iter().zip(exprs).collect();
        let alias = alias.as_ref().map_or(short, |alias| identifier(&alias.name));
        let at = self.scope().add(alias, super::scope::table_columns(&table), Source::Given)?;
        self.scope().relations[at].seen = Some(columns);
        let (outputs, exprs) = match self.returning(&select.projection) {
            Err(error) if error.sqlstate() == "42803" => {
                return Err(refuse("Views that return aggregate functions are not automatically updatable."));
            }
            Err(error) if error.sqlstate() == "42P20" => {
                return Err(refuse("Views that return window functions are not automatically updatable."));
            }
            // As a function of one row there is none.
            Err(error) if error.sqlstate() == "42883" && gives_rows(&select.projection) => {
                return Err(refuse("Views that return set-returning functions are not automatically updatable."));
            }
            bound => bound?,
        };
        let subqueries = self.subplans.len();
        if let Some(condition) = &select.selection {
            let own = conjuncts(self.without_aggregates("WHERE", |binder| binder.condition(condition, "WHERE"))?);
            if is_checked || option.is_some() {
                if self.subplans.len() > subqueries {
                    return Err(SqlError::unsupported("WITH CHECK OPTION of a view whose condition has a subquery"));
                }
                for condition in &own {
                    let mut condition = condition.clone();
                    super::change::to_slots(&mut condition);
                    checks.push((name.to_owned(), condition));
                }
            }
            conditions.extend(own);
        }
        Ok((table, ViewTarget { name: name.to_owned(), columns: outputs.into_iter().zip(exprs).collect(), conditions, checks }))
    }
}

/// A table's own columns.
fn all_of(table: &TableRef) -> Vec<(Output, Expr)> {
    let columns = super::scope::table_columns(table).into_iter().enumerate().zip(&table.visible);
    columns.filter(|(_, visible)| **visible).map(|((column, output), _)| (output, Expr::Column { relation: 0, column })).collect()
}
