//! Conditions on rows, as text or built from values.

use pagefold_types::{Condition, PredicateError};

/// What can be a condition: a [`Condition`], or the text of one.
pub trait IntoCondition {
    /// The condition.
    ///
    /// # Errors
    /// When it is a text that cannot be understood.
    fn into_condition(self) -> Result<Condition, PredicateError>;
}

impl IntoCondition for Condition {
    fn into_condition(self) -> Result<Condition, PredicateError> {
        Ok(self)
    }
}

impl IntoCondition for &Condition {
    fn into_condition(self) -> Result<Condition, PredicateError> {
        Ok(self.clone())
    }
}

impl IntoCondition for &str {
    fn into_condition(self) -> Result<Condition, PredicateError> {
        Condition::parse(self)
    }
}

impl IntoCondition for &String {
    fn into_condition(self) -> Result<Condition, PredicateError> {
        Condition::parse(self)
    }
}
