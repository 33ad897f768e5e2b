//! Leaves of plans: rows of a table, from the columns of its pages into arrays, without a row between; or rows that are there.
//!
//! Invariant: a scan looks after each batch of the engine whether its statement has to end, and lets other tasks run.

use crate::arrays::{self, Builder, data_type};
use crate::compute::Running;
use crate::keys::AwaitedKeys;
use arrow_array::{
    ArrayRef, BinaryArray, BooleanArray, Decimal128Array, FixedSizeBinaryArray, Float32Array, Float64Array, Int64Array, RecordBatch,
    StringArray,
};
use arrow_buffer::{BooleanBufferBuilder, Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow_schema::SchemaRef;
use datafusion_common::tree_node::TreeNodeRecursion;
use datafusion_common::{DataFusionError, Result};
use datafusion_execution::{SendableRecordBatchStream, TaskContext};
use datafusion_physical_expr::{EquivalenceProperties, Partitioning, PhysicalExpr};
use datafusion_physical_plan::coop::cooperative;
use datafusion_physical_plan::execution_plan::{Boundedness, EmissionType, SchedulingType};
use datafusion_physical_plan::stream::RecordBatchStreamAdapter;
use datafusion_physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};
use futures::stream;
use pagefold_engine::table_space::{BatchColumn, BatchValues, ColumnBatch, Table};
use pagefold_sql::SqlError;
use pagefold_sql::analytics::{Kind, PartScans};
use std::fmt;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};

/// Rows of a batch, at least, but for the last one.
pub(crate) const BATCH_ROWS: usize = 8192;
/// Bytes of a column of a batch from which on it is given, however few its rows.
const BATCH_BYTES: usize = 16 << 20;

/// What a partition gives.
#[derive(Debug)]
pub(crate) enum Source {
    Table(Box<PartScans>),
    Rows(RecordBatch),
}

/// Columns, and the keys that they are to have: these are told when the other side of a join is hashed.
pub(crate) type Awaited = Vec<(usize, AwaitedKeys)>;

/// A leaf, with a partition for each thread.
#[derive(Debug)]
pub(crate) struct Leaf {
    name: String,
    kinds: Arc<[Kind]>,
    /// Each is taken once.
    sources: Vec<Mutex<Option<Source>>>,
    /// Keys that columns are to have.
    awaited: Awaited,
    running: Running,
    properties: Arc<PlanProperties>,
}

impl Leaf {
    pub(crate) fn new(name: String, kinds: &[Kind], sources: Vec<Source>, running: &Running) -> Leaf {
        let properties = PlanProperties::new(
            EquivalenceProperties::new(arrays::schema(kinds)),
            Partitioning::UnknownPartitioning(sources.len()),
            EmissionType::Incremental,
            Boundedness::Bounded,
        );
        let properties = Arc::new(properties.with_scheduling_type(SchedulingType::Cooperative));
        let sources = sources.into_iter().map(|source| Mutex::new(Some(source))).collect();
        Leaf { name, kinds: kinds.into(), sources, awaited: Vec::new(), running: running.clone(), properties }
    }

    /// Of rows of a table only those that have these keys.
    pub(crate) fn with_keys(self, awaited: Awaited) -> Leaf {
        Leaf { awaited, ..self }
    }
}

impl DisplayAs for Leaf {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Scan {}", self.name)
    }
}

impl ExecutionPlan for Leaf {
    fn name(&self) -> &str {
        "Leaf"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        Vec::new()
    }

    fn apply_expressions(&self, _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn with_new_children(self: Arc<Self>, _: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(self)
    }

    fn execute(&self, partition: usize, _: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let schema = Arc::clone(self.properties.eq_properties.schema());
        let source = self.sources.get(partition).and_then(|source| source.lock().unwrap_or_else(PoisonError::into_inner).take());
        let source = source.ok_or_else(|| DataFusionError::Internal(format!("partition {partition} of a scan is read twice")))?;
        let (kinds, running) = (Arc::clone(&self.kinds), self.running.clone());
        let pulling = Pulling { source: Some(source), awaited: self.awaited.clone(), kinds, schema: Arc::clone(&schema), running };
        let stream = stream::try_unfold(pulling, |mut pulling| async move {
            pulling.wait_for_keys().await?;
            Ok(pulling.next()?.map(|batch| (batch, pulling)))
        });
        Ok(Box::pin(cooperative(RecordBatchStreamAdapter::new(schema, Box::pin(stream)))))
    }
}

/// A partition that is read.
struct Pulling {
    source: Option<Source>,
    /// Before the first batch.
    awaited: Awaited,
    kinds: Arc<[Kind]>,
    schema: SchemaRef,
    running: Running,
}

impl Pulling {
    async fn wait_for_keys(&mut self) -> Result<()> {
        let mut members = Vec::new();
        for (column, keys) in std::mem::take(&mut self.awaited) {
            members.extend(keys.told().await.map(|keys| (column, keys)));
        }
        if members.iter().any(|(_, keys)| keys.is_empty()) {
            self.source = None;
        }
        let Some(Source::Table(scans)) = &mut self.source else { return Ok(()) };
        if !members.is_empty() {
            let by_index = self.running.failure.of(scans.keep(&members))?;
            let counters = &self.running.counters;
            counters.with_keys.fetch_add(1, Ordering::Relaxed);
            counters.by_index.fetch_add(by_index.into(), Ordering::Relaxed);
        }
        Ok(())
    }

    fn next(&mut self) -> Result<Option<RecordBatch>> {
        match &mut self.source {
            None => Ok(None),
            Some(Source::Rows(_)) => {
                let Some(Source::Rows(batch)) = self.source.take() else { return Ok(None) };
                Ok(Some(batch))
            }
            Some(Source::Table(scans)) => gather(scans, &self.kinds, &self.schema, &self.running),
        }
    }
}

/// Gathers batches of the engine into one.
fn gather(scans: &mut PartScans, kinds: &[Kind], schema: &SchemaRef, running: &Running) -> Result<Option<RecordBatch>> {
    let mut columns: Vec<Growing> = kinds.iter().map(|kind| Growing::new(*kind)).collect();
    let mut rows = 0;
    while rows < BATCH_ROWS && columns.iter().all(|column| column.bytes() < BATCH_BYTES) {
        running.check()?;
        let Some((table, batch)) = running.failure.of(scans.next_batch())? else { break };
        if batch.is_empty() {
            continue;
        }
        if batch.columns().iter().any(has_large) {
            if rows > 0 {
                columns.iter_mut().try_for_each(Growing::settle)?;
            }
            add_by_rows(&table, &batch, kinds, &mut columns, running)?;
        } else {
            for (from, to) in batch.columns().iter().zip(&mut columns) {
                to.add(from, batch.len())?;
            }
        }
        rows += batch.len();
    }
    if rows == 0 {
        return Ok(None);
    }
    let arrays = columns.into_iter().map(Growing::finish).collect::<Result<Vec<ArrayRef>>>()?;
    Ok(Some(RecordBatch::try_new(Arc::clone(schema), arrays)?))
}

fn has_large(column: &BatchColumn) -> bool {
    matches!(column.values(), BatchValues::Bytes { large, .. } if large.count_ones() > 0)
}

/// Values that lie on pages of their own are read one by one.
fn add_by_rows(table: &Table, batch: &ColumnBatch, kinds: &[Kind], columns: &mut [Growing], running: &Running) -> Result<()> {
    let mut builders: Vec<Builder> = kinds.iter().map(|kind| Builder::new(*kind, batch.len())).collect();
    let mut row = Vec::with_capacity(kinds.len());
    for at in 0..batch.len() {
        row.clear();
        running.failure.of(batch.values_into(table, at, &mut row).map_err(SqlError::from))?;
        for (value, builder) in row.iter().zip(&mut builders) {
            builder.push(value.as_ref())?;
        }
    }
    for (column, builder) in columns.iter_mut().zip(&mut builders) {
        column.pieces.push(builder.finish());
    }
    Ok(())
}

/// A column that grows.
struct Growing {
    kind: Kind,
    values: Growth,
    /// `None` as long as there is no NULL.
    validity: Option<BooleanBufferBuilder>,
    /// Rows since the last piece.
    rows: usize,
    /// Arrays of the rows before.
    pieces: Vec<ArrayRef>,
}

enum Growth {
    Ints(Vec<i64>),
    Wide(Vec<i128>),
    Bytes { bytes: Vec<u8>, offsets: Vec<i32> },
}

fn damaged(what: &str) -> DataFusionError {
    DataFusionError::Internal(format!("a column of a batch has {what}"))
}

impl Growing {
    fn new(kind: Kind) -> Growing {
        Growing { kind, values: Growth::new(kind), validity: None, rows: 0, pieces: Vec::new() }
    }

    fn bytes(&self) -> usize {
        if let Growth::Bytes { bytes, .. } = &self.values { bytes.len() } else { 0 }
    }

    fn add(&mut self, from: &BatchColumn, rows: usize) -> Result<()> {
        let nulls = from.null_count() > 0;
        if nulls && self.validity.is_none() {
            let mut validity = BooleanBufferBuilder::new(BATCH_ROWS);
            validity.append_n(self.rows, true);
            self.validity = Some(validity);
        }
        if let Some(validity) = &mut self.validity {
            match nulls {
                false => validity.append_n(rows, true),
                true => {
                    let packed: Vec<u8> = from.validity().words().iter().flat_map(|word| word.to_le_bytes()).collect();
                    validity.append_packed_range(0..rows, &packed);
                }
            }
        }
        self.rows += rows;
        match (&mut self.values, from.values()) {
            (Growth::Ints(to), BatchValues::Ints(ints)) => to.extend_from_slice(ints),
            (Growth::Wide(to), BatchValues::Ints(ints)) => to.extend(ints.iter().map(|int| i128::from(*int))),
            (Growth::Wide(to), BatchValues::Bytes { bytes, ends, .. }) => {
                let mut start = 0;
                for end in ends {
                    let end = usize::try_from(*end).map_err(|_| damaged("an end before its beginning"))?;
                    to.push(decimal(bytes.get(start..end).ok_or_else(|| damaged("an end behind its values"))?)?);
                    start = end;
                }
            }
            (Growth::Bytes { bytes: to, offsets }, BatchValues::Bytes { bytes, ends, .. }) => {
                let before = i32::try_from(to.len()).map_err(|_| damaged("more bytes than a batch can have"))?;
                to.extend_from_slice(bytes);
                i32::try_from(to.len()).map_err(|_| damaged("more bytes than a batch can have"))?;
                offsets.extend(ends.iter().map(|end| before + end));
            }
            _ => return Err(damaged("values of another kind")),
        }
        Ok(())
    }

    /// What is there becomes a piece.
    fn settle(&mut self) -> Result<()> {
        if self.rows > 0 {
            let piece = self.piece()?;
            self.pieces.push(piece);
        }
        Ok(())
    }

    fn piece(&mut self) -> Result<ArrayRef> {
        let values = std::mem::replace(&mut self.values, Growth::new(self.kind));
        let validity = self.validity.take().map(|mut validity| NullBuffer::new(validity.finish()));
        let nulls = validity.filter(|nulls| nulls.null_count() > 0);
        self.rows = 0;
        Ok(match (self.kind, values) {
            (Kind::Int, Growth::Ints(ints)) => Arc::new(Int64Array::new(ints.into(), nulls)),
            (Kind::Boolean, Growth::Ints(ints)) => Arc::new(BooleanArray::new(ints.iter().map(|int| *int != 0).collect(), nulls)),
            (Kind::Real, Growth::Ints(ints)) => {
                let values: ScalarBuffer<f32> = ints.iter().map(|int| f32::from_bits(*int as u32)).collect();
                Arc::new(Float32Array::new(values, nulls))
            }
            (Kind::Double, Growth::Ints(ints)) => {
                let values: ScalarBuffer<f64> = ints.iter().map(|int| f64::from_bits(int.cast_unsigned())).collect();
                Arc::new(Float64Array::new(values, nulls))
            }
            (Kind::Decimal, Growth::Wide(wide)) => {
                Arc::new(Decimal128Array::new(wide.into(), nulls).with_data_type(data_type(Kind::Decimal)))
            }
            (Kind::Text, Growth::Bytes { bytes, offsets }) => {
                let offsets = OffsetBuffer::new(offsets.into());
                Arc::new(StringArray::try_new(offsets, Buffer::from_vec(bytes), nulls)?)
            }
            (Kind::Bytes, Growth::Bytes { bytes, offsets }) => {
                let offsets = OffsetBuffer::new(offsets.into());
                Arc::new(BinaryArray::try_new(offsets, Buffer::from_vec(bytes), nulls)?)
            }
            (Kind::Uuid, Growth::Bytes { bytes, offsets }) => {
                // NULLs have no bytes, here they have as many as all.
                let mut whole = Vec::with_capacity(16 * offsets.len());
                for pair in offsets.windows(2) {
                    let value = bytes.get(pair[0] as usize..pair[1] as usize).unwrap_or_default();
                    match value.len() {
                        16 => whole.extend_from_slice(value),
                        _ => whole.resize(whole.len() + 16, 0),
                    }
                }
                Arc::new(FixedSizeBinaryArray::try_new(16, Buffer::from_vec(whole), nulls)?)
            }
            _ => return Err(damaged("values of another kind")),
        })
    }

    fn finish(mut self) -> Result<ArrayRef> {
        if self.pieces.is_empty() {
            return self.piece();
        }
        self.settle()?;
        let pieces: Vec<&dyn arrow_array::Array> = self.pieces.iter().map(|piece| &**piece).collect();
        Ok(arrow_select::concat::concat(&pieces)?)
    }
}

impl Growth {
    fn new(kind: Kind) -> Growth {
        match kind {
            Kind::Boolean | Kind::Int | Kind::Real | Kind::Double => Growth::Ints(Vec::with_capacity(BATCH_ROWS)),
            Kind::Decimal => Growth::Wide(Vec::with_capacity(BATCH_ROWS)),
            Kind::Text | Kind::Bytes | Kind::Uuid => {
                let mut offsets = Vec::with_capacity(BATCH_ROWS + 1);
                offsets.push(0);
                Growth::Bytes { bytes: Vec::new(), offsets }
            }
        }
    }
}

/// A number of up to 16 bytes, the low ones first. NULL has none.
fn decimal(bytes: &[u8]) -> Result<i128> {
    let Some(last) = bytes.last() else { return Ok(0) };
    let mut whole = [0_u8.wrapping_sub(last >> 7); 16];
    whole.get_mut(..bytes.len()).ok_or_else(|| damaged("a decimal number of more than 16 bytes"))?.copy_from_slice(bytes);
    Ok(i128::from_le_bytes(whole))
}
