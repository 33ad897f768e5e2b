//! Statistics of a table or an index, as notes have them.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pagefold_format::catalog::{STATISTICS_BYTES_MAX, Statistics, figure};

fuzz_target!(|data: &[u8]| {
    let Ok(statistics) = Statistics::decode(data) else { return };
    let figures = statistics.columns.iter().flat_map(|column| column.figures.iter()).chain(statistics.figures.iter());
    let shares = statistics.columns.iter().flat_map(|column| column.frequent.iter().map(|(_, share)| *share));
    for figure in figures.map(|(_, figure)| figure).chain(shares).chain(statistics.prefixes.iter().copied()) {
        assert!(figure.low <= figure.value && figure.value <= figure.high && figure.contains(figure.value));
        assert!(figure.low.is_finite() && figure.high.is_finite());
    }
    assert!(statistics.columns.iter().all(|column| column.bounds.is_sorted()));
    let _ = (statistics.figures.get(figure::ROWS), statistics.column(0));
    let bytes = statistics.encode();
    let again = Statistics::decode(&bytes).expect("just written");
    // What was too much has become less.
    if data.len() < STATISTICS_BYTES_MAX / 4 {
        assert_eq!(again, statistics);
    }
    assert!(statistics.kept != Default::default() || bytes.len() <= STATISTICS_BYTES_MAX.max(data.len()));
});
