//! Space under steady change: what comes and what goes balance, so pages must level off, near to what a fresh load takes.
//!
//! Counted are pages and getpages, never time. `PAGEFOLD_GROWTH_CHANGES=2000000` makes that many changes instead of those of a normal run.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]
#![allow(dead_code, reason = "other tests use more of the world")]

#[path = "../isolation/world.rs"]
mod world;

mod any_length;
mod disorganized;
mod given_back;
mod leaves;
mod log;
mod tables;
mod taken_back;
mod threads;

/// How many changes a test makes.
pub(crate) fn changes(normally: u64) -> u64 {
    std::env::var("PAGEFOLD_GROWTH_CHANGES").map_or(normally, |changes| changes.parse().unwrap())
}

/// Pages as they were counted over a run, at equal distances.
#[derive(Debug, Default)]
pub(crate) struct Course(pub(crate) Vec<u64>);

impl Course {
    /// The most pages of the first and of the second half.
    pub(crate) fn halves(&self) -> [u64; 2] {
        let (first, second) = self.0.split_at(self.0.len() / 2);
        [first, second].map(|half| half.iter().copied().max().unwrap())
    }

    /// Pages have levelled off, at most at 1.3 times what a fresh load takes; `slack` pages make no difference.
    pub(crate) fn assert_level(&self, what: &str, fresh: u64, slack: u64) {
        let [first, second] = self.halves();
        println!("{what}: {first} pages, then {second}; fresh {fresh}: {:.2}", second as f64 / fresh as f64);
        assert!(second * 10 <= first * 11 + 10 * slack, "{what}: pages grow: {first}, then {second}: {self:?}");
        assert!(second * 10 <= fresh * 13 + 10 * slack, "{what}: {second} pages, fresh {fresh}: {self:?}");
    }
}
