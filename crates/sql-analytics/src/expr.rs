//! Expressions of SQL as physical expressions of DataFusion.
//!
//! A column or a value is DataFusion's own; all else is one expression without children: nothing takes it apart, moves a part of it or computes it beforehand.

use crate::arrays::data_type;
use crate::compute::{Frame, Running, Values, evaluate};
use arrow_array::RecordBatch;
use arrow_schema::{DataType, Schema};
use datafusion_common::{Result, ScalarValue};
use datafusion_expr::ColumnarValue;
use datafusion_physical_expr::PhysicalExpr;
use datafusion_physical_expr::expressions::Column;
use pagefold_sql::analytics::Scalar;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// An expression that is computed here.
#[derive(Clone, Debug)]
pub(crate) struct Computed {
    scalar: Arc<Scalar>,
    running: Running,
}

/// A column, under the name that it has there.
pub(crate) fn column(at: usize, schema: &Schema) -> Arc<dyn PhysicalExpr> {
    Arc::new(Column::new(schema.fields().get(at).map_or("", |field| field.name()), at))
}

/// The expression for DataFusion, of columns of this schema.
pub(crate) fn physical(scalar: &Scalar, schema: &Schema, running: &Running) -> Arc<dyn PhysicalExpr> {
    match scalar {
        Scalar::Column(at, _) => column(*at, schema),
        other => Arc::new(Computed { scalar: Arc::new(other.clone()), running: running.clone() }),
    }
}

/// One is equal to itself alone, and its clones.
impl PartialEq for Computed {
    fn eq(&self, other: &Computed) -> bool {
        Arc::ptr_eq(&self.scalar, &other.scalar)
    }
}

impl Eq for Computed {}

impl Hash for Computed {
    fn hash<H: Hasher>(&self, state: &mut H) {
        Arc::as_ptr(&self.scalar).hash(state);
    }
}

impl fmt::Display for Computed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("expression")
    }
}

impl PhysicalExpr for Computed {
    fn data_type(&self, _: &Schema) -> Result<DataType> {
        Ok(data_type(self.scalar.kind()))
    }

    fn nullable(&self, _: &Schema) -> Result<bool> {
        Ok(true)
    }

    fn evaluate(&self, batch: &RecordBatch) -> Result<ColumnarValue> {
        self.running.check()?;
        Ok(match evaluate(&self.scalar, &Frame::of(batch), &self.running)? {
            Values::Array(array) => ColumnarValue::Array(array),
            Values::Same(one) => ColumnarValue::Scalar(ScalarValue::try_from_array(&one, 0)?),
        })
    }

    fn children(&self) -> Vec<&Arc<dyn PhysicalExpr>> {
        Vec::new()
    }

    fn with_new_children(self: Arc<Self>, _: Vec<Arc<dyn PhysicalExpr>>) -> Result<Arc<dyn PhysicalExpr>> {
        Ok(self)
    }

    fn fmt_sql(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
