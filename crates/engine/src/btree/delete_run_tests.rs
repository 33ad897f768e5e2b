//! Runs of removals against an ordered map, and against the same tree from which the entries are taken out one by one.

use super::tests::{Model, SHAPES, create_index, key, no_faults, open};
use super::tree::BTree;
use crate::database::OpenMode;
use crate::index::IndexFormat;
use crate::test_random::Random;
use pagefold_io::MemoryStorage;
use pagefold_types::Rid;
use std::sync::Arc;

/// Takes entries out that ascend, of which some may not be there; how many came by runs.
fn delete_all(tree: &BTree<'_>, model: &mut Model, entries: &[(Vec<u8>, Rid)]) -> usize {
    let list: Vec<(&[u8], Rid)> = entries.iter().map(|(key, rid)| (key.as_slice(), *rid)).collect();
    let (mut at, mut by_run) = (0, 0);
    while at < list.len() {
        let done = tree.delete_run(&list[at..]).unwrap();
        if done.entries == 0 {
            let (key, rid) = &entries[at];
            assert_eq!(tree.delete(key, *rid).unwrap(), model.remove(&entries[at]));
            at += 1;
            continue;
        }
        let found = entries[at..at + done.entries].iter().filter(|entry| model.remove(entry)).count();
        assert_eq!(done.found, found);
        by_run += found;
        at += done.entries;
    }
    by_run
}

#[test]
fn runs_take_out_what_is_there_and_nothing_else() {
    let formats = [
        (IndexFormat::Plain, 2048),
        (IndexFormat::Fold, 8192),
        (IndexFormat::Prefix, 2048),
        (IndexFormat::Prefix, 8192),
        (IndexFormat::Prefix, 32768),
    ];
    let mut random = Random(7);
    for shape in SHAPES {
        for (format, page_bytes) in formats {
            let database = open(&Arc::new(MemoryStorage::new()), OpenMode::Create, 16 << 20);
            let mut change = database.change();
            let index = create_index(&mut change, shape, format, page_bytes);
            let tree = index.tree();
            let (mut model, mut by_run, mut gone) = (Model::new(), 0, 0);
            for round in 0..6 {
                for _ in 0..4000 {
                    let entry = (key(&index, shape, random.next()), Rid::new(0, random.below(2000) as u32, random.below(70) as u16));
                    let taken = shape.unique && model.range((entry.0.clone(), Rid::MIN)..).next().is_some_and(|e| e.0 == entry.0);
                    if !model.contains(&entry) && (!taken || index.has_null(&entry.0)) {
                        tree.insert(&entry.0, entry.1).unwrap();
                        model.insert(entry);
                    }
                }
                // A range of keys, every so many-th, nearly all; with some that are not there.
                let all: Vec<_> = model.iter().cloned().collect();
                let one_in = [1, 2, 3, 10, 100][random.below(5) as usize];
                let from = if random.below(2) == 0 { 0 } else { random.index(all.len()) };
                let mut entries: Vec<_> = all[from..].iter().filter(|_| random.below(one_in) == 0).cloned().collect();
                entries.extend((0..20).map(|_| (key(&index, shape, random.next()), Rid::new(1, 7, 7))));
                entries.sort();
                entries.dedup();
                let before = model.len();
                by_run += delete_all(&tree, &mut model, &entries);
                gone += before - model.len();
                no_faults(&tree, &model);
                assert_eq!(index.data_set().facts().rows, model.len() as u64, "round {round}");
            }
            assert!(by_run * 10 > gone * 9 || shape.keys < 1000, "{by_run} of {gone} by runs: {shape:?}, {format}");
            let all: Vec<_> = model.iter().cloned().collect();
            delete_all(&tree, &mut model, &all);
            no_faults(&tree, &model);
            assert_eq!(tree.levels().unwrap().iter().map(|level| level.pages).sum::<u64>(), 1, "empty, but not small");
        }
    }
}
