//! Bytes that nobody wrote, for the decoders without a test of their own for that: pages that are read whole, control slots, streams of ops.

use crate::chain::{self, ChainPage};
use crate::control::{CONTROL_SLOT_BYTES, ControlSlot, SlotState};
use crate::data::{DataOp, DataPage, StoredKind};
use crate::data_set_header::{DICTIONARIES_MAX, DataSetHeader, DictionaryRoot, ObjectKind};
use crate::index::check;
use crate::index::header::LeafKind;
use crate::index::leaf::Place;
use crate::index::ops::{LeafOp, NonLeafOp};
use crate::op::PageOp;
use crate::page::{PageType, page_type};
use crate::space_map::{self, SpaceWord};
use crate::test_random::Random;
use crate::wire::Reader;
use pagefold_codec::splice::{Splice, Unit};
use pagefold_types::Rid;
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// Changes some bytes, most of them in the first `low`.
fn damage(random: &mut Random, bytes: &mut [u8], low: u64) {
    for _ in 0..=random.below(4) {
        let n = if random.below(4) == 0 { bytes.len() as u64 } else { low };
        let at = random.below(n) as usize;
        bytes[at] = [0, 0xFF, random.next() as u8, bytes[at] ^ 1 << random.below(8)][random.below(4) as usize];
    }
}

#[test]
fn headers_maps_and_chains() {
    let mut random = Random(41);
    let header = DataSetHeader {
        file_id: 3,
        object_id: 9,
        kind: ObjectKind::Table,
        partition: 2,
        page_bytes: 4096,
        leaf_bytes: 4096,
        page_count: 100,
        data_pages: 80,
        rows: 7,
        root_page: 0,
        levels: 0,
        keys: 0,
        space_map_writes: 12,
        dictionaries: vec![DictionaryRoot { version: 1, first_page: 7, bytes: 60_000 }; 3],
    };
    let words: Vec<SpaceWord> = (0..60).map(|i| SpaceWord::new(i as u8, i)).collect();
    let mut pages = vec![vec![0; 2048]; 3];
    header.build(&mut pages[0]);
    space_map::build(&mut pages[1], 1, &words);
    chain::build(&mut pages[2], 5, PageType::LargeValue, 6, 1, 4, &[7; 300]);
    let mut accepted = [0; 3];
    for _ in 0..20_000 {
        for (good, accepted) in pages.iter().zip(&mut accepted) {
            let mut page = good.clone();
            damage(&mut random, &mut page, 150);
            let mut again = vec![0xFF; 2048];
            if let Ok(found) = DataSetHeader::parse(&page) {
                assert!(found.dictionaries.len() <= DICTIONARIES_MAX);
                found.build(&mut again);
                assert_eq!(DataSetHeader::parse(&again).unwrap(), found);
                *accepted += 1;
            }
            if let Ok(found) = space_map::words(&page) {
                let found: Vec<SpaceWord> = found.collect();
                space_map::build(&mut again, 1, &found);
                assert!(space_map::words(&again).unwrap().eq(found));
                *accepted += 1;
            }
            for chained in [PageType::Dictionary, PageType::LargeValue] {
                if let Ok(found) = ChainPage::parse(&page, chained) {
                    chain::build(&mut again, 5, chained, found.next, found.sequence, found.owner, found.payload);
                    assert_eq!(ChainPage::parse(&again, chained).unwrap(), found);
                    *accepted += 1;
                }
            }
        }
    }
    assert!(accepted.iter().all(|n| (1_000..19_500).contains(n)), "{accepted:?}");
}

#[test]
fn control_slots() {
    let mut random = Random(42);
    let state = ControlSlot {
        sequence: 40,
        database_id: 7,
        catalog_file_id: 5,
        catalog_writes: 1,
        next_file_id: 6,
        next_object_id: 9,
        checkpoint: 1,
        log_id: 7,
    };
    let (mut valid, mut damaged) = (0, 0);
    for _ in 0..5_000 {
        let mut slot = state.build();
        damage(&mut random, &mut slot[8..], 56);
        // With the right checksum, so that it is the fields that decide.
        let number = random.below(2) as usize;
        let sum = xxh3_64_with_seed(&slot[8..], number as u64);
        slot[..8].copy_from_slice(&sum.to_le_bytes());
        match ControlSlot::parse(&slot, number) {
            SlotState::Valid(found) => {
                assert_eq!(ControlSlot::slot_number(found.sequence), number);
                assert_eq!(ControlSlot::parse(&found.build(), number), SlotState::Valid(found));
                valid += 1;
            }
            SlotState::Newer(version) => assert_ne!(version, 1),
            SlotState::Damaged(_) => damaged += 1,
            SlotState::Empty => panic!("not empty"),
        }
        let short = random.below(CONTROL_SLOT_BYTES as u64) as usize;
        assert!(matches!(ControlSlot::parse(&slot[..short], number), SlotState::Damaged(_)));
    }
    assert!(valid > 500 && damaged > 500, "{valid} {damaged}");
}

fn validate(page: &[u8]) -> Result<(), crate::FormatError> {
    if page_type(page) == Some(PageType::Data) { DataPage::new(page).validate() } else { check::validate(page) }
}

/// Ops of all page types in random order, some with a byte changed: a page stays valid, and as it was when the op is refused.
#[test]
fn streams_of_ops() {
    let mut random = Random(43);
    let (mut done, mut refused, mut unreadable) = (0, 0, 0);
    for _ in 0..1_500 {
        let kind = LeafKind { single: random.below(2) == 0, fold: false, fixed_key_bytes: random.one_of(&[0, 3]), slot_bits: 12 };
        let mut page = vec![0; 2048];
        let format = match random.below(3) {
            0 => PageOp::Data(DataOp::Format { page_number: 4, dictionary_version: 1 }),
            1 => PageOp::Leaf(LeafOp::Format { page_number: 4, kind, next: 0 }),
            _ => PageOp::NonLeaf(NonLeafOp::Format { page_number: 4, level: 1, first_child: 7 }),
        };
        format.apply(&mut page).unwrap();
        for _ in 0..60 {
            let bytes: Vec<u8> = (0..random.one_of(&[3, 3, 9, 40])).map(|_| random.below(3) as u8).collect();
            let (slot, at) = (random.below(6) as u16, random.below(9) as u16);
            let rid = Rid::new(0, random.below(9) as u32, slot);
            let cut = Place { entry: random.below(9) as usize, rid: random.below(2) as usize };
            let op = match random.below(19) {
                0 | 1 => PageOp::Data(DataOp::Insert { slot, kind: StoredKind::Raw, bytes: &bytes }),
                2 => PageOp::Data(DataOp::Replace { slot, kind: StoredKind::Special, bytes: &bytes }),
                3 => {
                    let unit = [Unit::Bytes, Unit::Codes, Unit::Bits, Unit::BitsCut][random.below(4) as usize];
                    let unit_bits = [8, 12, 1, 1][unit as usize];
                    let inserted = (bytes.len() * 8 / unit_bits) as u16;
                    PageOp::Data(DataOp::Splice {
                        slot,
                        splice: Splice { unit, at, removed: at, inserted, bytes: &bytes[..Splice::piece_len(unit, inserted)] },
                    })
                }
                4 => PageOp::Data(DataOp::Delete { slot }),
                5 | 6 => PageOp::Leaf(LeafOp::Insert { key: &bytes, rid }),
                7 => PageOp::Leaf(LeafOp::Remove { key: &bytes, rid }),
                8 => PageOp::Leaf(LeafOp::KeepFirst { cut }),
                9 => PageOp::Leaf(LeafOp::KeepFrom { cut }),
                10 | 11 => PageOp::NonLeaf(NonLeafOp::Insert { separator: &bytes, child: 9 }),
                12 => PageOp::NonLeaf(NonLeafOp::Remove { index: at }),
                13 => PageOp::Data(DataOp::MarkDeleted { slot }),
                14 => PageOp::Data(DataOp::Undelete { slot, kind: StoredKind::Raw }),
                15 => PageOp::Data(DataOp::Purge { slot }),
                16 => PageOp::Leaf(LeafOp::Prepend { count: at, run: &bytes }),
                17 => PageOp::Leaf(LeafOp::Append { count: at, run: &bytes }),
                _ => PageOp::NonLeaf(NonLeafOp::Replace { index: at, separator: &bytes }),
            };
            let mut log = Vec::new();
            op.encode(&mut log);
            if random.below(3) == 0 {
                let n = log.len() as u64;
                damage(&mut random, &mut log, n);
            }
            let mut reader = Reader::new(&log);
            let Ok(op) = PageOp::decode(&mut reader) else {
                unreadable += 1;
                continue;
            };
            let used = log.len() - reader.rest().len();
            let mut again = Vec::new();
            op.encode(&mut again);
            assert_eq!(again, log[..used]);
            let before = page.clone();
            match op.apply(&mut page) {
                Ok(()) => {
                    validate(&page).unwrap_or_else(|e| panic!("{op:?}: {e}"));
                    done += 1;
                }
                Err(_) => {
                    assert!(page == before, "{op:?}");
                    refused += 1;
                }
            }
        }
    }
    assert!(done > 5_000 && refused > 5_000 && unreadable > 1_000, "{done} {refused} {unreadable}");
}
