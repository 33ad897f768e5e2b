//! The database of the stress test, what its threads count, and their pseudo-random numbers.

use pagefold::{DataType, Database, Error, Isolation, Table, TableDefinition, TransactionOptions};
use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

pub(crate) const OWNERS: i64 = 4;
/// Numbers of one owner's rows: from `owner * NUMBERS` on.
pub(crate) const NUMBERS: i64 = 1_000;
/// Rows that an owner has, at every commit.
pub(crate) const ROWS: i64 = 150;
/// Of each row in the beginning; of an owner's rows together it stays the same.
pub(crate) const MONEY: i64 = 100;
/// Rows of each generation of `series`.
pub(crate) const SERIES: i64 = 200;

pub(crate) struct World {
    pub(crate) database: Database,
    pub(crate) stop: AtomicBool,
    pub(crate) said: Said,
    /// For files to load.
    pub(crate) folder: PathBuf,
}

/// How often what was done.
#[derive(Default)]
pub(crate) struct Said(Mutex<BTreeMap<String, u64>>);

impl Said {
    pub(crate) fn say(&self, word: &str) {
        *self.0.lock().unwrap().entry(word.to_owned()).or_default() += 1;
    }

    pub(crate) fn count(&self, word: &str) -> u64 {
        self.0.lock().unwrap().get(word).copied().unwrap_or(0)
    }

    pub(crate) fn total(&self) -> u64 {
        self.0.lock().unwrap().values().sum()
    }
}

impl fmt::Display for Said {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.0.lock().unwrap())
    }
}

/// Pseudo-random numbers: SplitMix64 (Steele, Lea, Flood 2014).
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, n: i64) -> i64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((z ^ (z >> 31)) % n as u64) as i64
    }

    pub(crate) fn chance(&mut self, n: i64) -> bool {
        self.below(n) == 0
    }

    /// Now and then longer than a page.
    pub(crate) fn text(&mut self) -> Option<String> {
        let words = ["carefully ", "final ", "deposits ", "sleep ", "furiously ", "xq", "express "];
        let most = match self.below(40) {
            0 => 3_000,
            1..8 => return None,
            _ => 20,
        };
        Some((0..self.below(most)).map(|_| words[self.below(7) as usize]).collect())
    }

    /// A transaction's options: all levels, short waits.
    pub(crate) fn options(&mut self, read_only: bool) -> TransactionOptions {
        let isolation = [Isolation::ReadCommitted, Isolation::RepeatableRead, Isolation::Serializable][self.below(3) as usize];
        let durability = [pagefold::Durability::Durable, pagefold::Durability::Relaxed][self.below(2) as usize];
        TransactionOptions { isolation, durability, read_only, lock_timeout: Duration::from_millis(2_000) }
    }
}

/// Errors that others are the cause of: the transaction is to be begun again.
pub(crate) fn is_passing(error: &Error) -> bool {
    error.is_retryable() || matches!(error, Error::Stale { .. })
}

pub(crate) fn account() -> TableDefinition {
    TableDefinition::new()
        .column("id", DataType::BigInt)
        .column("owner", DataType::Integer)
        .column("value", DataType::BigInt)
        .nullable("note", DataType::Varchar(None))
        .primary_key(["id"])
        .page_bytes(4096)
}

pub(crate) fn series() -> TableDefinition {
    TableDefinition::new()
        .column("n", DataType::BigInt)
        .column("generation", DataType::BigInt)
        .nullable("note", DataType::Varchar(None))
        .primary_key(["n"])
        .page_bytes(4096)
}

pub(crate) fn fill_series(series: &Table<'_>, generation: i64) -> Result<(), Error> {
    (0..SERIES).try_for_each(|n| series.insert((n, generation, (n % 3 != 0).then(|| format!("note {n} of {generation}")))))
}

impl World {
    pub(crate) fn create(directory: &Path, folder: &Path) -> World {
        let database = Database::options().memory_bytes(16 << 20).create(directory).unwrap();
        let t = database.begin();
        let accounts = t.create_table("account", account()).unwrap();
        for owner in 0..OWNERS {
            for n in 0..ROWS {
                accounts.insert((owner * NUMBERS + n, owner as i32, MONEY, None::<&str>)).unwrap();
            }
        }
        fill_series(&t.create_table("series", series()).unwrap(), 0).unwrap();
        t.commit().unwrap();
        World { database, stop: AtomicBool::new(false), said: Said::default(), folder: folder.to_owned() }
    }

    pub(crate) fn is_over(&self) -> bool {
        self.stop.load(std::sync::atomic::Ordering::Relaxed)
    }

    /// An error that is to be expected is counted; any other ends the test.
    pub(crate) fn expect_passing(&self, error: &Error, who: &str) {
        if is_passing(error) {
            self.said.say(&format!("{who} again"));
        } else {
            self.stop.store(true, std::sync::atomic::Ordering::Relaxed);
            panic!("{who}: {error}");
        }
    }
}
