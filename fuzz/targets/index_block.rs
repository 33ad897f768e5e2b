//! A block of a prefix leaf alone: what decodes, encodes to the same pairs; searches find what is there.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pagefold_codec::index::prefix::{Block, Entries, Frame, PAIRS_MAX, Plan};
use pagefold_fuzz::input::Input;

fuzz_target!(|data: &[u8]| {
    let mut input = Input(data);
    let fixed_key_bytes = usize::from(input.byte() % 40);
    let head = input.u32();
    let shared_bytes = usize::from(input.byte() % 8);
    let shared = input.take(shared_bytes);
    let bytes = input.rest();
    let frame = Frame { fixed_key_bytes, shared, head };
    let Ok(block) = Block::read(bytes, bytes.len(), frame) else { return };
    let _ = (block.lower_bound(b"key"), block.lower_bound_pair(&[], 9), block.find(&[0; 9]), block.rid(77), block.validate());
    let (mut entries, mut rids) = (Entries::new(), Vec::new());
    let has_rids = block.rids(&mut rids).is_ok();
    assert!(rids.len() <= PAIRS_MAX);
    if block.decode(&mut entries).is_err() {
        return;
    }
    block.validate().expect("decoded");
    assert!(has_rids && rids == entries.all_rids());
    assert!(entries.pair_count() <= PAIRS_MAX);
    let pairs: Vec<(&[u8], u64)> = entries.pairs().collect();
    assert!(pairs.windows(2).all(|p| p[0] < p[1]));
    for (i, (key, rid)) in pairs.iter().enumerate() {
        let own = key.strip_prefix(shared).expect("shared");
        assert_eq!(block.lower_bound_pair(own, *rid), (i, true));
        assert_eq!(block.rid(i), *rid);
    }
    let plan = Plan::new(&entries, fixed_key_bytes).expect("a block of pairs");
    let mut again = Vec::new();
    plan.encode(&entries, shared.len(), &mut again);
    assert_eq!(again.len(), plan.bytes(shared.len()));
    let head = pagefold_codec::index::layout::key_head(entries.key(0), shared.len());
    let mut back = Entries::new();
    Block::read(&again, again.len(), Frame { head, ..frame }).expect("encoded").decode(&mut back).expect("encoded");
    assert!(back == entries);
});
