//! Windows: what one operator computes of them.
//!
//! Invariant: a row has what its input gives, and behind it the values of the calls.

use super::Plan;
use super::join::place;
use crate::bind::{WINDOWS, WindowCall, WindowOrder};
use crate::expression::Expr;
use std::sync::Arc;

/// Calls over windows of one partition and order: rows are sorted once for them.
#[derive(Debug)]
pub(crate) struct WindowPlan {
    pub(crate) input: Plan,
    /// Columns of the input.
    pub(crate) width: usize,
    pub(crate) partition: Vec<Expr>,
    pub(crate) order: Vec<WindowOrder>,
    pub(crate) calls: Vec<WindowCall>,
}

impl Plan {
    /// With the values of calls behind what comes: their places are added to the layout.
    pub(super) fn windowed(self, calls: Vec<WindowCall>, layout: &mut Vec<(usize, usize)>) -> Plan {
        let mut plan = self;
        let mut left: Vec<(usize, WindowCall)> = calls.into_iter().enumerate().collect();
        while let Some((_, first)) = left.first() {
            let (partition, order) = (first.window.partition.clone(), first.window.order.clone());
            let (own, others): (Vec<_>, Vec<_>) =
                left.into_iter().partition(|(_, call)| call.window.partition == partition && call.window.order == order);
            left = others;
            let width = layout.len();
            let (numbers, mut calls): (Vec<usize>, Vec<WindowCall>) = own.into_iter().unzip();
            calls.iter_mut().for_each(|call| call.exprs_mut(&mut |expr| place(expr, layout)));
            layout.extend(numbers.into_iter().map(|number| (WINDOWS, number)));
            let (partition, order) =
                calls.first().map(|call| (call.window.partition.clone(), call.window.order.clone())).unwrap_or_default();
            plan = Plan::Window(Arc::new(WindowPlan { input: plan, width, partition, order, calls }));
        }
        plan
    }
}
