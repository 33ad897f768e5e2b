//! SUM and AVG of integers and decimals: added up in 128 bits, and made what SQL says at the end.
//!
//! Invariant: nothing wraps. A sum that leaves 128 bits on the way is an error, and so is one that is none of its type in the end.

use crate::arrays::{Builder, data_type};
use crate::failure::Failure;
use arrow_array::cast::AsArray;
use arrow_array::types::{Decimal128Type, Int64Type};
use arrow_array::{Array, ArrayRef, BooleanArray, Decimal128Array, Int64Array};
use arrow_buffer::NullBuffer;
use arrow_schema::{DataType, Field, FieldRef};
use datafusion_common::{DataFusionError, Result, ScalarValue};
use datafusion_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion_expr::{Accumulator, AggregateUDFImpl, EmitTo, GroupsAccumulator, Signature, Volatility};
use pagefold_sql::analytics::{Aggregate, Kind};
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// SUM or AVG, as one of a query has it.
#[derive(Clone, Debug)]
pub(crate) struct Summing {
    aggregate: Arc<Aggregate>,
    failure: Failure,
    signature: Signature,
}

impl Summing {
    pub(crate) fn new(aggregate: &Aggregate, failure: &Failure) -> Summing {
        Summing { aggregate: Arc::new(aggregate.clone()), failure: failure.clone(), signature: Signature::any(1, Volatility::Immutable) }
    }

    fn finish(&self, builder: &mut Builder, sum: i128, count: i64) -> Result<()> {
        builder.push(self.failure.of(self.aggregate.finish(sum, count))?.as_ref())
    }
}

impl PartialEq for Summing {
    fn eq(&self, other: &Summing) -> bool {
        Arc::ptr_eq(&self.aggregate, &other.aggregate)
    }
}

impl Eq for Summing {}

impl Hash for Summing {
    fn hash<H: Hasher>(&self, state: &mut H) {
        Arc::as_ptr(&self.aggregate).hash(state);
    }
}

impl AggregateUDFImpl for Summing {
    fn name(&self) -> &str {
        "added_up"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(data_type(self.aggregate.kind))
    }

    fn accumulator(&self, _: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        Ok(Box::new(One { of: self.clone(), sum: 0, count: 0 }))
    }

    fn state_fields(&self, args: StateFieldsArgs<'_>) -> Result<Vec<FieldRef>> {
        let field = |what: &str, data_type| Arc::new(Field::new(format!("{}[{what}]", args.name), data_type, true));
        Ok(vec![field("sum", data_type(Kind::Decimal)), field("count", DataType::Int64)])
    }

    fn groups_accumulator_supported(&self, _: AccumulatorArgs<'_>) -> bool {
        true
    }

    fn create_groups_accumulator(&self, _: AccumulatorArgs<'_>) -> Result<Box<dyn GroupsAccumulator>> {
        Ok(Box::new(Many { of: self.clone(), sums: Vec::new(), counts: Vec::new() }))
    }
}

/// Shows each number of an array that is not NULL.
#[inline]
fn numbers(array: &ArrayRef, each: impl FnMut(usize, i128) -> Result<()>) -> Result<()> {
    match array.data_type() {
        DataType::Int64 => there(array.as_primitive::<Int64Type>().values().iter().map(|value| i128::from(*value)), array.nulls(), each),
        DataType::Decimal128(..) => there(array.as_primitive::<Decimal128Type>().values().iter().copied(), array.nulls(), each),
        other => Err(DataFusionError::Internal(format!("a sum of {other}"))),
    }
}

#[inline]
fn there(values: impl Iterator<Item = i128>, nulls: Option<&NullBuffer>, mut each: impl FnMut(usize, i128) -> Result<()>) -> Result<()> {
    match nulls.filter(|nulls| nulls.null_count() > 0) {
        None => values.enumerate().try_for_each(|(row, value)| each(row, value)),
        Some(nulls) => values.enumerate().filter(|(row, _)| nulls.is_valid(*row)).try_for_each(|(row, value)| each(row, value)),
    }
}

fn sums(numbers: Vec<i128>) -> ArrayRef {
    Arc::new(Decimal128Array::new(numbers.into(), None).with_data_type(data_type(Kind::Decimal)))
}

fn column(values: &[ArrayRef], at: usize) -> Result<&ArrayRef> {
    values.get(at).ok_or_else(|| DataFusionError::Internal("a sum of nothing".into()))
}

/// Of all rows.
#[derive(Debug)]
struct One {
    of: Summing,
    sum: i128,
    count: i64,
}

impl One {
    fn add(&mut self, number: i128) -> Result<()> {
        self.sum = self.sum.checked_add(number).ok_or_else(|| self.of.failure.keep(Aggregate::overflow()))?;
        Ok(())
    }
}

impl Accumulator for One {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let values = column(values, 0)?;
        self.count += (values.len() - values.null_count()) as i64;
        numbers(values, |_, number| self.add(number))
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        numbers(column(states, 0)?, |_, number| self.add(number))?;
        self.count += column(states, 1)?.as_primitive::<Int64Type>().values().iter().sum::<i64>();
        Ok(())
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Ok(vec![ScalarValue::try_from_array(&sums(vec![self.sum]), 0)?, ScalarValue::Int64(Some(self.count))])
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let mut builder = Builder::new(self.of.aggregate.kind, 1);
        self.of.finish(&mut builder, self.sum, self.count)?;
        ScalarValue::try_from_array(&builder.finish(), 0)
    }

    fn size(&self) -> usize {
        size_of::<One>()
    }
}

/// Of each group.
#[derive(Debug)]
struct Many {
    of: Summing,
    sums: Vec<i128>,
    counts: Vec<i64>,
}

impl Many {
    fn grow(&mut self, groups: usize) {
        self.sums.resize(groups, 0);
        self.counts.resize(groups, 0);
    }
}

impl GroupsAccumulator for Many {
    fn update_batch(&mut self, values: &[ArrayRef], groups: &[usize], filter: Option<&BooleanArray>, total: usize) -> Result<()> {
        self.grow(total);
        let Many { of, sums, counts } = self;
        let is_in = |row: usize| filter.is_none_or(|filter| filter.is_valid(row) && filter.value(row));
        numbers(column(values, 0)?, |row, number| {
            if is_in(row) {
                let group = groups[row];
                sums[group] = sums[group].checked_add(number).ok_or_else(|| of.failure.keep(Aggregate::overflow()))?;
                counts[group] += 1;
            }
            Ok(())
        })
    }

    fn merge_batch(&mut self, values: &[ArrayRef], groups: &[usize], total: usize) -> Result<()> {
        self.grow(total);
        let Many { of, sums, counts } = self;
        let more = column(values, 1)?.as_primitive::<Int64Type>().values();
        numbers(column(values, 0)?, |row, number| {
            let group = groups[row];
            sums[group] = sums[group].checked_add(number).ok_or_else(|| of.failure.keep(Aggregate::overflow()))?;
            counts[group] += more[row];
            Ok(())
        })
    }

    fn evaluate(&mut self, emit_to: EmitTo) -> Result<ArrayRef> {
        let (sums, counts) = (emit_to.take_needed(&mut self.sums), emit_to.take_needed(&mut self.counts));
        let mut builder = Builder::new(self.of.aggregate.kind, sums.len());
        sums.into_iter().zip(counts).try_for_each(|(sum, count)| self.of.finish(&mut builder, sum, count))?;
        Ok(builder.finish())
    }

    fn state(&mut self, emit_to: EmitTo) -> Result<Vec<ArrayRef>> {
        let counts = emit_to.take_needed(&mut self.counts);
        Ok(vec![sums(emit_to.take_needed(&mut self.sums)), Arc::new(Int64Array::from(counts))])
    }

    fn convert_to_state(&self, values: &[ArrayRef], filter: Option<&BooleanArray>) -> Result<Vec<ArrayRef>> {
        let values = column(values, 0)?;
        let (mut all, mut counts) = (vec![0; values.len()], vec![0; values.len()]);
        let is_in = |row: usize| filter.is_none_or(|filter| filter.is_valid(row) && filter.value(row));
        numbers(values, |row, number| {
            if is_in(row) {
                (all[row], counts[row]) = (number, 1);
            }
            Ok(())
        })?;
        Ok(vec![sums(all), Arc::new(Int64Array::from(counts))])
    }

    fn size(&self) -> usize {
        self.sums.capacity() * size_of::<i128>() + self.counts.capacity() * size_of::<i64>()
    }
}
