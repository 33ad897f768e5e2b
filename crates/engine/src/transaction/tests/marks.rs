//! Read marks: coarser ones cover finer ones, and nothing is left behind.

use crate::test_random::Random;
use crate::transaction::read_marks::{MarkLimits, ReadMarks};
use pagefold_types::Rid;
use std::collections::BTreeSet;
use std::ops::Bound::{Excluded, Included, Unbounded};

#[test]
fn marks_cover_what_was_read() {
    let limits = MarkLimits { rows_per_page: 3, per_object: 12, per_transaction: 20, total: 1000, committed: 4 };
    for seed in 0..200 {
        let mut random = Random(seed);
        let mut marks = ReadMarks::new(limits);
        let mut rows: BTreeSet<(u64, u32, u64)> = BTreeSet::new();
        let mut keys: BTreeSet<(u64, u32, u8)> = BTreeSet::new();
        for _ in 0..300 {
            let (owner, object) = (1 + random.below(3), random.below(3) as u32);
            match random.below(20) {
                0 => {
                    marks.remove(owner);
                    rows.retain(|row| row.0 != owner);
                    keys.retain(|key| key.0 != owner);
                }
                1 => {
                    let to = 1 + owner % 3;
                    marks.hand_over(owner, to);
                    rows = rows.into_iter().map(|row| (if row.0 == owner { to } else { row.0 }, row.1, row.2)).collect();
                    keys = keys.into_iter().map(|key| (if key.0 == owner { to } else { key.0 }, key.1, key.2)).collect();
                }
                2 => {
                    let (low, high) = (random.below(100) as u8, random.below(100) as u8);
                    marks.mark_range(owner, object + 10, Excluded(&[low]), Included(&[high]));
                    keys.extend((low.saturating_add(1)..=high).map(|key| (owner, object + 10, key)));
                }
                3 => {
                    let low = 90 + random.below(100) as u8;
                    marks.mark_range(owner, object + 10, Included(&[low]), Unbounded);
                    keys.extend((low..=255).map(|key| (owner, object + 10, key)));
                }
                4..8 => {
                    let key = random.below(100) as u8;
                    marks.mark_range(owner, object + 10, Included(&[key]), Included(&[key]));
                    keys.insert((owner, object + 10, key));
                }
                _ => {
                    let rid = Rid::new(0, random.below(4) as u32, random.below(8) as u16);
                    marks.mark_row(owner, object, rid);
                    rows.insert((owner, object, rid.to_u64()));
                }
            }
            assert!(marks.len() <= 3 * (limits.per_transaction + 7));
        }
        assert!(rows.iter().all(|&(owner, object, rid)| marks.readers_of_row(object, Rid::from_u64(rid).unwrap()).contains(&owner)));
        assert!(keys.iter().all(|&(owner, index, key)| marks.readers_of_key(index, &[key]).contains(&owner)));
        (1..4).for_each(|owner| marks.remove(owner));
        assert_eq!(marks.len(), 0);
        assert!(marks.is_empty());
    }
}

#[test]
fn fine_marks_are_exact() {
    let mut marks = ReadMarks::new(MarkLimits::default());
    marks.mark_row(1, 5, Rid::new(0, 1, 1));
    marks.mark_range(1, 6, Included(b"b"), Excluded(b"d"));
    assert_eq!(marks.readers_of_row(5, Rid::new(0, 1, 1)), [1]);
    assert!(marks.readers_of_row(5, Rid::new(0, 1, 2)).is_empty() && marks.readers_of_row(6, Rid::new(0, 1, 1)).is_empty());
    for (key, readers) in [("a", 0), ("b", 1), ("cc", 1), ("d", 0)] {
        assert_eq!(marks.readers_of_key(6, key.as_bytes()).len(), readers, "{key}");
    }
}
