//! Steps of the work that must not grow with what is there beside it, counted for tests. Nothing outside of tests.
//!
//! A step is an element looked at where a list is walked, a map asked, or a level of a tree descended.

#[cfg(test)]
use std::cell::Cell;

#[cfg(test)]
thread_local! {
    static STEPS: Cell<u64> = const { Cell::new(0) };
}

/// This thread takes a step.
#[inline]
pub(crate) fn step() {
    #[cfg(test)]
    STEPS.with(|steps| steps.set(steps.get() + 1));
}

/// Passes on an element of a walk.
#[inline]
pub(crate) fn stepping<T>(element: T) -> T {
    step();
    element
}

/// The steps of this thread in some work, and what that returned.
#[cfg(test)]
pub(crate) fn steps_of<R>(work: impl FnOnce() -> R) -> (u64, R) {
    let before = STEPS.with(Cell::get);
    let result = work();
    (STEPS.with(Cell::get) - before, result)
}

/// Checks that steps grow by no more than so many for each doubling of what they are counted for: `counted` has sizes, ascending, and steps.
#[cfg(test)]
pub(crate) fn assert_grows_by_doubling(counted: &[(u64, u64)], per_doubling: u64) {
    let (first_size, first_steps) = counted[0];
    for &(size, steps) in counted {
        let doublings = u64::from((size / first_size).ilog2());
        assert!(steps <= first_steps + doublings * per_doubling, "(size, steps): {counted:?}");
    }
}
