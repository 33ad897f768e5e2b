//! Bodies of log records: what decodes encodes to the same bytes, and its ops leave pages valid.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pagefold_format::log::{Action, Change, Checkpoint, Commit, next_change, put_change};
use pagefold_format::op::PageOp;
use pagefold_format::wire::Reader;
use pagefold_fuzz::input::Input;
use pagefold_fuzz::{ops, pages};
use std::sync::LazyLock;

static PAGES: LazyLock<Vec<Vec<u8>>> = LazyLock::new(pages::all);

/// The changes of an action, one after the other.
fn changes(bytes: &[u8], page: &mut [u8]) {
    let mut reader = Reader::new(bytes);
    while !reader.is_empty() {
        let mut ahead = reader;
        let before = ahead.rest();
        let Ok((file_id, number, change)) = next_change(&mut reader) else { return };
        let mut ahead = reader;
        let used = &before[..before.len() - ahead.rest().len()];
        let mut again = Vec::new();
        put_change(&mut again, file_id, number, &change);
        // Numbers have longer forms than need be.
        assert!(again.len() <= used.len(), "{change:?}");
        let mut second = Reader::new(&again);
        assert_eq!(next_change(&mut second), Ok((file_id, number, change)));
        if let Change::Page(op) = change
            && op.apply(page).is_ok()
            && !matches!(op, PageOp::Image(_))
        {
            ops::validate(page).expect("as valid as before");
        } else if let Change::Page(PageOp::Image(_)) = change {
            return;
        }
    }
}

fuzz_target!(|data: &[u8]| {
    let mut input = Input(data);
    let (kind, which) = (input.byte(), input.byte());
    let body = input.rest();
    match kind % 3 {
        0 => {
            if let Ok(action) = Action::decode(body) {
                let mut again = Vec::new();
                Action::encode_head(&action.role, &mut again);
                again.extend_from_slice(action.changes);
                assert_eq!(Action::decode(&again), Ok(action));
                changes(action.changes, &mut PAGES[usize::from(which) % PAGES.len()].clone());
            }
        }
        1 => {
            if let Ok(commit) = Commit::decode(body) {
                let mut again = Vec::new();
                commit.encode(&mut again);
                assert_eq!(Commit::decode(&again), Ok(commit));
            }
        }
        _ => {
            if let Ok(checkpoint) = Checkpoint::decode(body) {
                let mut again = Vec::new();
                checkpoint.encode(&mut again);
                assert_eq!(Checkpoint::decode(&again), Ok(checkpoint));
            }
        }
    }
});
