//! Steps that go together, and that random ones seldom put one behind the other.

use crate::program::{Change, Read, SLOTS, Step, change, read};
use crate::random::Random;
use crate::shape::Shape;
use crate::values::{simplest, value};
use pagefold_engine::database::{Durability, Isolation};
use pagefold_types::{DataType, Value};

/// From so many commits on nobody waits for a snapshot: what it does not need goes, and nothing else may.
const COMMITS: usize = 270;

/// A reader whose snapshot grows old while keys change and rows go, and what was left is removed.
pub(crate) fn old_reader(random: &mut Random, shape: &Shape, steps: &mut Vec<Step>) {
    let table = random.below(shape.tables.len() as u64) as usize;
    let of = &shape.tables[table];
    let (reader, writer) = (0, 1);
    steps.extend((0..SLOTS).map(|slot| Step::Commit { slot }));
    let begin = |slot, isolation| Step::Begin { slot, isolation, durability: Durability::Durable };
    steps.push(begin(reader, Isolation::RepeatableRead));
    steps.push(Step::Read { slot: reader, table, read: Read::Everything });
    for _ in 0..1 + random.below(4) {
        // A key changes, or a row goes.
        let index = &of.indexes[random.below(of.indexes.len() as u64) as usize];
        let column = index.columns[0].0;
        let pick = random.below(5) as u32;
        let change = match random.one_in(4) {
            true => Change::Delete(pick),
            false => Change::Update(pick, vec![(column, value(random, of.columns[column].data_type, of.columns[column].nullable, false))]),
        };
        steps.push(begin(writer, Isolation::ReadCommitted));
        steps.push(Step::Change { slot: writer, table, change, times: 1 });
        steps.push(Step::Commit { slot: writer });
    }
    let column = random.below(of.columns.len() as u64) as usize;
    let (data_type, nullable) = (of.columns[column].data_type, of.columns[column].nullable);
    let change_of_all = Change::Update(random.next() as u32, vec![(column, value(random, data_type, nullable, false))]);
    steps.push(Step::Commits { slot: writer, table, change: change_of_all, count: COMMITS });
    if random.one_in(2) {
        steps.push(begin(writer, Isolation::ReadCommitted));
        steps.push(Step::Change { slot: writer, table, change: change(random, shape, table), times: 1 });
        steps.push(Step::Commit { slot: writer });
    }
    steps.push(Step::Leftovers);
    steps.push(Step::Read { slot: reader, table, read: read(random, shape, table) });
    steps.push(Step::Read { slot: reader, table, read: Read::Everything });
}

/// Large values whose end is taken back in a transaction that commits; then the process is killed, and others come.
pub(crate) fn large_value_kept(random: &mut Random, shape: &Shape, steps: &mut Vec<Step>) {
    let table = random.below(shape.tables.len() as u64) as usize;
    let of = &shape.tables[table];
    let is_key = |column: usize| of.indexes.iter().any(|index| index.columns.iter().any(|(key, _)| *key == column));
    let is_long = |column: &usize| matches!(of.columns[*column].data_type, DataType::Varchar(None) | DataType::Bytea) && !is_key(*column);
    let Some(column) = (0..of.columns.len()).find(is_long) else { return };
    let slot = random.below(SLOTS as u64) as usize;
    let large = |random: &mut Random| {
        let bytes = 10_000 + random.below(30_000) as usize;
        match of.columns[column].data_type {
            DataType::Bytea => Value::Bytes((0..bytes).map(|_| random.next() as u8).collect()),
            _ => Value::Text((0..bytes).map(|_| char::from(b'a' + random.below(26) as u8)).collect()),
        }
    };
    let begin = || Step::Begin { slot, isolation: Isolation::ReadCommitted, durability: Durability::Durable };
    let update = |value| Change::Update(0, vec![(column, value)]);
    steps.push(Step::Commit { slot });
    steps.push(begin());
    steps.push(Step::Change { slot, table, change: update(large(random)), times: 4 });
    steps.push(Step::Commit { slot });
    steps.push(begin());
    // Something that is committed.
    steps.push(Step::Change { slot, table, change: change(random, shape, table), times: 1 });
    steps.push(Step::Savepoint { slot });
    let end = if random.one_in(3) { Change::Delete(0) } else { update(simplest(of.columns[column].data_type)) };
    steps.push(Step::Change { slot, table, change: end, times: 2 });
    steps.push(Step::RollBackTo { slot, pick: 0 });
    steps.push(Step::Commit { slot });
    steps.push(Step::Kill);
    // Their pages, if somebody takes them for free, are those of others now.
    steps.push(begin());
    steps.push(Step::Change { slot, table, change: Change::Update(4, vec![(column, large(random))]), times: 4 });
    steps.push(Step::Commit { slot });
    steps.push(begin());
    steps.push(Step::Read { slot, table, read: Read::Everything });
    steps.push(Step::Commit { slot });
}
