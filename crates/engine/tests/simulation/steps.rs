//! What is done to the database: a list of steps, so that one that fails can be printed, run again, and made shorter.
//!
//! Invariant: a step can be taken whatever was done before, or does nothing: so any of them may be dropped.

use crate::values::{COLUMNS, NUMBER, Size, UNIQUE};
use crate::world::{Random, TABLES};
use pagefold_engine::database::{Durability, Isolation};
use pagefold_engine::index::IndexFormat;
use pagefold_engine::table_space::Method;

/// A statement.
#[derive(Clone, Debug)]
pub(crate) enum Statement {
    Insert {
        table: usize,
        n: i64,
        sizes: [Size; COLUMNS],
        seed: u64,
    },
    /// Several at once, of numbers from `n` on that no row has.
    InsertRows {
        table: usize,
        n: i64,
        count: usize,
        large: bool,
        seed: u64,
    },
    Update {
        table: usize,
        n: i64,
        to: Option<i64>,
        sizes: Vec<(usize, Size)>,
        seed: u64,
    },
    Delete {
        table: usize,
        n: i64,
    },
    Lock {
        table: usize,
        n: i64,
    },
}

/// How a reader looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    Scan,
    Forward,
    Backward,
    Keys,
    /// A scan in parts.
    Parts,
    /// By the RIDs that a scan gives.
    Rids,
    /// A few rows more of a scan that stays open from step to step.
    Few,
}

const WAYS: [Way; 7] = [Way::Scan, Way::Forward, Way::Backward, Way::Keys, Way::Parts, Way::Rids, Way::Few];

/// A change of tables and indexes: there are no transactions then.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Definition {
    /// With fresh indexes, empty.
    DropAndCreate {
        table: usize,
        method: Method,
    },
    Reorganize {
        table: usize,
        method: Method,
        page_bytes: usize,
    },
    ReorganizeIndex {
        index: usize,
        format: IndexFormat,
    },
    /// Or drops it, if it is there.
    CreateIndex {
        table: usize,
        format: IndexFormat,
    },
    /// Out to a file, and into a table of its own in the place of what is there.
    ExportAndLoad {
        table: usize,
        method: Method,
    },
}

/// What a transaction makes or drops beside its changes of rows.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Within {
    /// The table is dropped, and another one of its name takes its place, empty.
    Replace { table: usize, method: Method },
    /// A further index of the table, or none if it is there.
    Index { table: usize, format: IndexFormat },
    /// A table is made and gets a row, and is dropped again.
    MakeAndDrop { table: usize, method: Method },
    /// The columns of the table change.
    Alter { table: usize, alteration: Alteration, seed: u64 },
}

/// How columns change, where there is such a column; else one comes.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Alteration {
    Add,
    Drop,
    Widen,
    Rename,
    /// One may be NULL from now on, or may not.
    Null,
}

const ALTERATIONS: [Alteration; 6] =
    [Alteration::Add, Alteration::Add, Alteration::Drop, Alteration::Widen, Alteration::Rename, Alteration::Null];

#[derive(Clone, Debug)]
pub(crate) enum Step {
    Begin {
        writer: usize,
        isolation: Isolation,
        durability: Durability,
    },
    Write {
        writer: usize,
        statement: Statement,
    },
    /// Tables and indexes come and go in a transaction that goes on.
    DefineWithin {
        writer: usize,
        within: Within,
    },
    /// Short rows, one after the other, come or go in a transaction: trees of several levels.
    Many {
        table: usize,
        from: i64,
        count: i64,
        delete: bool,
    },
    Savepoint {
        writer: usize,
    },
    /// To the savepoint so many before the last one, which stays.
    Back {
        writer: usize,
        depth: usize,
    },
    Commit {
        writer: usize,
    },
    Rollback {
        writer: usize,
    },
    Open {
        reader: usize,
        isolation: Isolation,
    },
    Look {
        reader: usize,
        table: usize,
        way: Way,
    },
    Close {
        reader: usize,
    },
    Checkpoint,
    /// Pages of running transactions are written.
    Steal {
        pick: u64,
    },
    RenewDictionary {
        table: usize,
        seed: u64,
    },
    RemoveLeftovers,
    /// Rows of thin pages go to others, so many in a transaction.
    MoveRows {
        table: usize,
        rows: usize,
    },
    Define(Definition),
    /// Something is built beside the writers: the next step of that. A further index, or that is dropped, if it is there; or the whole table, anew.
    Beside {
        table: usize,
        shape: usize,
        format: IndexFormat,
        anew: Option<(Method, usize)>,
    },
    /// Its build is given up.
    GiveUp,
    /// The disk has this much room left.
    Full {
        bytes: u64,
    },
    Room,
    /// The process ends at the call that comes after so many, and the next one goes on.
    Kill {
        calls: u64,
    },
    /// The database is closed and opened again.
    Reopen,
}

/// What a history is made of: how often each step comes, of a thousand.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mix {
    pub(crate) writers: usize,
    pub(crate) readers: bool,
    /// Rows have numbers below this.
    pub(crate) numbers: u64,
    /// Many rows come and go at once.
    pub(crate) many: u64,
    /// There are large values.
    pub(crate) large: bool,
    /// Of a hundred steps of a writer; savepoints and returns to them share what these and ends leave.
    pub(crate) writes: u64,
    pub(crate) ends: u64,
    /// One in so many ends is a rollback.
    pub(crate) rollback: u64,
    pub(crate) checkpoint: u64,
    pub(crate) steal: u64,
    pub(crate) renew: u64,
    /// Rows that go to other pages.
    pub(crate) moves: u64,
    pub(crate) define: u64,
    /// The same, of a thousand steps of a writer.
    pub(crate) within: u64,
    /// Steps of builds beside writers.
    pub(crate) beside: u64,
    pub(crate) full: u64,
    pub(crate) kill: u64,
    /// Commits that need not be durable.
    pub(crate) relaxed: bool,
}

impl Mix {
    /// One writer, nothing that goes wrong.
    pub(crate) fn plain() -> Mix {
        Mix {
            writers: 1,
            readers: false,
            numbers: 26,
            many: 0,
            large: true,
            writes: 65,
            ends: 15,
            rollback: 5,
            checkpoint: 12,
            steal: 60,
            renew: 20,
            moves: 20,
            define: 0,
            within: 0,
            beside: 0,
            full: 0,
            kill: 0,
            relaxed: false,
        }
    }

    pub(crate) fn of(seed: u64) -> Mix {
        let mut random = Random(seed ^ 0x0031);
        let many = random.one_in(12);
        Mix {
            writers: random.pick(&[1, 1, 2, 3]),
            readers: random.one_in(2),
            numbers: if many { 700 } else { random.pick(&[16, 26, 26, 120]) },
            many: if many { 40 } else { 0 },
            large: !random.one_in(4),
            writes: random.pick(&[45, 60, 75]),
            ends: random.pick(&[15, 15, 5]),
            rollback: random.pick(&[5, 2]),
            checkpoint: random.pick(&[4, 12, 40]),
            steal: random.pick(&[20, 60, 150]),
            renew: random.pick(&[5, 30]),
            moves: random.pick(&[0, 15, 80]),
            define: random.pick(&[0, 0, 6, 15]),
            within: random.pick(&[0, 80, 160]),
            beside: random.pick(&[0, 40, 120]),
            full: random.pick(&[0, 20, 40]),
            kill: random.pick(&[0, 8]),
            relaxed: random.one_in(3),
        }
    }
}

/// Where the making of a history stands.
#[derive(Default)]
struct Draft {
    open: [bool; 3],
    reading: [bool; 2],
    /// Steps until there is room again.
    full: u64,
}

/// A random history of so many steps.
pub(crate) fn history(random: &mut Random, mix: Mix, count: usize) -> Vec<Step> {
    let mut draft = Draft::default();
    let mut steps = Vec::with_capacity(count);
    while steps.len() < count {
        if draft.full > 0 {
            draft.full -= 1;
            if draft.full == 0 {
                steps.push(Step::Room);
            }
        }
        steps.push(step(random, mix, &mut draft));
    }
    if draft.full > 0 {
        steps.push(Step::Room);
    }
    steps
}

fn step(random: &mut Random, mix: Mix, draft: &mut Draft) -> Step {
    let mut at = random.below(1_000);
    // Each share takes its part of the thousand, whether it is used or not.
    let mut comes = |share: u64| {
        let comes = at < share;
        at = if comes { u64::MAX } else { at - share };
        comes
    };
    let table = random.below(2) as usize;
    if comes(mix.checkpoint) {
        return Step::Checkpoint;
    }
    if comes(mix.steal) {
        return Step::Steal { pick: random.below(16) };
    }
    if comes(mix.renew) {
        return Step::RenewDictionary { table, seed: random.below(10) };
    }
    if comes(mix.define) {
        (draft.open, draft.reading) = Default::default();
        return Step::Define(definition(random, table));
    }
    if comes(mix.beside) {
        if random.one_in(30) {
            return Step::GiveUp;
        }
        // Of one table at a time, mostly.
        return Step::Beside {
            table: usize::from(random.one_in(8)),
            shape: random.below(3) as usize,
            format: random.pick(&IndexFormat::ALL),
            anew: random.one_in(2).then(|| (random.pick(&Method::ALL), random.pick(&[2048, 4096, 4096]))),
        };
    }
    if comes(mix.full) && draft.full == 0 {
        draft.full = 6 + random.below(30);
        return Step::Full { bytes: random.pick(&[0, 0, 4 << 10, 16 << 10]) };
    }
    if comes(mix.kill) && draft.full == 0 {
        (draft.open, draft.reading) = Default::default();
        return if random.one_in(4) { Step::Reopen } else { Step::Kill { calls: random.below(90) } };
    }
    if comes(mix.many) && draft.full == 0 {
        draft.open[0] = false;
        let from = random.pick(&[0, 100, 200, 300, 400, 500]);
        return Step::Many { table, from, count: 200, delete: random.one_in(3) };
    }
    if comes(8) {
        return Step::RemoveLeftovers;
    }
    if comes(mix.moves) {
        return Step::MoveRows { table, rows: random.pick(&[1, 5, 40]) };
    }
    if mix.readers && comes(60) {
        return reader_step(random, draft, table);
    }
    let writer = random.below(mix.writers as u64) as usize;
    if !std::mem::replace(&mut draft.open[writer], true) {
        return Step::Begin { writer, isolation: isolation(random), durability: durability(random, mix.relaxed) };
    }
    if random.below(1_000) < mix.within {
        return Step::DefineWithin { writer, within: within(random, table) };
    }
    match random.below(100) {
        at if at < mix.writes => Step::Write { writer, statement: statement(random, table, (mix.numbers, mix.large)) },
        at if at < mix.writes + (100 - mix.ends - mix.writes) / 2 => Step::Savepoint { writer },
        at if at < 100 - mix.ends => Step::Back { writer, depth: random.pick(&[0, 0, 0, 1, 2]) },
        _ => {
            draft.open[writer] = false;
            if random.one_in(mix.rollback) { Step::Rollback { writer } } else { Step::Commit { writer } }
        }
    }
}

fn isolation(random: &mut Random) -> Isolation {
    random.pick(&[Isolation::ReadCommitted, Isolation::RepeatableRead, Isolation::RepeatableRead, Isolation::Serializable])
}

fn durability(random: &mut Random, relaxed: bool) -> Durability {
    if !relaxed {
        return Durability::Durable;
    }
    random.pick(&[Durability::Durable, Durability::Relaxed, Durability::Off])
}

fn reader_step(random: &mut Random, draft: &mut Draft, table: usize) -> Step {
    let reader = random.below(2) as usize;
    if !std::mem::replace(&mut draft.reading[reader], true) {
        return Step::Open { reader, isolation: isolation(random) };
    }
    if random.one_in(6) {
        draft.reading[reader] = false;
        return Step::Close { reader };
    }
    Step::Look { reader, table, way: random.pick(&WAYS) }
}

fn definition(random: &mut Random, table: usize) -> Definition {
    let method = random.pick(&Method::ALL);
    let format = random.pick(&IndexFormat::ALL);
    match random.below(5) {
        0 => Definition::DropAndCreate { table, method },
        1 => Definition::Reorganize { table, method, page_bytes: random.pick(&[2048, 4096]) },
        2 => Definition::ReorganizeIndex { index: random.below(10) as usize, format },
        3 => Definition::CreateIndex { table, format },
        _ => Definition::ExportAndLoad { table, method },
    }
}

fn within(random: &mut Random, table: usize) -> Within {
    let method = random.pick(&Method::ALL);
    match random.below(8) {
        0 => Within::Replace { table, method },
        1 => Within::MakeAndDrop { table, method },
        2..7 => Within::Alter { table, alteration: random.pick(&ALTERATIONS), seed: random.below(1 << 20) },
        _ => Within::Index { table, format: random.pick(&IndexFormat::ALL) },
    }
}

/// A random statement on a table.
pub(crate) fn statement(random: &mut Random, table: usize, (numbers, large): (u64, bool)) -> Statement {
    debug_assert!(table < TABLES.len());
    let (n, seed) = (random.below(numbers) as i64, random.below(1 << 32));
    match random.below(20) {
        // Enough for some pages, now and then; else too few.
        5 if random.one_in(4) => Statement::InsertRows { table, n, count: random.pick(&[2, 40, 90, 150]), large, seed },
        0..6 => {
            let mut sizes = [(); COLUMNS].map(|()| Size::of(random, large));
            // A row of fixed length that is always large would be of one kind only.
            if !large || random.one_in(2) {
                sizes[COLUMNS - 1] = Size::Null;
            }
            Statement::Insert { table, n, sizes, seed }
        }
        6..16 => {
            let count = 1 + random.below(3);
            let mut sizes: Vec<(usize, Size)> =
                (0..count).map(|_| (1 + random.below(COLUMNS as u64 - 1 - u64::from(!large)) as usize, Size::of(random, large))).collect();
            sizes.sort_unstable_by_key(|(column, _)| *column);
            sizes.dedup_by_key(|(column, _)| *column);
            let to = random.one_in(8).then(|| random.below(numbers) as i64);
            Statement::Update { table, n, to, sizes, seed }
        }
        16..18 => Statement::Delete { table, n },
        _ => Statement::Lock { table, n },
    }
}

impl Statement {
    /// Does it have a value that may be refused?
    pub(crate) fn may_be_too_wide(&self) -> bool {
        match self {
            Statement::Insert { sizes, .. } => sizes.contains(&Size::TooWide),
            Statement::InsertRows { .. } => true,
            Statement::Update { sizes, .. } => sizes.iter().any(|(_, size)| *size == Size::TooWide),
            Statement::Delete { .. } | Statement::Lock { .. } => false,
        }
    }
}

const _: () = assert!(NUMBER == 0 && UNIQUE < COLUMNS);
