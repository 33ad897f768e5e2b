//! Text that nobody meant as a value.
#![allow(missing_docs, clippy::unwrap_used)]

mod common;

use common::{Rng, data_type, value};
use pagefold_types::{DataType, Value, text};
use std::str::FromStr;

#[test]
fn noise_is_a_value_that_can_be_written_or_refused() {
    const ALPHABET: [char; 20] = ['0', '1', '2', '9', '-', '+', '.', ':', ' ', 'T', 'Z', 'e', 'E', 'x', '\\', 'a', 'f', 'N', 'n', 'ä'];
    let mut rng = Rng(51);
    let mut scratch = Vec::new();
    let (mut read, mut refused) = (0, 0);
    for _ in 0..60_000 {
        let data_type = data_type(&mut rng);
        // Noise, or the text of a value with some characters changed.
        let mut noise: Vec<char> = if rng.chance(3) {
            (0..rng.below(24)).map(|_| ALPHABET[rng.below(20) as usize]).collect()
        } else {
            text::to_text(value(&mut rng, &data_type).as_ref(), &data_type).chars().collect()
        };
        for _ in 0..rng.below(3) {
            let at = rng.below(noise.len() as u64 + 1) as usize;
            let c = ALPHABET[rng.below(20) as usize];
            match rng.below(3) {
                0 => noise.insert(at, c),
                _ if at == noise.len() => {}
                1 => noise[at] = c,
                _ => drop(noise.remove(at)),
            }
        }
        let noise: String = noise.into_iter().collect();
        let canonical = text::is_canonical(&noise, &data_type, &mut scratch);
        let Ok(value) = text::parse(&noise, &data_type) else {
            assert!(!canonical);
            refused += 1;
            continue;
        };
        value.as_ref().check(&data_type, "c").unwrap();
        let written = text::to_text(value.as_ref(), &data_type);
        assert!(text::is_canonical(&written, &data_type, &mut scratch), "{noise:?} {written:?} {data_type}");
        let again: Value = text::parse(&written, &data_type).unwrap();
        assert!(again.as_ref() == value.as_ref(), "{noise:?} {written:?} {data_type}");
        assert_eq!(canonical, written == noise, "{noise:?} {written:?} {data_type}");
        read += 1;
    }
    assert!(read > 5_000 && refused > 5_000, "{read} {refused}");
}

#[test]
fn noise_is_a_type_or_refused() {
    let mut rng = Rng(52);
    let (mut read, mut refused) = (0, 0);
    for _ in 0..20_000 {
        let mut noise: Vec<u8> = data_type(&mut rng).to_string().into_bytes();
        for _ in 0..rng.below(3) {
            let at = rng.below(noise.len() as u64) as usize;
            noise[at] = b"0129(),- aA"[rng.below(11) as usize];
        }
        match DataType::from_str(&String::from_utf8(noise).unwrap()) {
            Ok(found) => {
                assert!(found.is_valid());
                assert_eq!(DataType::from_str(&found.to_string()).unwrap(), found);
                read += 1;
            }
            Err(_) => refused += 1,
        }
    }
    assert!(read > 1_000 && refused > 1_000, "{read} {refused}");
}
