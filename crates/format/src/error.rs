//! The one error of this crate: why bytes are not what they should be.

use std::borrow::Cow;

/// Why a page, record or file is not valid. The layer above adds the object and the page.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct FormatError {
    reason: Cow<'static, str>,
}

impl FormatError {
    /// An error with this reason.
    pub fn new(reason: impl Into<Cow<'static, str>>) -> FormatError {
        FormatError { reason: reason.into() }
    }
}
