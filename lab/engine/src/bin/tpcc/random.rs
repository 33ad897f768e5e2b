//! Random numbers and texts of the specification's clauses 2.1.6, 4.3.2 and 4.3.3.

use pagefold_lab_engine::random::Random;

/// The syllables of last names (clause 4.3.2.3).
const SYLLABLES: [&str; 10] = ["BAR", "OUGHT", "ABLE", "PRI", "PRES", "ESE", "ANTI", "CALLY", "ATION", "EING"];

const ALPHANUMERIC: &[u8] = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";

/// The constants of NURand, which a run keeps.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Constants {
    /// Of last names, customers, and items.
    last_name: i64,
    customer: i64,
    item: i64,
}

impl Constants {
    /// Those of the load. Those of a run have another distance of last names (clause 2.1.6.1).
    pub(crate) fn of_load(draw: &mut Draw) -> Constants {
        Constants { last_name: draw.between(0, 255), customer: draw.between(0, 1023), item: draw.between(0, 8191) }
    }

    pub(crate) fn of_run(load: Constants, draw: &mut Draw) -> Constants {
        loop {
            let own = Constants::of_load(draw);
            let apart = (own.last_name - load.last_name).abs();
            if (65..=119).contains(&apart) && apart != 96 && apart != 112 {
                return own;
            }
        }
    }
}

/// Draws numbers and texts.
pub(crate) struct Draw(Random);

impl Draw {
    /// Seeds that are near each other draw far apart.
    pub(crate) fn new(seed: u64, stream: u64) -> Draw {
        Draw(Random::of(seed, stream))
    }

    /// A number from `low` to `high`.
    pub(crate) fn between(&mut self, low: i64, high: i64) -> i64 {
        self.0.between(low, high)
    }

    pub(crate) fn one_of(&mut self, percent: i64) -> bool {
        self.between(1, 100) <= percent
    }

    fn uneven(&mut self, a: i64, constant: i64, low: i64, high: i64) -> i64 {
        ((self.between(0, a) | self.between(low, high)) + constant) % (high - low + 1) + low
    }

    pub(crate) fn customer(&mut self, constants: &Constants, customers: i64) -> i64 {
        self.uneven(1023, constants.customer, 1, customers)
    }

    pub(crate) fn item(&mut self, constants: &Constants, items: i64) -> i64 {
        self.uneven(8191, constants.item, 1, items)
    }

    pub(crate) fn last_name(&mut self, constants: &Constants, number_max: i64) -> String {
        last_name(self.uneven(255, constants.last_name, 0, number_max))
    }

    /// An a-string: letters and digits.
    pub(crate) fn text(&mut self, low: i64, high: i64) -> String {
        let length = self.between(low, high);
        (0..length).map(|_| char::from(ALPHANUMERIC[self.0.below(ALPHANUMERIC.len())])).collect()
    }

    /// An n-string: digits.
    pub(crate) fn digits(&mut self, length: usize) -> String {
        (0..length).map(|_| char::from(b'0' + u8::try_from(self.0.below(10)).expect("a digit"))).collect()
    }

    /// Four digits, and then always the same.
    pub(crate) fn zip(&mut self) -> String {
        self.digits(4) + "11111"
    }

    /// A tenth has ORIGINAL somewhere in it.
    pub(crate) fn data(&mut self) -> String {
        let mut text = self.text(26, 50);
        if self.one_of(10) {
            let at = self.0.below(text.len() - 7);
            text.replace_range(at..at + 8, "ORIGINAL");
        }
        text
    }

    pub(crate) fn shuffle<T>(&mut self, all: &mut [T]) {
        for i in (1..all.len()).rev() {
            all.swap(i, self.0.below(i + 1));
        }
    }
}

/// The last name of a number below 1,000.
pub(crate) fn last_name(number: i64) -> String {
    let syllable = |digit: i64| SYLLABLES[usize::try_from(digit % 10).expect("a digit")];
    [syllable(number / 100), syllable(number / 10), syllable(number)].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn last_names_are_of_three_syllables() {
        assert_eq!(last_name(371), "PRICALLYOUGHT");
        assert_eq!(last_name(40), "BARPRESBAR");
    }

    #[test]
    fn uneven_numbers_stay_in_their_range_and_reach_its_ends() {
        let mut draw = Draw::new(1, 1);
        let constants = Constants::of_load(&mut draw);
        let numbers: Vec<i64> = (0..200_000).map(|_| draw.customer(&constants, 3000)).collect();
        assert_eq!((numbers.iter().min(), numbers.iter().max()), (Some(&1), Some(&3000)));
        let names: std::collections::BTreeSet<String> = (0..50_000).map(|_| draw.last_name(&constants, 999)).collect();
        assert!(names.len() > 900, "{}", names.len());
    }

    #[test]
    fn a_run_has_constants_apart_from_those_of_the_load() {
        let mut draw = Draw::new(3, 9);
        for _ in 0..100 {
            let load = Constants::of_load(&mut draw);
            let apart = (Constants::of_run(load, &mut draw).last_name - load.last_name).abs();
            assert!((65..=119).contains(&apart) && ![96, 112].contains(&apart), "{apart}");
        }
    }
}
