//! A copy of a database as a file: blocks with any contents, and then any bytes, over a header and a manifest that are right or not.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pagefold_engine::backup::CopyReader;
use pagefold_format::control::ControlSlot;
use pagefold_format::copy::{COPY_BLOCK_HEADER_BYTES, COPY_HEADER_BYTES, CopiedDataSet, CopyBlock, CopyHeader, Manifest};
use pagefold_format::page::{PageIdentity, page_number, seal};
use pagefold_fuzz::input::Input;
use pagefold_fuzz::pages;
use pagefold_io::{MemoryStorage, OpenOptions, Storage};
use std::path::Path;
use std::sync::LazyLock;

const ID: u128 = 9;

static MANIFEST: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let control = ControlSlot {
        sequence: 41,
        database_id: ID,
        catalog_file_id: 5,
        catalog_writes: 1,
        next_file_id: 6,
        next_object_id: 9,
        checkpoint: 0,
        log_id: ID,
    };
    let manifest = Manifest {
        base: None,
        control,
        redo: 5000,
        log_start: 4096,
        log_end: 9000,
        segment_bytes: 16 << 20,
        begun_ns: 1,
        last_commit_ns: 2,
        data_sets: vec![CopiedDataSet { file_id: 3, page_bytes: 2048, page_count: 9 }],
        tables: vec![],
    };
    let mut bytes = Vec::new();
    manifest.encode(&mut bytes);
    bytes
});
static PAGE: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let mut page = pages::data(2048);
    let identity = PageIdentity { database_id: ID, file_id: 3, page_number: page_number(&page) };
    seal(&mut page, &identity);
    page
});

fuzz_target!(|data: &[u8]| {
    let mut input = Input(data);
    let mut copy = vec![0; COPY_HEADER_BYTES];
    let blocks = input.byte();
    let mut put = |block: CopyBlock, body: &[u8]| {
        let header = block.build(body, ID, copy.len() as u64);
        copy.extend_from_slice(&header);
        copy.extend_from_slice(body);
        copy.len() - body.len() - COPY_BLOCK_HEADER_BYTES
    };
    for _ in 0..blocks % 8 {
        match input.byte() % 4 {
            0 => put(CopyBlock::Pages { file_id: 3, page_bytes: 2048, first: page_number(&PAGE) }, &PAGE),
            1 => put(CopyBlock::Pages { file_id: input.u32(), page_bytes: input.u16().into(), first: input.u32() }, input.chunk()),
            2 => put(CopyBlock::Manifest, &MANIFEST),
            _ => put(CopyBlock::Log { start: input.u32().into() }, input.chunk()),
        };
    }
    let manifest = put(CopyBlock::Manifest, if blocks & 0x80 == 0 { &MANIFEST } else { input.chunk() }) as u64;
    let header = CopyHeader { copy_id: ID, manifest, length: copy.len() as u64, partial: false };
    copy[..COPY_HEADER_BYTES].copy_from_slice(&header.build());
    let built = copy.clone();
    while !input.is_empty() {
        let (at, length) = (usize::from(input.u16()) % copy.len(), usize::from(input.byte()));
        for (to, byte) in copy.iter_mut().skip(at).zip(input.take(length)) {
            *to = *byte;
        }
    }
    let storage = MemoryStorage::new();
    let path = Path::new("copy");
    storage.open(path, &OpenOptions::create()).expect("in memory").write_at(&copy, 0).expect("in memory");
    let mut reader = match CopyReader::open(&storage, path) {
        Ok(reader) => reader,
        Err(error) => return assert!(!error.to_string().is_empty()),
    };
    assert_eq!((reader.copy_id(), reader.length()), (ID, copy.len() as u64));
    if let Ok(bytes) = reader.read_through() {
        assert!(bytes < copy.len() as u64);
        assert!(copy == built, "bytes that nobody wrote");
    }
});
