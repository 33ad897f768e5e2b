//! Between which keys an index has entries: so that who looks for a key in many indexes, those of all partitions of a table, need not descend in each.
//!
//! Invariants:
//! - nothing is known until somebody asks; from then on every entry that comes widens the bounds. Nothing narrows them, so they tell where no entry is, never where one is;
//! - who asks says so before he reads the first and the last key, and who adds an entry looks for that after he has added it: so an entry is read, or it widens.

use crate::Result;
use pagefold_types::KeyRange;
use parking_lot::RwLock;
use std::sync::atomic::{AtomicBool, Ordering};

/// The first and the last key.
type Ends = (Vec<u8>, Vec<u8>);

/// The bounds of the keys of an index.
#[derive(Debug, Default)]
pub(crate) struct KeyBounds {
    asked: AtomicBool,
    known: RwLock<Known>,
}

#[derive(Debug, Default)]
struct Known {
    /// Were the ends read? Before that these are of entries that came meanwhile.
    is_complete: bool,
    ends: Option<Ends>,
}

impl Known {
    fn has(&self, key: &[u8]) -> bool {
        self.ends.as_ref().is_some_and(|(first, last)| first.as_slice() <= key && key <= last.as_slice())
    }

    fn has_in(&self, range: &KeyRange) -> bool {
        let begins_before = |last: &[u8]| range.start.as_slice() <= last;
        let ends_behind = |first: &[u8]| range.end.as_deref().is_none_or(|end| first < end);
        self.ends.as_ref().is_some_and(|(first, last)| begins_before(last) && ends_behind(first))
    }

    fn widen(&mut self, key: &[u8]) {
        match &mut self.ends {
            None => self.ends = Some((key.to_vec(), key.to_vec())),
            Some((first, _)) if key < first.as_slice() => *first = key.to_vec(),
            Some((_, last)) if key > last.as_slice() => *last = key.to_vec(),
            Some(_) => {}
        }
    }
}

impl KeyBounds {
    /// May there be an entry with this key? `read` reads the first and the last key that there are.
    ///
    /// # Errors
    /// Those of `read`.
    pub(crate) fn may_have(&self, key: &[u8], read: impl FnOnce() -> Result<Option<Ends>>) -> Result<bool> {
        self.ask(|known| known.has(key), read)
    }

    /// May there be one in this range?
    ///
    /// # Errors
    /// Those of `read`.
    pub(crate) fn may_have_in(&self, range: &KeyRange, read: impl FnOnce() -> Result<Option<Ends>>) -> Result<bool> {
        self.ask(|known| known.has_in(range), read)
    }

    fn ask(&self, has: impl Fn(&Known) -> bool, read: impl FnOnce() -> Result<Option<Ends>>) -> Result<bool> {
        {
            let known = self.known.read();
            if known.is_complete {
                return Ok(has(&known));
            }
        }
        self.asked.store(true, Ordering::SeqCst);
        let ends = read()?;
        let mut known = self.known.write();
        for end in ends.iter().flat_map(|(first, last)| [first, last]) {
            known.widen(end);
        }
        known.is_complete = true;
        Ok(has(&known))
    }

    /// An entry with this key was added.
    #[inline]
    pub(crate) fn added(&self, key: &[u8]) {
        if self.asked.load(Ordering::SeqCst) && !self.known.read().has(key) {
            self.known.write().widen(key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    #[test]
    fn what_comes_while_the_ends_are_read_counts() {
        let bounds = KeyBounds::default();
        bounds.added(b"a");
        let may_have = bounds.may_have(b"z", || {
            bounds.added(b"z");
            Ok(Some((b"f".to_vec(), b"m".to_vec())))
        });
        assert!(may_have.unwrap());
        let reads = Cell::new(0);
        let ask = |key: &[u8]| {
            bounds.may_have(key, || {
                reads.set(reads.get() + 1);
                Ok(None)
            })
        };
        assert!(ask(b"f").unwrap() && ask(b"zz").is_ok_and(|may| !may) && ask(b"e").is_ok_and(|may| !may));
        bounds.added(b"e");
        assert!(ask(b"e").unwrap() && ask(b"g").unwrap());
        let range = |start: &[u8], end: Option<&[u8]>| KeyRange { start: start.to_vec(), end: end.map(<[u8]>::to_vec) };
        let ask_in = |start: &[u8], end| bounds.may_have_in(&range(start, end), || unreachable!()).unwrap();
        assert!(ask_in(b"", None) && ask_in(b"z", None) && ask_in(b"a", Some(b"ee")) && ask_in(b"k", Some(b"l")));
        assert!(!ask_in(b"a", Some(b"e")) && !ask_in(b"za", None));
        assert_eq!(reads.get(), 0, "what is known is not read again");
    }

    #[test]
    fn an_empty_index_has_no_key_until_one_comes() {
        let bounds = KeyBounds::default();
        assert!(!bounds.may_have(b"a", || Ok(None)).unwrap());
        bounds.added(b"a");
        assert!(bounds.may_have(b"a", || unreachable!()).unwrap());
        assert!(!bounds.may_have(b"b", || unreachable!()).unwrap());
    }

    #[test]
    fn ends_that_cannot_be_read_are_read_again() {
        let bounds = KeyBounds::default();
        assert!(bounds.may_have(b"a", || Err(crate::Error::Interrupted)).is_err());
        assert!(bounds.may_have(b"a", || Ok(Some((b"a".to_vec(), b"b".to_vec())))).unwrap());
    }
}
