//! Text files: what is read can be written, and is then read as the same rows.
#![no_main]

use arrow_array::RecordBatch;
use libfuzzer_sys::fuzz_target;
use pagefold_fuzz::input::Input;
use pagefold_interchange::{CsvOptions, CsvSource, FileFormat, FileSink, Header, InterchangeError, Sink, Source};
use pagefold_io::{MemoryStorage, OpenOptions, Storage};
use std::path::{Path, PathBuf};
use std::sync::Arc;

fn all(source: &mut CsvSource) -> Result<Vec<RecordBatch>, InterchangeError> {
    source.batches()?.collect()
}

fuzz_target!(|data: &[u8]| {
    let mut input = Input(data);
    let flags = input.byte();
    let path = PathBuf::from(["in.csv", "in.tbl", "in.tsv", "in.csv"][usize::from(flags & 3)]);
    let options = CsvOptions {
        header: [Header::Auto, Header::Yes, Header::No, Header::Auto][usize::from(flags >> 2 & 3)],
        escape: (flags & 0x10 != 0).then_some(b'\\'),
        null: (flags & 0x20 != 0).then(|| "NULL".to_owned()),
        ..CsvOptions::default()
    };
    let storage: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
    storage.open(&path, &OpenOptions::create()).expect("in memory").write_at(input.rest(), 0).expect("in memory");
    let Ok(mut source) = CsvSource::open(&*storage, std::slice::from_ref(&path), &options) else { return };
    let rows = all(&mut source);
    let Ok(rows) = rows else { panic!("the first pass has read it: {:?}", rows.err()) };
    let count: usize = rows.iter().map(RecordBatch::num_rows).sum();
    assert_eq!(source.row_count(), Some(count as u64));
    let sampled: u64 = source.sample(2, 7).expect("as before").map(|b| b.expect("a row").num_rows() as u64).sum();
    assert!(sampled <= count as u64);

    // What a delimiter, quote or NULL text cannot tell is refused when it is written.
    let table = source.table().clone();
    // Told, as a beginning may look as if it were written otherwise.
    let write = CsvOptions { header: Header::Yes, delimiter: Some(b','), quote: Some(Some(b'"')), ..CsvOptions::default() };
    let Ok(mut sink) = FileSink::create(Arc::clone(&storage), Path::new("out.csv"), &FileFormat::Csv(write.clone()), &table) else {
        return;
    };
    for batch in &rows {
        if sink.write(batch).is_err() {
            return;
        }
    }
    sink.finish().expect("in memory");
    let read = CsvOptions { schema: Some(table.schema().clone()), ..write };
    let mut again = CsvSource::open(&*storage, &[PathBuf::from("out.csv")], &read).expect("as written");
    assert_eq!(all(&mut again).expect("as written"), rows);
});
