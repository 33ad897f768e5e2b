//! One page of each type as version 1 writes it. These bytes are never edited: a change of the format is a new version with files of its own.

use super::folded;
use super::header::{FOLDED_PAGE_BYTES, LeafKind};
use super::leaf::{Leaf, check};
use super::non_leaf;
use super::ops::{LeafOp, NonLeafOp};
use crate::page::{PageIdentity, seal, verify};
use pagefold_types::Rid;
use std::path::PathBuf;

const IDENTITY: PageIdentity = PageIdentity { database_id: 0x0123_4567_89AB_CDEF, file_id: 7, page_number: 42 };

fn file(name: &str) -> Vec<u8> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("src/index/golden").join(name);
    std::fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// With `PAGEFOLD_WRITE_GOLDEN` set, writes files that do not exist yet.
fn assert_golden(name: &str, page: &[u8]) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("src/index/golden").join(name);
    if std::env::var_os("PAGEFOLD_WRITE_GOLDEN").is_some() && !path.exists() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, page).unwrap();
    }
    assert!(file(name) == page, "{name} is not what is written today");
}

fn sample_leaf(bytes: usize, kind: LeafKind) -> Vec<u8> {
    let mut page = vec![0; bytes];
    LeafOp::Format { page_number: 42, kind, next: 43 }.apply(&mut page).unwrap();
    let mut state = 9u32;
    for i in 0..60u32 {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let word = ["fold", "folded", "folder", "leaf", "leaves", "page"][(state >> 16) as usize % 6];
        let mut key = word.as_bytes().to_vec();
        if kind.fixed_key_bytes == 0 {
            key.extend(vec![b'.'; (state >> 24) as usize % 5]);
        } else {
            key.extend(i.to_be_bytes());
            key.resize(usize::from(kind.fixed_key_bytes), 0);
        }
        let rid = Rid::new((state >> 28) as u16 % 3, state >> 12 & 0x3FF, (i * 37 % 64) as u16);
        LeafOp::Insert { key: &key, rid }.apply(&mut page).unwrap();
    }
    page
}

#[test]
fn plain_leaf() {
    let mut page = sample_leaf(2048, LeafKind { single: false, fold: false, fixed_key_bytes: 0, slot_bits: 12 });
    seal(&mut page, &IDENTITY);
    assert_golden("leaf-v1.bin", &page);
    verify(&page, &IDENTITY).unwrap();
    check(&page).unwrap();
}

#[test]
fn folded_leaves() {
    for (name, single, fixed_key_bytes) in [
        ("folded-lists-v1.bin", false, 0),
        ("folded-unique-v1.bin", true, 12),
        ("folded-unique-variable-v1.bin", true, 0),
        ("folded-fixed-lists-v1.bin", false, 12),
    ] {
        let page = sample_leaf(8192, LeafKind { single, fold: true, fixed_key_bytes, slot_bits: 6 });
        let mut disk = [0; FOLDED_PAGE_BYTES];
        folded::fold(&page, &mut disk).unwrap();
        seal(&mut disk, &IDENTITY);
        assert_golden(name, &disk);
        let mut back = vec![0; 8192];
        folded::expand(&file(name), &mut back).unwrap();
        assert!(back[8..] == page[8..]);
        assert!(Leaf::new(&back).entry_count() > 20);
    }
}

#[test]
fn non_leaf() {
    let mut page = vec![0; 2048];
    NonLeafOp::Format { page_number: 42, level: 1, first_child: 100 }.apply(&mut page).unwrap();
    for i in 0..40u32 {
        let separator = format!("separator {}", i * 17 % 40);
        NonLeafOp::Insert { separator: separator.as_bytes(), child: 101 + i }.apply(&mut page).unwrap();
    }
    seal(&mut page, &IDENTITY);
    assert_golden("non-leaf-v1.bin", &page);
    non_leaf::check(&page).unwrap();
}
