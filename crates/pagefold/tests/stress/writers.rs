//! Threads that change rows which nobody else changes.

use crate::world::{MONEY, NUMBERS, OWNERS, ROWS, Random, World};
use pagefold::{Error, Isolation, Result, Row, Table, Transaction};
use std::collections::BTreeMap;

/// An owner's rows by number: value and note.
pub(crate) type Model = BTreeMap<i64, (i64, Option<String>)>;

/// Changes rows until it is over; gives back what must be there.
pub(crate) fn write(world: &World, owner: i64, seed: u64) -> Model {
    let mut random = Random(seed * 1_000 + owner as u64);
    let mut model: Model = (0..ROWS).map(|n| (owner * NUMBERS + n, (MONEY, None))).collect();
    while !world.is_over() {
        let mut next = model.clone();
        let transaction = world.database.begin_with(random.options(false));
        let done = (|| {
            let accounts = transaction.table("account")?;
            for _ in 0..=random.below(4) {
                let savepoint = transaction.savepoint();
                let before = random.chance(6).then(|| next.clone());
                change(&accounts, owner, &mut next, &mut random)?;
                if let Some(before) = before {
                    transaction.roll_back_to(savepoint)?;
                    next = before;
                }
            }
            if random.chance(4) {
                change_while_scanning(&transaction, owner, &mut next, &mut random)?;
            }
            if random.chance(10) {
                assert_eq!(rows_of(&accounts, owner)?, next, "owner {owner} sees other rows than its own");
            }
            Ok(())
        })();
        match done {
            Ok(()) if random.chance(8) => {
                transaction.rollback().unwrap();
                world.said.say("rollback");
            }
            Ok(()) => match transaction.commit() {
                Ok(()) => {
                    world.said.say("commit");
                    model = next;
                }
                Err(error) => world.expect_passing(&error, "writer"),
            },
            Err(error) => world.expect_passing(&error, "writer"),
        }
    }
    model
}

/// One change: money from row to row, another note, a row in the place of another one, a key that is taken.
fn change(accounts: &Table<'_>, owner: i64, model: &mut Model, random: &mut Random) -> Result<()> {
    let some = |model: &Model, random: &mut Random| *model.keys().nth(random.below(model.len() as i64) as usize).unwrap();
    match random.below(8) {
        0..3 => {
            let (from, to, amount) = (some(model, random), some(model, random), random.below(50));
            for (id, amount) in [(from, -amount), (to, amount)] {
                let value = model[&id].0 + amount;
                assert!(accounts.update(id, [("value", value)])?, "owner {owner}: row {id} is gone");
                model.get_mut(&id).unwrap().0 = value;
            }
        }
        3..5 => {
            let (id, note) = (some(model, random), random.text());
            assert!(accounts.update(id, [("note", note.clone())])?, "owner {owner}: row {id} is gone");
            model.get_mut(&id).unwrap().1 = note;
        }
        5..7 => {
            let old = some(model, random);
            let id = loop {
                let id = owner * NUMBERS + random.below(NUMBERS);
                if id == old || !model.contains_key(&id) {
                    break id;
                }
            };
            assert!(accounts.delete(old)?, "owner {owner}: row {old} is gone");
            let (value, _) = model.remove(&old).unwrap();
            let note = random.text();
            accounts.insert((id, owner as i32, value, note.clone()))?;
            model.insert(id, (value, note));
        }
        _ => {
            let taken = some(model, random);
            let error = accounts.insert((taken, owner as i32, 1_i64, random.text())).unwrap_err();
            if !matches!(error, Error::DuplicateKey { .. }) {
                return Err(error);
            }
        }
    }
    Ok(())
}

/// Another note for each of the rows as a scan comes to them, some taken back at once.
fn change_while_scanning(transaction: &Transaction, owner: i64, model: &mut Model, random: &mut Random) -> Result<()> {
    let accounts = transaction.table("account")?;
    let own = owner * NUMBERS..(owner + 1) * NUMBERS;
    let rows = if random.chance(2) { accounts.range(own)? } else { accounts.filter(pagefold::column("owner").equal_to(owner))? };
    let mut seen = Model::new();
    for row in rows {
        let (id, row) = of_row(row)?;
        let (savepoint, note) = (transaction.savepoint(), random.text());
        assert!(accounts.update(id, [("note", note.clone())])?, "owner {owner}: row {id} is gone");
        if random.chance(2) {
            transaction.roll_back_to(savepoint)?;
        } else {
            model.get_mut(&id).unwrap().1 = note;
        }
        assert!(seen.insert(id, row).is_none(), "owner {owner}: row {id} twice");
    }
    assert!(seen.keys().eq(model.keys()), "owner {owner} does not see all rows");
    Ok(())
}

fn of_row(row: Result<Row>) -> Result<(i64, (i64, Option<String>))> {
    let row = row?;
    Ok((row.get("id")?, (row.get("value")?, row.get("note")?)))
}

/// An owner's rows, by the primary key.
pub(crate) fn rows_of(accounts: &Table<'_>, owner: i64) -> Result<Model> {
    accounts.range(owner * NUMBERS..(owner + 1) * NUMBERS)?.map(of_row).collect()
}

/// Everything that is there in the end.
pub(crate) fn compare_all(world: &World, models: &BTreeMap<i64, Model>) {
    let t = world.database.begin_with(pagefold::TransactionOptions { isolation: Isolation::Serializable, ..Default::default() });
    let accounts = t.table("account").unwrap();
    for owner in 0..OWNERS {
        assert_eq!(rows_of(&accounts, owner).unwrap(), models[&owner], "owner {owner}");
        let by_scan = accounts.filter(pagefold::column("owner").equal_to(owner)).unwrap();
        assert_eq!(by_scan.map(of_row).collect::<Result<Model>>().unwrap(), models[&owner], "owner {owner}, by scan");
    }
}
