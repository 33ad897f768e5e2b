//! Trees of every shape against an ordered map, in a pool that holds them and in one that does not; alone and with many threads.

use super::cursor::Direction;
use super::tree::BTree;
use crate::database::{Change, Database, OpenMode, Settings};
use crate::index::{Index, IndexAttributes, IndexFormat};
use crate::pool::{MiniTransaction, PoolSettings};
use crate::table_space::TableAttributes;
use crate::test_random::Random;
use crate::{Error, Result};
use pagefold_codec::index::encode::encode_calls;
use pagefold_format::index::ops::LeafOp;
use pagefold_format::op::PageOp;
use pagefold_format::space_map::CLASS_NO_ROWS;
use pagefold_io::{MemoryStorage, SimulatedClock, Storage};
use pagefold_types::{Column, DataType, Direction as Order, KeyRange, Rid, Schema, Value, ValueRef, prefix_end};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

pub(super) fn open(storage: &Arc<MemoryStorage>, mode: OpenMode, memory_bytes: usize) -> Database {
    let storage: Arc<dyn Storage> = Arc::clone(storage) as Arc<dyn Storage>;
    let clock = Arc::new(SimulatedClock::new(Duration::from_secs(1)));
    let settings = Settings { pools: PoolSettings { memory_bytes, ..PoolSettings::default() }, ..Settings::default() };
    Database::open(storage, clock, Path::new("db"), mode, settings).unwrap()
}

fn schema() -> Schema {
    Schema::new(vec![
        Column::new("a", DataType::BigInt, false),
        Column::new("b", DataType::Integer, false),
        Column::new("name", DataType::Varchar(None), false),
        Column::new("city", DataType::Char(12), false),
        Column::new("perhaps", DataType::Integer, true),
    ])
    .unwrap()
}

/// The columns of an index and how many different values each draws.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    pub(super) columns: &'static [(usize, Order)],
    pub(super) unique: bool,
    /// Keys are drawn from about so many.
    pub(super) keys: u64,
}

pub(super) const UP: Order = Order::Ascending;
const DOWN: Order = Order::Descending;

pub(super) const SHAPES: [Shape; 8] = [
    Shape { columns: &[(0, UP)], unique: true, keys: 1 << 40 },
    Shape { columns: &[(0, UP), (1, DOWN)], unique: true, keys: 30_000 },
    Shape { columns: &[(1, UP)], unique: false, keys: 3 },
    Shape { columns: &[(1, UP)], unique: false, keys: 2_000 },
    Shape { columns: &[(2, UP)], unique: false, keys: 5_000 },
    Shape { columns: &[(3, DOWN), (2, UP), (0, UP)], unique: true, keys: 50_000 },
    Shape { columns: &[(4, UP), (1, UP)], unique: true, keys: 300 },
    Shape { columns: &[(2, DOWN), (4, DOWN)], unique: false, keys: 800 },
];

pub(super) fn key(index: &Index, shape: Shape, n: u64) -> Vec<u8> {
    let n = n % shape.keys;
    let spread = n.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let values: Vec<Value> = shape
        .columns
        .iter()
        .map(|(column, _)| match column {
            0 => Value::Int(n as i64 - 500),
            1 => Value::Int(i64::from(n as u32 as i32 / 3)),
            2 => Value::Text(format!("{}{:x}", "x".repeat(n as usize % 40), spread >> (n % 50))),
            3 => Value::Text(format!("city {}", n % 11)),
            _ if n.is_multiple_of(3) => Value::Null,
            _ => Value::Int(n as i64),
        })
        .collect();
    let refs: Vec<ValueRef<'_>> = values.iter().map(Value::as_ref).collect();
    let mut key = Vec::new();
    index.key_layout().encode(&refs, &mut key).unwrap();
    key
}

fn random_rid(random: &mut Random) -> Rid {
    Rid::new(0, random.below(2000) as u32, random.below(70) as u16)
}

pub(super) fn create_index(change: &mut Change<'_>, shape: Shape, format: IndexFormat, page_bytes: usize) -> Arc<Index> {
    let table = change.create_table(TableAttributes::new("t", schema())).unwrap();
    let attributes = IndexAttributes::new("i", shape.columns.to_vec(), shape.unique).with_format(format, page_bytes);
    change.create_index(&table, attributes).unwrap()
}

pub(super) type Model = BTreeSet<(Vec<u8>, Rid)>;

pub(super) fn no_faults(tree: &BTree<'_>, model: &Model) {
    let mut entries = model.iter();
    let faults = tree
        .check(&mut |key, rid| {
            assert_eq!(entries.next().map(|e| (e.0.as_slice(), e.1)), Some((key, rid)));
            Ok(())
        })
        .unwrap();
    assert_eq!(faults, []);
    assert_eq!(entries.next(), None);
}

fn assert_range(tree: &BTree<'_>, model: &Model, range: &KeyRange, direction: Direction) {
    let above = |e: &&(Vec<u8>, Rid)| super::tree::search_bytes(&e.0, e.1) >= range.start;
    let below = |e: &&(Vec<u8>, Rid)| range.end.as_ref().is_none_or(|end| super::tree::search_bytes(&e.0, e.1) < *end);
    let mut expected: Vec<_> = model.iter().skip_while(|e| !above(e)).take_while(below).cloned().collect();
    if direction == Direction::Backward {
        expected.reverse();
    }
    let mut cursor = tree.range(range.clone(), direction);
    for entry in &expected {
        let (key, rid) = cursor.next().unwrap().expect("the cursor ends early");
        assert_eq!((key, rid), (entry.0.as_slice(), entry.1));
    }
    assert!(cursor.next().unwrap().is_none());
}

fn random_ops(tree: &BTree<'_>, index: &Index, shape: Shape, model: &mut Model, random: &mut Random, steps: u32, fits: bool) {
    let mut live: Vec<(Vec<u8>, Rid)> = model.iter().cloned().collect();
    let mut phase = 0;
    let mut ascending = random.next();
    let mut own_writes = 0;
    for step in 0..steps {
        if step % 4096 == 0 {
            phase = random.below(4);
            ascending = random.next();
        }
        let n = if phase == 3 {
            ascending += 1;
            ascending
        } else {
            random.next()
        };
        let (k, rid) = (key(index, shape, n), random_rid(random));
        let (calls, writes) = (encode_calls(), index.data_set.counters().synchronous_writes);
        match random.below(8) {
            0..=2 => insert(tree, index, shape, model, &mut live, k, rid),
            3 if phase != 1 => insert(tree, index, shape, model, &mut live, k, rid),
            3..=5 if !live.is_empty() && phase != 2 => {
                let at = random.below(live.len() as u64) as usize;
                let (k, rid) = live.swap_remove(at);
                assert!(tree.delete(&k, rid).unwrap());
                assert!(!tree.delete(&k, rid).unwrap());
                model.remove(&(k, rid));
            }
            6 => {
                let first = model.range((k.clone(), Rid::MIN)..).next().filter(|e| e.0 == k).map(|e| e.1);
                assert_eq!(tree.first_rid(&k).unwrap(), first);
                assert_eq!(tree.contains(&k, rid).unwrap(), model.contains(&(k.clone(), rid)));
                if let Some(first) = first {
                    assert!(tree.contains(&k, first).unwrap());
                }
            }
            _ if step % 64 == 7 => {
                let direction = if random.below(2) == 0 { Direction::Forward } else { Direction::Backward };
                let mut end = key(index, shape, n.wrapping_add(random.below(50)));
                let range = match random.below(4) {
                    0 => KeyRange {
                        start: k.clone(),
                        end: prefix_end(&mut k.clone()).then(|| {
                            let mut e = k.clone();
                            prefix_end(&mut e);
                            e
                        }),
                    },
                    1 => KeyRange { start: super::tree::search_bytes(&k, rid), end: Some(end) },
                    2 => KeyRange { start: k[..k.len() / 2].to_vec(), end: prefix_end(&mut end).then_some(end) },
                    _ => KeyRange { start: end.min(k.clone()), end: Some(k) },
                };
                assert_range(tree, model, &range, direction);
            }
            _ => {}
        }
        // A leaf that was given back before it was written is written when its page becomes a non-leaf one.
        let encoded = index.data_set.counters().synchronous_writes - writes;
        assert!(!fits || encode_calls() - calls <= encoded, "the encoder ran in a change");
        own_writes += encoded;
    }
    if fits {
        assert!(own_writes <= u64::from(steps) / 1000, "{own_writes} leaves were encoded in changes");
    }
}

fn insert(tree: &BTree<'_>, index: &Index, shape: Shape, model: &mut Model, live: &mut Vec<(Vec<u8>, Rid)>, key: Vec<u8>, rid: Rid) {
    if model.contains(&(key.clone(), rid)) {
        assert!(tree.insert(&key, rid).is_err());
        return;
    }
    let taken = shape.unique && model.range((key.clone(), Rid::MIN)..).next().is_some_and(|e| e.0 == key);
    if taken && !index.has_null(&key) {
        assert!(matches!(tree.insert(&key, rid), Err(Error::DuplicateKey { .. })));
        return;
    }
    tree.insert(&key, rid).unwrap();
    live.push((key.clone(), rid));
    model.insert((key, rid));
}

/// A million steps over every shape and format.
#[test]
fn trees_are_what_an_ordered_map_is() {
    let formats = [
        (IndexFormat::Plain, 2048),
        (IndexFormat::Fold, 8192),
        (IndexFormat::Plain, 16384),
        (IndexFormat::Fold, 16384),
        (IndexFormat::Fold, 32768),
        (IndexFormat::Prefix, 2048),
        (IndexFormat::Prefix, 8192),
        (IndexFormat::Prefix, 32768),
    ];
    let mut random = Random(41);
    let mut deepest = 0;
    for (i, shape) in SHAPES.into_iter().enumerate() {
        for (format, page_bytes) in formats {
            let fits = (i + page_bytes / 8192).is_multiple_of(2);
            let storage = Arc::new(MemoryStorage::new());
            let database = open(&storage, OpenMode::Create, if fits { 64 << 20 } else { 1 << 20 });
            let mut change = database.change();
            let index = create_index(&mut change, shape, format, page_bytes);
            let tree = index.tree();
            let mut model = Model::new();
            no_faults(&tree, &model);
            assert_range(&tree, &model, &KeyRange { start: vec![], end: None }, Direction::Backward);
            for _ in 0..2 {
                random_ops(&tree, &index, shape, &mut model, &mut random, 12_500, fits);
                no_faults(&tree, &model);
                deepest = deepest.max(tree.levels().unwrap().len());
            }
            for direction in [Direction::Forward, Direction::Backward] {
                assert_range(&tree, &model, &KeyRange { start: vec![], end: None }, direction);
            }
            change.commit().unwrap();
            drop((index, database));
            // From disk, then down to nothing.
            let database = open(&storage, OpenMode::Write, 1 << 20);
            let index = database.index("i").unwrap();
            no_faults(&index.tree(), &model);
            let mut change = database.change();
            let table = change.fork_table("t").unwrap();
            let index = change.fork_index("i", &table).unwrap();
            let tree = index.tree();
            let mut left: Vec<_> = model.iter().cloned().collect();
            while !left.is_empty() {
                let at = random.below(left.len() as u64) as usize;
                let (key, rid) = left.swap_remove(at);
                assert!(tree.delete(&key, rid).unwrap());
                model.remove(&(key, rid));
                if left.len() == 300 {
                    no_faults(&tree, &model);
                }
            }
            no_faults(&tree, &model);
            assert_eq!(tree.levels().unwrap().iter().map(|l| l.pages).sum::<u64>(), 1, "empty, but not small");
        }
    }
    assert!(deepest >= 3, "{deepest}");
}

/// Ascending inserts leave full leaves behind, as a build does.
#[test]
fn ascending_inserts_fill_pages() {
    for (format, page_bytes) in [(IndexFormat::Plain, 4096), (IndexFormat::Fold, 16384), (IndexFormat::Prefix, 4096)] {
        let storage = Arc::new(MemoryStorage::new());
        let database = open(&storage, OpenMode::Create, 64 << 20);
        let mut change = database.change();
        let shape = SHAPES[0];
        let index = create_index(&mut change, shape, format, page_bytes);
        let tree = index.tree();
        let entry = |i: u64| (key(&index, shape, i), Rid::new(0, (i / 60) as u32, (i % 60) as u16));
        for i in 0..60_000 {
            let (key, rid) = entry(i);
            tree.insert(&key, rid).unwrap();
        }
        let levels = tree.levels().unwrap();
        drop(change);
        let mut change = database.change();
        let built = create_index(&mut change, shape, format, page_bytes);
        let mut builder = built.build(59);
        for i in 0..60_000 {
            let (key, rid) = entry(i);
            builder.push(&key, rid).unwrap();
        }
        let facts = builder.finish().unwrap();
        assert_eq!(
            built.tree().levels().unwrap().iter().map(|l| (l.pages, l.free_bytes)).collect::<Vec<_>>(),
            facts.levels.iter().map(|l| (l.pages, l.free_bytes)).collect::<Vec<_>>()
        );
        assert!(levels[0].pages <= facts.levels[0].pages + 2, "{levels:?} {facts:?}");
        let mut model = Model::new();
        model.extend((0..60_000).map(entry));
        no_faults(&built.tree(), &model);
    }
}

#[test]
fn a_built_unique_index_names_the_duplicate() {
    let storage = Arc::new(MemoryStorage::new());
    let database = open(&storage, OpenMode::Create, 4 << 20);
    let mut change = database.change();
    let index = create_index(&mut change, SHAPES[1], IndexFormat::Fold, 8192);
    let mut builder = index.build(70);
    let key = key(&index, SHAPES[1], 1234);
    builder.push(&key, Rid::new(0, 1, 1)).unwrap();
    let error = builder.push(&key, Rid::new(0, 1, 2)).unwrap_err();
    assert_eq!(error.to_string(), "index \"i\": duplicate key (734, 411)");
}

/// A built index of 60,000 keys, committed, and its model.
fn built(storage: &Arc<MemoryStorage>, format: IndexFormat, page_bytes: usize) -> Model {
    let database = open(storage, OpenMode::Create, 64 << 20);
    let mut change = database.change();
    let index = create_index(&mut change, SHAPES[0], format, page_bytes);
    let mut builder = index.build(59);
    let mut model = Model::new();
    for i in 0..60_000 {
        let (key, rid) = (key(&index, SHAPES[0], i), Rid::new(0, (i / 60) as u32, (i % 60) as u16));
        builder.push(&key, rid).unwrap();
        model.insert((key, rid));
    }
    builder.finish().unwrap();
    change.commit().unwrap();
    model
}

#[test]
fn cursors_ask_for_leaves_ahead() {
    for (format, page_bytes) in [(IndexFormat::Plain, 4096), (IndexFormat::Fold, 8192), (IndexFormat::Prefix, 2048)] {
        let storage = Arc::new(MemoryStorage::new());
        let model = built(&storage, format, page_bytes);
        for direction in [Direction::Forward, Direction::Backward] {
            let database = open(&storage, OpenMode::Read, 64 << 20);
            let index = database.index("i").unwrap();
            assert_range(&index.tree(), &model, &KeyRange { start: vec![], end: None }, direction);
            let counters = index.data_set().counters();
            assert!(counters.dynamic_prefetch_requests > 0, "{counters:?}");
            // One key needs no more than its leaf.
            let before = counters.dynamic_prefetch_requests;
            assert_eq!(index.tree().key_cursor(&model.first().unwrap().0).next().unwrap().unwrap().1, Rid::MIN);
            assert_eq!(index.data_set().counters().dynamic_prefetch_requests, before);
        }
    }
}

/// Keys and RIDs without holes take no bits but those of a block's first pair. One taken out makes a hole, and what is left does not fit any more.
#[test]
fn a_removal_that_does_not_fit_splits_its_leaf() {
    let storage = Arc::new(MemoryStorage::new());
    let mut model = built(&storage, IndexFormat::Prefix, 2048);
    let database = open(&storage, OpenMode::Write, 64 << 20);
    let index = database.index("i").unwrap();
    let tree = index.tree();
    let before = tree.levels().unwrap()[0].pages;
    let gone: Vec<_> = model.iter().skip(40).step_by(50).cloned().collect();
    for (key, rid) in gone {
        assert!(tree.delete(&key, rid).unwrap());
        model.remove(&(key, rid));
    }
    let after = tree.levels().unwrap()[0].pages;
    assert!(after > before, "{before} leaves, then {after}");
    no_faults(&tree, &model);
}

#[test]
fn the_check_finds_what_is_wrong() {
    type Damage = fn(&BTree<'_>);
    let damage: [(&str, Damage); 5] = [
        ("RIDs, the header says", |tree| tree.data_set.facts().rows += 1),
        ("keys, the header says", |tree| tree.data_set.facts().keys -= 1),
        ("nothing leads to it", |tree| {
            tree.data_set.append_page(CLASS_NO_ROWS).unwrap();
        }),
        ("follows", |tree| change_first_leaf(tree, PageOp::Leaf(LeafOp::SetNext { next: 7 }))),
        ("outside of what the page above says", |tree| {
            change_first_leaf(tree, PageOp::Leaf(LeafOp::Insert { key: &[0xFF; 8], rid: Rid::MIN }));
        }),
    ];
    for (expected, damage) in damage {
        let storage = Arc::new(MemoryStorage::new());
        let model = built(&storage, IndexFormat::Plain, 4096);
        let database = open(&storage, OpenMode::Write, 64 << 20);
        let index = database.index("i").unwrap();
        no_faults(&index.tree(), &model);
        // Room in the first leaf.
        let (key, rid) = model.first().unwrap();
        index.tree().delete(key, *rid).unwrap();
        damage(&index.tree());
        let faults = index.tree().check(&mut |_, _| Ok(())).unwrap();
        assert!(faults.iter().any(|f| f.reason.contains(expected)), "{expected}: {faults:?}");
    }
}

fn change_first_leaf(tree: &BTree<'_>, op: PageOp<'_>) {
    let page = tree.leaf_for_change(&[], |_| {}).unwrap().unwrap();
    let mut mtr = MiniTransaction::begin(tree.manager);
    let handle = mtr.adopt(page);
    mtr.apply(handle, op).unwrap();
    mtr.commit().unwrap();
}

/// Threads insert, delete, look up and scan at once; everybody's own entries are as they left them.
#[test]
fn threads_share_a_tree() {
    for (format, page_bytes, memory) in [
        (IndexFormat::Plain, 2048, 64 << 20),
        (IndexFormat::Prefix, 2048, 64 << 20),
        (IndexFormat::Prefix, 4096, 1 << 20),
        (IndexFormat::Fold, 8192, 64 << 20),
        (IndexFormat::Fold, 8192, 2 << 20),
    ] {
        let storage = Arc::new(MemoryStorage::new());
        let database = open(&storage, OpenMode::Create, memory);
        let mut change = database.change();
        let shape = Shape { columns: &[(0, UP), (2, UP)], unique: false, keys: 1 << 30 };
        let index = create_index(&mut change, shape, format, page_bytes);
        let threads = 4u64;
        let models: Vec<Model> = std::thread::scope(|scope| {
            let workers: Vec<_> = (0..threads)
                .map(|t| {
                    scope.spawn({
                        let index = &index;
                        move || work(index, shape, t).unwrap()
                    })
                })
                .collect();
            let scanner = scope.spawn(|| {
                for round in 0..60 {
                    let direction = if round % 2 == 0 { Direction::Forward } else { Direction::Backward };
                    let mut last: Option<Vec<u8>> = None;
                    let mut cursor = index.tree().all(direction);
                    while let Some((key, rid)) = cursor.next().unwrap() {
                        let now = super::tree::search_bytes(key, rid);
                        let goes_on = last.is_none_or(|last| (last < now) == (direction == Direction::Forward) && last != now);
                        assert!(goes_on, "a cursor goes back");
                        last = Some(now);
                    }
                }
            });
            scanner.join().unwrap();
            workers.into_iter().map(|w| w.join().unwrap()).collect()
        });
        let all: Model = models.into_iter().flatten().collect();
        no_faults(&index.tree(), &all);
    }
}

/// Of several threads that insert the same key into a unique index, one does.
#[test]
fn one_thread_gets_a_unique_key() {
    let storage = Arc::new(MemoryStorage::new());
    let database = open(&storage, OpenMode::Create, 64 << 20);
    let mut change = database.change();
    let index = create_index(&mut change, SHAPES[0], IndexFormat::Fold, 8192);
    let keys: Vec<Vec<u8>> = (0..8_000).map(|n| key(&index, SHAPES[0], n * 7919 % 8_000)).collect();
    let won: Vec<Model> = std::thread::scope(|scope| {
        let (index, keys) = (&index, &keys);
        let worker = |thread: u32| {
            scope.spawn(move || {
                let mut won = Model::new();
                for key in keys {
                    let rid = Rid::new(0, thread, 1);
                    match index.tree().insert(key, rid) {
                        Ok(()) => assert!(won.insert((key.clone(), rid))),
                        Err(Error::DuplicateKey { .. }) => {}
                        Err(error) => panic!("{error}"),
                    }
                }
                won
            })
        };
        let workers: Vec<_> = (0..4).map(worker).collect();
        workers.into_iter().map(|w| w.join().unwrap()).collect()
    });
    let all: Model = won.into_iter().flatten().collect();
    assert_eq!(all.len(), keys.len());
    no_faults(&index.tree(), &all);
}

fn work(index: &Index, shape: Shape, thread: u64) -> Result<Model> {
    let tree = index.tree();
    let mut random = Random(100 + thread);
    let mut model = Model::new();
    let mut live = Vec::new();
    for step in 0..15_000u64 {
        let growing = step % 6000 < 4000;
        if live.is_empty() || random.below(10) < if growing { 8 } else { 2 } {
            // Keys of all threads lie side by side.
            let n = random.below(20_000) * 4 + thread;
            let (key, rid) = (key(index, shape, n), random_rid(&mut random));
            if model.insert((key.clone(), rid)) {
                tree.insert(&key, rid)?;
                live.push((key, rid));
            }
        } else {
            let at = random.below(live.len() as u64) as usize;
            let (key, rid): (Vec<u8>, Rid) = live.swap_remove(at);
            assert!(tree.delete(&key, rid)?);
            model.remove(&(key, rid));
        }
        if step % 8 == 0 && !live.is_empty() {
            let (key, rid) = &live[random.below(live.len() as u64) as usize];
            assert!(tree.contains(key, *rid)?);
        }
    }
    Ok(model)
}
