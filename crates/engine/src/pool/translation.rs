//! The translation array of a data set: page number -> page word.
//!
//! Segments of doubling size (1,024, 1,024, 2,048, ... words) are made as the data set grows and never move, so a word's address is stable.
//!
//! Invariant: callers check the page number against the data set's page count first; a wild number from a damaged page never allocates.

use super::word::PageWord;
use std::sync::OnceLock;

const FIRST_BITS: u32 = 10;
const SEGMENTS: usize = 33 - FIRST_BITS as usize;

/// Page number -> page word.
#[derive(Debug)]
pub(crate) struct Translation {
    segments: [OnceLock<Box<[PageWord]>>; SEGMENTS],
}

/// (segment, index in it)
#[inline]
fn locate(page: u32) -> (usize, usize) {
    let shifted = u64::from(page) + (1 << FIRST_BITS);
    let top = 63 - shifted.leading_zeros();
    ((top - FIRST_BITS) as usize, (shifted - (1 << top)) as usize)
}

impl Translation {
    pub(crate) fn new() -> Translation {
        Translation { segments: [const { OnceLock::new() }; SEGMENTS] }
    }

    /// The word of a page.
    #[inline]
    pub(crate) fn word(&self, page: u32) -> &PageWord {
        let (segment, index) = locate(page);
        match self.segments[segment].get() {
            Some(words) => &words[index],
            None => self.grow(segment, index),
        }
    }

    #[cold]
    fn grow(&self, segment: usize, index: usize) -> &PageWord {
        let words =
            self.segments[segment].get_or_init(|| (0..1usize << (segment as u32 + FIRST_BITS)).map(|_| PageWord::default()).collect());
        &words[index]
    }

    /// Every word there is, with its page number.
    pub(crate) fn all(&self) -> impl Iterator<Item = (u32, &PageWord)> {
        self.segments.iter().enumerate().flat_map(|(segment, words)| {
            let first = (1u64 << (segment as u32 + FIRST_BITS)) - (1 << FIRST_BITS);
            words.get().into_iter().flat_map(move |words| words.iter().enumerate().map(move |(i, word)| ((first + i as u64) as u32, word)))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_page_has_one_place() {
        assert_eq!(locate(0), (0, 0));
        assert_eq!(locate(1023), (0, 1023));
        assert_eq!(locate(1024), (1, 0));
        assert_eq!(locate(3071), (1, 2047));
        assert_eq!(locate(3072), (2, 0));
        assert_eq!(locate(u32::MAX).0, SEGMENTS - 1);
        let translation = Translation::new();
        for page in [0, 5, 1023, 1024, 5000] {
            assert!(std::ptr::eq(translation.word(page), translation.word(page)));
        }
        let numbers: Vec<u32> = translation.all().map(|(page, _)| page).collect();
        assert_eq!(&numbers[..2048], &(0..2048).collect::<Vec<u32>>()[..]);
        assert!(numbers.contains(&5000) && numbers.is_sorted());
    }
}
