//! In which order relations are joined, and how.
//!
//! Relations that are joined by conditions alone are taken one after the other, the one next that leaves the fewest rows by estimate; one that an index finds rows of
//! is looked up for each row so far where that looks at fewer rows than reading it whole. Outer joins are joined as they are written.
//!
//! A query that needs values of relations before it (LATERAL) is joined when these are there.
//!
//! Invariant: a condition is asked as soon as all its relations are there; those with subqueries last. Conditions on the side of an outer join that may be NULL
//! are never asked below it.

use super::access::{Chosen, ROW_BY_INDEX_OF_PAIRS, Wanted, choose, needs_row};
use super::{Access, FilterPlan, HashPlan, JoinKind, LateralPlan, LookUpPlan, Plan, together};
use crate::bind::{From, Relation, Source};
use crate::catalog::TableRef;
use crate::expression::{Comparison, Expr};
use crate::{SqlError, SqlResult};
use std::sync::Arc;

/// Relations in one FROM.
const RELATIONS_MAX: usize = 64;
/// A row that is looked up costs as much as so many that are read and hashed.
const LOOK_UP: f64 = 6.0;

/// The side of a join that needs nothing of the row around its subquery is kept in memory, though it may be the larger one, up to so many rows.
const KEPT_ROWS_MAX: f64 = 200_000.0;

/// A set of relations, by number.
type Set = u64;

/// A condition, and the relations it needs.
#[derive(Clone, Debug)]
pub(super) struct Condition {
    expr: Expr,
    needs: Set,
    has_subquery: bool,
}

impl Condition {
    fn new(expr: Expr) -> Condition {
        let (mut needs, mut has_subquery) = (0, false);
        expr.visit(&mut |expr| match expr {
            Expr::Column { relation, .. } => needs |= 1 << relation.min(&63),
            expr if needs_row(expr) => has_subquery = true,
            _ => {}
        });
        Condition { expr, needs, has_subquery }
    }
}

/// Rows of some relations.
#[derive(Debug)]
pub(super) struct Joined {
    pub(super) plan: Plan,
    /// Which column is at which place: relation and column.
    pub(super) layout: Vec<(usize, usize)>,
    pub(super) rows: f64,
    set: Set,
    /// They come in the order that was asked for.
    pub(super) is_ordered: bool,
}

/// Whoever joins the relations of one FROM.
pub(super) struct Joining<'j> {
    pub(super) relations: &'j [Relation],
    /// Wanted order of rows, if there is one relation.
    pub(super) order: &'j [(usize, bool)],
    pub(super) few: bool,
}

/// Puts places in the place of columns.
pub(crate) fn place(expr: &mut Expr, layout: &[(usize, usize)]) {
    expr.rewrite(&mut |expr| {
        if let Expr::Column { relation, column } = expr
            && let Some(slot) = layout.iter().position(|own| *own == (*relation, *column))
        {
            *expr = Expr::Slot(slot);
        }
    });
}

fn placed(expr: &Expr, layout: &[(usize, usize)]) -> Expr {
    let mut expr = expr.clone();
    place(&mut expr, layout);
    expr
}

impl Joining<'_> {
    /// Joins all of FROM; also the conditions with subqueries, which are left to be asked, in terms of what is joined.
    pub(super) fn join(&self, from: Vec<From>, conditions: Vec<Expr>) -> SqlResult<(Joined, Vec<Expr>)> {
        if self.relations.len() > RELATIONS_MAX {
            return Err(SqlError::new("54001", format!("more than {RELATIONS_MAX} relations in FROM")));
        }
        let mut conditions: Vec<Condition> = conditions.into_iter().map(Condition::new).collect();
        let from = from.into_iter().map(|item| simplified(item, &conditions)).collect();
        let joined = self.inner(from, &mut conditions)?;
        let (with_subqueries, rest): (Vec<Condition>, Vec<Condition>) =
            conditions.into_iter().partition(|condition| condition.has_subquery);
        let all = |conditions: Vec<Condition>| {
            conditions.into_iter().map(|condition| placed(&condition.expr, &joined.layout)).collect::<Vec<Expr>>()
        };
        // Those of no relation, too: they are asked of each row.
        let (with_subqueries, rest) = (all(with_subqueries), all(rest));
        Ok((Joined { plan: joined.plan.filtered(rest), ..joined }, with_subqueries))
    }

    /// Items that are joined by conditions alone.
    fn inner(&self, from: Vec<From>, conditions: &mut Vec<Condition>) -> SqlResult<Joined> {
        let mut items = Vec::new();
        for item in from {
            flatten(item, &mut items, conditions);
        }
        let is_alone = items.len() == 1;
        let mut waiting: Vec<Item> = Vec::with_capacity(items.len());
        for item in items {
            waiting.push(match item {
                From::Relation(relation) => Item::Relation(relation),
                From::Join { kind, left, right, on } => Item::Joined(self.outer(kind, *left, *right, on, conditions)?),
            });
        }
        if waiting.is_empty() {
            let one_row = Plan::values(vec![Vec::new()]);
            return Ok(Joined { plan: one_row, layout: Vec::new(), rows: 1.0, set: 0, is_ordered: true });
        }
        // The one with the fewest rows is the first.
        let estimate = |item: &Item| match item {
            Item::Joined(joined) => joined.rows,
            Item::Relation(relation) if self.needs_before(*relation) != 0 => f64::INFINITY,
            Item::Relation(relation) => self.estimate(*relation, conditions),
        };
        let first = least(&waiting, estimate);
        let first = self.first_of_two(&waiting, first, conditions).unwrap_or(first);
        let mut joined = match waiting.swap_remove(first) {
            Item::Joined(joined) => joined,
            Item::Relation(relation) if self.needs_before(relation) != 0 => return Err(no_lateral()),
            Item::Relation(relation) => self.relation(relation, conditions, is_alone),
        };
        self.ask(&mut joined, conditions);
        while !waiting.is_empty() {
            let connected: Vec<bool> = waiting.iter().map(|item| is_connected(&joined, item, conditions)).collect();
            let is_ready = |item: &Item| match item {
                Item::Joined(_) => true,
                Item::Relation(relation) => self.needs_before(*relation) & !joined.set == 0,
            };
            let any = (connected.iter().zip(&waiting)).any(|(connected, item)| *connected && is_ready(item));
            let after = |at: usize| match (any && !connected[at], &waiting[at]) {
                (_, item) if !is_ready(item) => f64::INFINITY,
                // All else that is not connected comes before what is not ready.
                (true, _) => f64::MAX,
                (_, Item::Joined(other)) => joined.rows.max(other.rows),
                (_, Item::Relation(relation)) => self.estimate_joined(&joined, *relation, conditions),
            };
            let next = (0..waiting.len()).min_by(|a, b| after(*a).total_cmp(&after(*b))).unwrap_or(0);
            let rows = after(next);
            if !is_ready(&waiting[next]) {
                return Err(no_lateral());
            }
            joined = match waiting.swap_remove(next) {
                Item::Joined(other) => self.hash(JoinKind::Inner, joined, other, Vec::new(), conditions),
                Item::Relation(relation) if self.needs_before(relation) != 0 => {
                    let own = take(conditions, |condition| is_of(condition, relation));
                    self.lateral(JoinKind::Inner, joined, relation, own, Vec::new())?
                }
                Item::Relation(relation) => self.add(joined, relation, conditions),
            };
            if rows < f64::MAX {
                joined.rows = rows;
            }
            self.ask(&mut joined, conditions);
        }
        Ok(joined)
    }

    /// Of two tables without an equality between them, the one for whose rows an index finds those of the other, if there is one; `first`: where it is the same.
    fn first_of_two(&self, waiting: &[Item], first: usize, conditions: &[Condition]) -> Option<usize> {
        let [Item::Relation(a), Item::Relation(b)] = *waiting else { return None };
        if conditions.iter().any(|condition| hash_keys(&condition.expr, 1 << a, 1 << b).is_some()) {
            return None;
        }
        [first, 1 - first].into_iter().find(|at| {
            let (outer, inner) = if *at == 0 { (a, b) } else { (b, a) };
            let (Source::Table(_), Source::Table(table)) = (&self.relations[outer].source, &self.relations[inner].source) else {
                return false;
            };
            let mut own = conditions.to_vec();
            let joined = self.relation(outer, &mut own, false);
            self.look_up(&joined, inner, table, &own).is_some()
        })
    }

    /// One side of an outer join, of which all conditions are asked before the join is made.
    fn side(&self, from: From, mut conditions: Vec<Condition>) -> SqlResult<Joined> {
        let joined = self.inner(vec![from], &mut conditions)?;
        let rest = conditions.into_iter().map(|condition| placed(&condition.expr, &joined.layout)).collect();
        Ok(Joined { plan: joined.plan.filtered(rest), ..joined })
    }

    /// Asks conditions for which all is there.
    fn ask(&self, joined: &mut Joined, conditions: &mut Vec<Condition>) {
        let ready = |condition: &Condition| condition.needs & !joined.set == 0 && !condition.has_subquery && condition.needs != 0;
        let asked = take(conditions, ready);
        if asked.is_empty() {
            return;
        }
        let asked = asked.iter().map(|condition| placed(&condition.expr, &joined.layout)).collect();
        joined.plan = std::mem::take(&mut joined.plan).filtered(asked);
    }

    /// Rows of a relation by itself, by estimate.
    fn estimate(&self, relation: usize, conditions: &[Condition]) -> f64 {
        match &self.relations[relation].source {
            Source::Table(table) => self.choose(relation, table, conditions, 0, false).rows,
            Source::Plan(plan) => {
                let own: Vec<&Condition> = conditions.iter().filter(|condition| is_of(condition, relation)).collect();
                if own.is_empty() { rows_of(plan) } else { rows_of(&plan.clone().asking(self.placed_alone(relation, own))) }
            }
            Source::Lateral(plan, _) => rows_of(plan),
            Source::Given => 1.0,
        }
    }

    /// Rows after a relation has joined.
    fn estimate_joined(&self, joined: &Joined, relation: usize, conditions: &[Condition]) -> f64 {
        let alone = self.estimate(relation, conditions);
        match &self.relations[relation].source {
            Source::Table(table) => {
                let by = self.choose(relation, table, conditions, joined.set, false);
                // Of what is looked up, as many rows for each as are found; never more than all pairs.
                (joined.rows * by.rows).min(joined.rows * alone).max(1.0)
            }
            _ => joined.rows.max(alone),
        }
    }

    fn wanted<'w>(&'w self, relation: usize, table: &'w Arc<TableRef>, conditions: &[Condition], known: Set, ordered: bool) -> Wanted<'w> {
        let own = 1 << relation;
        let mine = |condition: &&Condition| condition.needs & own != 0 && condition.needs & !(own | known) == 0 && !condition.has_subquery;
        Wanted {
            table,
            relation,
            columns: self.relations[relation].used.iter().copied().collect(),
            tests: Vec::new(),
            conditions: conditions.iter().filter(mine).map(|condition| condition.expr.clone()).collect(),
            relations: self.relations,
            order: if ordered { self.order } else { &[] },
            few: self.few,
            pairs: false,
        }
    }

    fn choose(&self, relation: usize, table: &Arc<TableRef>, conditions: &[Condition], known: Set, ordered: bool) -> Chosen {
        choose(&self.wanted(relation, table, conditions, known, ordered))
    }

    /// A relation by itself, with its conditions.
    fn relation(&self, relation: usize, conditions: &mut Vec<Condition>, is_alone: bool) -> Joined {
        let own: Set = 1 << relation;
        let layout: Vec<(usize, usize)> = self.relations[relation].used.iter().map(|column| (relation, *column)).collect();
        match &self.relations[relation].source {
            Source::Table(table) => {
                let wanted = self.wanted(relation, table, conditions, 0, is_alone);
                let chosen = choose(&wanted);
                let (rows, is_ordered) = (chosen.rows, chosen.is_ordered);
                let scan = chosen.scan(&wanted, &mut |_| {}, &mut |expr| place(expr, &layout));
                take(conditions, |condition| is_of(condition, relation));
                Joined { plan: Plan::Scan(Arc::new(scan)), layout, rows, set: own, is_ordered }
            }
            source => {
                let asked = take(conditions, |condition| is_of(condition, relation));
                let asked = self.placed_alone(relation, asked.iter());
                let plan = match source {
                    Source::Plan(plan) => plan.clone().asking(asked),
                    // Its row is the first that whoever runs the statement gives.
                    _ => Plan::values(vec![Vec::new()]).filtered(asked),
                };
                let rows = rows_of(&plan);
                let layout = self.layout_alone(relation);
                Joined { plan, layout, rows, set: own, is_ordered: self.order.is_empty() }
            }
        }
    }

    /// Where the columns of a query in FROM are. All come; those that are not needed go with the next projection.
    fn layout_alone(&self, relation: usize) -> Vec<(usize, usize)> {
        (0..self.relations[relation].columns.len()).map(|column| (relation, column)).collect()
    }

    fn placed_alone<'c>(&self, relation: usize, conditions: impl IntoIterator<Item = &'c Condition>) -> Vec<Expr> {
        let layout = self.layout_alone(relation);
        conditions.into_iter().map(|condition| placed(&condition.expr, &layout)).collect()
    }

    /// What has to be there before this relation is joined.
    fn needs_before(&self, relation: usize) -> Set {
        match &self.relations[relation].source {
            Source::Lateral(_, outer) => outer.iter().map(needs).fold(0, |all, one| all | one),
            _ => 0,
        }
    }

    /// Joins a query that needs values of what is there; `on` are conditions of both.
    fn lateral(&self, kind: JoinKind, joined: Joined, relation: usize, own: Vec<Condition>, on: Vec<Condition>) -> SqlResult<Joined> {
        let Source::Lateral(plan, outer) = &self.relations[relation].source else { return Err(no_lateral()) };
        if self.needs_before(relation) & !joined.set != 0 {
            return Err(no_lateral());
        }
        // Within the query, the outer row is its own.
        let (above, within): (Vec<Condition>, Vec<Condition>) =
            own.into_iter().partition(|condition| condition.expr.any(|part| matches!(part, Expr::Outer(_))));
        let second = plan.clone().asking(self.placed_alone(relation, &within));
        let rows = (joined.rows * rows_of(&second)).max(1.0);
        let outer = outer.iter().map(|expr| placed(expr, &joined.layout)).collect();
        let own = self.layout_alone(relation);
        let widths = (joined.layout.len(), own.len());
        let mut layout = joined.layout;
        layout.extend(own);
        let condition = together(above.iter().chain(&on).map(|condition| placed(&condition.expr, &layout)).collect());
        let plan = LateralPlan { kind, first: joined.plan, second, outer, condition, widths };
        Ok(Joined { plan: Plan::Lateral(Arc::new(plan)), layout, rows, set: joined.set | 1 << relation, is_ordered: false })
    }

    /// Joins a relation to those that are there.
    fn add(&self, joined: Joined, relation: usize, conditions: &mut Vec<Condition>) -> Joined {
        if let Source::Table(table) = &self.relations[relation].source
            && let Some((wanted, chosen)) = self.look_up(&joined, relation, table, conditions)
        {
            let own: Set = 1 << relation;
            let known = joined.set;
            take(conditions, |c| c.needs & own != 0 && c.needs & !(own | known) == 0 && !c.has_subquery);
            return self.looked_up(JoinKind::Inner, joined, relation, &wanted, chosen, Vec::new());
        }
        let other = self.relation(relation, conditions, false);
        self.hash(JoinKind::Inner, joined, other, Vec::new(), conditions)
    }

    /// Is it better to look rows of a table up for each row that is there?
    fn look_up<'w>(
        &'w self,
        joined: &Joined,
        relation: usize,
        table: &'w Arc<TableRef>,
        conditions: &[Condition],
    ) -> Option<(Wanted<'w>, Chosen)> {
        // Where nothing is equal on both sides, all pairs would be looked at instead.
        let own: Set = 1 << relation;
        let pairs = !conditions.iter().any(|condition| hash_keys(&condition.expr, joined.set, own).is_some());
        let wanted = Wanted { pairs, ..self.wanted(relation, table, conditions, joined.set, false) };
        let chosen = choose(&wanted);
        if chosen.access == Access::Pages {
            return None;
        }
        let by_tests_of_others = chosen.tests.iter().any(|test| test.values().into_iter().any(|value| needs(value) & joined.set != 0));
        let each = match chosen.access {
            Access::Unique { .. } => 1.0,
            _ => chosen.looked_at,
        };
        let alone = self.choose(relation, table, conditions, 0, false);
        let (cost, others) = if pairs { (ROW_BY_INDEX_OF_PAIRS, joined.rows * alone.rows) } else { (LOOK_UP, joined.rows) };
        (by_tests_of_others && joined.rows * each.max(1.0) * cost < alone.looked_at + others).then_some((wanted, chosen))
    }

    fn looked_up(&self, kind: JoinKind, joined: Joined, relation: usize, wanted: &Wanted<'_>, chosen: Chosen, on: Vec<Expr>) -> Joined {
        let own: Vec<(usize, usize)> = wanted.columns.iter().map(|column| (relation, *column)).collect();
        let mut layout = joined.layout.clone();
        layout.extend(own.iter().copied());
        let mut chosen = chosen;
        // What is left of the conditions is asked of both rows together.
        let mut rest: Vec<Expr> = std::mem::take(&mut chosen.rest);
        rest.extend(on);
        rest.iter_mut().for_each(|expr| place(expr, &layout));
        let rows = (joined.rows * chosen.rows).max(1.0);
        let scan = chosen.scan(wanted, &mut |expr| place(expr, &joined.layout), &mut |expr| place(expr, &own));
        let (first, width) = (joined.plan, joined.layout.len());
        let plan = LookUpPlan { kind, first, second: Arc::new(scan), width, condition: together(rest) };
        Joined { plan: Plan::LookUp(Arc::new(plan)), layout, rows, set: joined.set | 1 << relation, is_ordered: false }
    }

    /// Joins two by equal keys, or all pairs; `on` are conditions of both.
    fn hash(&self, kind: JoinKind, first: Joined, second: Joined, on: Vec<Condition>, conditions: &mut Vec<Condition>) -> Joined {
        let set = first.set | second.set;
        let mut asked = on;
        if kind == JoinKind::Inner {
            asked.extend(take(conditions, |condition| {
                condition.needs & !set == 0
                    && !condition.has_subquery
                    && condition.needs & first.set != 0
                    && condition.needs & second.set != 0
            }));
        }
        // The larger side is not kept in memory, where it does not matter which is which. Of a subquery of the row, one side alone may need the row: then the other one is, for all rows around.
        let swaps = kind == JoinKind::Inner
            && match (first.plan.is_constant(), second.plan.is_constant()) {
                (true, false) if first.rows <= KEPT_ROWS_MAX => true,
                (false, true) if second.rows <= KEPT_ROWS_MAX => false,
                _ => second.rows > first.rows,
            };
        let (first, second) = if swaps { (second, first) } else { (first, second) };
        let (mut first_keys, mut second_keys, mut rest) = (Vec::new(), Vec::new(), Vec::new());
        for condition in asked {
            if let Some((of_first, of_second)) = hash_keys(&condition.expr, first.set, second.set) {
                first_keys.push(placed(of_first, &first.layout));
                second_keys.push(placed(of_second, &second.layout));
                continue;
            }
            rest.push(condition.expr);
        }
        let widths = (first.layout.len(), second.layout.len());
        let mut layout = first.layout;
        layout.extend(second.layout);
        rest.iter_mut().for_each(|expr| place(expr, &layout));
        let rows = if first_keys.is_empty() { first.rows * second.rows } else { first.rows.max(second.rows) };
        let plan = HashPlan {
            kind,
            first: first.plan,
            second: second.plan,
            first_keys,
            second_keys,
            condition: together(rest),
            widths,
            nulls_match: false,
        };
        Joined { plan: Plan::Hash(Arc::new(plan)), layout, rows, set, is_ordered: false }
    }

    /// An outer join as it is written.
    fn outer(&self, kind: JoinKind, left: From, right: From, on: Vec<Expr>, conditions: &mut Vec<Condition>) -> SqlResult<Joined> {
        let (of_left, of_right) = (set_of(&left), set_of(&right));
        let on: Vec<Condition> = on.into_iter().map(Condition::new).collect();
        // Conditions of WHERE on the side that is kept are asked before.
        let first_conditions = match kind {
            JoinKind::Left => take(conditions, |c| c.needs & !of_left == 0 && c.needs != 0 && !c.has_subquery),
            _ => Vec::new(),
        };
        let first = self.side(left, first_conditions)?;
        // Conditions of ON on the other side choose its rows.
        let (second_conditions, on): (Vec<Condition>, Vec<Condition>) = match kind {
            JoinKind::Left => on.into_iter().partition(|c| c.needs & !of_right == 0 && c.needs != 0 && !c.has_subquery),
            _ => (Vec::new(), on),
        };
        if kind == JoinKind::Left
            && let From::Relation(relation) = right
            && let Source::Table(table) = &self.relations[relation].source
        {
            let known = first.set;
            let own: Set = 1 << relation;
            let mut all = second_conditions;
            let (usable, rest): (Vec<Condition>, Vec<Condition>) =
                on.into_iter().partition(|c| c.needs & own != 0 && c.needs & !(own | known) == 0 && !c.has_subquery);
            let count = all.len();
            all.extend(usable);
            if let Some((wanted, chosen)) = self.look_up(&first, relation, table, &all) {
                let rest = rest.into_iter().map(|condition| condition.expr).collect();
                let rows = first.rows;
                let joined = self.looked_up(kind, first, relation, &wanted, chosen, rest);
                return Ok(Joined { rows: joined.rows.max(rows), ..joined });
            }
            let mut on = all.split_off(count);
            on.extend(rest);
            let second = self.side(From::Relation(relation), all)?;
            return Ok(self.hash(kind, first, second, on, conditions));
        }
        if kind == JoinKind::Left
            && let From::Relation(relation) = right
            && self.needs_before(relation) != 0
        {
            return self.lateral(kind, first, relation, second_conditions, on);
        }
        let second = self.side(right, second_conditions)?;
        Ok(self.hash(kind, first, second, on, conditions))
    }
}

/// What has to be equal on both sides of a join, if that is what the condition says.
fn hash_keys(condition: &Expr, first: Set, second: Set) -> Option<(&Expr, &Expr)> {
    let Expr::Compare { comparison: Comparison::Equal, left, right } = condition else { return None };
    let (of_left, of_right) = (needs(left), needs(right));
    let within = |needs: Set, set: Set| needs != 0 && needs & !set == 0;
    if within(of_left, first) && within(of_right, second) {
        return Some((left, right));
    }
    (within(of_right, first) && within(of_left, second)).then_some((right, left))
}

fn no_lateral() -> SqlError {
    SqlError::unsupported("LATERAL within an outer join that has not what it needs on its own side")
}

enum Item {
    Relation(usize),
    Joined(Joined),
}

/// Inner joins within each other become a list of items, their conditions some of all.
fn flatten(from: From, items: &mut Vec<From>, conditions: &mut Vec<Condition>) {
    match from {
        From::Join { kind: JoinKind::Inner, left, right, on } => {
            conditions.extend(on.into_iter().map(Condition::new));
            flatten(*left, items, conditions);
            flatten(*right, items, conditions);
        }
        other => items.push(other),
    }
}

/// A left join is an inner one where a condition asked behind it is not true of the rows it would add.
fn simplified(from: From, conditions: &[Condition]) -> From {
    let From::Join { kind, left, right, on } = from else { return from };
    let right_set = set_of(&right);
    let adds_none = || conditions.iter().any(|condition| refuses_nulls(&condition.expr, right_set));
    let kind = if kind == JoinKind::Left && adds_none() { JoinKind::Inner } else { kind };
    let (left, right) = match kind {
        JoinKind::Inner => {
            let (own, more): (Vec<Condition>, Vec<Condition>) = (on.iter().cloned().map(Condition::new).collect(), conditions.to_vec());
            let all = [own, more].concat();
            (simplified(*left, &all), simplified(*right, &all))
        }
        // What is asked behind it is not asked of the rows of its other side.
        JoinKind::Left => (simplified(*left, conditions), *right),
        _ => (*left, *right),
    };
    From::Join { kind, left: Box::new(left), right: Box::new(right), on }
}

/// Is a condition not true when all columns of these relations are NULL?
fn refuses_nulls(condition: &Expr, of: Set) -> bool {
    match condition {
        Expr::And(terms) => terms.iter().any(|term| refuses_nulls(term, of)),
        Expr::Or(terms) => terms.iter().all(|term| refuses_nulls(term, of)),
        Expr::Compare { left, right, .. } => is_null_with(left, of) || is_null_with(right, of),
        Expr::In { of: tested, .. } | Expr::Like { of: tested, .. } => is_null_with(tested, of),
        Expr::IsNull { of: tested, negated: true } => is_null_with(tested, of),
        column => is_null_with(column, of),
    }
}

/// Is a value NULL when all columns of these relations are?
fn is_null_with(expr: &Expr, of: Set) -> bool {
    match expr {
        Expr::Column { relation, .. } => of & 1 << (*relation).min(63) != 0,
        Expr::Cast { of: inner, .. } | Expr::Negate { of: inner, .. } | Expr::Not(inner) => is_null_with(inner, of),
        Expr::Arithmetic { left, right, .. } => is_null_with(left, of) || is_null_with(right, of),
        _ => false,
    }
}

fn set_of(from: &From) -> Set {
    match from {
        From::Relation(relation) => 1 << (*relation).min(63),
        From::Join { left, right, .. } => set_of(left) | set_of(right),
    }
}

fn needs(expr: &Expr) -> Set {
    Condition::new(expr.clone()).needs
}

fn is_connected(joined: &Joined, item: &Item, conditions: &[Condition]) -> bool {
    let own = match item {
        Item::Relation(relation) => 1 << relation,
        Item::Joined(other) => other.set,
    };
    conditions.iter().any(|condition| {
        let is_equality = matches!(condition.expr, Expr::Compare { comparison: Comparison::Equal, .. });
        is_equality && condition.needs & own != 0 && condition.needs & joined.set != 0 && condition.needs & !(own | joined.set) == 0
    })
}

/// Can a condition be asked of the rows of one relation?
fn is_of(condition: &Condition, relation: usize) -> bool {
    condition.needs == 1 << relation && !condition.has_subquery
}

fn take(conditions: &mut Vec<Condition>, is_taken: impl Fn(&Condition) -> bool) -> Vec<Condition> {
    let (taken, left) = std::mem::take(conditions).into_iter().partition(is_taken);
    *conditions = left;
    taken
}

fn least<T>(items: &[T], weight: impl Fn(&T) -> f64) -> usize {
    (0..items.len()).min_by(|a, b| weight(&items[*a]).total_cmp(&weight(&items[*b]))).unwrap_or(0)
}

/// Rows of a plan, by estimate.
pub(crate) fn rows_of(plan: &Plan) -> f64 {
    match plan {
        Plan::Values(rows) => rows.len() as f64,
        Plan::Series(_) | Plan::System(_) => 1000.0,
        Plan::Scan(scan) => scan.rows,
        Plan::Filter(filter) => {
            let FilterPlan { input, .. } = &**filter;
            (rows_of(input) * 0.3).max(1.0)
        }
        Plan::Project(project) => rows_of(&project.input),
        Plan::Within(within) => rows_of(&within.input),
        Plan::LookUp(look_up) => rows_of(&look_up.first) * look_up.second.rows.max(1.0),
        Plan::Hash(hash) => {
            let (first, second) = (rows_of(&hash.first), rows_of(&hash.second));
            if hash.first_keys.is_empty() { first * second } else { first.max(second) }
        }
        Plan::Lateral(lateral) => rows_of(&lateral.first) * rows_of(&lateral.second).max(1.0),
        Plan::Expand(expand) => rows_of(&expand.input) * expand.sets.len() as f64,
        Plan::Aggregate(aggregate) => {
            if aggregate.keys.is_empty() {
                1.0
            } else {
                (rows_of(&aggregate.input) * 0.1).max(1.0)
            }
        }
        Plan::Count(_) => 1.0,
        Plan::Distinct(input) => rows_of(input) * 0.5,
        Plan::FirstOfEach(first) => rows_of(&first.input) * 0.5,
        Plan::Window(window) => rows_of(&window.input),
        Plan::Sort(sort) => rows_of(&sort.input),
        Plan::Cut(cut) => rows_of(&cut.input),
        Plan::Limit(limit) => match &limit.limit.limit {
            Some(Expr::Literal(pagefold_types::Value::Int(rows))) => rows_of(&limit.input).min(*rows as f64),
            _ => rows_of(&limit.input),
        },
        // As many steps as nobody knows.
        Plan::Recursive(recursive) => rows_of(&recursive.first) * 100.0,
        Plan::Step(_) | Plan::Kept(_) => 100.0,
        Plan::Shared(shared) => rows_of(&shared.input),
        Plan::Set(set) => rows_of(&set.first) + rows_of(&set.second),
    }
}
