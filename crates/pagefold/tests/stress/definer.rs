//! One thread with everything that defines.

use crate::world::{Random, SERIES, World, fill_series, is_passing, series};
use pagefold::types::Direction;
use pagefold::utility::{self, IndexOptions, LoadMode, LoadOptions, ReorgOptions, Setting, Silent};
use pagefold::{Error, IndexDefinition, IndexFormat, Method, Result};
use std::fmt::Write;

const INDEXES: [(&str, &str); 2] = [("by_owner", "owner"), ("by_value", "value")];

/// What a utility says that others were in the way of.
fn settle(world: &World, what: &str, done: std::result::Result<(), utility::Error>) {
    match done {
        Ok(()) => world.said.say(what),
        Err(utility::Error::Engine(error)) => world.expect_passing(&error, what),
        Err(error) => {
            world.stop.store(true, std::sync::atomic::Ordering::Relaxed);
            panic!("{what}: {error}");
        }
    }
}

fn format(random: &mut Random) -> (IndexFormat, usize) {
    [(IndexFormat::Plain, 4096), (IndexFormat::Prefix, 8192), (IndexFormat::Fold, 16384)][random.below(3) as usize]
}

pub(crate) fn define(world: &World, seed: u64) {
    let mut random = Random(seed * 1_000 + 500);
    let mut generation = 0;
    while !world.is_over() {
        generation += 1;
        match random.below(9) {
            0 => index(world, &mut random),
            1 | 2 => {
                let method = Method::ALL[random.below(5) as usize];
                let page_bytes = Some([2048, 4096, 8192][random.below(3) as usize]);
                let options = ReorgOptions { method: Some(Setting::Given(method)), page_bytes, ..ReorgOptions::default() };
                let table = ["account", "series"][random.below(2) as usize];
                settle(world, "reorg", utility::reorg(world.database.engine(), table, &options, &Silent).map(drop));
            }
            3 => {
                let (format, page_bytes) = format(&mut random);
                let options =
                    ReorgOptions { format: Some(Setting::Given(format)), page_bytes: Some(page_bytes), ..ReorgOptions::default() };
                let index = ["account_pk", "series_pk"][random.below(2) as usize];
                settle(world, "reorg", utility::reorg(world.database.engine(), index, &options, &Silent).map(drop));
            }
            4 => load(world, generation),
            5 => make_and_drop(world, generation, &mut random),
            6 => world.database.engine().checkpoint().unwrap(),
            _ => renew(world, generation, &mut random),
        }
    }
}

/// An index that is there goes, one that is not comes: inside a transaction, or beside those that change rows.
fn index(world: &World, random: &mut Random) {
    let (name, column) = INDEXES[random.below(2) as usize];
    let is_there = world.database.engine().index(name).is_ok();
    let (format, page_bytes) = format(random);
    if !is_there && random.chance(2) {
        let options = IndexOptions { format: Setting::Given(format), page_bytes: Some(page_bytes), ..IndexOptions::default() };
        let columns = [(column.to_owned(), Direction::Ascending)];
        let made = utility::create_index(world.database.engine(), name, "account", &columns, &options, &Silent);
        settle(world, "index", made.map(drop));
        return;
    }
    let transaction = world.database.begin_with(random.options(false));
    let done = match is_there {
        true => transaction.drop_index(name),
        false => transaction.create_index(name, "account", IndexDefinition::new([column]).format(format, page_bytes)),
    };
    settle(world, "index", done.and_then(|()| transaction.commit()).map_err(utility::Error::Engine));
}

/// Another generation of `series`: dropped and made, or emptied, and filled; sometimes taken back.
fn renew(world: &World, generation: i64, random: &mut Random) {
    let transaction = world.database.begin_with(random.options(false));
    let is_dropped = random.chance(2);
    let done = (|| {
        let savepoint = transaction.savepoint();
        let table = if is_dropped {
            transaction.drop_table("series")?;
            transaction.create_table("series", series().method(Method::ALL[random.below(5) as usize]))?
        } else {
            transaction.truncate_table("series")?
        };
        assert_eq!(table.scan()?.count(), 0);
        fill_series(&table, generation)?;
        if random.chance(5) {
            transaction.roll_back_to(savepoint)?;
            assert_eq!(transaction.table("series")?.scan()?.count() as i64, SERIES);
        }
        Ok(())
    })();
    let done = done.and_then(|()| if random.chance(5) { transaction.rollback() } else { transaction.commit() });
    settle(world, if is_dropped { "replaced" } else { "truncated" }, done.map_err(utility::Error::Engine));
}

/// Another generation of `series`, from a file.
fn load(world: &World, generation: i64) {
    let mut text = String::from("n,generation,note\n");
    (0..SERIES).for_each(|n| writeln!(text, "{n},{generation},loaded {n}").unwrap());
    let file = world.folder.join("series.csv");
    std::fs::write(&file, text).unwrap();
    let mut options = LoadOptions { mode: LoadMode::Replace, primary_key: vec!["n".to_owned()], ..LoadOptions::default() };
    options.source.csv.schema = Some(world.database.engine().table("series").unwrap().attributes().schema.clone());
    settle(world, "loaded", utility::load(world.database.engine(), "series", &[file], &options, &Silent).map(drop));
}

/// A table of its own that comes with rows and goes again.
fn make_and_drop(world: &World, generation: i64, random: &mut Random) {
    let name = format!("passing_{}", generation % 3);
    let done: Result<()> = (|| {
        let transaction = world.database.begin_with(random.options(false));
        if transaction.table(&name).is_ok() {
            transaction.drop_table(&name)?;
        } else {
            fill_series(&transaction.create_table(&name, series())?, generation)?;
        }
        if random.chance(4) { transaction.rollback() } else { transaction.commit() }
    })();
    match done {
        Err(error) if !is_passing(&error) && !matches!(error, Error::Exists { .. }) => settle(world, "made", Err(error.into())),
        done => settle(world, "made", done.map_err(utility::Error::Engine)),
    }
}
