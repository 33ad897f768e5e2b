//! Writes inputs to start from to `corpus/<target>/`: real pages and records, so that a target need not find out what one looks like.
//!
//! `cargo run --example seeds` in `fuzz/`; with the features `engine` and `interchange` for their targets, too.

use pagefold_codec::index::layout::{common_prefix, key_head};
use pagefold_codec::index::prefix::{Entries, Plan};
use pagefold_codec::page::{PageEncoder, PageSchema};
use pagefold_codec::row::{Dictionary, HuffmanCodes, HuffmanDictionary, HuffmanEncoder};
use pagefold_codec::splice::{Splice, Unit};
use pagefold_format::chain;
use pagefold_format::control::ControlSlot;
use pagefold_format::live_view::LiveView;
use pagefold_format::copy::{BaseCopy, CopiedDataSet, CopyBlock, CopyHeader, Manifest};
use pagefold_format::data::{COLUMN_ROWS_START, ColumnImage, DataOp, DataPage, ENTRY_BYTES, StoredKind, state_bytes};
use pagefold_format::data_set_header::{DataSetHeader, DictionaryRoot, ObjectKind};
use pagefold_format::index::folded::fold;
use pagefold_format::index::header::FOLDED_PAGE_BYTES;
use pagefold_format::index::leaf::{Leaf, Place};
use pagefold_format::index::non_leaf::NonLeaf;
use pagefold_format::index::ops::{LeafOp, NonLeafOp};
use pagefold_format::index::prefix::PrefixLeaf;
use pagefold_format::key_trace::{KeySpan, KeyTrace};
use pagefold_format::log::{
    Action, Change, Checkpoint, CheckpointDefinition, CheckpointLeftover, Commit, Counts, DataSetOp, DataSetState, Earlier, EntryList,
    Role, RunningTransaction, Undo, put_change,
};
use pagefold_format::op::PageOp;
use pagefold_format::page::{PageType, low_end};
use pagefold_format::space_map::{self, SpaceWord};
use pagefold_fuzz::{pages, schema};
use pagefold_types::{Column, CompactLayout, DataType, Direction, KeyLayout, Rid, RowLayout, Schema, Value, text};
use std::path::PathBuf;
use std::sync::Arc;

/// Writes one input.
fn put(target: &str, name: &str, bytes: &[u8]) {
    let directory = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("corpus").join(target);
    std::fs::create_dir_all(&directory).expect("a directory");
    std::fs::write(directory.join(format!("seed-{name}")), bytes).expect("a file");
}

fn encode(ops: &[PageOp<'_>]) -> Vec<u8> {
    let mut out = Vec::new();
    for op in ops {
        op.encode(&mut out);
    }
    out
}

fn whole_pages() {
    let mut page = vec![0; 2048];
    let header = DataSetHeader {
        file_id: 3,
        object_id: 9,
        kind: ObjectKind::Index,
        partition: 0,
        page_bytes: 4096,
        leaf_bytes: 8192,
        page_count: 40,
        data_pages: 30,
        rows: 1000,
        root_page: 4,
        levels: 2,
        keys: 900,
        space_map_writes: 3,
        dictionaries: vec![DictionaryRoot { version: 1, first_page: 7, bytes: 9000 }],
    };
    header.build(&mut page);
    put("page", "header", &page);
    let words: Vec<SpaceWord> = (0..40).map(|i| SpaceWord::new(i as u8, i)).collect();
    space_map::build(&mut page, 1, &words);
    put("page", "space-map", &page);
    chain::build(&mut page, 8, PageType::Dictionary, 9, 0, 1, b"a part of a dictionary");
    put("page", "dictionary", &page);
    chain::build(&mut page, 8, PageType::LargeValue, 0, 1, 7, b"a part of a large value");
    put("page", "large-value", &page);
    let slot = ControlSlot {
        sequence: 41,
        database_id: 77,
        catalog_file_id: 5,
        catalog_writes: 1,
        next_file_id: 6,
        next_object_id: 9,
        checkpoint: 0,
        log_id: 77,
    };
    let manifest = Manifest {
        base: Some(BaseCopy { copy_id: 9, redo: 4096 }),
        control: slot,
        redo: 5000,
        log_start: 4096,
        log_end: 9000,
        segment_bytes: 16 << 20,
        begun_ns: 1 << 60,
        last_commit_ns: 1 << 60,
        data_sets: vec![CopiedDataSet { file_id: 3, page_bytes: 4096, page_count: 90 }],
        tables: vec!["t".into()],
    };
    let mut bytes = vec![2];
    manifest.encode(&mut bytes);
    put("copy", "manifest", &bytes);
    put("copy", "header", &[&[0], &CopyHeader { copy_id: 9, manifest: 64, length: 200, partial: false }.build()[8..]].concat());
    let block = CopyBlock::Pages { file_id: 3, page_bytes: 4096, first: 7 }.build(&page, 9, 64);
    put("copy", "pages", &[&[1], &block[..], &page].concat());
    put("statistics", "all", include_bytes!("../../crates/format/src/catalog/golden/statistics_1.bin"));
    let view = LiveView { sequence: 7, opening: 9, unix_time_ns: 1 << 60, text: "# HELP a b\na{x=\"y\"} 1\n".into() };
    put("live_view", "place", &[&[1], &view.build()[8..]].concat());
    put("control", "slot", &[&[1], &slot.build()[8..96]].concat());
    let key = |n: u32| format!("key {n:05}").into_bytes();
    let trace = KeyTrace {
        spans: vec![KeySpan { low: key(10), high: Some(key(40)) }, KeySpan { low: key(60), high: None }],
        keys: (10..40).chain(60..90).map(key).collect(),
        references: (0..200u32).map(|n| n * n % 60).collect(),
        requests: 1_000,
        requests_seen: 500,
        elapsed_ns: 1 << 40,
        entries: 90,
        full: false,
    };
    let bytes = trace.encode();
    put("key_trace", "small", &bytes[10..bytes.len() - 8]);
}

fn index_pages() {
    for (i, kind) in pages::leaf_kinds().enumerate() {
        let page = pages::leaf(if kind.fold { 8192 } else { 2048 }, kind);
        let leaf = Leaf::new(&page);
        let key = leaf.entry(3).key;
        let cut = Place { entry: 9, rid: 0 };
        let rid = Rid::new(0, 5, 6);
        let (count, run) = leaf.run(Place { entry: leaf.entry_count() - 2, rid: 0 }, Place { entry: leaf.entry_count(), rid: 0 });
        let ops = encode(&[
            PageOp::Leaf(LeafOp::Insert { key, rid }),
            PageOp::Leaf(LeafOp::Remove { key, rid }),
            PageOp::Leaf(LeafOp::KeepFirst { cut }),
            PageOp::Leaf(LeafOp::Append { count: count as u16, run: &run }),
            PageOp::Leaf(LeafOp::KeepFrom { cut: Place { entry: 2, rid: 0 } }),
            PageOp::Leaf(LeafOp::SetNext { next: 8 }),
        ]);
        put("leaf", &i.to_string(), &[page.as_slice(), &ops].concat());
        put("page_op", &format!("leaf-{i}"), &[&[i as u8 + 2], ops.as_slice()].concat());
        if kind.fold {
            let mut folded = vec![0; FOLDED_PAGE_BYTES];
            fold(&page, &mut folded).expect("folds");
            put("folded_leaf", &i.to_string(), &folded);
            let longest = leaf.entries().map(|e| e.key.len()).max().unwrap_or(0) as u16;
            let prefix = pagefold_codec::index::layout::common_prefix(leaf.entry(0).key, leaf.entry(leaf.entry_count() - 1).key) as u8;
            let mut input = vec![u8::from(kind.single) | 4];
            input.extend(kind.fixed_key_bytes.to_le_bytes());
            input.push(leaf.kind().slot_bits);
            input.extend((leaf.entry_count() as u16).to_le_bytes());
            input.push(prefix);
            input.extend(longest.to_le_bytes());
            input.extend(&folded[..leaf.folded_bytes()]);
            put("index_expand", &i.to_string(), &input);
        }
    }
    let page = pages::non_leaf(2048);
    let run = NonLeaf::new(&page).run(18);
    let ops = encode(&[
        PageOp::NonLeaf(NonLeafOp::KeepFirst { count: 18 }),
        PageOp::NonLeaf(NonLeafOp::Append { count: 2, run: &run }),
        PageOp::NonLeaf(NonLeafOp::Insert { separator: b"separator 77", child: 99 }),
        PageOp::NonLeaf(NonLeafOp::Replace { index: 3, separator: b"separator 12x" }),
        PageOp::NonLeaf(NonLeafOp::Remove { index: 0 }),
        PageOp::NonLeaf(NonLeafOp::SetFirstChild { child: 5 }),
    ]);
    put("non_leaf", "0", &[page.as_slice(), &ops].concat());
    put("page_op", "non-leaf", &[&[1], ops.as_slice()].concat());
}

/// Prefix leaves with keys of one length and of several, unique and not; and their blocks alone.
fn prefix_leaves() {
    for (i, fixed) in [9u16, 9, 0, 0].into_iter().enumerate() {
        let unique = i % 2 == 0;
        let page = pages::prefix_leaf(fixed, unique);
        let leaf = PrefixLeaf::new(&page);
        let (mut key, mut last) = (Vec::new(), Vec::new());
        leaf.key(Place { entry: 0, rid: 7 }, &mut key);
        leaf.key(leaf.place_before(leaf.end()).expect("a pair"), &mut last);
        let rid = Rid::new(0, 60, 6);
        let from = Place { entry: leaf.block_count() - 1, rid: 3 };
        let (count, run) = leaf.run(from, leaf.end()).expect("a run");
        let ops = encode(&[
            PageOp::Leaf(LeafOp::Insert { key: &key, rid }),
            PageOp::Leaf(LeafOp::Remove { key: &key, rid }),
            PageOp::Leaf(LeafOp::KeepFirst { cut: from }),
            PageOp::Leaf(LeafOp::Append { count: count as u16, run: &run }),
            PageOp::Leaf(LeafOp::KeepFrom { cut: Place { entry: 0, rid: 9 } }),
            PageOp::Leaf(LeafOp::SetNext { next: 8 }),
        ]);
        put("page_op", &format!("prefix-{i}"), &[&[11 + i as u8 / 2], ops.as_slice()].concat());
        put("prefix_leaf", &i.to_string(), &[&*page, &(key.len() as u16).to_le_bytes(), &key, &ops].concat());

        let mut entries = Entries::new();
        leaf.block(0).expect("a block").decode(&mut entries).expect("a block of a leaf");
        let shared = common_prefix(&key, &last).min(7).min(common_prefix(entries.key(0), &last));
        let plan = Plan::new(&entries, usize::from(fixed)).expect("a block of pairs");
        let mut block = vec![fixed as u8];
        block.extend(key_head(entries.key(0), shared).to_le_bytes());
        block.push(shared as u8);
        block.extend(&entries.key(0)[..shared]);
        plan.encode(&entries, shared, &mut block);
        put("index_block", &i.to_string(), &block);
    }
}

fn data_pages() {
    let ops = encode(&[
        PageOp::Data(DataOp::Insert { slot: 3, kind: StoredKind::Raw, bytes: b"another row" }),
        PageOp::Data(DataOp::Replace { slot: 0, kind: StoredKind::Compressed, bytes: &[9; 40] }),
        PageOp::Data(DataOp::Splice { slot: 3, splice: Splice::of_bytes(2, 3, b"xyz") }),
        PageOp::Data(DataOp::Splice { slot: 3, splice: Splice { unit: Unit::Bits, at: 2, removed: 30, inserted: 9, bytes: b"xy" } }),
        PageOp::Data(DataOp::Delete { slot: 6 }),
        PageOp::Data(DataOp::Format { page_number: 5, dictionary_version: 0 }),
    ]);
    put("data_page", "0", &[pages::data(2048).as_slice(), &ops].concat());
    let column_ops = encode(&[
        PageOp::Data(DataOp::Patch { at: 60, bytes: &[7] }),
        PageOp::Data(DataOp::MarkDeleted { slot: 2 }),
        PageOp::Data(DataOp::Insert { slot: 7, kind: StoredKind::Raw, bytes: b"another row" }),
        PageOp::Data(DataOp::Replace { slot: 1, kind: StoredKind::Raw, bytes: &[9; 40] }),
    ]);
    put("data_page", "column-part", &[pages::column_part(), &column_ops].concat());
    put("page_op", "data", &[&[0], ops.as_slice()].concat());
    let short = encode(&[PageOp::Data(DataOp::Insert { slot: 3, kind: StoredKind::Raw, bytes: b"nine byte" })]);
    let next = encode(&[PageOp::Data(DataOp::Insert { slot: 8, kind: StoredKind::Raw, bytes: b"nine byte" })]);
    let longer = encode(&[PageOp::Data(DataOp::Replace { slot: 0, kind: StoredKind::Raw, bytes: &[7; 40] })]);
    for (i, ops) in [ops.as_slice(), &short, &next, &longer].into_iter().enumerate() {
        put("page_op", &format!("full-data-{i}"), &[&[13], ops].concat());
    }
    let part = pages::column_part();
    let view = DataPage::new(part);
    let area = view.column_part().expect("a column part");
    let (rows, low_end) = (COLUMN_ROWS_START + area.area().len(), usize::from(low_end(part)));
    let directory = part.len() - state_bytes(area.rows()) - ENTRY_BYTES * view.entries().count();
    let image = ColumnImage {
        slots: view.slot_count(),
        dictionary_version: area.dictionary(),
        area: area.area(),
        rows: &part[rows..low_end],
        directory: &part[directory..],
        ranges: 0,
        sparse: false,
    };
    let rebuild = PageOp::Data(DataOp::Rebuild(image));
    let ghosts = [
        PageOp::Data(DataOp::MarkDeleted { slot: 0 }),
        PageOp::Data(DataOp::Undelete { slot: 0, kind: StoredKind::Column }),
        PageOp::Data(DataOp::MarkDeleted { slot: 1 }),
        PageOp::Data(DataOp::Purge { slot: 1 }),
        PageOp::Data(DataOp::MarkDeleted { slot: 2 }),
        PageOp::Data(DataOp::Undelete { slot: 2, kind: StoredKind::Raw }),
        PageOp::Data(DataOp::Delete { slot: 3 }),
    ];
    put("page_op", "rebuild", &[&[10], encode(&[rebuild]).as_slice(), &encode(&ghosts)].concat());
    put("page_op", "rebuild-of-rows", &[&[0], encode(&[rebuild]).as_slice()].concat());
    put("page_op", "ghosts", &[&[0], encode(&ghosts).as_slice()].concat());
    put("page_op", "column-part", &[&[10], encode(&ghosts).as_slice(), &column_ops].concat());
    put("page_op", "column-ops", &[&[10], column_ops.as_slice()].concat());
}

fn log_records() {
    let rid = Rid::new(0, 5, 6);
    let mut entries = Vec::new();
    [&b"first"[..], b"second"].iter().for_each(|key| EntryList::push(&mut entries, key, rid));
    let undos = [
        Undo::InsertedEntries { object_id: 2, entries: EntryList::parse(&entries).expect("a list") },
        Undo::InsertedRow { object_id: 1, rid },
        Undo::InsertedRows { object_id: 1, rid, count: 9 },
        Undo::DeletedRow { object_id: 1, rid, kind: 1 },
        Undo::UpdatedRow { object_id: 1, rid, before: Earlier::Spliced(Splice::of_bytes(3, 2, b"before")) },
        Undo::UpdatedRow {
            object_id: 1,
            rid,
            before: Earlier::Spliced(Splice { unit: Unit::BitsCut, at: 30, removed: 9, inserted: 12, bytes: b"be" }),
        },
        Undo::UpdatedRow { object_id: 1, rid, before: Earlier::Whole { version: 1, bytes: b"before" } },
        Undo::InsertedEntry { object_id: 2, key: b"key", rid },
        Undo::AllocatedPage { file_id: 3, page: 9 },
        Undo::Definition { object_id: 4, rows: Some(b"\x04\x00rows") },
        Undo::Definition { object_id: 4, rows: None },
    ];
    let changes = [
        Change::Page(PageOp::Data(DataOp::Insert { slot: 3, kind: StoredKind::Raw, bytes: b"another row" })),
        Change::Page(PageOp::Leaf(LeafOp::Insert { key: b"key", rid })),
        Change::Page(PageOp::NonLeaf(NonLeafOp::SetFirstChild { child: 5 })),
        Change::DataSet(DataSetOp::Allocate { class: 200 }),
        Change::DataSet(DataSetOp::Count(Counts { rows: -1, data_pages: 1, keys: 300 })),
        Change::DataSet(DataSetOp::Dictionary { version: 2, bytes: 70_000 }),
        Change::DataSet(DataSetOp::GhostGone { slot: 3 }),
    ];
    for (i, undo) in undos.into_iter().enumerate() {
        let mut body = vec![0, i as u8];
        Action::encode_head(&Role::Undoable { transaction: 300, previous: 70_000, undo }, &mut body);
        changes.iter().for_each(|change| put_change(&mut body, 3, 9, change));
        put("log_record", &format!("action-{i}"), &body);
    }
    let checkpoint = Checkpoint {
        redo: 1 << 40,
        next_transaction: 8,
        transactions: vec![RunningTransaction { id: 7, first: 10, last: 1 << 33 }],
        data_sets: vec![DataSetState { file_id: 1, object_id: 9, partition: 0, header_writes: 2 }],
        leftovers: undos.iter().filter_map(Undo::leaves).map(|left| CheckpointLeftover { transaction: 5, after: 1, left }).collect(),
        committed: vec![(9, Some(b"\x04\x00rows".to_vec())), (10, None)],
        definitions: vec![CheckpointDefinition { transaction: 6, after: 2, object_id: 9, rows: Some(b"\x04\x00rows".to_vec()) }],
    };
    let mut body = vec![2, 0];
    checkpoint.encode(&mut body);
    put("log_record", "checkpoint", &body);
    let mut body = vec![1, 0];
    Commit { transaction: 300, unix_time_ns: 1 << 60 }.encode(&mut body);
    put("log_record", "commit", &body);
    for (i, role) in [Role::Structure, Role::Compensation { transaction: 300, next: 70_000 }].into_iter().enumerate() {
        let mut body = vec![0, i as u8];
        Action::encode_head(&role, &mut body);
        changes.iter().for_each(|change| put_change(&mut body, 3, 9, change));
        put("log_record", &format!("role-{i}"), &body);
    }
    put("log_segment", "0", &[0, 0, 1, 0, 0x40, 0x10, 3, 1, 2, 3]);
    put("log_segment", "mended", &[0, 0, 0, 0, 0x20, 0x10, 1, 9, 0x80, 0x18, 0x10]);
    put("log_segment", "header", &[0, 0, 0, 1, 0x20, 0, 1, 9, 0x81, 0, 0]);
}

fn codecs() {
    let mut tokens: Vec<Vec<u8>> = (0..=255u8).map(|b| vec![b]).collect();
    tokens.extend(["th", "the", "ing", "and the ", "a token of thirty-two bytes, long"].map(|t| t.as_bytes()[..t.len().min(32)].to_vec()));
    let dictionary = Dictionary::from_tokens(&tokens).expect("a dictionary");
    let counts: Vec<u32> = (0..dictionary.token_count() as u32).map(|token| token * token).collect();
    let huffman = HuffmanDictionary::new(dictionary.clone(), HuffmanCodes::from_counts(&counts)).expect("a code for each token");
    let mut row = Vec::new();
    HuffmanEncoder::new(&huffman).encode(b"the thing and the other thing", &mut row).expect("smaller");
    for own in [0, 1, 2] {
        let changed = b"the thing and then the other";
        let input = [&[200, 0, 3, own, row.len() as u8, 0], &*row, &[changed.len() as u8, 0], changed, &*huffman.to_bytes()].concat();
        put("huffman", &own.to_string(), &input);
    }
    let dictionary = dictionary.to_bytes();
    for own in [0, 1, 2] {
        let row = [0x10, 0x20, 0x03, 0x04, 0x05, 0x06, 0x61, 0x00];
        let input = [&[200, 0, 3, own, row.len() as u8, 0], row.as_slice(), &dictionary].concat();
        put("dictionary", &own.to_string(), &input);
    }
    let chunk = b"a chunk, a chunk, a chunk, a chunk, and what is not one".repeat(4);
    let mut stored = (chunk.len() as u32).to_le_bytes().to_vec();
    pagefold_codec::block::compress(&chunk, &mut stored);
    put("block", "lz4", &stored);
    put("block", "raw", &[&[3, 0, 0, 0, 0], b"raw".as_slice()].concat());
}

/// Rows of many kinds for every type: with and without NULL, dictionary, large values; all widths of numbers.
fn page_rows() {
    let every = schema::every_type();
    let two = |data_type| {
        Schema::new(vec![Column::new("a", data_type, false), Column::new("b", data_type, true), Column::new("c", data_type, false)])
            .expect("valid")
    };
    let mut schemas: Vec<Schema> = every.columns().iter().map(|c| two(c.data_type)).collect();
    schemas.push(every);
    for (i, schema) in schemas.iter().enumerate() {
        for kind in 0..16u8 {
            let mut input = Vec::new();
            schema::put(schema, &mut input);
            input.extend([kind >> 1, if schema.len() > 3 { 20 } else { 120 }, 3 * kind, 5, 77, kind]);
            for column in 0..schema.len() as u8 {
                let kind = if kind % 2 == 0 { kind } else { kind + column };
                input.extend([kind ^ column << 3, column * 13 + kind, (kind % 4) * 17, 200, kind, 1, 0, 9 + column, kind & 3]);
            }
            input.extend(b"some noise for the rows");
            put("page_rows", &format!("{i}-{kind}"), &input);
        }
    }
}

/// A value of the type.
fn sample(data_type: &DataType) -> Value {
    let texts = [
        "7",
        "true",
        "2024-02-29",
        "12:30:00",
        "2024-02-29 12:30:00",
        "2024-02-29 12:30:00+00",
        r"\x0001ff",
        "00000000-0000-0000-0000-00000000000a",
    ];
    texts.iter().find_map(|t| text::parse(t, data_type).ok()).expect("a value")
}

fn rows() {
    let every = schema::every_type();
    let mut schemas: Vec<Schema> =
        every.columns().iter().map(|c| Schema::new(vec![Column::new("c", c.data_type, c.nullable)]).expect("valid")).collect();
    schemas.push(every);
    for (i, schema) in schemas.iter().enumerate() {
        let values: Vec<Value> = schema.columns().iter().map(|c| sample(&c.data_type)).collect();
        let values: Vec<_> = values.iter().map(Value::as_ref).collect();
        let layout = RowLayout::new(schema).expect("narrow");
        let mut input = Vec::new();
        schema::put(schema, &mut input);
        let mut record = input.clone();
        layout.encode(&values, &mut record).expect("a row");
        put("record", &i.to_string(), &record);
        let mut encoder = PageEncoder::new(Arc::new(PageSchema::new(&layout)), None);
        (0..3).for_each(|_| encoder.push(&record[input.len()..]).expect("a record"));
        let packed = record.split_off(input.len());
        let mut stored = [&input[..], &[0, 0, 0, 0x40, 0, 1]].concat();
        if CompactLayout::new(layout).compact(&packed, &mut record).is_some() {
            put("compact_record", &i.to_string(), &record);
            stored.extend(&record[input.len()..]);
            put("stored_row", &format!("compact-{i}"), &stored);
        }
        stored.truncate(input.len());
        stored.extend([12, 0, 0, 0x20, 0]);
        stored.extend(&packed);
        put("stored_row", &format!("plain-{i}"), &stored);
        let mut area = [&input[..], &[1, 9, 8, 7, 6]].concat();
        encoder.encode(3, &mut area).expect("a short area");
        put("page_area", &i.to_string(), &area);
        let part = area.split_off(input.len() + 5);
        put(
            "stored_row",
            &format!("column-{i}"),
            &[&input[..], &[8, 1, 0, 0x40, 0, 1, part.len() as u8, 0, 0, 0, 0, 0, 0, 0], &part].concat(),
        );
        let columns: Vec<_> =
            (0..schema.len().min(8)).map(|c| (c, if c == 1 { Direction::Descending } else { Direction::Ascending })).collect();
        input.push(2);
        KeyLayout::new(schema, &columns).encode_from_values(&values, &mut input).expect("a key");
        put("key", &i.to_string(), &input);
        if let (Some(column), true) = (schema.columns().first(), i + 1 < schemas.len()) {
            put("text", &i.to_string(), &[&[i as u8], text::to_text(values[0], &column.data_type).as_bytes()].concat());
            for (k, text) in [
                "9999999999999.99",
                "-32768",
                "2147483647",
                "-9223372036854775808",
                "-1e-5",
                "23:59:59.999999",
                "10000000000000.00",
                "32768",
                "2147483648",
                "24:00:00",
                "1e39",
            ]
            .iter()
            .enumerate()
            {
                put("text", &format!("{i}-extreme-{k}"), &[&[i as u8], text.as_bytes()].concat());
            }
            put("text", &format!("type-{i}"), &[&[schemas.len() as u8 - 1], column.data_type.to_string().as_bytes()].concat());
        }
    }
    let conditions = [
        "c1 = 1 and c3 between 0 and 5 or not (c8 >= date '2024-02-29')",
        "c13 like 'a%_' and c12 in ('a', 'b') and c0",
        "c4 is null or c5 < 1.5e3 and c6 <> 12.30",
        "5 < c1 and c1 < c2 and c2 >= c3 and 7 >= c3 and 1 = c2 and 3 <> c1",
        "c1 in (1, 2, 3) and c13 >= 'a' and c13 <= 'x' and c4 is not null and not c0",
        "c1 < 5 and c1 > 0 and c1 <= 4 and c3 > 1 and c3 >= 1 and c12 is null or c0 = true",
        "c16 = '00000000-0000-0000-0000-00000000000a' and c15 = '\\x00ff'",
    ];
    for (i, text) in conditions.iter().enumerate() {
        put("predicate", &i.to_string(), text.as_bytes());
    }
}

/// A table of two columns with an index and a schema, as catalog rows, and definitions by themselves.
#[cfg(feature = "engine")]
fn catalog() {
    let table = include_bytes!("../../crates/engine/src/catalog/golden/table_1.bin");
    let index = include_bytes!("../../crates/engine/src/catalog/golden/index_1.bin");
    let notes = include_bytes!("../../crates/format/src/catalog/golden/notes_1.bin");
    let schema = [&[1, 5, 1, 1, b's'][..], notes].concat();
    let mut rows = Vec::new();
    for (object_id, definition) in [(5, table.as_slice()), (6, index.as_slice()), (8, &schema)] {
        let put = pagefold_format::catalog::definition_rows::<()>(object_id, definition, |row| {
            rows.extend_from_slice(&(row.len() as u16).to_le_bytes());
            rows.extend_from_slice(row);
            Ok(())
        });
        put.expect("nothing fails");
    }
    put("catalog", "0", &rows);
    put("catalog", "table", table);
    put("catalog", "index", index);
    put("catalog", "schema", &schema);

    let value: Vec<u8> = b"a large value, a large value, and what is not one".repeat(2000);
    let stored = pagefold_codec::block::pack_value(&value);
    put("large_value", "lz4", &[&(value.len() as u32).to_le_bytes(), stored.as_slice()].concat());
    put("large_value", "raw", &[&3u32.to_le_bytes(), pagefold_codec::block::pack_value(b"raw").as_slice()].concat());
    // A batch is changed, and its checksum made right; the header of the file; the end is cut off.
    put("double_write", "batch", &[3, 1, 16, 0, 1, 9, 0, 1, 0, 0]);
    put("double_write", "count", &[3, 17, 28, 0, 1, 2, 0, 17, 0, 0]);
    put("double_write", "header", &[3, 0, 16, 0, 1, 2, 1, 0, 0, 0]);
    put("double_write", "short", &[2, 5, 0, 0]);
    put("copy_file", "pages", &[3, 0, 3, 9, 0, 0, 0, 3, 0, 1, 2, 3, 2]);
    put("copy_file", "changed", &[1, 0, 64, 0, 2, 1, 2]);
    put("copy_file", "others", &[0x81, 1, 3, 0, 0, 0, 0, 8, 3, 0, 0, 0, 2, 0, 1, 2, 4, 0, 1, 2, 3, 4]);
}

#[cfg(feature = "interchange")]
fn files() {
    use pagefold_interchange::{TableSchema, arrow_schema_to_bytes};
    let texts = [
        "id,name,price\n1,\"a, b\",1.50\n2,\"say \"\"hi\"\"\",2.25\n3,,\n",
        "1|name|1996-03-13|\n2||1996-04-12|\n",
        "a\tb\r\n1\t2\r\n",
        "\u{FEFF}id,t\n1,2024-01-01 10:00:00\n2,2024-01-02 11:30:00.5\n",
    ];
    for (i, text) in texts.iter().enumerate() {
        put("csv", &i.to_string(), &[&[i as u8], text.as_bytes()].concat());
    }
    for (i, text) in
        ["t(a, \"b c\" desc,d ASC)", "a, b DESC", "id bigint not null, \"the name\" char(20), price decimal(9,2) null"].iter().enumerate()
    {
        put("column_list", &i.to_string(), text.as_bytes());
    }
    let workload = br#"{"version":1,"elapsed_s":2.5,"cpu_s":null,"objects":{"t":{"lookups":7,"values_read":14}}}"#;
    put("advice_files", "workload", workload);
    let calibration = br#"{"version":1,"tables":{"t":{"page":{"lookup_ns":120.5,"read_ns":7}}},"indexes":{"i":{"fold 8192":{}}}}"#;
    put("advice_files", "calibration", calibration);
    put("parquet", "plain", &[0, 40, 0, 1, 9]);
    put("parquet", "zstd", &[1, 40, 0, 1, 9]);
    put("parquet", "end", &[0, 0xF0, 0xFF, 1, 1]);
    let schema = TableSchema::from_schema(schema::every_type());
    put("arrow_schema", "0", &arrow_schema_to_bytes(schema.arrow()));
}

fn main() {
    whole_pages();
    index_pages();
    prefix_leaves();
    data_pages();
    codecs();
    log_records();
    rows();
    page_rows();
    #[cfg(feature = "engine")]
    catalog();
    #[cfg(feature = "interchange")]
    files();
}
