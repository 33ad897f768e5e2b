//! Latched pages.
//!
//! Invariant: a guard exists only while its thread holds the latch in the page word, so a shared guard's bytes are not written and an exclusive guard's
//! bytes are seen by nobody else. Only a mini-transaction gets at the bytes of an exclusive guard
//! to change them. A guard stays with its thread: how many it holds
//! tells whether it may be made to wait behind others ([`Order`](super::word::Order)).

use crate::data_set::DataSet;
use crate::frames::PageWord;
use std::cell::Cell;
use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;
use std::ptr::NonNull;

thread_local! {
    static HELD: Cell<u32> = const { Cell::new(0) };
}

/// Latches that this thread holds.
pub(super) fn held() -> u32 {
    HELD.get()
}

/// One of the latches that its thread holds.
struct Held(PhantomData<*const ()>);

impl Held {
    #[inline]
    fn new() -> Held {
        HELD.set(HELD.get() + 1);
        Held(PhantomData)
    }
}

impl Drop for Held {
    #[inline]
    fn drop(&mut self) {
        HELD.set(HELD.get() - 1);
    }
}

/// Where a page is in memory.
#[derive(Clone, Copy)]
pub(super) struct Frame {
    pub(super) address: NonNull<u8>,
    pub(super) bytes: usize,
}

impl Frame {
    /// # Safety
    /// The caller holds a latch on the page in this frame for as long as the slice lives.
    #[inline]
    #[expect(unsafe_code, reason = "frames are raw memory; the latch makes them a slice")]
    unsafe fn as_slice<'a>(self) -> &'a [u8] {
        // SAFETY: the frame lies in the arena's mapping, which outlives every data set; the latch keeps writers out.
        unsafe { std::slice::from_raw_parts(self.address.as_ptr(), self.bytes) }
    }

    /// # Safety
    /// The caller holds the exclusive latch on the page in this frame, or the claim on it, for as long as the slice lives, and makes no other.
    #[expect(unsafe_code, reason = "frames are raw memory; the latch makes them a slice")]
    pub(super) unsafe fn as_mut_slice<'a>(self) -> &'a mut [u8] {
        // SAFETY: as above, and the exclusive latch keeps everybody else out.
        unsafe { std::slice::from_raw_parts_mut(self.address.as_ptr(), self.bytes) }
    }
}

/// A page latched for reading.
pub struct SharedPage<'a> {
    word: &'a PageWord,
    bytes: &'a [u8],
    number: u32,
    _held: Held,
}

impl<'a> SharedPage<'a> {
    /// The caller has just taken the shared latch of this word.
    #[inline]
    pub(super) fn new(word: &'a PageWord, frame: Frame, number: u32) -> SharedPage<'a> {
        // SAFETY: the shared latch is held until drop, and `bytes` is only lent out for as long as the guard is borrowed.
        #[expect(unsafe_code, reason = "the latch makes the frame a slice")]
        let bytes = unsafe { frame.as_slice() };
        SharedPage { word, bytes, number, _held: Held::new() }
    }

    /// The page's number in its data set.
    #[inline]
    #[must_use]
    pub fn number(&self) -> u32 {
        self.number
    }
}

impl Deref for SharedPage<'_> {
    type Target = [u8];
    #[inline]
    fn deref(&self) -> &[u8] {
        self.bytes
    }
}

impl Drop for SharedPage<'_> {
    #[inline]
    fn drop(&mut self) {
        self.word.release_shared();
    }
}

impl fmt::Debug for SharedPage<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SharedPage({})", self.number)
    }
}

/// A page latched for change; changed through a mini-transaction only.
pub struct ExclusivePage<'a> {
    data_set: &'a DataSet,
    word: &'a PageWord,
    frame: Frame,
    number: u32,
    _held: Held,
}

impl<'a> ExclusivePage<'a> {
    /// The caller has just taken the exclusive latch of this word.
    pub(super) fn new(data_set: &'a DataSet, word: &'a PageWord, frame: Frame, number: u32) -> ExclusivePage<'a> {
        ExclusivePage { data_set, word, frame, number, _held: Held::new() }
    }

    /// The page's number in its data set.
    #[must_use]
    pub fn number(&self) -> u32 {
        self.number
    }

    /// The data set it belongs to.
    pub(crate) fn data_set(&self) -> &'a DataSet {
        self.data_set
    }

    pub(super) fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: the exclusive latch is held until drop; the slice borrows the guard mutably.
        #[expect(unsafe_code, reason = "the latch makes the frame a slice")]
        unsafe {
            self.frame.as_mut_slice()
        }
    }

    pub(super) fn mark_dirty(&self) -> bool {
        self.word.set_dirty()
    }
}

impl Deref for ExclusivePage<'_> {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        // SAFETY: the exclusive latch is held until drop; the slice borrows the guard.
        #[expect(unsafe_code, reason = "the latch makes the frame a slice")]
        unsafe {
            self.frame.as_slice()
        }
    }
}

impl Drop for ExclusivePage<'_> {
    fn drop(&mut self) {
        self.word.release_exclusive();
    }
}

impl fmt::Debug for ExclusivePage<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ExclusivePage({} of {})", self.number, self.data_set.object())
    }
}
