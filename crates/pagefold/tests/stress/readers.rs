//! Threads that look at whole states, in every way there is.

use crate::world::{MONEY, OWNERS, ROWS, Random, SERIES, World};
use pagefold::{Error, Isolation, Result, Row, Table, Transaction};
use std::collections::BTreeMap;

/// Rows and money of each owner.
type Sums = BTreeMap<i32, (i64, i64)>;

fn expected() -> Sums {
    (0..OWNERS).map(|owner| (owner as i32, (ROWS, ROWS * MONEY))).collect()
}

fn sums(rows: impl Iterator<Item = Result<Row>>) -> Result<Sums> {
    let mut sums = Sums::new();
    for row in rows {
        let row = row?;
        let (rows, money) = sums.entry(row.get("owner")?).or_default();
        (*rows, *money) = (*rows + 1, *money + row.get::<i64>("value")?);
    }
    Ok(sums)
}

pub(crate) fn read(world: &World, reader: u64, seed: u64) {
    let mut random = Random(seed * 1_000 + 100 + reader);
    while !world.is_over() {
        let options = random.options(true);
        let transaction = world.database.begin_with(options);
        let done = (|| {
            for _ in 0..=random.below(4) {
                look(&transaction, &mut random)?;
                world.said.say("read");
            }
            Ok(())
        })();
        // At READ COMMITTED and SERIALIZABLE others can be in the way; a snapshot goes on for as long as it is held.
        match done.and_then(|()| transaction.commit()) {
            Ok(()) => {}
            Err(error) if options.isolation == Isolation::RepeatableRead => {
                world.stop.store(true, std::sync::atomic::Ordering::Relaxed);
                panic!("a snapshot ends: {error}");
            }
            Err(error) => world.expect_passing(&error, "reader"),
        }
    }
}

fn look(t: &Transaction, random: &mut Random) -> Result<()> {
    let (accounts, series) = (t.table("account")?, t.table("series")?);
    match random.below(7) {
        0 => assert_eq!(sums(accounts.scan()?)?, expected(), "by scan"),
        1 => assert_eq!(sums(accounts.range::<i64>(..)?)?, expected(), "by primary key"),
        2 => {
            let back = accounts.select(["value", "owner"])?.backward()?.rows()?;
            assert_eq!(sums(back)?, expected(), "by primary key, backward");
        }
        3 => by_index(&accounts, random)?,
        4 => {
            let mut sums = Sums::new();
            for part in accounts.select(["owner", "value"])?.record_batches()?.split(2) {
                for batch in part {
                    let batch = batch?;
                    let owners = batch.column(0).as_any().downcast_ref::<arrow_array::Int32Array>().expect("owner");
                    let values = batch.column(1).as_any().downcast_ref::<arrow_array::Int64Array>().expect("value");
                    for (owner, value) in owners.iter().zip(values) {
                        let (rows, money) = sums.entry(owner.unwrap()).or_default();
                        (*rows, *money) = (*rows + 1, *money + value.unwrap());
                    }
                }
            }
            assert_eq!(sums, expected(), "by column");
        }
        5 => {
            // Others go on between the items, and with them what defines tables.
            let rows = if random.chance(2) { accounts.scan()? } else { accounts.range::<i64>(..)? };
            let slowly = rows.enumerate().map(|(at, row)| {
                if at % 64 == 0 {
                    std::thread::sleep(std::time::Duration::from_millis(1));
                }
                row
            });
            assert_eq!(sums(slowly)?, expected(), "by a slow scan");
        }
        _ => {
            let rows = if random.chance(2) { series.scan()? } else { series.range::<i64>(..)? };
            let rows = rows.map(|row| row?.into::<(i64, i64)>()).collect::<Result<Vec<_>>>()?;
            let generations: Vec<i64> = rows.iter().map(|(_, generation)| *generation).collect();
            assert_eq!(rows.len() as i64, SERIES, "rows of {:?}", generations.first());
            assert!(generations.iter().all(|generation| *generation == generations[0]), "several generations");
        }
    }
    Ok(())
}

/// By an index that comes and goes.
fn by_index(accounts: &Table<'_>, random: &mut Random) -> Result<()> {
    let index = match accounts.by(["by_owner", "by_value"][random.below(2) as usize]) {
        Ok(index) => index,
        // It is not there just now; or of another table than the one that was looked up before, at READ COMMITTED.
        Err(Error::Unknown { .. } | Error::Parameter(_) | Error::Stale { .. }) => return Ok(()),
        Err(error) => return Err(error),
    };
    let rows = if random.chance(2) { index.range::<i64>(..)? } else { index.range_backward::<i64>(..)? };
    assert_eq!(sums(rows)?, expected(), "by index");
    Ok(())
}
