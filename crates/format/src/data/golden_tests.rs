//! Data pages as they are written today. These bytes are never edited: a change of the format is a new version with files of its own.

use super::forms::{COMPACT, OtherLayouts, RecordDecoder, record_body, record_form};
use super::*;
use pagefold_types::{Column, DataType, Rid, RowLayout, Schema, ValueRef};
use pagefold_types::{ColumnSource, RowConversion, Value};
use std::path::PathBuf;
use std::sync::Arc;

/// With `PAGEFOLD_WRITE_GOLDEN` set, writes files that do not exist yet.
fn assert_golden(name: &str, page: &[u8]) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("src/data/golden").join(name);
    if std::env::var_os("PAGEFOLD_WRITE_GOLDEN").is_some() && !path.exists() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, page).unwrap();
    }
    let file = std::fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    assert!(file == page, "{name} is not what is written today");
}

fn layout() -> RowLayout {
    let columns = [
        Column::new("id", DataType::BigInt, false),
        Column::new("amount", DataType::Decimal { precision: 15, scale: 2 }, true),
        Column::new("text", DataType::Varchar(None), false),
    ];
    RowLayout::new(&Schema::new(columns.to_vec()).unwrap()).unwrap()
}

/// Rows of 0 to 9 bytes in the page's form and in another.
fn padded_page() -> Vec<u8> {
    let mut page = vec![0; 2048];
    DataOp::Format { page_number: 7, dictionary_version: 3 }.apply(&mut page).unwrap();
    for slot in 0..20u16 {
        let codes = &b"as short!"[..usize::from(slot % 10)];
        let mut bytes = Vec::new();
        let kind = Stored::Home(Body::Compressed { version: 3 + slot / 10, codes }).build(3, &mut bytes);
        DataOp::Insert { slot, kind, bytes: &bytes }.apply(&mut page).unwrap();
    }
    page
}

/// 40 rows, a ghost, a forward pointer, a row away from home if that is permitted, free slots.
fn page(away: bool) -> Vec<u8> {
    let layout = layout();
    let mut page = vec![0; 4096];
    DataOp::Format { page_number: 42, dictionary_version: COMPACT }.apply(&mut page).unwrap();
    for slot in 0..40u16 {
        let amount = if slot % 7 == 0 { ValueRef::Null } else { ValueRef::Decimal(i128::from(slot) * 1000) };
        let mut record = Vec::new();
        let values =
            [ValueRef::Int(1_000_000 + i64::from(slot)), amount, ValueRef::Text(["fold", "folded", "leaf"][usize::from(slot) % 3])];
        layout.encode(&values, &mut record).unwrap();
        let mut bytes = Vec::new();
        let kind = Stored::Home(Body::Plain(&record)).build(COMPACT, &mut bytes);
        DataOp::Insert { slot, kind, bytes: &bytes }.apply(&mut page).unwrap();
    }
    let mut replace = |slot, stored: Stored<'_>| {
        let mut bytes = Vec::new();
        let kind = stored.build(COMPACT, &mut bytes);
        DataOp::Replace { slot, kind, bytes: &bytes }.apply(&mut page).unwrap();
    };
    replace(5, Stored::Forward(Rid::new(1, 2, 3)));
    if away {
        replace(6, Stored::Away { home: Rid::new(0, 9, 1), body: Body::Plain(b"a record from elsewhere") });
        DataOp::MarkDeleted { slot: 8 }.apply(&mut page).unwrap();
    }
    DataOp::Delete { slot: 7 }.apply(&mut page).unwrap();
    page
}

#[test]
fn slots() {
    let page = page(true);
    DataPage::new(&page).validate().unwrap();
    assert_golden("data-v1.bin", &page);
}

#[test]
fn padded_rows() {
    let page = padded_page();
    let view = DataPage::new(&page);
    view.validate().unwrap();
    for slot in 0..20u16 {
        let Stored::Home(Body::Compressed { version, codes }) = Stored::parse(view.row(slot).unwrap(), 3).unwrap() else { panic!() };
        assert_eq!((version, codes.len()), (3 + slot / 10, usize::from(slot % 10)));
    }
    assert_golden("data-v1-padded.bin", &page);
}

#[test]
fn column_part() {
    let mut page = page(false);
    let decoder = RecordDecoder::new(&layout(), 4096);
    let mut builder = ColumnBuilder::new(area_encoder(decoder.columns().clone(), None), 0);
    let copy = page.clone();
    let image = builder.rebuild(&DataPage::new(&copy), &decoder, |_| None).unwrap().unwrap();
    DataOp::Rebuild(image).apply(&mut page).unwrap();
    DataOp::MarkDeleted { slot: 8 }.apply(&mut page).unwrap();
    DataOp::Replace { slot: 9, kind: StoredKind::Raw, bytes: b"a row that has changed" }.apply(&mut page).unwrap();
    DataOp::Insert { slot: 40, kind: StoredKind::Raw, bytes: b"a row that is new" }.apply(&mut page).unwrap();
    DataPage::new(&page).validate().unwrap();
    assert_golden("data-v2.bin", &page);
}

/// A sparse page that forwards slots 10 to 29 and hosts rows of another page.
#[test]
fn ranges() {
    let mut page = page(false);
    let decoder = RecordDecoder::new(&layout(), 4096);
    let mut builder = ColumnBuilder::new(area_encoder(decoder.columns().clone(), None), 0);
    let copy = page.clone();
    let view = DataPage::new(&copy);
    let slots = view.slot_count();
    let forwarded = SlotRange { first: 10, count: 20, hosted: false, there: Rid::new(1, 0x0203_0405, 7) };
    let hosted = SlotRange { first: slots + 10, count: 5, hosted: true, there: Rid::new(0, 9, 100) };
    let own = (0..slots).filter(|slot| !forwarded.contains(*slot)).map(|slot| PlacedRow { slot, page: view, at: slot });
    let others = (0..3).map(|i| PlacedRow { slot: hosted.first + 2 * i, page: view, at: 10 + i });
    let image = builder.build(own.chain(others), None, (&[forwarded, hosted], None), &decoder, |_| None).unwrap().unwrap();
    assert!(image.sparse && image.ranges == 2);
    DataOp::Rebuild(image).apply(&mut page).unwrap();
    let view = DataPage::new(&page);
    view.validate().unwrap();
    assert_eq!(view.home_of(hosted.first + 2), Some(Rid::new(0, 9, 102)));
    assert_eq!(Stored::parse(view.row(12).unwrap(), COMPACT).unwrap(), Stored::Forwarded(Rid::new(1, 0x0203_0405, 9)));
    assert_golden("data-v2-ranges.bin", &page);
}

/// Layout 0 of a table is without the column that layout 1 has, and layout 2 is not there.
#[derive(Debug)]
struct WithoutAmount;

impl WithoutAmount {
    fn layout() -> RowLayout {
        let columns =
            [Column::new("id", DataType::Integer, false), Column::new("amount", DataType::Decimal { precision: 15, scale: 2 }, true)];
        RowLayout::new(&Schema::new(columns.to_vec()).unwrap()).unwrap()
    }
}

impl OtherLayouts for WithoutAmount {
    fn layout(&self, number: u8) -> Option<(RowLayout, RowConversion)> {
        let added = ColumnSource::Constant(Value::Text("as it was".into()));
        let sources = vec![ColumnSource::Column, ColumnSource::Column, added];
        (number == 0).then(|| (Self::layout(), RowConversion::new(Self::layout(), layout(), sources)))
    }
}

/// Rows of an altered table: the page has the form of layout 1, some rows are of layout 0, plain and compact, and one of a layout that the table has not.
#[test]
fn rows_of_several_layouts() {
    let decoder = RecordDecoder::new(&layout(), 2048).with_others(1, Arc::new(WithoutAmount));
    let form = record_form(1);
    let mut page = vec![0; 2048];
    DataOp::Format { page_number: 11, dictionary_version: form }.apply(&mut page).unwrap();
    for slot in 0..12u16 {
        let (id, amount) = (ValueRef::Int(i64::from(slot)), ValueRef::Decimal(i128::from(slot) * 100));
        let mut record = Vec::new();
        let number = if slot == 11 { 2 } else { u8::from(slot % 3 == 0) };
        match number {
            0 => WithoutAmount::layout().encode(&[id, amount], &mut record).unwrap(),
            _ => layout().encode(&[id, amount, ValueRef::Text("as it is")], &mut record).unwrap(),
        };
        let mut compact = Vec::new();
        let body = if slot % 3 == 1 {
            let form = decoder.compact_encoder(number).unwrap().append(&record, &mut compact);
            forms::body(form, &record, &compact)
        } else {
            record_body(number, &record)
        };
        let mut bytes = Vec::new();
        let kind = Stored::Home(body).build(form, &mut bytes);
        DataOp::Insert { slot, kind, bytes: &bytes }.apply(&mut page).unwrap();
    }
    let view = DataPage::new(&page);
    view.validate().unwrap();
    for slot in 0..12u16 {
        let Stored::Home(body) = Stored::parse(view.row(slot).unwrap(), form).unwrap() else { panic!() };
        let mut out = Vec::new();
        let read = decoder.decode(body, None, &mut out).map(<[u8]>::to_vec);
        if slot == 11 {
            assert!(read.unwrap_err().to_string().contains("layout 2, which the table has not had"));
            continue;
        }
        let text = if slot % 3 == 0 { "as it is" } else { "as it was" };
        let values = [ValueRef::Int(slot.into()), ValueRef::Decimal(i128::from(slot) * 100), ValueRef::Text(text)];
        let mut expected = Vec::new();
        layout().encode(&values, &mut expected).unwrap();
        assert_eq!(read.unwrap(), expected, "slot {slot}");
    }
    assert_golden("data-v1-layouts.bin", &page);
}
