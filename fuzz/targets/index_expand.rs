//! The fold alone, under any header: both decoders give the same, within the buffer.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pagefold_codec::index::cost::{Neighbour, entry_cost};
use pagefold_codec::index::encode::encode;
use pagefold_codec::index::expand::{Body, expand, expand_exact};
use pagefold_codec::index::layout::{Entry, MAP_BYTES, Shape, u16_at};
use pagefold_fuzz::input::Input;

const START: usize = 56;

fuzz_target!(|data: &[u8]| {
    let mut input = Input(data);
    let flags = input.byte();
    let shape = Shape { single: flags & 1 != 0, fixed_key_bytes: input.u16() % 1100, slot_bits: input.byte() % 14 };
    let header =
        Body { entries: usize::from(input.u16()), common_prefix: usize::from(input.byte()), longest_key: usize::from(input.u16() % 1100) };
    let page_bytes = [2048, 4096, 8192, 16384, 32768, 100, 57, 0][usize::from(flags >> 1 & 7)];
    let folded = input.rest();
    let start = START.min(folded.len());
    let body = start..folded.len();
    let mut page = vec![0xEE; page_bytes];
    let done = expand(shape, header, folded, body.clone(), &mut page, START);
    let mut exact = vec![0x11; page_bytes];
    let done_exact = expand_exact(shape, header, folded, body.clone(), &mut exact, START);
    assert_eq!(done.is_ok(), done_exact.is_ok(), "{done:?} {done_exact:?}");
    let Ok(done) = done else { return };
    assert_eq!(done, done_exact.expect("ok"));
    assert!(page[START..] == exact[START..], "the decoders differ");

    let map = page_bytes - MAP_BYTES * header.entries;
    assert!(done.low_end <= map && page[done.low_end..map].iter().all(|b| *b == 0));
    let mut at = START;
    let mut entries = Vec::new();
    for i in 0..header.entries {
        assert_eq!(u16_at(&page, page_bytes - MAP_BYTES * (i + 1)), Some(at as u16));
        let entry = Entry::read(&page[..done.low_end], at, shape).expect("in bounds by construction");
        at += shape.entry_bytes(entry.key.len(), entry.rid_count());
        entries.push(entry);
    }
    assert_eq!((at, entries.iter().map(Entry::rid_count).sum::<usize>()), (done.low_end, done.rids));

    // Ascending RIDs fold again, to as much as their cost says, and come back.
    let ascend = |e: &Entry<'_>| (1..e.rid_count()).all(|r| e.rid(r - 1) < e.rid(r));
    if !entries.iter().all(ascend) {
        return;
    }
    let mut before = Neighbour::NONE;
    let cost: usize = entries
        .iter()
        .map(|e| {
            let cost = entry_cost(shape, before, e);
            before = Neighbour::of(e);
            cost
        })
        .sum();
    let mut again = vec![0; START + cost];
    assert_eq!(encode(shape, entries.iter().copied(), &mut again[START..]), Ok(cost));
    assert!(cost <= body.len(), "the shortest form is longer than another");
    let mut back = vec![0; page_bytes];
    let again_body = START..again.len();
    assert_eq!(expand(shape, header, &again, again_body, &mut back, START), Ok(done));
    assert!(back[START..] == page[START..]);
});
