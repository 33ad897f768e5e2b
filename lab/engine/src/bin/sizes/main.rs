//! Sizes of real tables under every method, beside a Ziv-Lempel tree with fixed codes, Parquet with zstd and (by `--features rivals`) SQLite.
//!
//! `cargo run --release -p pagefold-lab-engine --features rivals --bin sizes -- --scale-factor 0.1 --bank-rows 200000 --data DIR --json sizes.json`
//!
//! * `measure`: loads them, and checks that what is stored is what was read
//! * `reference`: the Ziv-Lempel tree, in data pages
//! * `profile`: where the bits of a row go
//! * `report`: Markdown and JSON

mod measure;
mod profile;
mod reference;
mod report;

use clap::Parser;
use measure::Measured;
use pagefold_lab_engine::data::Outcome;
use pagefold_lab_engine::inputs;
use std::path::PathBuf;

/// Loads tables under every method and prints what they take, in Markdown. What is stored is compared with the source first, row by row.
#[derive(Debug, Parser)]
struct Options {
    /// TPC-H scale factor of the eight tables to generate; 0 for none of them.
    #[arg(long, default_value_t = 0.1)]
    scale_factor: f64,
    /// Rows of each table like a bank's; 0 for none of them.
    #[arg(long, default_value_t = 200_000)]
    bank_rows: u64,
    /// Seed of those.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// A folder with files to load: `.csv`, `.parquet`, and `.sqlite` (with the rivals); each CSV or Parquet file is a table. Can be given again.
    #[arg(long, value_name = "DIR")]
    data: Vec<PathBuf>,
    /// Only tables whose name holds this.
    #[arg(long)]
    only: Option<String>,
    /// Bytes of a page of tables.
    #[arg(long, default_value_t = 8192)]
    page_size: usize,
    /// Also train the reference without pruning, to see which of the two is stronger.
    #[arg(long)]
    frozen: bool,
    /// Also print codes a row and bits a code, of `huffman` and the reference.
    #[arg(long)]
    profile: bool,
    /// Write all figures to this file, too.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

fn main() -> Outcome<()> {
    let options = Options::parse();
    let mut all_inputs = inputs::tpch(options.scale_factor);
    for folder in &options.data {
        all_inputs.extend(inputs::files(folder)?);
    }
    all_inputs.extend(inputs::bank(options.bank_rows, options.seed));
    all_inputs.retain(|input| options.only.as_ref().is_none_or(|only| input.name.contains(only)));
    let mut all: Vec<Measured> = Vec::new();
    let mut failed = 0;
    for pending in all_inputs {
        let name = pending.name.clone();
        eprintln!("{name}");
        let measured =
            pending.read().and_then(|mut input| measure::measure(&mut input, options.page_size, options.frozen, options.profile));
        // One table that cannot be read does not take the others' figures away.
        match measured {
            Ok(measured) => all.push(measured),
            Err(error) => {
                eprintln!("{name}: {error}");
                failed += 1;
            }
        }
    }
    print!("{}", report::markdown(&all, options.page_size));
    if let Some(path) = &options.json {
        std::fs::write(path, report::json(&all, options.page_size).to_string())?;
    }
    if failed > 0 { Err(format!("{failed} tables could not be measured").into()) } else { Ok(()) }
}
