//! The compact record (method `row`): a packed record in which each value takes as few bytes as it needs.

mod columns;
mod encode;
mod expand;
mod layout;
mod read;
mod validate;

pub use columns::CompactColumns;
pub use layout::CompactLayout;
