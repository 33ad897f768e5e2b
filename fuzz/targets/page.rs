//! Page header, and the pages that are read whole: data set header, space map, chains.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pagefold_format::chain::{self, ChainPage};
use pagefold_format::data_set_header::{DICTIONARIES_MAX, DataSetHeader};
use pagefold_format::page::{PAGE_SIZE_MAX, PageIdentity, PageType, page_number, seal, verify};
use pagefold_format::space_map::{self, SpaceWord};

fuzz_target!(|data: &[u8]| {
    let identity = |page_number| PageIdentity { database_id: 1, file_id: 2, page_number };
    assert!(verify(data, &identity(7)).is_err(), "a checksum that nobody made");
    if data.len() < 32 || data.len() > PAGE_SIZE_MAX {
        return;
    }
    let mut page = data.to_vec();
    let identity = identity(page_number(data));
    seal(&mut page, &identity);
    let Ok(page_type) = verify(&page, &identity) else { return };
    let mut again = vec![0xFF; page.len()];
    match page_type {
        PageType::Header => {
            if let Ok(header) = DataSetHeader::parse(&page) {
                assert!(header.dictionaries.len() <= DICTIONARIES_MAX);
                header.build(&mut again);
                assert_eq!(DataSetHeader::parse(&again).expect("as built"), header);
            }
        }
        PageType::SpaceMap => {
            if let Ok(words) = space_map::words(&page) {
                let words: Vec<SpaceWord> = words.collect();
                assert!(words.len() <= page.len() / 4);
                space_map::build(&mut again, identity.page_number, &words);
                assert!(space_map::words(&again).expect("as built").eq(words));
            }
        }
        PageType::Dictionary | PageType::LargeValue => {
            if let Ok(part) = ChainPage::parse(&page, page_type) {
                chain::build(&mut again, identity.page_number, page_type, part.next, part.sequence, part.owner, part.payload);
                assert_eq!(ChainPage::parse(&again, page_type).expect("as built"), part);
            }
        }
        _ => {}
    }
});
