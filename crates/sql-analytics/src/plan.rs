//! Trees of nodes as physical plans of DataFusion.
//!
//! The order of joins is that of the tree. Of a join the side with fewer rows, by estimate, is hashed: as one, as long as it is small, else in as many parts as there are threads.
//! No rule of DataFusion's optimizers sees these plans: what they move past a condition might fail where the row executor does not.
//!
//! Invariant: a plan has one partition where rows have an order, or some of them are wanted.

use crate::arrays::{Builder, schema};
use crate::compute::Running;
use crate::expr::{column, physical};
use crate::keys::{AwaitedKeys, KeyNotes};
use crate::scan::{Awaited, Leaf, Source};
use crate::sums::Summing;
use crate::watch::Watched;
use arrow_array::RecordBatch;
use arrow_schema::{Schema, SortOptions};
use datafusion_common::{DataFusionError, JoinSide, JoinType as Type, NullEquality, Result, ScalarValue};
use datafusion_expr::AggregateUDF;
use datafusion_functions_aggregate::count::count_udaf;
use datafusion_functions_aggregate::min_max::{max_udaf, min_udaf};
use datafusion_physical_expr::aggregate::{AggregateExprBuilder, AggregateFunctionExpr};
use datafusion_physical_expr::expressions::Literal;
use datafusion_physical_expr::{LexOrdering, Partitioning, PhysicalExpr, PhysicalSortExpr};
use datafusion_physical_plan::aggregates::{AggregateExec, AggregateMode, PhysicalGroupBy};
use datafusion_physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion_physical_plan::filter::FilterExec;
use datafusion_physical_plan::joins::utils::{ColumnIndex, JoinFilter};
use datafusion_physical_plan::joins::{CrossJoinExec, HashJoinExec, NestedLoopJoinExec, PartitionMode};
use datafusion_physical_plan::limit::GlobalLimitExec;
use datafusion_physical_plan::projection::ProjectionExec;
use datafusion_physical_plan::repartition::RepartitionExec;
use datafusion_physical_plan::sorts::sort::SortExec;
use datafusion_physical_plan::sorts::sort_preserving_merge::SortPreservingMergeExec;
use datafusion_physical_plan::union::UnionExec;
use datafusion_physical_plan::{ExecutionPlan, ExecutionPlanProperties};
use pagefold_sql::analytics::{Aggregate, AggregateFunction, Join, JoinType, Kind, Node, Operation, Scalar, SortColumn};
use pagefold_types::Value;
use std::sync::Arc;

/// Rows, by estimate, up to which one side of a join is hashed as one.
const ROWS_AS_ONE: f64 = 1_000_000.0;

/// A hashed side tells its keys if it has, by estimate, no larger part than this of what it would have without conditions: else the other side loses little by them.
const PART_TOLD: f64 = 0.7;
/// And if it has, by estimate, not more rows.
const ROWS_TOLD: f64 = 4_000_000.0;

type Plan = Arc<dyn ExecutionPlan>;

/// Makes plans of one query.
pub(crate) struct Planner<'p> {
    pub(crate) running: &'p Running,
    pub(crate) threads: usize,
}

impl Planner<'_> {
    /// The plan of a whole query: of one partition.
    pub(crate) fn whole(&self, node: &Node) -> Result<Plan> {
        Ok(as_one(self.plan(node, Vec::new())?))
    }

    /// `awaited`: rows that have other keys than these in the columns that come out are of no use; not each scan that might goes by that.
    fn plan(&self, node: &Node, awaited: Awaited) -> Result<Plan> {
        Ok(match &node.operation {
            Operation::Scan(scan) => {
                let mut sources: Vec<Source> =
                    self.running.failure.of(scan.open(self.threads))?.into_iter().map(|scans| Source::Table(Box::new(scans))).collect();
                if sources.is_empty() {
                    sources.push(Source::Rows(RecordBatch::new_empty(schema(&node.kinds))));
                }
                Arc::new(Leaf::new(scan.name().to_owned(), &node.kinds, sources, self.running).with_keys(awaited))
            }
            Operation::Values(rows) => self.values(rows, &node.kinds)?,
            Operation::Filter { input, condition } => {
                let input = self.plan(input, awaited)?;
                Arc::new(FilterExec::try_new(self.expr(condition, &input.schema()), input)?)
            }
            Operation::Project { input, exprs } => {
                let awaited = behind(exprs, awaited);
                match (&input.operation, columns(exprs)) {
                    // Columns of pairs that nobody needs are not made.
                    (Operation::Join(join), Some(columns)) if !join.keys.is_empty() => self.join(join, Some(&columns), awaited)?,
                    _ => self.projected(self.plan(input, awaited)?, exprs)?,
                }
            }
            Operation::Join(join) => self.join(join, None, awaited)?,
            Operation::Aggregate { input, keys, aggregates } => {
                // Of groups that are of no use no row is needed.
                let input = self.plan(input, behind(keys, awaited))?;
                self.aggregate(input, keys, aggregates)?
            }
            Operation::Distinct(input) => {
                let keys: Vec<Scalar> = input.kinds.iter().enumerate().map(|(at, kind)| Scalar::Column(at, *kind)).collect();
                self.aggregate(self.plan(input, awaited)?, &keys, &[])?
            }
            Operation::Sort { input, keys, limit } => {
                // Rows that are of no use count among the first.
                let awaited = if limit.is_some() { Vec::new() } else { awaited };
                sorted(self.plan(input, awaited)?, keys, *limit)?
            }
            Operation::Limit { input, offset, rows } => {
                let number = |rows: u64| usize::try_from(rows).unwrap_or(usize::MAX);
                Arc::new(GlobalLimitExec::new(as_one(self.plan(input, Vec::new())?), number(*offset), rows.map(number)))
            }
            Operation::Union(first, second) => UnionExec::try_new(vec![self.plan(first, awaited.clone())?, self.plan(second, awaited)?])?,
        })
    }

    fn expr(&self, scalar: &Scalar, schema: &Schema) -> Arc<dyn PhysicalExpr> {
        physical(scalar, schema, self.running)
    }

    fn values(&self, rows: &[Vec<Value>], kinds: &[Kind]) -> Result<Plan> {
        let mut builders: Vec<Builder> = kinds.iter().map(|kind| Builder::new(*kind, rows.len())).collect();
        for row in rows {
            for (value, builder) in row.iter().zip(&mut builders) {
                builder.push(value.as_ref())?;
            }
        }
        let batch = RecordBatch::try_new(schema(kinds), builders.iter_mut().map(Builder::finish).collect())?;
        Ok(Arc::new(Leaf::new("values".into(), kinds, vec![Source::Rows(batch)], self.running)))
    }

    fn projected(&self, input: Plan, exprs: &[Scalar]) -> Result<Plan> {
        let schema = input.schema();
        let exprs: Vec<_> = exprs.iter().enumerate().map(|(at, expr)| (self.expr(expr, &schema), format!("c{at}"))).collect();
        Ok(Arc::new(ProjectionExec::try_new(exprs, input)?))
    }

    /// `wanted`: these of the columns that come out. `awaited` are of them all.
    fn join(&self, join: &Join, wanted: Option<&[usize]>, awaited: Awaited) -> Result<Plan> {
        // The left one is hashed.
        let swapped = !join.nulls_match && join.second.rows <= join.first.rows;
        let (first, second) = self.sides(join, swapped, awaited)?;
        let sides = if swapped { [JoinSide::Right, JoinSide::Left] } else { [JoinSide::Left, JoinSide::Right] };
        let widths = (join.first.kinds.len(), join.second.kinds.len());
        let filter = join.condition.as_ref().map(|condition| self.join_filter(condition, join, sides));
        let (left, right) = if swapped { (second, first) } else { (first, second) };
        let build_rows = if swapped { join.second.rows } else { join.first.rows };
        let kind = match (join.kind, swapped) {
            (JoinType::Inner, _) => Type::Inner,
            (JoinType::Full, _) => Type::Full,
            (JoinType::Left, false) => Type::Left,
            (JoinType::Left, true) => Type::Right,
            (JoinType::Semi, false) => Type::LeftSemi,
            (JoinType::Semi, true) => Type::RightSemi,
            (JoinType::Anti, false) => Type::LeftAnti,
            (JoinType::Anti, true) => Type::RightAnti,
        };
        let is_pair = matches!(join.kind, JoinType::Inner | JoinType::Left | JoinType::Full);
        // The columns of the first side come first.
        let turned = swapped && is_pair;
        let order: Option<Vec<usize>> = match (wanted, turned) {
            (None, false) => None,
            (None, true) => Some((widths.1..widths.1 + widths.0).chain(0..widths.1).collect()),
            (Some(wanted), false) => Some(wanted.to_vec()),
            (Some(wanted), true) => {
                Some(wanted.iter().map(|column| if *column < widths.0 { column + widths.1 } else { column - widths.0 }).collect())
            }
        };
        let plan: Plan = if join.keys.is_empty() {
            let plan: Plan = match (&filter, kind) {
                (None, Type::Inner) => Arc::new(CrossJoinExec::new(as_one(left), right)),
                _ => Arc::new(NestedLoopJoinExec::try_new(as_one(left), right, filter, &kind, None)?),
            };
            match order {
                Some(order) => picked(plan, &order)?,
                None => plan,
            }
        } else {
            let on = join.keys.iter().map(|(first, second)| if swapped { (second, first) } else { (first, second) });
            let (of_left, of_right) = (left.schema(), right.schema());
            let on: Vec<_> = on.map(|(own, other)| (self.expr(own, &of_left), self.expr(other, &of_right))).collect();
            let as_parts = self.threads > 1 && build_rows > ROWS_AS_ONE && !join.nulls_match;
            let (left, right, mode) = if as_parts {
                let (of_left, of_right) = on.iter().cloned().unzip();
                (self.by_hash(left, of_left)?, self.by_hash(right, of_right)?, PartitionMode::Partitioned)
            } else {
                (as_one(left), right, PartitionMode::CollectLeft)
            };
            let equality = if join.nulls_equal { NullEquality::NullEqualsNull } else { NullEquality::NullEqualsNothing };
            Arc::new(HashJoinExec::try_new(left, right, on, filter, &kind, order, mode, equality, join.nulls_match)?)
        };
        Ok(Arc::new(Watched::new(plan, self.running)))
    }

    /// Both sides: that which is hashed tells the other one its keys.
    fn sides(&self, join: &Join, swapped: bool, awaited: Awaited) -> Result<(Plan, Plan)> {
        let width = join.first.kinds.len();
        let (mut of_first, mut of_second): (Awaited, Awaited) = awaited.into_iter().partition(|(column, _)| *column < width);
        if join.kind == JoinType::Full {
            of_first.clear();
        }
        // Where the first side's rows come without a partner, one that is left out would let them.
        if join.kind != JoinType::Inner {
            of_second.clear();
        }
        of_second.iter_mut().for_each(|(column, _)| *column -= width);
        let notes = self.notes(join, swapped, if swapped { &mut of_first } else { &mut of_second });
        let (first, second) = (self.plan(&join.first, of_first)?, self.plan(&join.second, of_second)?);
        let notes: Vec<KeyNotes> = notes.into_iter().filter(KeyNotes::are_awaited).collect();
        let noted = |plan| -> Plan { Arc::new(Watched::new(plan, self.running).with_notes(notes.into_iter())) };
        Ok(if swapped { (first, noted(second)) } else { (noted(first), second) })
    }

    /// Keys of the hashed side that leave out rows of the other one.
    fn notes(&self, join: &Join, swapped: bool, awaited: &mut Awaited) -> Vec<KeyNotes> {
        // Rows of the other side that come without a partner are needed.
        let needs_partner = match join.kind {
            JoinType::Inner | JoinType::Semi => true,
            JoinType::Left | JoinType::Anti => !swapped,
            JoinType::Full => false,
        };
        let hashed = if swapped { &join.second } else { &join.first };
        if !needs_partner || join.nulls_match || join.nulls_equal || hashed.part > PART_TOLD || hashed.rows > ROWS_TOLD {
            return Vec::new();
        }
        let columns = join.keys.iter().filter_map(|(first, second)| match (first, second) {
            (Scalar::Column(first, Kind::Int), Scalar::Column(second, Kind::Int)) => Some((*first, *second)),
            _ => None,
        });
        let note = |(first, second): (usize, usize)| {
            let (own, other) = if swapped { (second, first) } else { (first, second) };
            let (notes, keys) = KeyNotes::new(own);
            awaited.push((other, keys));
            notes
        };
        columns.map(note).collect()
    }

    fn by_hash(&self, input: Plan, keys: Vec<Arc<dyn PhysicalExpr>>) -> Result<Plan> {
        Ok(Arc::new(RepartitionExec::try_new(input, Partitioning::Hash(keys, self.threads))?))
    }

    /// A condition of both sides: of the columns that it needs, as DataFusion puts them before it.
    fn join_filter(&self, condition: &Scalar, join: &Join, sides: [JoinSide; 2]) -> JoinFilter {
        let width = join.first.kinds.len();
        let (mut condition, mut needed) = (condition.clone(), Vec::new());
        condition.columns_mut(&mut |column| {
            let at = needed.iter().position(|needed| needed == column);
            *column = at.unwrap_or_else(|| {
                needed.push(*column);
                needed.len() - 1
            });
        });
        let all: Vec<Kind> = join.first.kinds.iter().chain(&join.second.kinds).copied().collect();
        let kinds: Vec<Kind> = needed.iter().filter_map(|column| all.get(*column).copied()).collect();
        let place = |column: &usize| match *column < width {
            true => ColumnIndex { index: *column, side: sides[0] },
            false => ColumnIndex { index: *column - width, side: sides[1] },
        };
        let places = needed.iter().map(place).collect();
        // One that is just a column is an expression of these, too.
        let schema = schema(&kinds);
        JoinFilter::new(self.expr(&condition, &schema), places, schema)
    }

    fn aggregate(&self, input: Plan, keys: &[Scalar], aggregates: &[Aggregate]) -> Result<Plan> {
        let input_schema = input.schema();
        let keys: Vec<_> = keys.iter().enumerate().map(|(at, key)| (self.expr(key, &input_schema), format!("c{at}"))).collect();
        let calls = aggregates.iter().enumerate().map(|(at, aggregate)| {
            let (function, argument): (Arc<AggregateUDF>, Arc<dyn PhysicalExpr>) = match (aggregate.function, &aggregate.argument) {
                (AggregateFunction::CountRows, _) | (_, None) => (count_udaf(), Arc::new(Literal::new(ScalarValue::Int64(Some(1))))),
                (AggregateFunction::Count, Some(of)) => (count_udaf(), self.expr(of, &input_schema)),
                (AggregateFunction::Min, Some(of)) => (min_udaf(), self.expr(of, &input_schema)),
                (AggregateFunction::Max, Some(of)) => (max_udaf(), self.expr(of, &input_schema)),
                (AggregateFunction::Sum | AggregateFunction::Average, Some(of)) => {
                    let summing = Summing::new(aggregate, &self.running.failure);
                    (Arc::new(AggregateUDF::new_from_impl(summing)), self.expr(of, &input_schema))
                }
            };
            let made =
                AggregateExprBuilder::new(function, vec![argument]).schema(Arc::clone(&input_schema)).alias(format!("a{at}")).build()?;
            Ok(Arc::new(made))
        });
        let calls = calls.collect::<Result<Vec<Arc<AggregateFunctionExpr>>>>()?;
        let filters = vec![None; calls.len()];
        let groups = PhysicalGroupBy::new_single(keys);
        if input.output_partitioning().partition_count() == 1 {
            return Ok(Arc::new(AggregateExec::try_new(AggregateMode::Single, groups, calls, filters, input, input_schema)?));
        }
        let count = groups.expr().len();
        let merging = groups.as_final();
        let partial: Plan = Arc::new(AggregateExec::try_new(
            AggregateMode::Partial,
            groups,
            calls.clone(),
            filters.clone(),
            input,
            Arc::clone(&input_schema),
        )?);
        let (partial, mode) = match count {
            0 => (as_one(partial), AggregateMode::Final),
            _ => {
                let schema = partial.schema();
                let columns = (0..count).map(|at| column(at, &schema)).collect();
                (self.by_hash(partial, columns)?, AggregateMode::FinalPartitioned)
            }
        };
        Ok(Arc::new(AggregateExec::try_new(mode, merging, calls, filters, partial, input_schema)?))
    }
}

/// Keys of columns that expressions are, by the columns of what these are made of.
fn behind(exprs: &[Scalar], awaited: Awaited) -> Awaited {
    let column = |(at, keys): (usize, AwaitedKeys)| match exprs.get(at) {
        Some(Scalar::Column(column, _)) => Some((*column, keys)),
        _ => None,
    };
    awaited.into_iter().filter_map(column).collect()
}

/// The numbers of columns, if these expressions are nothing else.
fn columns(exprs: &[Scalar]) -> Option<Vec<usize>> {
    exprs.iter().map(|expr| if let Scalar::Column(column, _) = expr { Some(*column) } else { None }).collect()
}

/// All partitions as one.
fn as_one(plan: Plan) -> Plan {
    match plan.output_partitioning().partition_count() {
        1 => plan,
        _ => Arc::new(CoalescePartitionsExec::new(plan)),
    }
}

fn picked(plan: Plan, columns: &[usize]) -> Result<Plan> {
    let schema = plan.schema();
    let exprs: Vec<_> = columns.iter().enumerate().map(|(at, from)| (column(*from, &schema), format!("c{at}"))).collect();
    Ok(Arc::new(ProjectionExec::try_new(exprs, plan)?))
}

fn sorted(input: Plan, keys: &[SortColumn], limit: Option<u64>) -> Result<Plan> {
    let schema = input.schema();
    let key = |key: &SortColumn| PhysicalSortExpr {
        expr: column(key.column, &schema),
        options: SortOptions { descending: key.descending, nulls_first: key.nulls_first },
    };
    let Some(order) = LexOrdering::new(keys.iter().map(key)) else {
        return Err(DataFusionError::Internal("an order by nothing".into()));
    };
    // No operator takes 0: where no row is wanted, whoever wants none takes none.
    let limit = limit.and_then(|limit| usize::try_from(limit).ok()).map(|limit| limit.max(1));
    let is_one = input.output_partitioning().partition_count() == 1;
    let sort: Plan = Arc::new(SortExec::new(order.clone(), input).with_preserve_partitioning(!is_one).with_fetch(limit));
    Ok(if is_one { sort } else { Arc::new(SortPreservingMergeExec::new(order, sort).with_fetch(limit)) })
}
