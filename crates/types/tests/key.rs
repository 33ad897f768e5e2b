//! Keys order like their values, are prefix-free, and come back.
#![allow(missing_docs, clippy::unwrap_used)]

mod common;

use common::{Rng, identical, refs, row, schema, stored, value};
use pagefold_types::{Column, DataType, Direction, KeyError, KeyLayout, RowLayout, Schema, Value, ValueRef, key_bytes_max, prefix_end};
use std::cmp::Ordering;

fn key(layout: &KeyLayout, values: &[Value]) -> Vec<u8> {
    let mut out = Vec::new();
    let length = layout.encode(&refs(values), &mut out).unwrap();
    assert_eq!(length, out.len());
    out
}

fn directed(ordering: Ordering, direction: Direction) -> Ordering {
    if direction == Direction::Descending { ordering.reverse() } else { ordering }
}

fn random_layout(rng: &mut Rng, schema: &Schema) -> (KeyLayout, Vec<(usize, Direction)>) {
    let n = 1 + rng.below(4);
    let columns: Vec<(usize, Direction)> = (0..n)
        .map(|_| (rng.below(schema.len() as u64) as usize, if rng.chance(2) { Direction::Ascending } else { Direction::Descending }))
        .collect();
    (KeyLayout::new(schema, &columns), columns)
}

#[test]
fn keys_order_like_values() {
    let mut rng = Rng(11);
    let (mut equal, mut different) = (0, 0);
    for _ in 0..20_000 {
        let schema = schema(&mut rng, 4);
        let (layout, columns) = random_layout(&mut rng, &schema);
        for _ in 0..10 {
            let a = row(&mut rng, &schema);
            let mut b = row(&mut rng, &schema);
            // Mostly equal beginnings, so that later columns decide.
            for (i, value) in a.iter().enumerate() {
                if rng.below(3) > 0 {
                    b[i] = value.clone();
                }
            }
            let pick =
                |row: &[Value]| -> Vec<Value> { columns.iter().map(|(i, _)| stored(&row[*i], &schema.columns()[*i].data_type)).collect() };
            let expected = pick(&a)
                .iter()
                .zip(&pick(&b))
                .zip(&columns)
                .map(|((x, y), (_, direction))| directed(x.cmp(y), *direction))
                .find(|o| o.is_ne())
                .unwrap_or(Ordering::Equal);
            let (key_a, key_b) = (key(&layout, &pick(&a)), key(&layout, &pick(&b)));
            assert_eq!(key_a.cmp(&key_b), expected, "{a:?} {b:?} {columns:?}");
            if expected.is_eq() {
                equal += 1;
            } else {
                different += 1;
                assert!(!key_a.starts_with(&key_b) && !key_b.starts_with(&key_a), "prefix-free: {a:?} {b:?}");
            }
            if let Some(length) = layout.fixed_len() {
                assert_eq!(key_a.len(), length);
            }
        }
    }
    assert!(equal > 10_000 && different > 10_000, "{equal} {different}");
}

#[test]
fn records_give_the_same_keys_and_keys_give_the_values_back() {
    let mut rng = Rng(12);
    for _ in 0..20_000 {
        let schema = schema(&mut rng, 6);
        let (layout, columns) = random_layout(&mut rng, &schema);
        let row_layout = RowLayout::new(&schema).unwrap();
        let values = row(&mut rng, &schema);
        let mut record = Vec::new();
        row_layout.encode(&refs(&values), &mut record).unwrap();
        let (mut by_record, mut by_row) = (Vec::new(), Vec::new());
        layout.encode_from_record(&row_layout, &record, &mut by_record).unwrap();
        layout.encode_from_values(&refs(&values), &mut by_row).unwrap();
        assert_eq!(by_record, by_row);
        let back = layout.decode(&by_row).unwrap();
        for (i, (column, _)) in columns.iter().enumerate() {
            let expected = stored(&values[*column], &schema.columns()[*column].data_type);
            assert!(if layout.decodes_exactly(i) { identical(&back[i], &expected) } else { back[i] == expected });
        }
    }
}

#[test]
fn hostile_keys() {
    let mut rng = Rng(13);
    for _ in 0..20_000 {
        let schema = schema(&mut rng, 4);
        let (layout, columns) = random_layout(&mut rng, &schema);
        let values: Vec<Value> = columns.iter().map(|(i, _)| value(&mut rng, &schema.columns()[*i].data_type)).collect();
        let good = key(&layout, &values);
        for cut in 0..good.len() {
            assert!(layout.decode(&good[..cut]).is_err(), "prefix-free: no cut key is a key");
        }
        let mut damaged = good.clone();
        let at = rng.below(damaged.len() as u64 * 8);
        damaged[at as usize / 8] ^= 1 << (at % 8);
        // What is decoded is the key of those values.
        if let Ok(back) = layout.decode(&damaged) {
            assert_eq!(key(&layout, &back), damaged);
        }
        let _ = layout.describe(&damaged);
        let mut longer = good;
        longer.push(0);
        assert!(layout.decode(&longer).is_err());
    }
}

#[test]
fn zeros_and_nans_find_each_other() {
    let schema = Schema::new(vec![Column::new("x", DataType::Double, false), Column::new("y", DataType::Real, false)]).unwrap();
    let layout = KeyLayout::new(&schema, &[(0, Direction::Ascending), (1, Direction::Descending)]);
    let a = key(&layout, &[Value::Double(-0.0), Value::Real(f32::NAN)]);
    let b = key(&layout, &[Value::Double(0.0), Value::Real(-f32::from_bits(0x7F80_0001))]);
    assert_eq!(a, b);
    // The bits of -0 and of other NaNs would be found by nobody.
    for ordered in [!(-0.0f64).to_bits(), f64::NAN.to_bits() | 1 << 63 | 1] {
        let mut bad = ordered.to_be_bytes().to_vec();
        bad.extend_from_slice(&a[8..]);
        assert!(layout.decode(&bad).is_err());
    }
}

#[test]
fn limits() {
    let schema =
        Schema::new(vec![Column::new("id", DataType::Integer, false), Column::new("name", DataType::Varchar(None), true)]).unwrap();
    let layout = KeyLayout::new(&schema, &[(0, Direction::Ascending), (1, Direction::Ascending)]).with_limit("by_name", 20);
    let mut out = vec![9];
    assert_eq!(layout.encode(&[ValueRef::Int(1), ValueRef::Text(&"x".repeat(14))], &mut out).unwrap(), 20);
    out.truncate(1);
    let error = layout.encode(&[ValueRef::Int(1), ValueRef::Text(&"x".repeat(15))], &mut out).unwrap_err();
    assert_eq!(
        error.to_string(),
        "key of 21 bytes is longer than the 20 that by_name takes (its longest column is \"name\" with 17 bytes)"
    );
    assert_eq!(out, [9]);
    assert!(matches!(layout.encode(&[ValueRef::Null], &mut out), Err(KeyError::Value(_))));
    assert!(matches!(layout.encode(&[ValueRef::Int(1), ValueRef::Null, ValueRef::Null], &mut out), Err(KeyError::Value(_))));
    assert_eq!(layout.describe(&key(&layout, &[Value::Int(7), Value::Text("Smith".into())])), "(7, \"Smith\")");
    assert_eq!(layout.describe(&key(&layout, &[Value::Int(7), Value::Null])), "(7, NULL)");
    assert_eq!([2_048, 4_096, 8_192, 32_768].map(key_bytes_max), [464, 976, 2_000, 2_000]);
    assert_eq!([0, 64, 200].map(key_bytes_max), [0, 0, 2]);
}

#[test]
fn prefixes_bound_ranges() {
    let mut rng = Rng(14);
    for _ in 0..5_000 {
        let schema = schema(&mut rng, 3);
        let (layout, columns) = random_layout(&mut rng, &schema);
        let full: Vec<Value> = columns.iter().map(|(i, _)| common::value_or_null(&mut rng, &schema.columns()[*i])).collect();
        let start = key(&layout, &full[..full.len() - 1]);
        let all = key(&layout, &full);
        let mut end = start.clone();
        let bounded = prefix_end(&mut end);
        assert!(all.starts_with(&start) && all >= start && (!bounded || all < end));
    }
    let mut none = vec![0xFF, 0xFF];
    assert!(!prefix_end(&mut none) && none.is_empty());
}
