//! The index report's own figures (`published/`): its eight sample keys and its test index.

use super::build::{LeafBuilder, LeafPacker};
use super::folded;
use super::header::{FOLDED_PAGE_BYTES, LEAF_HEADER_BYTES, LeafKind};
use super::leaf::Leaf;
use pagefold_codec::index::layout::{MAP_BYTES, common_prefix};
use pagefold_types::Rid;

/// (LASTNAME CHAR(20), BIRTHDATE as text, FIRSTNAME CHAR(20)), blanks to the right.
fn sample_keys() -> Vec<Vec<u8>> {
    [
        ("Smith", "1980-02-05", "John"),
        ("Smith", "1980-04-22", "Andrea"),
        ("Smith", "1982-10-11", "Bill"),
        ("Smith", "1984-05-31", "Tommie"),
        ("Smith", "1985-07-09", "Susan"),
        ("Smithers", "1980-08-15", "Fred"),
        ("Smithson", "1981-12-13", "Eric"),
        ("Stewart", "1982-07-05", "George"),
    ]
    .map(|(last, birth, first)| format!("{last:20}{birth:10}{first:20}").into_bytes())
    .into()
}

#[test]
fn the_sample_keys_share_what_the_report_says() {
    let keys = sample_keys();
    let shared: Vec<usize> = keys.windows(2).map(|w| common_prefix(&w[0], &w[1])).collect();
    for (key, shared) in keys.iter().zip(std::iter::once(&0).chain(&shared)) {
        println!("{:2} bytes shared  {}", shared, String::from_utf8_lossy(key));
    }
    // Five Smiths share the 20 bytes of the name and "198"; one pair even the year.
    assert_eq!(shared, [26, 23, 23, 23, 5, 5, 1]);
    assert_eq!((0..5).map(|i| common_prefix(&keys[0], &keys[i])).min(), Some(23));
    let kind = LeafKind { single: true, fold: true, fixed_key_bytes: 50, slot_bits: 12 };
    let mut builder = LeafBuilder::new(kind, 8192, 0);
    for (i, key) in keys.iter().enumerate() {
        assert!(builder.push(key, Rid::new(0, 1, i as u16)).unwrap());
    }
    // A suffix each; two bytes of token and escape, as suffixes are longer than 14; the first RID takes two bytes, the next ones none.
    let suffixes: usize = 50 + shared.iter().map(|s| 50 - s).sum::<usize>();
    assert_eq!(builder.packer().folded_bytes() - LEAF_HEADER_BYTES, suffixes + 2 * keys.len() + 2);
}

/// CHAR(16) constant and unique INTEGER, ascending: leaf pages of 16 KB fold 4:1, and entries to a fraction of that.
#[test]
fn the_test_index_folds_four_to_one() {
    for leaf_bytes in [8192, 16384, 32768] {
        let kind = LeafKind { single: true, fold: true, fixed_key_bytes: 20, slot_bits: 8 };
        let mut builder = LeafBuilder::new(kind, leaf_bytes, 0);
        let mut packer = LeafPacker::new(kind, 32768, 0);
        let mut entries = 0;
        for i in 0.. {
            let mut key = b"CONSTANT KEYPART".to_vec();
            key.extend((0x8000_0000u32 + 500_000 + i).to_be_bytes());
            let rid = Rid::new(0, 1000 + i / 150, (i % 150) as u16);
            if !builder.push(&key, rid).unwrap() {
                break;
            }
            assert!(packer.push(&key, rid).unwrap());
            entries += 1;
        }
        let in_memory = entries * (20 + 7 + MAP_BYTES);
        let folded_body = packer.folded_bytes() - LEAF_HEADER_BYTES;
        let ratio = in_memory as f64 / folded_body as f64;
        println!("{leaf_bytes}: {entries} entries, {in_memory} bytes in memory, {folded_body} folded, {ratio:.2}:1");
        assert!(ratio > 4.0);
        let mut page = vec![0; leaf_bytes];
        builder.finish(1, 0, &mut page);
        assert!(leaf_bytes < 16384 || Leaf::new(&page).folded_bytes() * 4 <= leaf_bytes);
        assert!(Leaf::new(&page).free_bytes() < 40, "the leaf in memory is what is full");
        let mut disk = [0; FOLDED_PAGE_BYTES];
        folded::fold(&page, &mut disk).unwrap();
    }
}

/// The primary key of LINEITEM: (orderkey BIGINT, linenumber INTEGER), sparse order keys, 1 to 7 lines each.
#[test]
fn a_two_column_key_takes_three_bytes() {
    let kind = LeafKind { single: true, fold: true, fixed_key_bytes: 12, slot_bits: 7 };
    let mut packer = LeafPacker::new(kind, 32768, 0);
    let mut row = 40_000u32;
    'full: for order in 100_000u64.. {
        let order_key = (order & 7) | (order >> 3) << 5;
        for line in 1..=(order * 7 % 11 % 7 + 1) as u32 {
            let mut key = (order_key ^ 1 << 63).to_be_bytes().to_vec();
            key.extend((line ^ 1 << 31).to_be_bytes());
            if !packer.push(&key, Rid::new(0, row / 75, (row % 75) as u16)).unwrap() {
                break 'full;
            }
            row += 1;
        }
    }
    let body = packer.folded_bytes() - LEAF_HEADER_BYTES;
    let bytes = body as f64 / packer.entry_count() as f64;
    println!("{} entries, {bytes:.2} bytes each", packer.entry_count());
    assert!(bytes < 3.4);
}
