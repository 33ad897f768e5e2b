//! A look at whether the statement has to end, between the batches of an operator that may make many of few; and at the keys of rows that go by.

use crate::compute::Running;
use crate::keys::KeyNotes;
use datafusion_common::Result;
use datafusion_common::tree_node::TreeNodeRecursion;
use datafusion_execution::{SendableRecordBatchStream, TaskContext};
use datafusion_physical_expr::PhysicalExpr;
use datafusion_physical_plan::coop::cooperative;
use datafusion_physical_plan::stream::RecordBatchStreamAdapter;
use datafusion_physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};
use futures::{StreamExt, stream};
use std::fmt;
use std::sync::Arc;

/// An operator that is looked after: it ends when its statement has to, and lets other tasks run.
#[derive(Debug)]
pub(crate) struct Watched {
    input: Arc<dyn ExecutionPlan>,
    running: Running,
    notes: Arc<[Arc<KeyNotes>]>,
}

impl Watched {
    pub(crate) fn new(input: Arc<dyn ExecutionPlan>, running: &Running) -> Watched {
        Watched { input, running: running.clone(), notes: Arc::new([]) }
    }

    /// And keys of its rows are noted.
    pub(crate) fn with_notes(self, notes: impl Iterator<Item = KeyNotes>) -> Watched {
        let partitions = self.input.properties().partitioning.partition_count();
        Watched { notes: notes.map(|notes| notes.of_partitions(partitions)).collect(), ..self }
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
        Ok(Arc::new(Watched { input, running: self.running.clone(), notes: Arc::clone(&self.notes) }))
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let (running, notes, memory) = (self.running.clone(), Arc::clone(&self.notes), Arc::clone(context.memory_pool()));
        let input = self.input.execute(partition, context)?;
        let schema = input.schema();
        let stream = stream::unfold((input, running, notes, memory), |(mut input, running, notes, memory)| async move {
            let Some(batch) = input.next().await else {
                notes.iter().for_each(|notes| notes.end());
                return None;
            };
            let batch = running.check().and(batch);
            // Keys of which some are missing are not told.
            let notes = if batch.is_ok() { notes } else { Arc::default() };
            batch.iter().for_each(|batch| notes.iter().for_each(|notes| notes.note(batch, &memory)));
            Some((batch, (input, running, notes, memory)))
        });
        Ok(Box::pin(cooperative(RecordBatchStreamAdapter::new(schema, Box::pin(stream)))))
    }
}
