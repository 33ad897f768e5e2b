//! A look at whether the statement has to end, between the batches of an operator that may make many of few.

use crate::compute::Running;
use datafusion_common::Result;
use datafusion_common::tree_node::TreeNodeRecursion;
use datafusion_execution::{SendableRecordBatchStream, TaskContext};
use datafusion_physical_expr::PhysicalExpr;
use datafusion_physical_plan::coop::cooperative;
use datafusion_physical_plan::stream::RecordBatchStreamAdapter;
use datafusion_physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};
use futures::StreamExt;
use std::fmt;
use std::sync::Arc;

/// An operator that is looked after: it ends when its statement has to, and lets other tasks run.
#[derive(Debug)]
pub(crate) struct Watched {
    input: Arc<dyn ExecutionPlan>,
    running: Running,
}

impl Watched {
    pub(crate) fn new(input: Arc<dyn ExecutionPlan>, running: &Running) -> Watched {
        Watched { input, running: running.clone() }
    }
}

impl DisplayAs for Watched {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Watched")
    }
}

impl ExecutionPlan for Watched {
    fn name(&self) -> &str {
        "Watched"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.input.properties()
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![true]
    }

    fn apply_expressions(&self, _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn with_new_children(self: Arc<Self>, mut children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        let input = children.pop().unwrap_or_else(|| Arc::clone(&self.input));
        Ok(Arc::new(Watched { input, running: self.running.clone() }))
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let running = self.running.clone();
        let input = self.input.execute(partition, context)?;
        let schema = input.schema();
        let stream = input.map(move |batch| {
            running.check()?;
            batch
        });
        Ok(Box::pin(cooperative(RecordBatchStreamAdapter::new(schema, stream))))
    }
}
