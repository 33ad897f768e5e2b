//! Levels, pages and bytes.

use crate::data::{build, database};
use pagefold_advisor::LeafFormat;
use pagefold_engine::index::IndexFormat;
use pagefold_utility::{IndexOptions, PageSizeOptions, Silent, drop_object, page_sizes};

const ROWS: u64 = 60_000;

/// Columns, and whether they are unique.
const KEYS: [(&[&str], bool); 5] =
    [(&["up"], true), (&["random"], true), (&["few"], false), (&["name"], false), (&["few", "random"], true)];

#[test]
fn levels_and_pages_are_those_of_built_indexes() {
    let database = database(ROWS, 64 << 20);
    let mut built_ones = 0;
    for (columns, unique) in KEYS {
        for pctfree in [0, 10] {
            let plain = IndexOptions { unique, pctfree, ..IndexOptions::default() };
            build(&database, columns, &plain);
            let report = page_sizes(&database, "i", &PageSizeOptions::default(), &Silent).unwrap();
            assert_eq!(usize::from(report.levels_now), report.lines[report.present].estimate.levels.len());
            assert_eq!(report.now.size_bytes, report.lines[report.present].estimate.size_bytes());
            drop_object(&database, "i").unwrap();
            for line in &report.lines {
                let e = &line.estimate;
                let format: IndexFormat = e.candidate.format().parse().unwrap();
                let index = build(
                    &database,
                    columns,
                    &IndexOptions { format: format.into(), page_bytes: Some(e.candidate.page_bytes), ..plain.clone() },
                );
                let levels: Vec<u64> = index.tree().levels().unwrap().iter().map(|level| level.pages).collect();
                assert_eq!(e.levels, levels, "{columns:?} {:?}", e.candidate);
                let bytes = u64::from(index.data_set().page_count()) * index.data_set().page_bytes() as u64;
                assert_eq!(e.size_bytes(), bytes, "{columns:?} {:?}", e.candidate);
                drop_object(&database, "i").unwrap();
                built_ones += 1;
            }
        }
    }
    println!("{built_ones} indexes built: levels, pages of each level and bytes as foretold");
    assert!(built_ones >= 130);
}

#[test]
fn a_level_is_saved_by_the_smallest_page_size() {
    let database = database(ROWS, 64 << 20);
    let options = IndexOptions { unique: true, page_bytes: Some(2048), ..IndexOptions::default() };
    build(&database, &["up"], &options);
    let report = page_sizes(&database, "i", &PageSizeOptions::default(), &Silent).unwrap();
    let plain = report.levels_saved.iter().find(|saved| saved.candidate.format == LeafFormat::Plain).unwrap();
    assert_eq!((plain.levels_before, plain.levels), (usize::from(report.levels_now), usize::from(report.levels_now) - 1));
    // Built at that size it has a level less, and at the next smaller one it does not.
    for (page_bytes, levels) in [(plain.candidate.page_bytes, plain.levels), (plain.candidate.page_bytes - 2048, plain.levels_before)] {
        drop_object(&database, "i").unwrap();
        let index = build(&database, &["up"], &IndexOptions { page_bytes: Some(page_bytes), ..options.clone() });
        assert_eq!(index.tree().levels().unwrap().len(), levels, "{page_bytes}");
        let bytes = u64::from(index.data_set().page_count()) * page_bytes as u64;
        if levels == plain.levels {
            assert_eq!(plain.more_bytes, bytes as i64 - report.now.size_bytes as i64);
        }
    }
}

#[test]
fn samples_are_near() {
    let database = database(ROWS * 3, 64 << 20);
    for (columns, unique) in KEYS {
        build(&database, columns, &IndexOptions { unique, ..IndexOptions::default() });
        let whole = page_sizes(&database, "i", &PageSizeOptions::default(), &Silent).unwrap();
        let sample =
            page_sizes(&database, "i", &PageSizeOptions { sample_pages: Some(64), ..PageSizeOptions::default() }, &Silent).unwrap();
        assert!(sample.is_sample && !whole.is_sample);
        let (mut farthest, mut other_levels) = (0.0f64, 0);
        for (a, b) in sample.lines.iter().zip(&whole.lines).filter(|(a, b)| a.estimate.candidate == b.estimate.candidate) {
            let (leaves, truth) = (a.estimate.leaf_pages.value as f64, b.estimate.leaf_pages.value as f64);
            // One page more or less of few is not far.
            farthest = farthest.max(((leaves - truth).abs() - 1.0).max(0.0) / truth);
            // Of a sample, as many leaves as a page above has children may be a few more, or a few less.
            let (levels, truth) = (a.estimate.levels.len(), b.estimate.levels.len());
            assert!(levels.abs_diff(truth) <= 1, "{columns:?} {:?}", a.estimate.candidate);
            other_levels += u32::from(levels != truth);
        }
        println!("{columns:?}: leaf pages of a sample of 64 pages are off by {:.2} % at most", farthest * 100.0);
        assert!(farthest < 0.05 && other_levels <= 1, "{columns:?}: {farthest}, {other_levels} with other levels");
        drop_object(&database, "i").unwrap();
    }
}
