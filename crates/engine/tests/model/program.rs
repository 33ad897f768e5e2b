//! Programs: a shape, and steps of up to four transactions, of the database, and of the process.
//!
//! Invariant: any part of a program is a program. Operands are numbers that are taken modulo what there is when the step runs, and a step of a transaction that does not run is none. So is a
//! second beginning, but where only rollback is left: then that comes first.

use crate::condition::Condition;
use crate::histories::{large_value_kept, old_reader};
use crate::random::Random;
use crate::shape::{Shape, random_shape};
use crate::values::{shown, shown_row, value};
use pagefold_engine::database::{Durability, Isolation};
use pagefold_engine::index::IndexFormat;
use pagefold_engine::table_space::Method;
use pagefold_types::Value;
use std::fmt;

pub(crate) const SLOTS: usize = 4;

#[derive(Clone, Debug)]
pub(crate) enum Read {
    /// A row by its RID.
    Row { pick: u32 },
    /// `get` and `find` by key values, perhaps the first ones only.
    Key { index: usize, values: Vec<Value> },
    /// The same by the key of a row.
    KeyOf { index: usize, pick: u32, columns: usize },
    /// Rows or keys between two keys.
    Range { index: usize, low: Option<Vec<Value>>, high: Option<Vec<Value>>, backward: bool, keys: bool, most: Option<usize> },
    /// All rows, perhaps of some columns only.
    Scan { columns: Option<Vec<usize>> },
    /// Columns of the rows that satisfy a condition.
    Columns { columns: Vec<usize>, condition: Option<Condition> },
    /// By everything there is.
    Everything,
}

#[derive(Clone)]
pub(crate) enum Change {
    Insert(Vec<Value>),
    Update(u32, Vec<(usize, Value)>),
    Delete(u32),
    Lock(u32),
}

#[derive(Clone)]
pub(crate) enum Step {
    Begin {
        slot: usize,
        isolation: Isolation,
        durability: Durability,
    },
    Change {
        slot: usize,
        table: usize,
        change: Change,
        times: usize,
    },
    Read {
        slot: usize,
        table: usize,
        read: Read,
    },
    /// So many transactions, one after the other, of one change each: snapshots that are held grow old.
    Commits {
        slot: usize,
        table: usize,
        change: Change,
        count: usize,
    },
    Savepoint {
        slot: usize,
    },
    RollBackTo {
        slot: usize,
        pick: u32,
    },
    Commit {
        slot: usize,
    },
    Rollback {
        slot: usize,
    },
    Checkpoint,
    Leftovers,
    /// Dirty pages are written, those of running transactions too.
    Steal {
        table: usize,
    },
    Renew {
        table: usize,
    },
    UseDictionary {
        table: usize,
        seed: u64,
    },
    Reopen,
    Kill,
}

impl fmt::Debug for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Change::Insert(row) => write!(f, "Insert {}", shown_row(row)),
            Change::Update(pick, changes) => {
                let changes: Vec<_> = changes.iter().map(|(column, value)| format!("c{column} = {}", shown(value))).collect();
                write!(f, "Update({pick}) {}", changes.join(", "))
            }
            Change::Delete(pick) => write!(f, "Delete({pick})"),
            Change::Lock(pick) => write!(f, "Lock({pick})"),
        }
    }
}

impl fmt::Debug for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Step::Begin { slot, isolation, durability } => write!(f, "[{slot}] Begin {isolation:?} {durability:?}"),
            Step::Change { slot, table, change, times: 1 } => write!(f, "[{slot}] t{table} {change:?}"),
            Step::Change { slot, table, change, times } => write!(f, "[{slot}] t{table} {times} times {change:?}"),
            Step::Commits { slot, table, change, count } => write!(f, "[{slot}] t{table} {count} transactions {change:?}"),
            Step::Read { slot, table, read } => write!(f, "[{slot}] t{table} Read {read:?}"),
            Step::Savepoint { slot } => write!(f, "[{slot}] Savepoint"),
            Step::RollBackTo { slot, pick } => write!(f, "[{slot}] RollBackTo({pick})"),
            Step::Commit { slot } => write!(f, "[{slot}] Commit"),
            Step::Rollback { slot } => write!(f, "[{slot}] Rollback"),
            Step::Checkpoint => f.write_str("Checkpoint"),
            Step::Leftovers => f.write_str("Leftovers"),
            Step::Steal { table } => write!(f, "Steal t{table}"),
            Step::Renew { table } => write!(f, "Renew t{table}"),
            Step::UseDictionary { table, seed } => write!(f, "UseDictionary t{table} {seed}"),
            Step::Reopen => f.write_str("Reopen"),
            Step::Kill => f.write_str("Kill"),
        }
    }
}

/// What a program is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// All isolation levels.
    Mixed,
    /// SERIALIZABLE alone: what commits has a serial order.
    Serializable,
}

#[derive(Clone)]
pub(crate) struct Program {
    pub(crate) kind: Kind,
    pub(crate) shape: Shape,
    pub(crate) steps: Vec<Step>,
}

impl fmt::Debug for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:?}, memory {}, checkpoints {}", self.kind, self.shape.memory_bytes, self.shape.checkpoint_bytes)?;
        for (number, table) in self.shape.tables.iter().enumerate() {
            let columns: Vec<_> = table
                .columns
                .iter()
                .map(|column| format!("{}{}", column.data_type, if column.nullable { "" } else { " NOT NULL" }))
                .collect();
            writeln!(
                f,
                "t{number} {} pages {} maxrows {} small partitions {} primary key {} dictionary {:?} ({})",
                table.method,
                table.page_bytes,
                table.maxrows,
                table.small_partitions,
                table.primary_key,
                table.dictionary,
                columns.join(", ")
            )?;
            for index in &table.indexes {
                writeln!(f, "    unique {} {:?} {} pages {}", index.unique, index.columns, index.format, index.page_bytes)?;
            }
        }
        for step in &self.steps {
            writeln!(f, "  {step:?}")?;
        }
        Ok(())
    }
}

/// The program of a seed.
pub(crate) fn random_program(seed: u64, kind: Kind, method: Method, format: IndexFormat) -> Program {
    // Each configuration has programs of its own.
    let mut random = Random(seed << 8 | (kind as u64) << 7 | (method as u64) << 2 | format as u64);
    let shape = random_shape(&mut random, method, format);
    let more = if random.one_in(4) { 270 } else { 70 };
    let length = 30 + random.below(more);
    let mut steps = Vec::new();
    // What most changes are about differs from program to program: so some have many rows, some few.
    let many = random.one_in(4);
    let mut begun = 0;
    while (steps.len() as u64) < length {
        match random.below(400) {
            0 if kind == Kind::Mixed => old_reader(&mut random, &shape, &mut steps),
            1..4 if kind == Kind::Mixed => large_value_kept(&mut random, &shape, &mut steps),
            _ => step(&mut random, kind, &shape, many, &mut begun, &mut steps),
        }
    }
    Program { kind, shape, steps }
}

fn step(random: &mut Random, kind: Kind, shape: &Shape, many: bool, begun: &mut usize, steps: &mut Vec<Step>) {
    let slot = random.below(SLOTS as u64) as usize;
    let table = random.below(shape.tables.len() as u64) as usize;
    match random.below(100) {
        0..14 => {
            if kind == Kind::Serializable && *begun == 6 {
                steps.extend((0..SLOTS).map(|slot| Step::Commit { slot }));
                *begun = 0;
            }
            *begun += 1;
            let isolation = match kind {
                Kind::Serializable => Isolation::Serializable,
                Kind::Mixed => random.of(&[
                    Isolation::ReadCommitted,
                    Isolation::ReadCommitted,
                    Isolation::RepeatableRead,
                    Isolation::RepeatableRead,
                    Isolation::Serializable,
                ]),
            };
            let durability = random.of(&[Durability::Durable, Durability::Durable, Durability::Relaxed, Durability::Off]);
            steps.push(Step::Begin { slot, isolation, durability });
        }
        14..52 => {
            let times = if many && random.one_in(3) { 1 + random.below(120) as usize } else { 1 };
            let change = change(random, shape, table);
            steps.push(Step::Change { slot, table, change, times });
        }
        52..74 => steps.push(Step::Read { slot, table, read: read(random, shape, table) }),
        74..78 => steps.push(Step::Savepoint { slot }),
        78..81 => steps.push(Step::RollBackTo { slot, pick: random.next() as u32 }),
        81..91 => steps.push(Step::Commit { slot }),
        91 => steps.push(Step::Rollback { slot }),
        92 => steps.push(Step::Checkpoint),
        93 | 94 => steps.push(Step::Leftovers),
        95 => steps.push(Step::Steal { table }),
        96 => steps.push(Step::Renew { table }),
        97 if random.one_in(2) => steps.push(Step::UseDictionary { table, seed: random.below(4) }),
        98 if random.one_in(3) && kind == Kind::Mixed => steps.push(Step::Reopen),
        99 if random.one_in(2) && kind == Kind::Mixed => steps.push(Step::Kill),
        _ => {}
    }
}

pub(crate) fn change(random: &mut Random, shape: &Shape, table: usize) -> Change {
    let columns = &shape.tables[table].columns;
    // Often one of few, so that transactions meet.
    let pick = if random.one_in(2) { random.below(5) as u32 } else { random.next() as u32 };
    match random.below(20) {
        0..9 => Change::Insert(columns.iter().map(|c| value(random, c.data_type, c.nullable, true)).collect()),
        9..16 => {
            let mut changes: Vec<(usize, Value)> = Vec::new();
            for _ in 0..1 + random.below(3) {
                let column = random.below(columns.len() as u64) as usize;
                if changes.iter().all(|(other, _)| *other != column) {
                    changes.push((column, value(random, columns[column].data_type, columns[column].nullable, true)));
                }
            }
            Change::Update(pick, changes)
        }
        16..19 => Change::Delete(pick),
        _ => Change::Lock(pick),
    }
}

pub(crate) fn read(random: &mut Random, shape: &Shape, table: usize) -> Read {
    let shape = &shape.tables[table];
    let index = random.below(shape.indexes.len() as u64) as usize;
    let key = |random: &mut Random| {
        let columns = &shape.indexes[index].columns;
        let count = 1 + random.below(columns.len() as u64) as usize;
        let columns = columns[..count].iter().map(|(column, _)| &shape.columns[*column]);
        columns.map(|column| value(random, column.data_type, column.nullable, false)).collect::<Vec<_>>()
    };
    let some_columns = |random: &mut Random| {
        let count = shape.columns.len() as u64;
        (0..random.below(4)).map(|_| random.below(count) as usize).collect::<Vec<_>>()
    };
    match random.below(16) {
        0 | 1 => Read::Row { pick: random.next() as u32 },
        2 | 3 => Read::Key { index, values: key(random) },
        4 | 5 => Read::KeyOf { index, pick: random.next() as u32, columns: random.below(3) as usize },
        6..10 => {
            let (low, high) = (random.one_in(2).then(|| key(random)), random.one_in(2).then(|| key(random)));
            let most = random.one_in(4).then(|| random.below(10) as usize);
            Read::Range { index, low, high, backward: random.one_in(2), keys: random.one_in(2), most }
        }
        10 | 11 => Read::Scan { columns: random.one_in(2).then(|| some_columns(random)) },
        12..15 => {
            let condition = (!random.one_in(5)).then(|| Condition::random(random, shape, 2));
            Read::Columns { columns: some_columns(random), condition }
        }
        _ => Read::Everything,
    }
}
