//! Ops as a log holds them, applied to a page.

use pagefold_format::FormatError;
use pagefold_format::data::DataPage;
use pagefold_format::index::{check, leaf, non_leaf, prefix};
use pagefold_format::op::PageOp;
use pagefold_format::page::{PageType, page_type};
use pagefold_format::wire::Reader;

/// The structural check of the page's type.
pub fn validate(page: &[u8]) -> Result<(), FormatError> {
    match page_type(page) {
        Some(PageType::Data) => DataPage::new(page).validate(),
        _ => check::validate(page),
    }
}

/// Is the page all that its contents demand?
fn is_exact(page: &[u8]) -> bool {
    match page_type(page) {
        Some(PageType::Leaf) => leaf::check(page).is_ok(),
        Some(PageType::PrefixLeaf) => prefix::check::check(page).is_ok(),
        // Whether a child is a page is for the tree to say.
        Some(PageType::NonLeaf) => non_leaf::check(page).map_or_else(|e| e.to_string() == "a child is page 0", |()| true),
        _ => validate(page).is_ok(),
    }
}

/// Reads ops one behind the other and applies them to a page that has passed [`validate`].
///
/// An op has one log form. One that is refused leaves the page as it was; any other leaves a page that is as valid and as exact as before.
pub fn run(bytes: &[u8], page: &mut Vec<u8>) {
    let mut reader = Reader::new(bytes);
    let mut exact = is_exact(page);
    for _ in 0..64 {
        let mut rest = reader;
        let before = rest.rest();
        let Ok(op) = PageOp::decode(&mut reader) else { return };
        let mut rest = reader;
        let used = &before[..before.len() - rest.rest().len()];
        let mut again = Vec::new();
        op.encode(&mut again);
        assert_eq!(again, used, "two log forms of {op:?}");

        let old = page.clone();
        match op.apply(page) {
            Err(_) => assert!(*page == old, "refused, but the page changed: {op:?}"),
            // A page of a chain, which no other op changes.
            Ok(()) if matches!(op, PageOp::Image(_)) => return,
            Ok(()) => {
                if exact {
                    assert!(is_exact(page), "{op:?}: {:?}", check::check(page));
                } else if let Err(e) = validate(page) {
                    panic!("{op:?}: {e}");
                }
                exact = is_exact(page);
            }
        }
    }
}
