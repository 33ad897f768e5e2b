//! A data page, its rows, and ops on it.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pagefold_format::data::{Body, COLUMN_HEADER_BYTES, COLUMN_ROWS_START, DataOp, DataPage, Stored, StoredKind, StoredRow};
use pagefold_fuzz::input::Input;
use pagefold_fuzz::ops;

/// Never validated: everything stays in the page.
fn probe(page: &[u8]) {
    let view = DataPage::new(page);
    for slot in (0..view.slot_count().min(5000)).chain([view.slot_count(), u16::MAX]) {
        let Some(row) = view.row(slot) else { continue };
        let _ = view.fits_in_place_of(slot, 9);
        let version = view.dictionary_version();
        let Ok(stored) = Stored::parse(row, version) else { continue };
        // A row of a column part or of a range is not built into a slot.
        if row.home.is_some() || matches!(stored, Stored::Home(Body::Column { .. }) | Stored::Forwarded(_)) {
            continue;
        }
        let mut bytes = Vec::new();
        let kind = stored.build(version, &mut bytes);
        assert_eq!(bytes.len(), stored.len(version));
        assert_eq!(Stored::parse(StoredRow { kind, bytes: &bytes, slot, area_row: 0, home: None }, version).expect("as built"), stored);
    }
    let _ = (view.free_slot(), view.free_bytes(), view.fits(100), view.row_count(), view.is_full(100));
    let _ = (view.entries().count(), view.column_part().map(|part| (part.rows(), part.dictionary())));
}

/// No two rows share bytes? [`DataPage::validate`] looks at sums alone.
fn rows_are_apart(page: &[u8]) -> bool {
    let view = DataPage::new(page);
    let mut spans: Vec<(usize, usize)> = (0..view.slot_count())
        .filter_map(|slot| view.row(slot))
        .map(|row| (row.bytes.as_ptr() as usize, row.own_bytes()))
        .filter(|span| span.1 > 0)
        .collect();
    spans.sort_unstable();
    spans.windows(2).all(|pair| pair[0].0 + pair[0].1 <= pair[1].0)
}

fn rows(page: &[u8]) -> Vec<Option<(StoredKind, Vec<u8>)>> {
    let view = DataPage::new(page);
    // The header of a column part has the number of entries.
    let own = |row: StoredRow<'_>| match row.kind {
        StoredKind::Column => row.bytes.get(COLUMN_HEADER_BYTES..).unwrap_or_default().to_vec(),
        _ => row.bytes.to_vec(),
    };
    (0..view.slot_count()).map(|slot| view.row(slot).map(|r| (r.kind, own(r)))).collect()
}

fuzz_target!(|data: &[u8]| {
    if data.len() >= COLUMN_ROWS_START {
        probe(data);
    }
    let mut input = Input(data);
    let Some(mut page) = input.page() else { return };
    if DataPage::new(&page).validate().is_err() {
        return;
    }
    // The longest row that fits makes the page compact itself; the other rows stay what they are.
    let mut full = page.clone();
    let view = DataPage::new(&full);
    let (slot, free) = (view.free_slot(), view.free_bytes());
    let before = rows(&full);
    let room = free.checked_sub(view.directory_growth(slot));
    if let Some(room) = room {
        let row = vec![0xA5; room];
        if (DataOp::Insert { slot, kind: StoredKind::Raw, bytes: &row }).apply(&mut full).is_ok() {
            DataPage::new(&full).validate().expect("after an insert");
            let mut after = rows(&full);
            assert_eq!(after[usize::from(slot)], Some((StoredKind::Raw, row)));
            if rows_are_apart(&page) {
                after.truncate(before.len());
                for (i, row) in before.into_iter().enumerate().filter(|(i, _)| *i != usize::from(slot)) {
                    assert_eq!(after[i], row);
                }
            }
        }
    }
    ops::run(input.rest(), &mut page);
});
