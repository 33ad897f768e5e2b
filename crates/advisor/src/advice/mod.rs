//! Advice on one object: which of the ways to store it is best, and what speaks for and against each.
//!
//! * `figures`: what is known of an object and of each way
//! * `rules`: what to compress and what not, each rule a function of figures
//! * `operations`: what is done to it, and what that takes of the processors
//! * `decide`: one way of all, by rules and a goal

mod decide;
mod figures;
mod operations;
mod rules;
#[cfg(test)]
mod tests;

pub use decide::{Decision, Goal, decide, is_large, is_worth};
pub use figures::{Load, Subject, Way};
pub use operations::{OperationCosts, Operations};
pub use rules::{Finding, RULES, Rule, Verdict};
