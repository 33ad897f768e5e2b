//! Values of SQL types, owned and borrowed, and their order.

mod order;
mod owned;

pub(crate) use order::{f32_from_ordered, f32_ordered, f64_from_ordered, f64_ordered};
pub use owned::{Value, ValueRef, excerpt, push_value};
pub(crate) use owned::{at_most_chars, fit_char};
