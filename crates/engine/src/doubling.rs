//! An array that grows and whose elements never move: segments of doubling size, made when one of their elements is first asked for.
//!
//! The first segment has `1 << FIRST_BITS` elements, each further one twice as many as the one before.

use std::sync::OnceLock;

/// How many segments an array needs that is to have the element `last`.
pub(crate) const fn segments_for(first_bits: u32, last: u32) -> usize {
    locate(first_bits, last).0 + 1
}

/// (Segment, index in it).
#[inline]
const fn locate(first_bits: u32, index: u32) -> (usize, usize) {
    let shifted = index as u64 + (1 << first_bits);
    let top = 63 - shifted.leading_zeros();
    ((top - first_bits) as usize, (shifted - (1 << top)) as usize)
}

/// The array.
#[derive(Debug)]
pub(crate) struct Doubling<T, const FIRST_BITS: u32, const SEGMENTS: usize> {
    segments: [OnceLock<Box<[T]>>; SEGMENTS],
}

impl<T, const FIRST_BITS: u32, const SEGMENTS: usize> Default for Doubling<T, FIRST_BITS, SEGMENTS> {
    fn default() -> Self {
        Doubling { segments: [const { OnceLock::new() }; SEGMENTS] }
    }
}

impl<T: Default, const FIRST_BITS: u32, const SEGMENTS: usize> Doubling<T, FIRST_BITS, SEGMENTS> {
    /// An element, if its segment is there.
    #[inline]
    pub(crate) fn get(&self, index: u32) -> Option<&T> {
        let (segment, index) = locate(FIRST_BITS, index);
        self.segments.get(segment)?.get().map(|elements| &elements[index])
    }

    /// An element, made with its segment when it is not there. Asked for only below the array's bound.
    #[inline]
    pub(crate) fn get_or_make(&self, index: u32) -> &T {
        let (segment, index) = locate(FIRST_BITS, index);
        match self.segments[segment].get() {
            Some(elements) => &elements[index],
            None => self.grow(segment, index),
        }
    }

    #[cold]
    fn grow(&self, segment: usize, index: usize) -> &T {
        let elements = 1usize << (segment as u32 + FIRST_BITS);
        &self.segments[segment].get_or_init(|| (0..elements).map(|_| T::default()).collect())[index]
    }

    /// Every element there is, with its index.
    pub(crate) fn all(&self) -> impl Iterator<Item = (u32, &T)> {
        self.segments.iter().enumerate().flat_map(|(segment, elements)| {
            let first = (1u64 << (segment as u32 + FIRST_BITS)) - (1 << FIRST_BITS);
            elements
                .get()
                .into_iter()
                .flat_map(move |elements| elements.iter().enumerate().map(move |(i, e)| ((first + i as u64) as u32, e)))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU32;

    #[test]
    fn every_element_has_one_place() {
        for first_bits in [0, 2, 10] {
            let mut expected = (0, 0);
            for index in 0..20_000 {
                assert_eq!(locate(first_bits, index), expected, "element {index}");
                expected.1 += 1;
                if expected.1 == 1 << (expected.0 as u32 + first_bits) {
                    expected = (expected.0 + 1, 0);
                }
            }
        }
        assert_eq!(segments_for(10, u32::MAX), 23);
        assert_eq!((segments_for(0, 0), segments_for(0, 1), segments_for(0, 4095)), (1, 2, 13));
    }

    #[test]
    fn elements_stay_where_they_are() {
        let array: Doubling<AtomicU32, 2, { segments_for(2, 6000) }> = Doubling::default();
        assert!(array.get(5).is_none() && array.get(u32::MAX).is_none() && array.all().next().is_none());
        let first = array.get_or_make(5);
        for index in [0, 3, 4, 5000] {
            assert!(std::ptr::eq(array.get_or_make(index), array.get_or_make(index)));
        }
        assert!(array.get(5).is_some_and(|same| std::ptr::eq(first, same)));
        let indexes: Vec<u32> = array.all().map(|(index, _)| index).collect();
        assert_eq!(&indexes[..12], &(0..12).collect::<Vec<u32>>()[..]);
        assert!(indexes.contains(&5000) && indexes.is_sorted() && array.get(1000).is_none());
    }
}
