//! Pages to start from, made by the ops that make real ones.

use pagefold_format::data::{DataOp, DataPage, StoredKind};
use pagefold_format::index::header::LeafKind;
use pagefold_format::index::ops::{LeafOp, NonLeafOp};
use pagefold_format::page::{PageType, page_type};
use pagefold_types::Rid;

/// A data page with rows of all kinds, and a free slot.
pub fn data(bytes: usize) -> Vec<u8> {
    let mut page = vec![0; bytes];
    DataOp::Format { page_number: 3, dictionary_version: 1 }.apply(&mut page).expect("a data page");
    let away = [4, 0, 0, 0, 0, 1, 0, 2, 0, 0, 9, 9, 9, 9];
    let rows: [(StoredKind, &[u8]); 9] = [
        (StoredKind::Raw, b"a row as it is, of some length"),
        (StoredKind::Compressed, &[0x10, 0x20, 0x30, 0x40, 0x50, 0x60, 0x70, 0x80, 0x90]),
        (StoredKind::Special, &[1, 0, 0, 0, 0, 1, 0, 2]),
        (StoredKind::Raw, b"a row that will go"),
        (StoredKind::Special, &[2, 3, b'a', b'b', b'c', 0, 0, 0]),
        (StoredKind::Special, &[3, 2, 0, 1, 2, 3, 4, 5, 6]),
        (StoredKind::Special, &away),
        (StoredKind::Special, &[16 + 3, 0x10, 0x20, 0x30, 0, 0, 0, 0]),
        (StoredKind::Special, &[24 + 2, 2, 0, 0x10, 0x20, 0, 0, 0]),
    ];
    for (slot, (kind, bytes)) in rows.into_iter().enumerate() {
        DataOp::Insert { slot: slot as u16, kind, bytes }.apply(&mut page).expect("room");
    }
    DataOp::Delete { slot: 3 }.apply(&mut page).expect("a row");
    page
}

/// A data page of 4 KB with a column part: that of the golden files.
pub fn column_part() -> &'static [u8] {
    include_bytes!("../../crates/format/src/data/golden/data-v2.bin")
}

/// A leaf with some entries.
pub fn leaf(bytes: usize, kind: LeafKind) -> Vec<u8> {
    let mut page = vec![0; bytes];
    LeafOp::Format { page_number: 4, kind, next: 5 }.apply(&mut page).expect("a leaf");
    for i in 0..40u32 {
        let word = ["fold", "folded", "folder", "leaf", "leaves", "page"][i as usize * 7 % 6];
        let mut key = word.as_bytes().to_vec();
        if kind.fixed_key_bytes == 0 {
            key.extend(std::iter::repeat_n(b'.', i as usize % 4));
        } else {
            key.push((i / 2) as u8);
            key.resize(usize::from(kind.fixed_key_bytes), 0);
        }
        let rid = Rid::new(0, i * 3, (i % 16) as u16);
        let _ = LeafOp::Insert { key: &key, rid }.apply(&mut page);
    }
    page
}

/// A prefix leaf: keys of one length (9) or of several (0), each once or in lists.
pub fn prefix_leaf(fixed_key_bytes: u16, unique: bool) -> Vec<u8> {
    let mut page = vec![0; 2048];
    LeafOp::FormatPrefix { page_number: 4, fixed_key_bytes, next: 5 }.apply(&mut page).expect("a leaf");
    for k in 0..200u32 {
        let number = if unique { k * 3 } else { k / 5 * 3 };
        let word = ["fold", "folder", "leaf"][number as usize % 3];
        let key = match fixed_key_bytes {
            0 => format!("key {number:05} {word}").into_bytes(),
            _ => [b"key. ".as_slice(), &number.to_be_bytes()].concat(),
        };
        let _ = LeafOp::Insert { key: &key, rid: Rid::new(0, k * 7 % 50, (k % 16) as u16) }.apply(&mut page);
    }
    page
}

/// Pages of every type: data, non-leaf, the kinds of leaves, a column part, prefix leaves.
pub fn all() -> Vec<Vec<u8>> {
    let leaves = leaf_kinds().map(|kind| leaf(if kind.fold { 8192 } else { 2048 }, kind));
    let prefix = [(9, true), (0, false)].map(|(fixed, unique)| prefix_leaf(fixed, unique));
    let pages: Vec<Vec<u8>> =
        [data(2048), non_leaf(2048)].into_iter().chain(leaves).chain([column_part().to_vec()]).chain(prefix).collect();
    let full: Vec<Vec<u8>> = pages.iter().cloned().map(filled).collect();
    pages.into_iter().chain(full).collect()
}

/// The page with little room left: what goes on is at its limits.
fn filled(mut page: Vec<u8>) -> Vec<u8> {
    let data = DataPage::new(&page);
    if page_type(&page) == Some(PageType::Data) {
        let slot = data.slot_count();
        let row = vec![b'f'; data.free_bytes() - data.directory_growth(slot) - 12];
        DataOp::Insert { slot, kind: StoredKind::Raw, bytes: &row }.apply(&mut page).expect("room");
        return page;
    }
    for length in [200, 40, 20, 12, 9] {
        for i in 0..2000u32 {
            let mut key = format!("m{:05}", i * 7919 % 100_000).into_bytes();
            key.resize(length, b'f');
            let rid = Rid::new(0, i, (i % 16) as u16);
            let done = match page_type(&page) {
                Some(PageType::NonLeaf) => NonLeafOp::Insert { separator: &key, child: i + 1 }.apply(&mut page),
                _ => LeafOp::Insert { key: &key, rid }.apply(&mut page),
            };
            if done.is_err() {
                break;
            }
        }
    }
    page
}

/// The kinds of leaves: unique or not, one key length or not, folded or not.
pub fn leaf_kinds() -> impl Iterator<Item = LeafKind> {
    (0..8u8).map(|i| {
        let fold = i & 1 != 0;
        LeafKind { fold, single: i & 2 != 0, fixed_key_bytes: if i & 4 != 0 { 9 } else { 0 }, slot_bits: if fold { 5 } else { 12 } }
    })
}

/// A non-leaf page with some separators.
pub fn non_leaf(bytes: usize) -> Vec<u8> {
    let mut page = vec![0; bytes];
    NonLeafOp::Format { page_number: 6, level: 1, first_child: 7 }.apply(&mut page).expect("a non-leaf page");
    for i in 0..20u32 {
        let separator = format!("separator {}", i * 7 % 20);
        NonLeafOp::Insert { separator: separator.as_bytes(), child: 8 + i }.apply(&mut page).expect("room");
    }
    page
}
