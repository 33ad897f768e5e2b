//! What a copy of a database consists of, as hostile bytes: header, blocks, manifest, with checksums that are right and that are not.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pagefold_format::copy::{COPY_BLOCK_HEADER_BYTES, COPY_HEADER_BYTES, CopyBlock, CopyHeader, Manifest};
use pagefold_fuzz::input::Input;
use xxhash_rust::xxh3::xxh3_64_with_seed;

fuzz_target!(|data: &[u8]| {
    let mut input = Input(data);
    let which = input.byte();
    let rest = input.0;
    match which % 3 {
        0 => {
            let mut bytes = [0; COPY_HEADER_BYTES];
            let length = rest.len().min(COPY_HEADER_BYTES - 8);
            bytes[8..8 + length].copy_from_slice(&rest[..length]);
            let sum = xxh3_64_with_seed(&bytes[8..], 0);
            bytes[..8].copy_from_slice(&sum.to_le_bytes());
            let claimed = u64::from_le_bytes(bytes[48..56].try_into().expect("eight bytes"));
            if let Ok(header) = CopyHeader::parse(&bytes, claimed) {
                assert_eq!(CopyHeader::parse(&header.build(), claimed), Ok(header));
                assert!(CopyHeader::parse(&bytes, claimed ^ 1).is_err(), "of another length");
            }
        }
        1 => {
            let Some((header, body)) = rest.split_first_chunk::<COPY_BLOCK_HEADER_BYTES>() else { return };
            if let Ok((block, bytes)) = CopyBlock::parse(header)
                && let Some(body) = body.get(..bytes)
            {
                let built = block.build(body, 7, 64);
                assert_eq!(CopyBlock::parse(&built), Ok((block, bytes)));
                assert_eq!(built[8..], header[8..]);
                assert!(CopyBlock::check(&built, body, 7, 64).is_ok() && CopyBlock::check(&built, body, 7, 65).is_err());
            }
        }
        _ => {
            if let Ok(manifest) = Manifest::decode(rest) {
                let mut bytes = Vec::new();
                manifest.encode(&mut bytes);
                assert_eq!(Manifest::decode(&bytes), Ok(manifest));
            }
        }
    }
});
