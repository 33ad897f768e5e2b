//! What the values of a row are made of: random numbers of its own, and facts about its account that all rows of the account share.

use super::words::{CITIES, FIRST_NAMES, LAST_NAMES, PURPOSES, STREETS, SYLLABLES};
use std::fmt::Write;

/// Days of the year in which items are posted: one month.
const MONTH_DAYS: u64 = 30;
/// Parallel jobs that post.
const JOBS: usize = 128;
/// Application servers, whose addresses are a part of keys.
const SERVERS: u64 = 8;

/// SplitMix64 (Steele, Lea, Flood 2014), one step.
fn mix(seed: u64) -> u64 {
    let z = seed.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let z = (z ^ z >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ z >> 31
}

/// Appends digits with leading zeros.
pub(super) fn digits(out: &mut String, number: u64, width: usize) {
    // Writing to a string does not fail.
    let _ = write!(out, "{number:0width$}");
}

/// Draws the values of one row.
#[derive(Clone, Debug)]
pub struct Draw {
    seed: u64,
    state: u64,
    /// Number of the row.
    pub number: u64,
    /// Its account.
    pub account: u64,
    /// Its number within the account.
    pub item: u64,
    per_account: u64,
    /// In the smallest unit of the currency; negative for debits.
    pub cents: i64,
}

impl Draw {
    pub(super) fn new(seed: u64, table: u64, number: u64, per_account: u64) -> Draw {
        let state = mix(seed ^ mix(table ^ mix(number)));
        let mut draw = Draw { seed, state, number, account: number / per_account, item: number % per_account, per_account, cents: 0 };
        draw.cents = draw.amount();
        draw
    }

    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        mix(self.state)
    }

    /// A number below `n`.
    pub fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }

    /// True in `percent` of the cases.
    pub fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    /// A number below `n`; small ones are frequent: a quarter of the draws are below a sixteenth of `n`.
    pub fn skewed(&mut self, n: u64) -> u64 {
        let unit = self.below(1 << 20) as f64 / f64::from(1 << 20);
        (unit * unit * n as f64) as u64
    }

    /// One of some texts; the first ones are frequent.
    pub fn of(&mut self, texts: &[&'static str]) -> &'static str {
        texts[self.skewed(texts.len() as u64) as usize]
    }

    /// A fact about an account: the same number for all its rows, in all tables.
    #[must_use]
    pub fn fact(&self, what: u64) -> u64 {
        mix(self.seed ^ mix(self.account ^ what << 48))
    }

    /// Mostly small sums of one, two or three digits before the point, often whole ones.
    fn amount(&mut self) -> i64 {
        let magnitude = 2 + self.skewed(6) as u32 + self.below(2) as u32;
        let sum = self.below(10_u64.pow(magnitude)) + 1;
        let sum = if self.chance(30) { (sum / 100 + 1) * 100 } else { sum };
        if self.chance(65) { -(sum as i64) } else { sum as i64 }
    }

    /// The sum of the row, without sign.
    pub fn cents(&self, out: &mut String, width: usize) {
        digits(out, self.cents.unsigned_abs(), width);
    }

    /// A key of 32 hexadecimal digits as application servers make them: the address of the server, a version, a time, and what makes it unique.
    pub fn key(&self, out: &mut String, kind: u64, number: u64) {
        let bits = mix(self.seed ^ mix(number ^ kind << 56));
        let server = mix(self.seed ^ (bits % SERVERS)) & 0xFF_FFFF;
        let time = 0xD5A0 + (number >> 12);
        let _ = write!(out, "005056{server:06X}1ED{time:05X}{:012X}", (bits >> 8) & 0xFFFF_FFFF_FFFF);
    }

    /// The key of the account's contract.
    pub fn contract(&self, out: &mut String) {
        self.key(out, 1, self.account);
    }

    /// The day of posting, from 0: ascending within the account, no week-ends.
    #[must_use]
    pub fn day(&self) -> u64 {
        let day = (self.item * MONTH_DAYS + self.fact(9) % MONTH_DAYS) / self.per_account.max(1);
        let day = day.min(MONTH_DAYS - 1);
        day - (day % 7).saturating_sub(4)
    }

    /// A day of the month that is posted, as digits. Days beyond it are of the next one.
    pub fn date(&self, out: &mut String, day: u64) {
        let (month, day) = if day < MONTH_DAYS { (6, day + 1) } else { (7, day + 1 - MONTH_DAYS) };
        let _ = write!(out, "2019{month:02}{day:02}");
    }

    /// A date in years past.
    pub fn past_date(&self, out: &mut String, what: u64) {
        let days = self.fact(what) % (25 * 336);
        let _ = write!(out, "{}{:02}{:02}", 1993 + days / 336, days / 28 % 12 + 1, days % 28 + 1);
    }

    /// Time of day as digits: during the batch window mostly.
    pub fn time(&mut self, out: &mut String) {
        let seconds = if self.chance(80) { 3600 + self.below(3 * 3600) } else { 7 * 3600 + self.below(12 * 3600) };
        let _ = write!(out, "{:02}{:02}{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60);
    }

    /// Who has changed it: a job, or a clerk.
    pub fn user(&mut self, out: &mut String) {
        if self.chance(90) {
            let job = self.fact(8) as usize % JOBS;
            let _ = write!(out, "BATCH_{job:03}");
        } else {
            let clerk = self.skewed(4_000);
            let _ = write!(out, "C{clerk:07}");
        }
    }

    /// The account's number at the bank: ascending, with a check digit.
    pub fn account_number(&self, out: &mut String, width: usize) {
        let body = 10_000_000 + self.account * 7 + self.fact(2) % 7;
        digits(out, body * 10 + self.fact(3) % 10, width);
    }

    /// The number of an account at any bank.
    pub fn other_account(&mut self, out: &mut String, width: usize) {
        let number = if self.chance(60) { self.skewed(5_000) * 1_234_567 % 10_000_000_000 } else { self.below(10_000_000_000) };
        digits(out, number, width);
    }

    /// A bank by its number: its own in one of three cases.
    pub fn bank(&mut self, out: &mut String) {
        let number = if self.chance(33) { 37_040_044 } else { 10_000_000 + self.skewed(900) * 77_777 % 90_000_000 };
        digits(out, number, 8);
    }

    /// Mostly the home currency.
    pub fn currency(&self, out: &mut String) {
        out.push_str(match self.fact(4) % 100 {
            0 => "USD",
            1 => "CHF",
            2 => "GBP",
            _ => "EUR",
        });
    }

    /// A word that is made up, as half of all names are.
    fn made_up(&mut self, out: &mut String) {
        for _ in 0..2 + self.below(2) {
            out.push_str(self.of(&SYLLABLES));
        }
    }

    /// A surname.
    pub fn last_name(&mut self, out: &mut String) {
        if self.chance(50) { out.push_str(self.of(&LAST_NAMES)) } else { self.made_up(out) }
    }

    /// A given name.
    pub fn first_name(&mut self, out: &mut String) {
        out.push_str(self.of(&FIRST_NAMES));
    }

    /// A person, or one of five a firm.
    pub fn person(&mut self, out: &mut String) {
        self.last_name(out);
        if self.chance(20) {
            out.push_str(" GMBH");
        } else {
            out.push(' ');
            self.first_name(out);
        }
    }

    /// A street.
    pub fn street(&mut self, out: &mut String) {
        if self.chance(50) {
            out.push_str(self.of(&STREETS))
        } else {
            self.made_up(out)
        }
        out.push_str(if self.chance(75) { "STR." } else { "WEG" });
    }

    /// A town.
    pub fn city(&mut self, out: &mut String) {
        if self.chance(60) {
            out.push_str(self.of(&CITIES));
        } else {
            self.made_up(out);
            out.push_str(if self.chance(50) { "DORF" } else { "BERG" });
        }
    }

    /// What a payment is for, in a line.
    pub fn purpose(&mut self, out: &mut String) {
        let purpose = self.of(&PURPOSES);
        out.push_str(purpose);
        match self.below(4) {
            0 => {
                let month = self.below(12) + 1;
                let _ = write!(out, " {month:02}/2019");
            }
            1 => {
                let number = self.below(10_000_000);
                let _ = write!(out, " NR. {number}");
            }
            2 => {
                let (customer, invoice) = (self.below(1_000_000), self.below(100_000));
                let _ = write!(out, " KD {customer:07} RG {invoice}");
            }
            _ => {}
        }
    }
}
