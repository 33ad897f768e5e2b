//! What is asked for.

use crate::driver::Plan;
use crate::random::{Constants, Draw};
use crate::schema::Scale;
use clap::Parser;
use pagefold_lab_engine::sessions::ours::Use;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

#[derive(Clone, Debug, Parser)]
pub(crate) struct Options {
    /// Warehouses.
    #[arg(long, default_value_t = 2)]
    pub(crate) warehouses: i64,
    /// Terminals, each a thread.
    #[arg(long, default_value_t = 8)]
    pub(crate) terminals: usize,
    /// For how long they run.
    #[arg(long, default_value_t = 600)]
    pub(crate) seconds: u64,
    /// Compression method of the tables, such as none or page.
    #[arg(long, default_value = "none")]
    pub(crate) method: String,
    /// Where the databases are made; a temporary directory by default.
    #[arg(long)]
    pub(crate) dir: Option<PathBuf>,
    /// Of the population and of what terminals ask for.
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// Do commits wait for the device: off, relaxed (until the log is written), on? SQLite knows off
    /// and on.
    #[arg(long, default_value = "off")]
    pub(crate) synchronous: String,
    /// Isolation of transactions that change something.
    #[arg(long, default_value = "read committed")]
    pub(crate) isolation: String,
    /// The population is shrunk to a part of so many, for quick tests.
    #[arg(long, default_value_t = 1)]
    pub(crate) scale: i64,
    /// Memory of the pools, and of all caches of SQLite together, in MB.
    #[arg(long, default_value_t = 512)]
    pub(crate) memory_mb: usize,
    /// Tables without foreign keys.
    #[arg(long)]
    pub(crate) no_foreign_keys: bool,
    /// The same by SQLite, for the same time, afterwards.
    #[arg(long)]
    pub(crate) sqlite: bool,
    /// SQLite's writers wait by its busy handler, not in line.
    #[arg(long)]
    pub(crate) sqlite_busy: bool,
    /// Terminals run in a child that is killed, instead of for a time.
    #[arg(long)]
    pub(crate) kill: bool,
    /// How often.
    #[arg(long, default_value_t = 1)]
    pub(crate) kills: usize,
    /// Plans of all statements, and nothing else.
    #[arg(long)]
    pub(crate) explain: bool,
    /// How long each statement takes, too.
    #[arg(long)]
    pub(crate) statements: bool,
    /// This is the child: where the database is, and where it says what is committed.
    #[arg(long, hide = true, num_args = 2)]
    pub(crate) child: Option<Vec<PathBuf>>,
    /// Of the population, where that of the run is another one.
    #[arg(long, hide = true)]
    pub(crate) load_seed: Option<u64>,
}

impl Options {
    pub(crate) fn scale(&self) -> Scale {
        Scale::new(self.warehouses, self.scale)
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.memory_mb << 20
    }

    pub(crate) fn used(&self) -> Use {
        Use { isolation: self.isolation.clone(), synchronous: self.synchronous.clone() }
    }

    pub(crate) fn plan(&self) -> Plan {
        // The load draws its constants first.
        let load = Constants::of_load(&mut Draw::new(self.load_seed.unwrap_or(self.seed), 0));
        Plan {
            scale: self.scale(),
            terminals: self.terminals,
            duration: Duration::from_secs(self.seconds),
            seed: self.seed,
            constants: Constants::of_run(load, &mut Draw::new(self.seed, 1 << 21)),
            told_to: None,
            is_loud: true,
        }
    }

    /// A child is killed within the time that a run may take.
    pub(crate) fn kill_after_ms_max(&self) -> i64 {
        i64::try_from(self.seconds * 1000).unwrap_or(i64::MAX).max(300)
    }

    /// Arguments of a child that runs on a database that is there.
    pub(crate) fn to_child(&self, directory: &Path, told_to: &Path, seed: u64) -> Vec<OsString> {
        let pairs = [
            ("--warehouses", self.warehouses.to_string()),
            ("--terminals", self.terminals.to_string()),
            ("--seed", seed.to_string()),
            ("--load-seed", self.seed.to_string()),
            ("--synchronous", self.synchronous.clone()),
            ("--isolation", self.isolation.clone()),
            ("--scale", self.scale.to_string()),
            ("--memory-mb", self.memory_mb.to_string()),
        ];
        let mut all: Vec<OsString> = pairs.into_iter().flat_map(|(name, value)| [name.into(), value.into()]).collect();
        all.extend(["--child".into(), directory.into(), told_to.into()]);
        all
    }
}
