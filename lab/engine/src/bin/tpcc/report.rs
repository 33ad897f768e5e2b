//! What a run came to, as a table.

use crate::driver::{Measured, OfKind};
use crate::input::KINDS;
use std::path::Path;

impl Measured {
    /// New-Orders a minute, those included that were to be rolled back.
    pub(crate) fn new_orders_a_minute(&self) -> f64 {
        self.kinds[0].took.latencies_us.len() as f64 / self.seconds * 60.0
    }

    /// Processor time of a transaction, on average, in milliseconds: other programs change it less.
    pub(crate) fn cpu_ms(&self) -> f64 {
        let count: usize = self.kinds.iter().map(|kind| kind.took.latencies_us.len()).sum();
        self.cpu_seconds * 1000.0 / count.max(1) as f64
    }

    pub(crate) fn print(&mut self, name: &str) {
        println!(
            "{name}: {:.0} New-Orders a minute, over {:.1} s; {:.3} ms of processor time a transaction",
            self.new_orders_a_minute(),
            self.seconds,
            self.cpu_ms()
        );
        println!(
            "  {:<14} {:>9} {:>10} {:>9} {:>9} {:>9} {:>9}  {:>8}  retries",
            "", "count", "a minute", "p50 ms", "p95 ms", "p99 ms", "max ms", "to undo"
        );
        for (kind, OfKind { took, rolled_back }) in KINDS.iter().zip(&mut self.kinds) {
            let count = took.latencies_us.len();
            println!(
                "  {:<14} {count:>9} {:>10.0} {:>9.3} {:>9.3} {:>9.3} {:>9.3}  {:>8}  {}",
                kind.name(),
                count as f64 / self.seconds * 60.0,
                took.within_ms(0.5),
                took.within_ms(0.95),
                took.within_ms(0.99),
                took.within_ms(1.0),
                rolled_back,
                took.retries_text()
            );
        }
        println!("  New-Orders in each tenth of the time: {:?}", self.tenths);
    }
}

/// Megabytes of the files in a directory, and how many of them are those of the log.
pub(crate) fn sizes(directory: &Path) -> std::io::Result<String> {
    let log = directory.join("log");
    let log = if log.exists() { bytes(&log)? } else { 0 };
    Ok(format!("{:.1} MB, and {:.1} MB of log", (bytes(directory)? - log) as f64 / 1e6, log as f64 / 1e6))
}

fn bytes(directory: &Path) -> std::io::Result<u64> {
    let mut sum = 0;
    for entry in std::fs::read_dir(directory)? {
        let entry = entry?;
        sum += if entry.file_type()?.is_dir() { bytes(&entry.path())? } else { entry.metadata()?.len() };
    }
    Ok(sum)
}
