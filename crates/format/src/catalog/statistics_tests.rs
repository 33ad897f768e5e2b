//! Round trips, bytes that are fixed for good, limits, and bytes that nobody wrote.

use super::*;
use crate::test_random::Random;

fn kept() -> Kept {
    let mut kept = Kept::default();
    kept.keep(Attribute { tag: 40, bytes: b"later" }).unwrap();
    kept
}

fn full() -> Statistics {
    let mut figures = Figures::default();
    figures.set(figure::DATA_PAGES, Figure::exact(17.0));
    figures.set(figure::ROWS, Figure::exact(1000.0));
    figures.set(figure::STORED_BYTES, Figure::within(40.5, 39.0, 42.25));
    let mut of_column = Figures::default();
    of_column.set(figure::NULL_SHARE, Figure::within(0.25, 0.125, 0.5));
    of_column.set(figure::CORRELATION, Figure::within(-0.5, -1.0, 0.0));
    let column = ColumnStatistics {
        column: 3,
        figures: of_column,
        least: Some(vec![0x7F, 1]),
        greatest: Some(vec![0x80, 1]),
        bounds: vec![vec![1], vec![1, 2], vec![7]],
        frequent: vec![(vec![5, 5], Figure::within(0.5, 0.25, 0.75)), (Vec::new(), Figure::exact(0.125))],
        kept: kept(),
    };
    Statistics {
        gathered_ms: 1_764_312_172_000,
        looked: Looked { pages_read: 17, pages: 1700, rows_read: 900 },
        seed: Some(7),
        figures,
        columns: vec![ColumnStatistics { column: 1, ..ColumnStatistics::default() }, column],
        prefixes: vec![Figure::within(10.0, 5.0, 20.0), Figure::exact(1000.0)],
        kept: kept(),
    }
}

#[test]
fn everything_comes_back() {
    for statistics in [full(), Statistics::default()] {
        assert_eq!(Statistics::decode(&statistics.encode()).unwrap(), statistics);
    }
    assert_eq!(full().column(3).unwrap().bounds.len(), 3);
    assert_eq!(full().column(2), None);
    assert_eq!(full().figures.get(figure::ROWS), Some(Figure::exact(1000.0)));
    assert_eq!(full().figures.get(figure::KEYS), None);
}

/// The bytes of all there is to say. They are never changed: a later form comes beside them, under another name.
#[test]
fn golden_statistics() {
    let golden = include_bytes!("golden/statistics_1.bin");
    assert_eq!(full().encode(), golden);
    assert_eq!(Statistics::decode(golden).unwrap(), full());
}

#[test]
fn what_is_no_statistics_is_refused() {
    assert!(Statistics::decode(&[]).is_err());
    assert!(Statistics::decode(&[2]).is_err(), "another form");
    let with = |tag: u32, bytes: &[u8]| {
        let mut out = vec![FORM];
        put(&mut out, tag, bytes);
        Statistics::decode(&out)
    };
    let figure = |numbers: &[f64]| {
        let mut bytes = vec![numbers.len() as u8];
        numbers.iter().for_each(|number| bytes.extend_from_slice(&number.to_le_bytes()));
        bytes
    };
    assert!(with(12, &figure(&[1.0])).is_ok());
    assert!(with(12, &figure(&[1.0, 0.0, 2.0])).is_ok());
    for wrong in [&[1.0, 2.0, 3.0][..], &[1.0, 0.0, 0.5], &[f64::NAN], &[f64::INFINITY], &[0.0, f64::NEG_INFINITY, 1.0], &[1.0, 1.0]] {
        assert!(with(12, &figure(wrong)).is_err(), "{wrong:?}");
    }
    assert!(with(12, &[&figure(&[1.0])[..], &[0]].concat()).is_err(), "bytes behind a figure");
    assert!(with(41, &[]).is_err(), "an odd tag that is not known");
    assert!(with(42, &[]).is_ok());
    let mut bounds = Vec::new();
    [[2u8], [1]].iter().for_each(|bound| put(&mut bounds, 10, bound));
    assert!(with(10, &bounds).is_err(), "bounds that do not ascend");
    let mut twice = vec![FORM];
    (0..2).for_each(|_| put(&mut twice, 8, &[&[1][..], &figure(&[1.0])].concat()));
    assert!(Statistics::decode(&twice).is_err(), "a figure twice");
}

#[test]
fn too_much_becomes_less() {
    let value = |number: u32| number.to_be_bytes().to_vec();
    let column = |column: u32| ColumnStatistics {
        column,
        bounds: (0..=64).map(value).collect(),
        frequent: (0..16).map(|number| (value(number), Figure::within(0.1, 0.0, 0.2))).collect(),
        ..ColumnStatistics::default()
    };
    for (columns, bounds) in [(50, 65), (250, 33), (600, 9), (1_200, 5), (30_000, 0)] {
        let statistics = Statistics { columns: (0..columns).map(column).collect(), ..Statistics::default() };
        let bytes = statistics.encode();
        assert!(bytes.len() <= STATISTICS_BYTES_MAX, "{columns}: {}", bytes.len());
        let back = Statistics::decode(&bytes).unwrap();
        assert_eq!(back.columns.first().map_or(0, |column| column.bounds.len()), bounds, "{columns} columns, {} bytes", bytes.len());
    }
}

#[test]
fn hostile_bytes_are_refused_or_come_back_as_they_are() {
    let good = full().encode();
    let mut random = Random(17);
    let (mut taken, mut refused) = (0, 0);
    for _ in 0..40_000 {
        let mut bytes = good.clone();
        for _ in 0..=random.below(3) {
            let at = random.below(bytes.len() as u64) as usize;
            bytes[at] = [0, 1, 0x7F, 0xFF, random.next() as u8, bytes[at] ^ 1 << random.below(8)][random.below(6) as usize];
        }
        if random.below(8) == 0 {
            bytes.truncate(random.below(bytes.len() as u64) as usize);
        }
        match Statistics::decode(&bytes) {
            Ok(statistics) => {
                assert_eq!(Statistics::decode(&statistics.encode()).unwrap(), statistics);
                taken += 1;
            }
            Err(error) => {
                assert!(!error.to_string().is_empty());
                refused += 1;
            }
        }
    }
    assert!(taken > 1_000 && refused > 10_000, "{taken} {refused}");
}
