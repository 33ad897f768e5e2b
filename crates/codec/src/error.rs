//! What can be wrong with bytes handed to a decoder.

/// Why bytes could not be decoded. A codec knows no file or page: the caller adds where the bytes came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CodecError {
    /// The serial form of a row dictionary is not one.
    #[error("row dictionary: {0}")]
    Dictionary(&'static str),
    /// A compressed row is not one.
    #[error("compressed row: {0}")]
    Row(&'static str),
    /// A compressed block is not one.
    #[error("compressed block: {0}")]
    Block(&'static str),
    /// A column area is not one, or a record handed to its encoder.
    #[error("column area: {0}")]
    Page(&'static str),
}
