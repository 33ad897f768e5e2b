//! MERGE.
//!
//! It is a query first: the source, outer joined to the table. For each of its rows the first clause that holds says what becomes of it. All that is decided before the first row changes.

use super::beforehand::Beforehand;
use super::change::Returning;
use super::foreign_key::{Reach, References};
use super::from::conjuncts;
use super::rules::RowRules;
use super::scope::table_columns;
use super::select::{Distinct, From, Limit, Select};
use super::view_change::{Doing, Target};
use super::{Binder, NAMELESS, Output, Source};
use crate::catalog::TableRef;
use crate::expression::Expr;
use crate::forms::Overriding;
use crate::plan::{self, JoinKind, Plan, place};
use crate::rewrite::{DEFAULTS, NOTHING};
use crate::{SqlError, SqlResult};
use pagefold_types::{DataType, Value};
use sqlparser::ast::{self, MergeClauseKind};
use std::sync::Arc;

/// The table is the first relation, the source the second.
const TARGET: usize = 0;
const SOURCE: usize = 1;

/// Rows of a table that are brought together with others. Expressions are of the rows of `source`.
#[derive(Debug)]
pub(crate) struct MergePlan {
    pub(crate) table: Arc<TableRef>,
    /// Part, RID, all columns of the table; columns of the source, and last whether there is a row of it.
    pub(crate) source: Plan,
    pub(crate) clauses: Vec<MergeClause>,
    pub(crate) rules: RowRules,
    pub(crate) references: References,
    /// Of the columns of the source, and behind them those of the table.
    pub(crate) returning: Option<Returning>,
    /// Of `returning`.
    pub(crate) beforehand: Vec<Beforehand>,
}

#[derive(Debug)]
pub(crate) struct MergeClause {
    pub(crate) when: When,
    pub(crate) condition: Option<Expr>,
    pub(crate) action: MergeAction,
}

impl MergeClause {
    /// So many values does it give a row.
    pub(crate) fn values(&self) -> usize {
        match &self.action {
            MergeAction::Insert(exprs) | MergeAction::Update(_, exprs) => exprs.len(),
            MergeAction::Delete | MergeAction::Nothing => 0,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum When {
    Matched,
    /// There is no row of the table.
    NotMatched,
    /// There is no row of the source.
    NotMatchedBySource,
}

#[derive(Debug)]
pub(crate) enum MergeAction {
    /// A value for each column of the table.
    Insert(Vec<Expr>),
    /// Columns, and what each gets.
    Update(Vec<usize>, Vec<Expr>),
    Delete,
    /// DO NOTHING.
    Nothing,
}

impl Binder<'_> {
    pub(crate) fn merge(&mut self, merge: &ast::Merge) -> SqlResult<MergePlan> {
        let (target, alias) = self.target_relation(&merge.table, Doing::Update)?;
        if let Some(view) = &target.view {
            return Err(SqlError::unsupported(format!("MERGE into the view \"{}\"", view.name)));
        }
        let table = Arc::clone(&target.table);
        let by_source = merge.clauses.iter().any(|clause| clause.clause_kind == MergeClauseKind::NotMatchedBySource);
        let by_target = merge
            .clauses
            .iter()
            .any(|clause| matches!(clause.clause_kind, MergeClauseKind::NotMatched | MergeClauseKind::NotMatchedByTarget));
        refuse_unreachable(&merge.clauses)?;
        self.factor(&merge.source)?;
        if self.scope().relations.len() != 2 {
            return Err(SqlError::unsupported("a join as the source of MERGE").with_hint("Write it as a query: USING (SELECT ...) AS s."));
        }
        let is_there = self.marked_source();
        let on = conjuncts(self.without_aggregates("JOIN conditions", |binder| binder.condition(&merge.on, "MERGE/ON"))?);
        let mut clauses = merge.clauses.iter().map(|clause| self.merge_clause(&target, clause)).collect::<SqlResult<Vec<_>>>()?;
        let subqueries = self.subplans.len();
        let returning = match &merge.output {
            None => None,
            Some(ast::OutputClause::Returning { select_items, .. }) => Some(self.merge_returning(&table, &alias, select_items)?),
            Some(ast::OutputClause::Output { .. }) => {
                return Err(SqlError::unsupported("OUTPUT").with_hint("RETURNING gives rows that have changed."));
            }
        };
        let rules = self.row_rules(&table)?;
        let references = self.references(&table, reach(&clauses, &rules))?;
        // What comes of the join, column by column.
        let own = table.place_columns().into_iter().chain(0..table.schema.len()).map(|column| (TARGET, column));
        let layout: Vec<(usize, usize)> = own.chain((0..=is_there).map(|column| (SOURCE, column))).collect();
        let projection = layout.iter().map(|(relation, column)| self.scope().column(*relation, *column).expr).collect();
        let join =
            |kind, left, right| From::Join { kind, left: Box::new(From::Relation(left)), right: Box::new(From::Relation(right)), on };
        let from = match (by_target, by_source) {
            (true, true) => join(JoinKind::Full, SOURCE, TARGET),
            (true, false) => join(JoinKind::Left, SOURCE, TARGET),
            (false, true) => join(JoinKind::Left, TARGET, SOURCE),
            (false, false) => join(JoinKind::Inner, SOURCE, TARGET),
        };
        let select = Select {
            from: vec![from],
            conditions: Vec::new(),
            groups: None,
            windows: Vec::new(),
            projection,
            visible: layout.len(),
            distinct: Distinct::None,
            order: Vec::new(),
            limit: Limit::default(),
        };
        let source = plan::select::plan(self, select)?;
        for clause in &mut clauses {
            let values = match &mut clause.action {
                MergeAction::Insert(exprs) | MergeAction::Update(_, exprs) => exprs.as_mut_slice(),
                MergeAction::Delete | MergeAction::Nothing => &mut [],
            };
            values.iter_mut().chain(&mut clause.condition).for_each(|expr| place(expr, &layout));
        }
        let beforehand = self.beforehand(&table, subqueries, Returning::exprs(returning.as_ref()), "RETURNING")?;
        Ok(MergePlan { table, source, clauses, rules, references, returning, beforehand })
    }

    /// A column that nobody can name comes behind those of the source: it is NULL where the join has no row of it. Gives its number.
    fn marked_source(&mut self) -> usize {
        let source = &mut self.scope().relations[SOURCE];
        let width = source.columns.len();
        let output = |name: &str| Output { name: format!("{NAMELESS}{name}"), data_type: DataType::BigInt };
        match &mut source.source {
            // Where a row of a table lies is never NULL.
            Source::Table(_) => source.columns.push(output("part")),
            Source::Plan(plan) | Source::Lateral(plan, _) => {
                let exprs = (0..width).map(Expr::Slot).chain([Expr::Literal(Value::Int(1))]).collect();
                *plan = std::mem::take(plan).projected(exprs);
                source.columns.push(output("source"));
            }
            Source::Given => {}
        }
        width
    }

    fn merge_clause(&mut self, target: &Target, clause: &ast::MergeClause) -> SqlResult<MergeClause> {
        let when = when_of(clause);
        // Of a side that has no row nothing can be named.
        let hidden = match when {
            When::Matched => None,
            When::NotMatched => Some(TARGET),
            When::NotMatchedBySource => Some(SOURCE),
        };
        self.show_relations(hidden, false);
        let bound = self.without_aggregates("MERGE WHEN clauses", |binder| binder.clause_of(target, clause, when));
        self.show_relations(hidden, true);
        bound
    }

    fn show_relations(&mut self, relation: Option<usize>, is_visible: bool) {
        if let Some(relation) = relation {
            self.scope().relations[relation].is_visible = is_visible;
        }
    }

    fn clause_of(&mut self, target: &Target, clause: &ast::MergeClause, when: When) -> SqlResult<MergeClause> {
        let table = &target.table;
        let condition = clause.predicate.as_ref().map(|condition| self.condition(condition, "WHEN")).transpose()?;
        let action = match &clause.action {
            ast::MergeAction::Delete { .. } => MergeAction::Delete,
            action if stands_for(action, NOTHING) => MergeAction::Nothing,
            action if stands_for(action, DEFAULTS) => {
                MergeAction::Insert((0..table.schema.len()).map(|column| self.default_of(table, column)).collect::<SqlResult<_>>()?)
            }
            ast::MergeAction::Update(update) => {
                if update.update_predicate.is_some() || update.delete_predicate.is_some() {
                    return Err(SqlError::unsupported("WHERE in a clause of MERGE").with_hint("Write WHEN MATCHED AND ... THEN."));
                }
                let (columns, exprs) = self.assignments(target, &update.assignments)?.into_iter().unzip();
                MergeAction::Update(columns, exprs)
            }
            ast::MergeAction::Insert(insert) => {
                if insert.insert_predicate.is_some() {
                    return Err(SqlError::unsupported("WHERE in a clause of MERGE").with_hint("Write WHEN NOT MATCHED AND ... THEN."));
                }
                let ast::MergeInsertKind::Values(values) = &insert.kind else { return Err(SqlError::unsupported("INSERT ROW")) };
                let [row] = values.rows.as_slice() else { return Err(SqlError::syntax("MERGE inserts one row for each of the source")) };
                let targets = self.target_columns(target, &insert.columns, row.content.len())?;
                MergeAction::Insert(self.row_values(table, (&targets, Overriding::Nothing), &row.content, !insert.columns.is_empty())?)
            }
        };
        Ok(MergeClause { when, condition, action })
    }

    /// RETURNING of MERGE names columns of both sides.
    fn merge_returning(&mut self, table: &Arc<TableRef>, alias: &str, items: &[ast::SelectItem]) -> SqlResult<Returning> {
        let source = &self.scope().relations[SOURCE];
        let (name, columns) = (source.name.clone(), source.columns.clone());
        let width = columns.len();
        let scopes = std::mem::take(&mut self.scopes);
        let added = self.scope().add(name, columns, Source::Given);
        let added = added.and_then(|_| self.scope().add(alias.to_owned(), table_columns(table), Source::Given));
        let bound = added.and_then(|_| self.returning(items));
        self.scopes = scopes;
        let (outputs, mut exprs) = bound?;
        let layout: Vec<(usize, usize)> =
            (0..width).map(|column| (0, column)).chain((0..table.schema.len()).map(|column| (1, column))).collect();
        exprs.iter_mut().for_each(|expr| place(expr, &layout));
        Ok(Returning { outputs, exprs, beside: Vec::new() })
    }
}

/// Is it what stands for a clause that sqlparser does not know?
fn stands_for(action: &ast::MergeAction, name: &str) -> bool {
    match action {
        ast::MergeAction::Update(update) => match update.assignments.as_slice() {
            [ast::Assignment { target: ast::AssignmentTarget::ColumnName(column), .. }] => {
                matches!(column.0.as_slice(), [ast::ObjectNamePart::Identifier(own)] if own.value == name)
            }
            _ => false,
        },
        ast::MergeAction::Insert(insert) => match &insert.kind {
            ast::MergeInsertKind::Values(values) => match values.rows.as_slice() {
                [row] => matches!(row.content.as_slice(), [ast::Expr::Identifier(own)] if own.value == name),
                _ => false,
            },
            ast::MergeInsertKind::Row => false,
        },
        ast::MergeAction::Delete { .. } => false,
    }
}

fn when_of(clause: &ast::MergeClause) -> When {
    match clause.clause_kind {
        MergeClauseKind::Matched => When::Matched,
        MergeClauseKind::NotMatched | MergeClauseKind::NotMatchedByTarget => When::NotMatched,
        MergeClauseKind::NotMatchedBySource => When::NotMatchedBySource,
    }
}

/// Refuses a clause behind one without a condition, which takes all rows of its kind.
fn refuse_unreachable(clauses: &[ast::MergeClause]) -> SqlResult<()> {
    for (at, clause) in clauses.iter().enumerate() {
        let takes_all = |before: &ast::MergeClause| before.predicate.is_none() && when_of(before) == when_of(clause);
        if clauses[..at].iter().any(takes_all) {
            return Err(SqlError::syntax("unreachable WHEN clause specified after unconditional WHEN clause"));
        }
    }
    Ok(())
}

/// What the clauses may do with rows of the table.
fn reach(clauses: &[MergeClause], rules: &RowRules) -> Reach {
    let mut reach = Reach::default();
    for clause in clauses {
        match &clause.action {
            MergeAction::Insert(_) => reach.inserts = true,
            MergeAction::Nothing => {}
            MergeAction::Delete => reach.deletes = true,
            MergeAction::Update(columns, _) => {
                reach.updates.extend(columns.iter().copied().chain(rules.generated.iter().map(|(column, _)| *column)));
            }
        }
    }
    reach
}
