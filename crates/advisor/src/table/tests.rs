//! Counting agrees with arithmetic by hand, and samples with the whole.

use super::*;
use crate::{AdvisorError, data_set_pages};
use pagefold_types::{Column, DataType, RowLayout, Schema, ValueRef};

struct Rng(u64);

impl Rng {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.0 ^ self.0 >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ z >> 31
    }

    fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }
}

fn layout() -> RowLayout {
    let columns = vec![Column::new("id", DataType::BigInt, false), Column::new("text", DataType::Varchar(None), true)];
    RowLayout::new(&Schema::new(columns).unwrap()).unwrap()
}

fn record(layout: &RowLayout, id: i64, text: &str) -> Vec<u8> {
    let mut out = Vec::new();
    layout.encode(&[ValueRef::Int(id), ValueRef::Text(text)], &mut out).unwrap();
    out
}

#[test]
fn fixed_rows_by_hand() {
    let layout = layout();
    let mut estimator = TableEstimator::new(&layout, &[]);
    estimator.add("none", TableOptions::new(2048), None);
    estimator.add("none", TableOptions { maxrows: 10, ..TableOptions::new(4096) }, None);
    let one = record(&layout, 1, &"x".repeat(89));
    assert_eq!(one.len(), 100);
    for _ in 0..19_000 {
        estimator.push(&one).unwrap();
    }
    // 19 rows of 104 bytes with their slots in 2048 - 36.
    let got = estimator.finish();
    assert_eq!(got[0].data_pages.value, 1000);
    assert_eq!(got[0].pages.value, data_set_pages(1000, 2048));
    assert_eq!(got[0].other_pages, 1 + 2);
    assert_eq!((got[0].row_bytes, got[0].record_bytes, got[0].free_bytes()), (19_000 * 104, 1_900_000, 1000 * (2012 - 19 * 104)));
    assert_eq!(got[1].data_pages.value, 1900);
    let saving = got[1].saving(&got[0], 1500, data_set_pages(1500, 2048));
    assert_eq!(saving.total_bytes(), data_set_pages(1500, 2048) as i64 * 2048 - got[1].size_bytes() as i64);
    assert_eq!((saving.encoding_bytes, saving.free_space_bytes), (0, 500 * 2012));
}

#[test]
fn wide_rows_take_pages_of_their_own() {
    let layout = layout();
    let mut estimator = TableEstimator::new(&layout, &[]);
    for page_bytes in [2048, 32768] {
        estimator.add("none", TableOptions::new(page_bytes), None);
    }
    let mut rng = Rng(3);
    let noise: String = (0..5000).map(|_| char::from(b'!' + (rng.below(90)) as u8)).collect();
    estimator.push(&record(&layout, 1, &noise)).unwrap();
    estimator.push(&record(&layout, 2, "short")).unwrap();
    let got = estimator.finish();
    // 5,000 bytes that hardly compress: three chained pages of 2,004 bytes.
    assert_eq!((got[0].large_pages, got[0].data_pages.value, got[0].pages.value), (3, 1, 1 + 1 + 3 + 1));
    assert_eq!((got[1].large_pages, got[1].data_pages.value, got[1].pages.value), (0, 1, 3));
    // A key that must stay: the row cannot be made narrow enough.
    let mut estimator = TableEstimator::new(&layout, &[1]);
    estimator.add("none", TableOptions::new(2048), None);
    assert!(matches!(estimator.push(&record(&layout, 1, &noise)), Err(AdvisorError::Value(_))));
}

#[test]
fn partitions_open_where_one_is_full() {
    let layout = layout();
    let options = TableOptions { partition_bytes: 64 * 2048, ..TableOptions::new(2048) };
    let mut packer = TablePacker::new(options, None);
    let mut last = packer.push(1900);
    for _ in 1..200 {
        let rid = packer.push(1900);
        assert!(rid > last && (rid.partition() > last.partition() || rid.page() == last.page() + 1));
        assert!(u64::from(rid.page() + 1) * 2048 <= options.partition_bytes);
        last = rid;
    }
    assert_eq!(last.partition(), 3);
    assert_eq!(packer.page_count(), 200 + 4 * 2);
    let _ = layout;
}

/// Clusters of a table whose rows get longer towards its end: the interval has the truth, and is narrow.
#[test]
fn samples_cover_the_whole() {
    let layout = layout();
    let mut rng = Rng(11);
    let rows: Vec<Vec<u8>> = (0..60_000u64)
        .map(|i| {
            let length = 20 + rng.below(100) + i / 1000 + if rng.below(300) == 0 { 3000 } else { 0 };
            let text: String = (0..length).map(|_| char::from(b'a' + rng.below(26) as u8)).collect();
            record(&layout, i as i64, &text)
        })
        .collect();
    let add = |estimator: &mut TableEstimator<'_>| {
        estimator.add("none", TableOptions::new(2048), None);
        estimator.add("none", TableOptions { pctfree: 20, ..TableOptions::new(8192) }, None);
    };
    let mut whole = TableEstimator::new(&layout, &[]);
    add(&mut whole);
    rows.iter().for_each(|row| whole.push(row).unwrap());
    let truth: Vec<u64> = whole.finish().iter().map(|e| e.pages.value).collect();
    let (clusters, trials) = (60_000 / 60, 100);
    let mut inside = [0; 2];
    for _ in 0..trials {
        let mut sample = TableEstimator::new(&layout, &[]);
        add(&mut sample);
        let mut chosen: Vec<u64> = (0..100).map(|_| rng.below(clusters)).collect();
        chosen.sort_unstable();
        chosen.dedup();
        for cluster in chosen {
            sample.begin_cluster();
            rows[cluster as usize * 60..][..60].iter().for_each(|row| sample.push(row).unwrap());
        }
        for (i, e) in sample.finish_sample(60_000, clusters as f64, &[]).iter().enumerate() {
            inside[i] += u32::from(e.pages.contains(truth[i]));
            assert!(e.pages.half_width() < 0.1, "{:?}", e.pages);
        }
    }
    assert!(inside.iter().all(|n| *n >= 90), "{inside:?} of {trials}");
}
