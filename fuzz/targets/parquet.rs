//! Parquet files: what is read is of the schema that was said, and a damaged file is an error.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pagefold_fuzz::input::Input;
use pagefold_interchange::{Batches, CsvOptions, CsvSource, FileFormat, FileSink, ParquetOptions, ParquetSource, Sink, Source};
use pagefold_io::{MemoryStorage, OpenOptions, Storage, read_exact_at};
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock, Once};

static QUIET: Once = Once::new();

/// A small file without and with compression.
static FILES: LazyLock<[Vec<u8>; 2]> = LazyLock::new(|| {
    [None, Some(3)].map(|zstd_level| {
        let storage: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
        let text = b"id,name,price,day\n1,\"a, b\",1.50,2024-01-01\n2,b,2.25,2024-02-01\n3,,,\n4,b,2.25,2024-02-01\n";
        let path = PathBuf::from("in.csv");
        storage.open(&path, &OpenOptions::create()).expect("in memory").write_at(text, 0).expect("in memory");
        let mut source = CsvSource::open(&*storage, std::slice::from_ref(&path), &CsvOptions::default()).expect("text");
        let options = ParquetOptions { zstd_level, row_group_rows: 3 };
        let table = source.table().clone();
        let mut sink =
            FileSink::create(Arc::clone(&storage), Path::new("a.parquet"), &FileFormat::Parquet(options), &table).expect("a file");
        for batch in source.batches().expect("rows") {
            sink.write(&batch.expect("rows")).expect("in memory");
        }
        sink.finish().expect("in memory");
        let file = storage.open(Path::new("a.parquet"), &OpenOptions::read_only()).expect("the file");
        let mut bytes = vec![0; file.len().expect("its length") as usize];
        read_exact_at(&*file, &mut bytes, 0).expect("all of it");
        bytes
    })
});

fuzz_target!(|data: &[u8]| {
    // The library under the decoder panics and the decoder catches it. The fuzzer's hook would end the run before; a panic that nobody catches still does.
    QUIET.call_once(|| std::panic::set_hook(Box::new(|_| {})));
    let mut input = Input(data);
    let which = input.byte();
    let mut bytes = FILES[usize::from(which & 1)].clone();
    if which & 0x80 == 0 {
        while !input.is_empty() {
            let (at, length) = (usize::from(input.u16()) % bytes.len(), usize::from(input.byte() % 16));
            for (to, byte) in bytes.iter_mut().skip(at).zip(input.take(length)) {
                *to = *byte;
            }
        }
    } else {
        bytes = input.rest().to_vec();
    }
    let storage = MemoryStorage::new();
    let path = PathBuf::from("a.parquet");
    storage.open(&path, &OpenOptions::create()).expect("in memory").write_at(&bytes, 0).expect("in memory");
    let Ok(mut source) = ParquetSource::open(&storage, std::slice::from_ref(&path)) else { return };
    let columns = source.table().arrow().fields().len();
    let check = |batches: Batches<'_>| {
        for batch in batches.take(20) {
            match batch {
                Ok(batch) => assert_eq!(batch.num_columns(), columns),
                Err(error) => return assert!(!error.to_string().is_empty()),
            }
        }
    };
    if let Ok(batches) = source.batches() {
        check(batches);
    }
    if let Ok(batches) = source.sample(2, 7) {
        check(batches);
    }
});
