//! Plans as text.

use super::access::{Test, TestKind};
use super::{Access, JoinKind, Plan, ScanPlan};
use crate::analytics::Chooser;
use crate::execute::Observed;
use pagefold_engine::btree::Direction;
use std::fmt::Write;
use std::sync::Arc;

/// What is told of plans.
#[derive(Clone, Copy, Default)]
pub(crate) struct Told<'t> {
    /// What was seen of one that was run.
    pub(crate) observed: Option<&'t Observed>,
    /// Whoever says what is run by batches; `None` where that is said already.
    pub(crate) chooser: Option<Chooser<'t>>,
}

impl Plan {
    /// A line for each node, the deeper the further in; of a plan that was run with what was seen of it.
    pub(crate) fn explain(&self, told: Told<'_>) -> Vec<String> {
        let mut lines = Vec::new();
        self.lines(0, told, &mut lines);
        lines
    }

    fn lines(&self, depth: usize, told: Told<'_>, lines: &mut Vec<String>) {
        if told.chooser.is_some_and(|chooser| chooser.is_chosen(self)) {
            // Of what is below nothing is seen but the rows that come out.
            let seen = told.observed.map(|observed| observed.text(std::ptr::from_ref(self))).unwrap_or_default();
            lines.push(format!("{}By batches{seen}", "  ".repeat(depth)));
            return self.lines(depth + 1, Told::default(), lines);
        }
        let own = lines.len();
        self.lines_of_node(depth, told, lines);
        let observed = told.observed;
        // These have no line of their own.
        if !matches!(self, Plan::Within(_) | Plan::Cut(_) | Plan::Shared(_))
            && let (Some(observed), Some(line)) = (observed, lines.get_mut(own))
        {
            line.push_str(&observed.text(std::ptr::from_ref(self)));
        }
    }

    fn lines_of_node(&self, depth: usize, told: Told<'_>, lines: &mut Vec<String>) {
        let mut line = |text: String| lines.push(format!("{}{text}", "  ".repeat(depth)));
        let deeper = depth + 1;
        match self {
            Plan::Values(rows) => line(format!("Values  (rows={})", rows.len())),
            Plan::Series(_) => line("Series".into()),
            Plan::System(table) => line(format!("Rows of {}", table.name())),
            Plan::Scan(scan) => line(scan_text(scan)),
            Plan::Filter(filter) => {
                line("Filter".into());
                filter.input.lines(deeper, told, lines);
            }
            Plan::Project(project) => {
                line(format!("Project  (columns={})", project.exprs.len()));
                project.input.lines(deeper, told, lines);
            }
            Plan::Within(within) => within.input.lines(depth, told, lines),
            Plan::LookUp(look_up) => {
                line(format!("Look up{}", kind_text(look_up.kind)));
                look_up.first.lines(deeper, told, lines);
                let seen = told.observed.map(|observed| observed.text(Arc::as_ptr(&look_up.second))).unwrap_or_default();
                lines.push(format!("{}{}{seen}", "  ".repeat(deeper), scan_text(&look_up.second)));
            }
            Plan::Hash(hash) => {
                let what = if hash.first_keys.is_empty() { "All pairs" } else { "Hash join" };
                line(format!("{what}{}", kind_text(hash.kind)));
                hash.first.lines(deeper, told, lines);
                hash.second.lines(deeper, told, lines);
            }
            Plan::Lateral(lateral) => {
                line(format!("For each row{}", kind_text(lateral.kind)));
                lateral.first.lines(deeper, told, lines);
                lateral.second.lines(deeper, told, lines);
            }
            Plan::Expand(expand) => {
                line(format!("Once for each set of keys  (sets={})", expand.sets.len()));
                expand.input.lines(deeper, told, lines);
            }
            Plan::Aggregate(aggregate) => {
                line(format!("Aggregate  (keys={}, aggregates={})", aggregate.keys.len(), aggregate.aggregates.len()));
                aggregate.input.lines(deeper, told, lines);
            }
            Plan::Window(window) => {
                let (partition, order, calls) = (window.partition.len(), window.order.len(), window.calls.len());
                line(format!("Window  (partition={partition}, order={order}, functions={calls})"));
                window.input.lines(deeper, told, lines);
            }
            Plan::Count(count) => line(format!("Number of rows of {}", count.table.name)),
            Plan::Distinct(input) => {
                line("Distinct".into());
                input.lines(deeper, told, lines);
            }
            Plan::FirstOfEach(first) => {
                line(format!("First of each  (columns={})", first.slots.len()));
                first.input.lines(deeper, told, lines);
            }
            Plan::Sort(sort) => {
                line(if sort.limit.limit.is_some() { "Sort, the first rows".into() } else { "Sort".to_owned() });
                sort.input.lines(deeper, told, lines);
            }
            Plan::Recursive(recursive) => {
                line(format!("Recursive{}", if recursive.all { " all" } else { "" }));
                recursive.first.lines(deeper, told, lines);
                recursive.step.lines(deeper, told, lines);
            }
            Plan::Shared(shared) => shared.input.lines(depth, told, lines),
            Plan::Kept(_) => line("Rows that were changed".into()),
            Plan::Step(_) => line("Rows of the step before".into()),
            Plan::Cut(cut) => cut.input.lines(depth, told, lines),
            Plan::Limit(limit) => {
                line("Limit".into());
                limit.input.lines(deeper, told, lines);
            }
            Plan::Set(set) => {
                line(format!("{:?}{}", set.operation, if set.all { " all" } else { "" }));
                set.first.lines(deeper, told, lines);
                set.second.lines(deeper, told, lines);
            }
        }
    }
}

fn kind_text(kind: JoinKind) -> &'static str {
    match kind {
        JoinKind::Inner => "",
        JoinKind::Left => ", left",
        JoinKind::Full => ", full",
        JoinKind::Semi => ", semi",
        JoinKind::Anti => ", anti",
    }
}

pub(crate) fn scan_text(scan: &ScanPlan) -> String {
    let name = &scan.table.name;
    let index_name = |index: usize| scan.table.index_name(index);
    let mut text = match &scan.access {
        Access::Pages => format!("Scan {name}"),
        Access::Index { index, direction, keys_only } => {
            let what = if *keys_only { "Keys of index" } else { "Index" };
            let backward = if *direction == Direction::Backward { ", backward" } else { "" };
            format!("{what} {} of {name}{backward}", index_name(*index))
        }
        Access::Unique { index, .. } => format!("One row by {} of {name}", index_name(*index)),
    };
    if let Some(keys) = &scan.keys {
        let _ = write!(text, ", {} keys", keys.len());
    }
    if !scan.tests.is_empty() {
        let tests: Vec<String> = scan.tests.iter().map(|test| test_text(scan, test)).collect();
        let _ = write!(text, "  where {}", tests.join(" and "));
    }
    if scan.residual.is_some() {
        text.push_str("  and a condition of its values");
    }
    let _ = write!(text, "  (rows={:.0})", scan.rows);
    text
}

fn test_text(scan: &ScanPlan, test: &Test) -> String {
    let column = &scan.table.schema.columns()[test.column];
    let name = &column.name;
    let value = |expr: &crate::expression::Expr, data_type: &pagefold_types::DataType| match expr {
        crate::expression::Expr::Literal(value) => pagefold_types::excerpt(value.as_ref(), data_type),
        crate::expression::Expr::Param(number) => format!("${}", number + 1),
        crate::expression::Expr::Slot(_) => "of the row before".into(),
        _ => "...".into(),
    };
    match &test.kind {
        TestKind::Compare { comparison, value: of, data_type } => format!("{name} {comparison} {}", value(of, data_type)),
        TestKind::In { values, negated, .. } => format!("{name}{} in ({} values)", if *negated { " not" } else { "" }, values.len()),
        TestKind::Null { negated } => format!("{name} is{} null", if *negated { " not" } else { "" }),
        TestKind::Like { pattern, negated, .. } => {
            format!("{name}{} like {}", if *negated { " not" } else { "" }, value(pattern, &column.data_type))
        }
        TestKind::Truth { negated } => format!("{}{name}", if *negated { "not " } else { "" }),
    }
}
