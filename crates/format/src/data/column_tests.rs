//! Pages with a column part against a plain map.

use super::forms::{COMPACT, RecordDecoder, RecordEncoder};
use super::*;
use crate::FormatError;
use crate::test_random::Random;
use crate::wire::Reader;
use pagefold_codec::page::Patch;
use pagefold_types::{Column, CompactLayout, DataType, Rid, RowLayout, Schema, ValueRef};
use std::collections::BTreeMap;

pub(super) fn below(random: &mut Random, n: usize) -> usize {
    random.below(n as u64) as usize
}

pub(super) struct Rows {
    layout: RowLayout,
    pub(super) decoder: RecordDecoder,
    encoder: RecordEncoder,
    pub(super) builder: ColumnBuilder,
}

pub(super) fn rows(page_bytes: usize) -> Rows {
    let columns = [
        Column::new("id", DataType::BigInt, false),
        Column::new("amount", DataType::Integer, true),
        Column::new("text", DataType::Varchar(None), false),
    ];
    let layout = RowLayout::new(&Schema::new(columns.to_vec()).unwrap()).unwrap();
    let decoder = RecordDecoder::new(&layout, page_bytes);
    let builder = ColumnBuilder::new(area_encoder(decoder.columns().clone(), None), 0);
    Rows { encoder: RecordEncoder::compact(CompactLayout::new(layout.clone())), decoder, builder, layout }
}

impl Rows {
    pub(super) fn record(&self, random: &mut Random, step: usize) -> Vec<u8> {
        let text = "abcdefghij".repeat(1 + below(random, 3));
        let amount = if below(random, 5) == 0 { ValueRef::Null } else { ValueRef::Int(below(random, 1000) as i64) };
        let mut record = Vec::new();
        let values = [ValueRef::Int(step as i64), amount, ValueRef::Text(&text[..below(random, text.len())])];
        self.layout.encode(&values, &mut record).unwrap();
        record
    }

    /// As a row that lies by itself.
    pub(super) fn stored(&self, record: &[u8]) -> (StoredKind, Vec<u8>) {
        let (mut codes, mut bytes) = (Vec::new(), Vec::new());
        let form = self.encoder.append(record, &mut codes);
        let kind = Stored::Home(forms::body(form, record, &codes)).build(COMPACT, &mut bytes);
        (kind, bytes)
    }

    pub(super) fn read(&self, row: StoredRow<'_>) -> Vec<u8> {
        let mut out = Vec::new();
        match Stored::parse(row, COMPACT).unwrap() {
            Stored::Home(body) | Stored::Hosted { body, .. } => self.decoder.decode(body, None, &mut out).unwrap().to_vec(),
            other => panic!("{other:?}"),
        }
    }
}

/// Applies by way of the log form; a refused op leaves the page as it was.
pub(super) fn apply(page: &mut [u8], op: DataOp<'_>) -> Result<(), FormatError> {
    let mut log = Vec::new();
    op.encode(&mut log);
    let mut reader = Reader::new(&log);
    let back = DataOp::decode(&mut reader)?;
    assert!(back == op && reader.is_empty());
    let before = page.to_vec();
    let result = back.apply(page);
    assert!(result.is_ok() || page == before, "a refused op changed the page");
    result
}

/// Builds a page anew, with a builder that may know its rows: the image is that of one which does not.
pub(super) fn rebuild(rows: &mut Rows, page: &mut [u8]) -> bool {
    let view_of = page.to_vec();
    let view = DataPage::new(&view_of);
    let mut fresh = ColumnBuilder::new(area_encoder(rows.decoder.columns().clone(), None), 0);
    let expected = fresh.rebuild(&view, &rows.decoder, |_| None).unwrap();
    let image = rows.builder.rebuild(&view, &rows.decoder, |_| None).unwrap();
    assert!(image == expected);
    match image {
        Some(image) if image.len() <= page.len() => {
            apply(page, DataOp::Rebuild(image)).unwrap();
            true
        }
        _ => false,
    }
}

/// A page that fills is rebuilt many times, and takes in each row once; where something else has changed, all of them.
#[test]
fn rows_that_are_known_are_not_taken_in_again() {
    let (mut random, mut rows) = (Random(5), rows(2048));
    let mut page = vec![0; 2048];
    apply(&mut page, DataOp::Format { page_number: 4, dictionary_version: COMPACT }).unwrap();
    let (mut rebuilt, mut filled) = (0, 0);
    let mut fill = |rows: &mut Rows, page: &mut [u8], up_to: u16| {
        while DataPage::new(page).slot_count() < up_to {
            let slot = DataPage::new(page).slot_count();
            let (kind, bytes) = rows.stored(&rows.record(&mut random, usize::from(slot)));
            if apply(page, DataOp::Insert { slot, kind, bytes: &bytes }).is_err() {
                assert!(rebuild(rows, page));
                rebuilt += 1;
                filled = filled.max(rows.builder.held_rows());
            }
        }
        (rebuilt, filled)
    };
    let (times, held) = fill(&mut rows, &mut page, 300);
    assert!(times >= 3 && held >= 200, "{times} {held}");
    // Deleted, or changed where it is: then the encoder does not have what the page has.
    assert!(rebuild(&mut rows, &mut page) && rebuild(&mut rows, &mut page));
    assert_eq!(rows.builder.held_rows(), 300);
    apply(&mut page, DataOp::Delete { slot: 299 }).unwrap();
    assert!(rebuild(&mut rows, &mut page));
    assert_eq!(rows.builder.held_rows(), 0);
    assert!(rebuild(&mut rows, &mut page));
    assert_eq!(rows.builder.held_rows(), 299);
    let view_of = page.clone();
    let area = rows.decoder.area(DataPage::new(&view_of).column_part().unwrap(), None).unwrap();
    let mut patch = Patch::default();
    let row = (0..299).find(|row| !area.is_null(1, *row) && area.patch_int(1, *row, Some(7), &mut patch)).unwrap();
    assert_ne!(area.int(1, row), Some(7));
    apply(&mut page, DataOp::Patch { at: patch.offset as u16, bytes: &patch.new }).unwrap();
    assert!(rebuild(&mut rows, &mut page));
    assert_eq!(rows.builder.held_rows(), 0);
}

#[test]
fn a_page_that_is_rebuilt_without_rows_is_as_good_as_new() {
    let (mut random, mut rows) = (Random(1), rows(2048));
    let mut page = vec![0; 2048];
    apply(&mut page, DataOp::Format { page_number: 4, dictionary_version: COMPACT }).unwrap();
    let fresh = page.clone();
    let (kind, bytes) = rows.stored(&rows.record(&mut random, 1));
    apply(&mut page, DataOp::Insert { slot: 0, kind, bytes: &bytes }).unwrap();
    assert!(rebuild(&mut rows, &mut page) && DataPage::new(&page).has_columns());
    let image = rows.builder.build(std::iter::empty(), None, (&[], None), &rows.decoder, |_| None).unwrap().unwrap();
    apply(&mut page, DataOp::Rebuild(image)).unwrap();
    assert_eq!(DataPage::new(&page).free_bytes(), 2048 - DATA_HEADER_BYTES);
    assert_eq!(page, fresh);
}

#[test]
fn behaves_like_a_map() {
    for (size, seed) in [(2048, 1), (8192, 2), (32768, 3)] {
        let mut random = Random(seed);
        let mut rows = rows(size);
        let mut page = vec![0; size];
        apply(&mut page, DataOp::Format { page_number: 4, dictionary_version: COMPACT }).unwrap();
        let (mut model, mut ghosts): (BTreeMap<u16, Vec<u8>>, BTreeMap<u16, Vec<u8>>) = Default::default();
        let (mut rebuilt, mut patched) = (0, 0);
        for step in 0..12_000 {
            let slot = below(&mut random, model.len() + ghosts.len() + 3) as u16;
            let record = rows.record(&mut random, step);
            let (kind, bytes) = rows.stored(&record);
            match below(&mut random, 10) {
                0..=3 => {
                    let slot = DataPage::new(&page).free_slot();
                    let fits = DataPage::new(&page).fits(bytes.len());
                    assert_eq!(apply(&mut page, DataOp::Insert { slot, kind, bytes: &bytes }).is_ok(), fits);
                    if fits {
                        assert!(model.insert(slot, record).is_none());
                    }
                }
                4 => {
                    let fits = DataPage::new(&page).fits_in_place_of(slot, bytes.len());
                    assert_eq!(apply(&mut page, DataOp::Replace { slot, kind, bytes: &bytes }).is_ok(), fits);
                    if fits {
                        model.insert(slot, record);
                    }
                }
                5 => assert_eq!(apply(&mut page, DataOp::Delete { slot }).is_ok(), model.remove(&slot).is_some()),
                6 => {
                    let row = model.remove(&slot);
                    assert_eq!(apply(&mut page, DataOp::MarkDeleted { slot }).is_ok(), row.is_some());
                    ghosts.extend(row.map(|row| (slot, row)));
                }
                7 => {
                    let slot = ghosts.keys().nth(below(&mut random, ghosts.len().max(1))).copied().unwrap_or(slot);
                    let ghost = ghosts.remove(&slot);
                    // The kind of a ghost is known to who deleted it.
                    let kind = ghost.as_ref().map_or(StoredKind::Raw, |record| rows.stored(record).0);
                    let again = below(&mut random, 2) == 0;
                    let op = if again { DataOp::Undelete { slot, kind } } else { DataOp::Purge { slot } };
                    assert_eq!(apply(&mut page, op).is_ok(), ghost.is_some());
                    model.extend(ghost.filter(|_| again).map(|row| (slot, row)));
                }
                8 => {
                    // A number that the column part may have room for.
                    let Some(before) = model.get(&slot) else { continue };
                    let view_of = page.clone();
                    let view = DataPage::new(&view_of);
                    let Some(part) = view.column_part().filter(|_| view.row(slot).unwrap().kind == StoredKind::Column) else { continue };
                    let area = rows.decoder.area(part, None).unwrap();
                    let at = usize::from(view.row(slot).unwrap().area_row);
                    let mut patch = Patch::default();
                    let value = below(&mut random, 1000) as i64;
                    if area.is_null(1, at) || !area.patch_int(1, at, Some(value), &mut patch) {
                        continue;
                    }
                    apply(&mut page, DataOp::Patch { at: patch.offset as u16, bytes: &patch.new }).unwrap();
                    let mut after = before.clone();
                    rows.layout.patch_fixed(&mut after, 1, ValueRef::Int(value)).unwrap();
                    model.insert(slot, after);
                    patched += 1;
                }
                _ if below(&mut random, 4) == 0 => rebuilt += usize::from(rebuild(&mut rows, &mut page)),
                _ => {}
            }
            let view = DataPage::new(&page);
            view.validate().unwrap();
            if step % 8 == 0 {
                assert_eq!(usize::from(view.row_count()), model.len());
                for slot in 0..view.slot_count() + 2 {
                    assert_eq!(view.row(slot).map(|row| rows.read(row)), model.get(&slot).cloned(), "slot {slot}");
                    let kind = ghosts.get(&slot).map_or(StoredKind::Raw, |record| rows.stored(record).0);
                    assert_eq!(view.ghost(slot, kind).map(|row| rows.read(row)), ghosts.get(&slot).cloned());
                }
            }
        }
        assert!(rebuilt > 50 && patched > 50, "{rebuilt} {patched}");
    }
}

#[test]
fn rows_that_moved_stay_as_they_are() {
    let mut rows = rows(2048);
    let mut page = vec![0; 2048];
    apply(&mut page, DataOp::Format { page_number: 4, dictionary_version: COMPACT }).unwrap();
    let mut random = Random(9);
    let record = rows.record(&mut random, 1);
    let (kind, bytes) = rows.stored(&record);
    let mut special = |slot, stored: Stored<'_>| {
        let mut bytes = Vec::new();
        let kind = stored.build(COMPACT, &mut bytes);
        apply(&mut page, DataOp::Insert { slot, kind, bytes: &bytes }).unwrap();
    };
    let target = Rid::new(1, 2, 3);
    special(0, Stored::Forward(target));
    special(1, Stored::Away { home: target, body: Body::Plain(&record) });
    apply(&mut page, DataOp::Insert { slot: 2, kind, bytes: &bytes }).unwrap();
    assert!(rebuild(&mut rows, &mut page));
    let view = DataPage::new(&page);
    let parsed = |slot| Stored::parse(view.row(slot).unwrap(), COMPACT).unwrap();
    assert_eq!(parsed(0), Stored::Forward(target));
    assert_eq!(parsed(1), Stored::Away { home: target, body: Body::Plain(&record) });
    assert_eq!(view.row(2).unwrap().kind, StoredKind::Column);
    assert_eq!(rows.read(view.row(2).unwrap()), record);
}

#[test]
fn packed_pages() {
    for (page_bytes, pctfree, maxrows) in [(2048, 0, 4096), (8192, 20, 4096), (32768, 0, 2000)] {
        let rows = rows(page_bytes);
        let layouts = (CompactLayout::new(rows.layout.clone()), rows.decoder.columns().clone());
        let mut packer = ColumnPacker::new(layouts, None, page_bytes, pctfree, maxrows);
        let mut random = Random(page_bytes as u64);
        let records: Vec<Vec<u8>> = (0..3000).map(|step| rows.record(&mut random, step)).collect();
        let (mut written, mut pages, mut by_column) = (Vec::new(), 0, 0);
        let mut single = PagePacker::new(page_bytes, pctfree, maxrows);
        let mut take = |packer: &mut ColumnPacker, last| {
            while let Some(page) = packer.next_page(last) {
                pages += 1;
                assert!(page.rows <= usize::from(maxrows));
                if page.columns {
                    by_column += 1;
                    let mut image = vec![0; page_bytes];
                    DataOp::Format { page_number: 7, dictionary_version: COMPACT }.apply(&mut image).unwrap();
                    apply(&mut image, DataOp::Rebuild(packer.image(page.rows))).unwrap();
                    let view = DataPage::new(&image);
                    assert!(view.free_bytes() >= page_bytes * usize::from(pctfree) / 100 && view.row_count() == page.rows as u16);
                    assert!(view.free_bytes() >= (page_bytes / 32).min(MOVED_SPACE * page.rows));
                    written.extend((0..view.slot_count()).map(|slot| rows.read(view.row(slot).unwrap())));
                } else {
                    written.extend((0..page.rows).map(|row| packer.record(row).to_vec()));
                }
                packer.take(page.rows);
            }
        };
        for record in &records {
            packer.push(record).unwrap();
            take(&mut packer, false);
            single.push(rows.encoder.stored_len(record).0);
        }
        take(&mut packer, true);
        assert!(written == records && packer.held() == 0);
        assert!(by_column > 0 && pages <= single.pages(), "{pages} pages, {by_column} by column; {} one by one", single.pages());
    }
}

#[test]
fn hostile_pages_do_not_panic() {
    let mut rows = rows(2048);
    let mut random = Random(5);
    let mut page = vec![0; 2048];
    apply(&mut page, DataOp::Format { page_number: 4, dictionary_version: COMPACT }).unwrap();
    for step in 0..110 {
        let record = rows.record(&mut random, step);
        let (kind, bytes) = rows.stored(&record);
        let slot = DataPage::new(&page).free_slot();
        if apply(&mut page, DataOp::Insert { slot, kind, bytes: &bytes }).is_err() {
            assert!(rebuild(&mut rows, &mut page));
        }
    }
    assert!(DataPage::new(&page).has_columns() && DataPage::new(&page).entries().count() > 0);
    let (mut valid_pages, mut out) = (0, Vec::new());
    for _ in 0..50_000 {
        let mut bad = page.clone();
        for _ in 0..1 + below(&mut random, 4) {
            let at = match below(&mut random, 3) {
                0 => below(&mut random, 50),
                1 => bad.len() - 1 - below(&mut random, 100),
                _ => below(&mut random, bad.len()),
            };
            bad[at] = below(&mut random, 256) as u8;
        }
        let view = DataPage::new(&bad);
        let valid = view.validate().is_ok();
        valid_pages += usize::from(valid);
        for slot in [0, 1, 19, 59, 60, 4095] {
            if let Some(row) = view.row(slot)
                && let Ok(Stored::Home(body)) = Stored::parse(row, view.dictionary_version())
            {
                let _ = rows.decoder.decode(body, None, &mut out);
            }
            let _ = view.ghost(slot, StoredKind::Raw);
        }
        if valid {
            let slot = view.free_slot();
            let _ = DataOp::Insert { slot, kind: StoredKind::Raw, bytes: &[1; 30] }.apply(&mut bad);
            let _ = DataOp::MarkDeleted { slot: 5 }.apply(&mut bad);
            let _ = DataOp::Delete { slot: 3 }.apply(&mut bad);
            let _ = DataOp::Patch { at: below(&mut random, 2048) as u16, bytes: &[7; 9] }.apply(&mut bad);
            DataPage::new(&bad).validate().unwrap();
        }
    }
    assert!(valid_pages > 1000);
}
