//! Rows of a page of which another page hosts some, against a plain map.

use super::column_tests::{Rows, apply, below, rebuild, rows};
use super::forms::COMPACT;
use super::*;
use crate::test_random::Random;
use pagefold_types::Rid;
use std::collections::BTreeMap;

const SIZE: usize = 4096;
const HOME: u32 = 7;
const HOST: u32 = 8;

fn formatted(page_number: u32) -> Vec<u8> {
    let mut page = vec![0; SIZE];
    apply(&mut page, DataOp::Format { page_number, dictionary_version: COMPACT }).unwrap();
    page
}

/// Two pages, the first of which forwards slots to the second.
struct Two {
    rows: Rows,
    home: Vec<u8>,
    host: Vec<u8>,
}

impl Two {
    /// Forwards these slots, none of which is in a range. False when the host has no room.
    fn forward(&mut self, first: u16, count: u16) -> bool {
        let (home, host) = (DataPage::new(&self.home), DataPage::new(&self.host));
        let there = host.slot_count();
        let range = SlotRange { first, count, hosted: false, there: Rid::new(0, HOST, there) };
        let mut ranges: Vec<SlotRange> = host.ranges().iter().collect();
        ranges.push(range.seen_from_there(0, HOME));
        let own = (0..there).map(|slot| PlacedRow { slot, page: host, at: slot });
        let hosted = (0..count).map(|i| PlacedRow { slot: there + i, page: home, at: first + i });
        // A pointer stays at home.
        let is_pointer = |slot: u16| matches!(home.row(slot).map(|row| Stored::parse(row, COMPACT)), Some(Ok(Stored::Forward(_))));
        let hosted = hosted.filter(|row| !is_pointer(row.at));
        let rows: Vec<PlacedRow<'_>> = own.chain(hosted).collect();
        let image = self.rows.builder.build(rows.into_iter(), None, (&ranges, None), &self.rows.decoder, |_| None).unwrap().unwrap();
        if image.len() > SIZE {
            return false;
        }
        let mut fresh = self.host.clone();
        apply(&mut fresh, DataOp::Rebuild(image)).unwrap();
        let mut ranges: Vec<SlotRange> = home.ranges().iter().chain([range]).collect();
        ranges.sort_unstable_by_key(|range| range.first);
        let stays = |slot: &u16| !range.contains(*slot) || is_pointer(*slot);
        let left = (0..home.slot_count()).filter(stays).map(|slot| PlacedRow { slot, page: home, at: slot });
        let image = self.rows.builder.build(left, None, (&ranges, None), &self.rows.decoder, |_| None).unwrap().unwrap();
        let mut page = self.home.clone();
        apply(&mut page, DataOp::Rebuild(image)).unwrap();
        (self.home, self.host) = (page, fresh);
        true
    }

    /// Page and slot of a row, and whether the page hosts it.
    fn place(&mut self, slot: u16) -> (&mut Vec<u8>, u16) {
        match DataPage::new(&self.home).row(slot).map(|row| Stored::parse(row, COMPACT).unwrap()) {
            Some(Stored::Forwarded(there)) => {
                assert_eq!(there.page(), HOST);
                (&mut self.host, there.slot())
            }
            _ => (&mut self.home, slot),
        }
    }

    fn get(&mut self, slot: u16) -> Option<Vec<u8>> {
        let (page, at) = self.place(slot);
        let page = page.clone();
        let row = DataPage::new(&page).row(at)?;
        if let Some(home) = row.home {
            assert_eq!(home, Rid::new(0, HOME, slot));
        }
        Some(self.rows.read(row))
    }
}

#[test]
fn a_range_behaves_as_if_it_were_at_home() {
    let (mut ranges, mut freed, mut pointed) = (0, 0, 0);
    for seed in 1..60 {
        let mut random = Random(seed);
        let mut two = Two { rows: rows(SIZE), home: formatted(HOME), host: formatted(HOST) };
        let mut model: BTreeMap<u16, Vec<u8>> = BTreeMap::new();
        // The host's own rows, by the number of the range before them: they stay where they are.
        let mut own: BTreeMap<u16, Vec<u8>> = BTreeMap::new();
        for step in 0..600 {
            let record = two.rows.record(&mut random, step);
            let (kind, bytes) = two.rows.stored(&record);
            let slot = below(&mut random, model.len() + 3) as u16;
            match below(&mut random, 12) {
                0..=4 => {
                    let slot = DataPage::new(&two.home).free_slot();
                    if apply(&mut two.home, DataOp::Insert { slot, kind, bytes: &bytes }).is_ok() {
                        assert!(model.insert(slot, record).is_none());
                    } else {
                        rebuild(&mut two.rows, &mut two.home);
                    }
                }
                5 => {
                    let slot = DataPage::new(&two.host).free_slot();
                    if apply(&mut two.host, DataOp::Insert { slot, kind, bytes: &bytes }).is_ok() {
                        assert!(own.insert(slot, record).is_none());
                    } else {
                        rebuild(&mut two.rows, &mut two.host);
                    }
                }
                6 | 7 => {
                    let (page, at) = two.place(slot);
                    let there = DataPage::new(page).row(at).is_some();
                    if apply(page, DataOp::Replace { slot: at, kind, bytes: &bytes }).is_ok() {
                        assert!(there && model.insert(slot, record).is_some());
                    }
                }
                8 => {
                    let (page, at) = two.place(slot);
                    assert_eq!(apply(page, DataOp::Delete { slot: at }).is_ok(), model.remove(&slot).is_some());
                }
                9 => {
                    // A row of a range leaves it by itself, comes home, and goes.
                    let Some(row) = DataPage::new(&two.home).row(slot) else { continue };
                    assert!(apply(&mut two.home.clone(), DataOp::Delete { slot }).is_ok() == (row.kind != StoredKind::Forwarded));
                    if row.kind != StoredKind::Forwarded
                        || !model.contains_key(&slot)
                        || !DataPage::new(&two.home).fits_in_place_of(slot, 8)
                    {
                        continue;
                    }
                    let count = DataPage::new(&two.home).row_count();
                    let mut pointer = Vec::new();
                    let kind = Stored::Forward(Rid::new(0, 99, 9)).build(COMPACT, &mut pointer);
                    let (page, at) = two.place(slot);
                    apply(page, DataOp::Delete { slot: at }).unwrap();
                    apply(&mut two.home, DataOp::Replace { slot, kind, bytes: &pointer }).unwrap();
                    assert_eq!(DataPage::new(&two.home).row_count(), count + 1);
                    rebuild(&mut two.rows, &mut two.home);
                    assert!(matches!(Stored::parse(DataPage::new(&two.home).row(slot).unwrap(), COMPACT).unwrap(), Stored::Forward(_)));
                    apply(&mut two.home, DataOp::Delete { slot }).unwrap();
                    assert_eq!(DataPage::new(&two.home).row(slot).unwrap().kind, StoredKind::Forwarded);
                    assert!(two.get(slot).is_none());
                    model.remove(&slot);
                    pointed += 1;
                }
                10 => {
                    let slots = DataPage::new(&two.home).slot_count();
                    if slots == 0 {
                        continue;
                    }
                    let first = below(&mut random, slots.into()) as u16;
                    let taken = |slot: &u16| DataPage::new(&two.home).ranges().of(*slot).is_some();
                    let end = (first..slots.min(first + 20)).find(taken).unwrap_or(slots.min(first + 20));
                    if !taken(&first) && two.forward(first, end - first) {
                        ranges += 1;
                    }
                }
                _ => {
                    // A range without rows goes from both pages; one with rows cannot.
                    let view = DataPage::new(&two.home);
                    let Some(range) = view.ranges().iter().next() else { continue };
                    let (home, host) = (table(view, range.first), table(DataPage::new(&two.host), range.there.slot()));
                    let free = (range.first..range.end()).all(|slot| !model.contains_key(&slot));
                    if free {
                        apply(&mut two.home, DataOp::Ranges(&home)).unwrap();
                        apply(&mut two.host, DataOp::Ranges(&host)).unwrap();
                        freed += 1;
                    }
                }
            }
            DataPage::new(&two.home).validate().unwrap();
            DataPage::new(&two.host).validate().unwrap();
            if step % 8 == 0 {
                for slot in 0..DataPage::new(&two.home).slot_count() + 2 {
                    assert_eq!(two.get(slot), model.get(&slot).cloned(), "slot {slot} of seed {seed}, step {step}");
                }
                let host = two.host.clone();
                let view = DataPage::new(&host);
                let found = (0..view.slot_count()).filter_map(|slot| Some((slot, view.row(slot).filter(|row| row.home.is_none())?)));
                let found: BTreeMap<u16, Vec<u8>> = found.map(|(slot, row)| (slot, two.rows.read(row))).collect();
                assert_eq!(found, own);
                let at_home = model.keys().filter(|slot| DataPage::new(&two.home).ranges().of(**slot).is_none()).count();
                assert_eq!(usize::from(DataPage::new(&two.home).row_count()), at_home);
                assert_eq!(usize::from(view.row_count()), own.len() + model.len() - at_home);
            }
        }
    }
    assert!(ranges > 300 && freed > 20 && pointed > 50, "{ranges} {freed} {pointed}");
}

/// The table of a page without the range that begins there.
fn table(page: DataPage<'_>, first: u16) -> Vec<u8> {
    let mut bytes = Vec::new();
    put_ranges(&page.ranges().iter().filter(|range| range.first != first).collect::<Vec<_>>(), &mut bytes);
    bytes
}

#[test]
fn hostile_ranges_do_not_panic() {
    let mut random = Random(11);
    let mut two = Two { rows: rows(SIZE), home: formatted(HOME), host: formatted(HOST) };
    for step in 0..90 {
        let record = two.rows.record(&mut random, step);
        let (kind, bytes) = two.rows.stored(&record);
        let slot = DataPage::new(&two.home).free_slot();
        if apply(&mut two.home, DataOp::Insert { slot, kind, bytes: &bytes }).is_err() {
            rebuild(&mut two.rows, &mut two.home);
        }
    }
    assert!(two.forward(3, 10) && two.forward(20, 30));
    let mut out = Vec::new();
    for page in [&two.home, &two.host] {
        let mut valid = 0;
        for _ in 0..20_000 {
            let mut bad = page.clone();
            let at = if below(&mut random, 2) == 0 { below(&mut random, 50) } else { bad.len() - 1 - below(&mut random, 60) };
            bad[at] = below(&mut random, 256) as u8;
            let view = DataPage::new(&bad);
            valid += usize::from(view.validate().is_ok());
            for slot in [0, 3, 12, 13, 20, 49, 60, 4095] {
                let row = view.row(slot).map(|row| Stored::parse(row, COMPACT));
                if let Some(Ok(Stored::Home(body) | Stored::Hosted { body, .. })) = row {
                    let _ = two.rows.decoder.decode(body, None, &mut out);
                }
                let _ = (view.ghost(slot, StoredKind::Raw), view.is_full(4096), view.slots_in_use_exceed(7), view.free_run(3, 1..2));
            }
            if view.validate().is_ok() {
                let _ = DataOp::Replace { slot: 5, kind: StoredKind::Raw, bytes: &[1; 9] }.apply(&mut bad);
                let _ = DataOp::Delete { slot: 5 }.apply(&mut bad);
                let _ = DataOp::Ranges(&[]).apply(&mut bad);
                DataPage::new(&bad).validate().unwrap();
            }
        }
        assert!(valid > 100, "{valid}");
    }
}
