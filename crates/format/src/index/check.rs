//! Is it an index page?
//!
//! [`validate`] runs once after each read: structure, so that all accesses are in bounds. [`check`] is for the command of that name: everything that holds for
//! one page, order included.

use super::{leaf, non_leaf, prefix};
use crate::FormatError;
use crate::page::{self, HEADER_BYTES, PageType};

fn page_type(page: &[u8]) -> Option<PageType> {
    if page.len() < HEADER_BYTES { None } else { page::page_type(page) }
}

/// Checks the structure of a leaf or non-leaf page as it is in memory.
///
/// # Errors
/// What is wrong.
pub fn validate(page: &[u8]) -> Result<(), FormatError> {
    match page_type(page) {
        Some(PageType::Leaf) => leaf::validate(page),
        Some(PageType::PrefixLeaf) => prefix::check::validate(page),
        Some(PageType::NonLeaf) => non_leaf::validate(page),
        other => Err(FormatError::new(format!("page of type {other:?} in an index"))),
    }
}

/// Checks all of [`validate`] and that the page is what its contents demand.
///
/// # Errors
/// What is wrong.
pub fn check(page: &[u8]) -> Result<(), FormatError> {
    match page_type(page) {
        Some(PageType::Leaf) => leaf::check(page),
        Some(PageType::PrefixLeaf) => prefix::check::check(page),
        Some(PageType::NonLeaf) => non_leaf::check(page),
        other => Err(FormatError::new(format!("page of type {other:?} in an index"))),
    }
}
