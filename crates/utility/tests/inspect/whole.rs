//! Nothing is wrong with a whole database.

use crate::sample::{contents, places, run_check, sample};

#[test]
fn a_whole_database_is_clean() {
    let storage = sample();
    let before = storage.content_hash();
    let report = run_check(&storage);
    assert!(report.is_clean(), "{}", report.to_text(usize::MAX));
    let (used, free) = places(&storage);
    assert_eq!(report.pages, used.len() as u64);
    assert!(free.len() > 20, "{} free pages", free.len());
    assert!(used.len() > 200, "{} used pages", used.len());
    let read = contents(&storage).unwrap().len() as u64;
    assert_eq!(report.rows + report.index_entries, read);
    assert_eq!(storage.content_hash(), before, "check changed something");
}
