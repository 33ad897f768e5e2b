//! The one error of the fold.

/// Why a leaf cannot be folded or expanded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FoldError {
    /// The bytes are not a folded body.
    #[error("folded leaf: {0}")]
    Damaged(&'static str),
    /// The result does not fit the buffer it was given.
    #[error("folded leaf: {0} does not fit")]
    NoRoom(&'static str),
}
