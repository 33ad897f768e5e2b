//! A bank on a real directory, in a process that is killed again and again: what was committed is there, whole, and takes no more and more room.
//!
//! Each method has a bank of its own (`bank`), and after each kill everything is looked at in the opened database, and then by CHECK in its closed files; `work` is what the process does.
//!
//! - `PAGEFOLD_BANK_SECONDS`, `PAGEFOLD_BANK_KILLS`: how long at least, and how many kills at least, of all methods together;
//! - `PAGEFOLD_BANK_METHOD`: of this method only;
//! - `PAGEFOLD_BANK_SEED`: another seed than 1; times are what they are, so a seed gives about the same run, not the same one;
//! - `PAGEFOLD_KEEP_COPY=1`: each database is copied before it is opened, to `copy` beside it.
//!
//! A directory whose check fails stays where it is.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]
#![allow(dead_code, reason = "other tests use more of the world")]

#[path = "../isolation/world.rs"]
mod world;

mod bank;
mod full_disk;
mod process;
mod space;
mod work;

use bank::{ACCOUNTS, Bank, COUNTERS, Form, MONEY_OF_EACH, Row, WRITERS};
use full_disk::Disk;
use pagefold_engine::Silent;
use pagefold_engine::database::OpenMode;
use pagefold_engine::table_space::Method;
use pagefold_io::{OsStorage, Storage};
use process::{Known, files, keep_copy, run_and_kill};
use space::Space;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use world::Random;

const DIRECTORY: &str = "PAGEFOLD_BANK_DIRECTORY";
const SEED: &str = "PAGEFOLD_BANK_SEED";
/// Kills of all methods together in an ordinary run.
const KILLS: u64 = 15;

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().unwrap_or_else(|_| panic!("{name} is no number: {text}")))
}

/// Not a test: what the killed process does.
#[test]
fn the_process_that_is_killed() {
    let Ok(directory) = std::env::var(DIRECTORY) else { return };
    // One thread's panic is the end of all.
    std::panic::set_hook(Box::new(|panic| {
        eprintln!("panicked: {panic}");
        std::process::abort();
    }));
    let disk = Disk::default();
    let storage: Arc<dyn Storage> = Arc::new(disk.clone());
    let bank = Bank::open(&storage, Path::new(&directory), OpenMode::Write).unwrap();
    work::work(&bank, &disk, number(SEED).unwrap());
}

/// A bank of one method.
fn run(method: Method, kills: u64, seconds: u64, seed: u64) {
    let mut folder = tempfile::tempdir().unwrap();
    folder.disable_cleanup(true);
    let directory = folder.path().join("bank");
    let storage: Arc<dyn Storage> = Arc::new(OsStorage);
    let form = Form::of(method);
    println!("{method}, indexes {:?}: seed {seed}, in {}", form.formats, directory.display());
    let bank = Bank::create(&storage, &directory, form).unwrap();
    let accounts = (0..ACCOUNTS).map(|number| Row { number, value: MONEY_OF_EACH, version: 0 });
    bank.fill(accounts.chain((0..WRITERS).map(|writer| Row { number: COUNTERS + writer, value: 0, version: 0 })), []).unwrap();
    drop(bank);
    let (mut known, mut space) = (Known::new(WRITERS), Space::default());
    let mut said: BTreeMap<String, u64> = BTreeMap::new();
    let (mut random, start, mut cycle) = (Random(seed), Instant::now(), 0);
    let rows = loop {
        cycle += 1;
        // Sometimes in the middle of its recovery, sometimes after a while.
        let most = if cycle % 7 == 0 {
            20_000
        } else if cycle % 5 == 0 {
            2_000_000
        } else {
            300_000
        };
        let after = Duration::from_micros(random.below(most));
        let seed_of_cycle = seed * 10_000 + cycle;
        let lines = run_and_kill("the_process_that_is_killed", &[(DIRECTORY, &directory.display()), (SEED, &seed_of_cycle)], after);
        for line in lines {
            let words: Vec<&str> = line.split(' ').collect();
            if work::SAID.contains(&words[0]) {
                *said.entry(words[0].to_owned()).or_default() += 1;
            }
            if let ["commit", writer, count, kept] = words[..] {
                known.said(writer.parse().unwrap(), count.parse().unwrap(), kept == "true");
            }
        }
        keep_copy(&directory, &folder.path().join("copy"));
        let bank = Bank::open(&storage, &directory, OpenMode::Write).unwrap();
        let rows = bank.audit_at_rest();
        known.compare(|writer| rows[0][&(COUNTERS + writer)].value);
        let pages = bank.pages();
        bank.database.close().unwrap();
        let report = pagefold_utility::check_files(storage.as_ref(), &directory, &Silent).unwrap();
        assert!(report.is_clean(), "{method}, kill {cycle}: {}", report.to_text(usize::MAX));
        space.note(pages, files(&directory, None));
        if cycle >= kills && start.elapsed() >= Duration::from_secs(seconds) {
            break rows;
        }
    };
    println!("{method}: {cycle} kills, {:?}, said: {said:?}", start.elapsed());
    let fresh = Bank::create(&storage, &folder.path().join("fresh"), form).unwrap();
    let [accounts, history] = rows;
    fresh.fill(accounts.into_values(), history.into_values()).unwrap();
    fresh.database.remove_leftovers().unwrap();
    space.assert_bounded(form, &fresh.pages());
    assert!(said["commit"] > 0, "nothing was committed");
    folder.disable_cleanup(false);
}

/// The share of one method of what is asked for of all.
fn run_share(method: Method) {
    let only: Option<Method> = std::env::var("PAGEFOLD_BANK_METHOD").ok().map(|name| name.parse().unwrap());
    if only.is_some_and(|only| only != method) {
        return;
    }
    let methods = if only.is_some() { 1 } else { Method::ALL.len() as u64 };
    let (kills, seconds) = (number("PAGEFOLD_BANK_KILLS"), number("PAGEFOLD_BANK_SECONDS"));
    let kills = kills.unwrap_or(if seconds.is_some() { 1 } else { KILLS });
    run(method, kills.div_ceil(methods), seconds.unwrap_or(0).div_ceil(methods), number(SEED).unwrap_or(1));
}

#[test]
fn a_bank_without_compression() {
    run_share(Method::None);
}

#[test]
fn a_bank_by_row() {
    run_share(Method::Row);
}

#[test]
fn a_bank_by_page() {
    run_share(Method::Page);
}

#[test]
fn a_bank_by_fixed_codes() {
    run_share(Method::Fixed);
}

#[test]
fn a_bank_by_huffman_codes() {
    run_share(Method::Huffman);
}
