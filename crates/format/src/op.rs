//! The vocabulary in which a page changes, over all page types.
//!
//! Invariant: an op is a value; `apply` is deterministic, so redo is the op itself. An op read back from a log is untrusted: `apply` checks every offset.

use crate::FormatError;
use crate::chain::ChainPage;
use crate::data::DataOp;
use crate::index::ops::{LeafOp, NonLeafOp};
use crate::page::{HEADER_BYTES, PageType, page_type};
use crate::wire::Reader;

/// One change of one page.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum PageOp<'a> {
    /// The whole page as it is in memory, checksum and write counter apart: one of a chain. Pages of all other types change by their own ops only.
    Image(&'a [u8]),
    /// A change of a data page.
    Data(DataOp<'a>),
    /// A change of an index leaf.
    Leaf(LeafOp<'a>),
    /// A change of an index non-leaf page.
    NonLeaf(NonLeafOp<'a>),
}

impl PageOp<'_> {
    /// Applies the change.
    ///
    /// # Errors
    /// When the page cannot take it; the page is then unchanged.
    pub fn apply(&self, page: &mut [u8]) -> Result<(), FormatError> {
        match self {
            PageOp::Image(image) => {
                if image.len() != page.len() || image.len() < HEADER_BYTES {
                    return Err(FormatError::new(format!("image of {} bytes for a page of {}", image.len(), page.len())));
                }
                match page_type(image) {
                    Some(chained @ (PageType::Dictionary | PageType::LargeValue)) => ChainPage::parse(image, chained)?,
                    other => return Err(FormatError::new(format!("image of a page of type {other:?}"))),
                };
                page.copy_from_slice(image);
                Ok(())
            }
            PageOp::Data(op) => op.apply(page),
            PageOp::Leaf(op) => op.apply(page),
            PageOp::NonLeaf(op) => op.apply(page),
        }
    }

    /// Appends the op's log form.
    pub fn encode(&self, out: &mut Vec<u8>) {
        match self {
            PageOp::Image(image) => {
                out.push(0);
                crate::wire::put_bytes(out, image);
            }
            PageOp::Data(op) => {
                out.push(1);
                op.encode(out);
            }
            PageOp::Leaf(op) => {
                out.push(2);
                op.encode(out);
            }
            PageOp::NonLeaf(op) => {
                out.push(3);
                op.encode(out);
            }
        }
    }

    /// Reads an op back from its log form.
    ///
    /// # Errors
    /// When the bytes are not an op.
    pub fn decode<'a>(reader: &mut Reader<'a>) -> Result<PageOp<'a>, FormatError> {
        Ok(match reader.u8()? {
            0 => PageOp::Image(reader.bytes()?),
            1 => PageOp::Data(DataOp::decode(reader)?),
            2 => PageOp::Leaf(LeafOp::decode(reader)?),
            3 => PageOp::NonLeaf(NonLeafOp::decode(reader)?),
            other => return Err(FormatError::new(format!("unknown page op {other}"))),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::StoredKind;
    use crate::index::header::LeafKind;
    use crate::index::leaf::Place;
    use pagefold_codec::splice::Splice;
    use pagefold_types::Rid;

    #[test]
    fn images_are_of_chained_pages() {
        let mut image = vec![0; 2048];
        let mut page = vec![0; 2048];
        assert!(PageOp::Image(&image).apply(&mut page).is_err());
        crate::chain::build(&mut image, 4, PageType::LargeValue, 0, 0, 4, b"a part");
        assert!(PageOp::Image(&image[..2046]).apply(&mut page).is_err());
        PageOp::Image(&image).apply(&mut page).unwrap();
        assert!(page == image);
        crate::page::set_low_end(&mut image, 2049);
        assert!(PageOp::Image(&image).apply(&mut page).is_err() && page != image);
        PageOp::Data(DataOp::Format { page_number: 4, dictionary_version: 0 }).apply(&mut image).unwrap();
        assert!(PageOp::Image(&image).apply(&mut page).is_err());
    }

    #[test]
    fn an_op_of_another_page_type_is_refused() {
        let kind = LeafKind { single: true, fold: false, fixed_key_bytes: 0, slot_bits: 12 };
        let formats = [
            PageOp::Data(DataOp::Format { page_number: 4, dictionary_version: 0 }),
            PageOp::Leaf(LeafOp::Format { page_number: 4, kind, next: 0 }),
            PageOp::NonLeaf(NonLeafOp::Format { page_number: 4, level: 1, first_child: 7 }),
        ];
        let changes = [
            [
                PageOp::Data(DataOp::Insert { slot: 0, kind: StoredKind::Raw, bytes: b"some row" }),
                PageOp::Data(DataOp::Replace { slot: 0, kind: StoredKind::Raw, bytes: b"a longer row" }),
                PageOp::Data(DataOp::Splice { slot: 0, splice: Splice::of_bytes(1, 1, b"x") }),
                PageOp::Data(DataOp::Delete { slot: 0 }),
            ],
            [
                PageOp::Leaf(LeafOp::Insert { key: b"key", rid: Rid::MIN }),
                PageOp::Leaf(LeafOp::SetNext { next: 9 }),
                PageOp::Leaf(LeafOp::KeepFrom { cut: Place::default() }),
                PageOp::Leaf(LeafOp::Remove { key: b"key", rid: Rid::MIN }),
            ],
            [
                PageOp::NonLeaf(NonLeafOp::Insert { separator: b"separator", child: 8 }),
                PageOp::NonLeaf(NonLeafOp::SetFirstChild { child: 6 }),
                PageOp::NonLeaf(NonLeafOp::Replace { index: 0, separator: b"another" }),
                PageOp::NonLeaf(NonLeafOp::Remove { index: 0 }),
            ],
        ];
        for (i, format) in formats.iter().enumerate() {
            let mut page = vec![0; 2048];
            format.apply(&mut page).unwrap();
            for (k, ops) in changes.iter().enumerate() {
                for op in ops {
                    let before = page.clone();
                    assert_eq!(op.apply(&mut page).is_ok(), i == k, "{op:?} after {format:?}");
                    assert!(i == k || page == before);
                    assert!(op.apply(&mut [0; 100]).is_err());
                }
            }
            assert!(format.apply(&mut [0; 100]).is_err());
        }
    }
}
