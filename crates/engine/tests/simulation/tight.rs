//! Histories on files without room: what goes wrong when a disk is full, and again when it is full and something is taken back.

use crate::steps::{Statement, Step};
use crate::values::{COLUMNS, Size, UNIQUE};
use crate::world::{Random, TABLES};
use pagefold_engine::database::{Durability, Isolation};

/// Rows of a table in a history of [`tight`] work.
const TIGHT_ROWS: u64 = 60;
/// Columns of any length that are in no index.
const LOOSE: [usize; 3] = [1, 4, 5];

/// A random history of so many steps on files with hardly any room, the disk full again and again: one writer changes rows to and fro, another one takes what room there is, for others on
/// the same pages, until nothing can grow; then the first one is mostly taken back. Rows whose statement failed, or was taken back, are changed again at once.
pub(crate) fn tight(random: &mut Random, count: usize) -> Vec<Step> {
    let mut steps = Vec::with_capacity(count + 100);
    for table in 0..TABLES.len() {
        let mut numbers: Vec<i64> = (0..TIGHT_ROWS as i64).collect();
        steps.push(begin(0, Isolation::ReadCommitted));
        while !numbers.is_empty() {
            let n = numbers.swap_remove(random.below(numbers.len() as u64) as usize);
            let mut sizes = [Size::Short; COLUMNS];
            (sizes[UNIQUE], sizes[COLUMNS - 1]) = (Size::Null, Size::Null);
            LOOSE.iter().for_each(|column| sizes[*column] = random.pick(&[Size::Null, Size::Short, Size::Short, Size::Medium]));
            steps.push(Step::Write { writer: 0, statement: Statement::Insert { table, n, sizes, seed: random.below(1 << 32) } });
        }
        steps.push(Step::Commit { writer: 0 });
    }
    while steps.len() < count {
        tight_round(random, &mut steps);
    }
    steps
}

fn begin(writer: usize, isolation: Isolation) -> Step {
    Step::Begin { writer, isolation, durability: Durability::Durable }
}

fn update(random: &mut Random, (writer, table, n): (usize, usize, i64), to: Option<i64>, sizes: Vec<(usize, Size)>) -> Step {
    Step::Write { writer, statement: Statement::Update { table, n, to, sizes, seed: random.below(1 << 32) } }
}

/// A change of some columns that are in no index; of one that is, now and then.
fn loose(random: &mut Random, row: (usize, usize, i64), sizes: &[Size]) -> Step {
    let mut columns: Vec<(usize, Size)> = Vec::new();
    for column in LOOSE {
        if random.one_in(2) {
            columns.push((column, random.pick(sizes)));
        }
    }
    if columns.is_empty() || random.one_in(4) {
        columns.push((2, Size::Short));
        columns.sort_unstable_by_key(|(column, _)| *column);
    }
    update(random, row, None, columns)
}

/// A disk that becomes full, and has room again.
fn tight_round(random: &mut Random, steps: &mut Vec<Step>) {
    const ANY: [Size; 4] = [Size::Null, Size::Short, Size::Medium, Size::Medium];
    const LONG: [Size; 4] = [Size::Medium, Size::Medium, Size::Medium, Size::Page];
    const SHORT: [Size; 2] = [Size::Null, Size::Short];
    let table = random.pick(&[0, 0, 1]);
    // Each writer has rows of its own: nobody waits.
    let row = |random: &mut Random, writer: usize| (writer, table, (TIGHT_ROWS / 2 * writer as u64 + random.below(TIGHT_ROWS / 2)) as i64);
    let level = |random: &mut Random| random.pick(&[Isolation::ReadCommitted, Isolation::RepeatableRead, Isolation::RepeatableRead]);
    if random.one_in(2) {
        steps.push(Step::Checkpoint);
    }
    steps.push(Step::Full { bytes: random.pick(&[0, 0, 0, 8 << 10]) });
    steps.extend([0, 1].map(|writer| begin(writer, level(random))));
    let mut changed = Vec::new();
    for _ in 0..4 + random.below(10) {
        if random.one_in(8) {
            steps.push(Step::Savepoint { writer: 0 });
        }
        changed.push(row(random, 0));
        steps.push(loose(random, changed[changed.len() - 1], &ANY));
    }
    for _ in 0..12 + random.below(20) {
        let other = !random.one_in(6);
        changed.push(row(random, other.into()));
        steps.push(loose(random, changed[changed.len() - 1], if other { &LONG } else { &ANY }));
    }
    steps.push(if random.one_in(2) { Step::Rollback { writer: 1 } } else { Step::Commit { writer: 1 } });
    match random.below(6) {
        0 => steps.push(Step::Commit { writer: 0 }),
        1 => steps.extend([Step::Back { writer: 0, depth: random.pick(&[0, 1]) }, Step::Commit { writer: 0 }]),
        _ => steps.push(Step::Rollback { writer: 0 }),
    }
    // The same rows again, shorter without room, and then as they come.
    for sizes in [&SHORT[..], &ANY[..]] {
        steps.extend([0, 1].map(|writer| begin(writer, level(random))));
        for row in &changed {
            if random.one_in(3) {
                steps.push(loose(random, *row, sizes));
            }
        }
        steps.extend([0, 1].map(|writer| if random.one_in(4) { Step::Rollback { writer } } else { Step::Commit { writer } }));
        if sizes == SHORT {
            steps.push(Step::Room);
        }
    }
    let row = row(random, 0);
    kept_large_value(random, row, steps);
    if random.one_in(3) {
        steps.push(Step::MoveRows { table, rows: 20 });
    }
    if random.one_in(3) {
        steps.push(Step::RemoveLeftovers);
    }
}

/// A row gets a large value, and loses it; the latter is taken back, by itself, in a transaction that commits.
fn kept_large_value(random: &mut Random, row: (usize, usize, i64), steps: &mut Vec<Step>) {
    let (writer, table, n) = row;
    let large = random.pick(&LOOSE);
    let short = |random: &mut Random| LOOSE.map(|column| (column, random.pick(&[Size::Null, Size::Short]))).to_vec();
    steps.push(begin(writer, Isolation::ReadCommitted));
    let mut sizes = short(random);
    sizes.iter_mut().filter(|(column, _)| *column == large).for_each(|(_, size)| *size = Size::Large);
    steps.push(update(random, row, None, sizes));
    steps.extend([Step::Commit { writer }, begin(writer, Isolation::RepeatableRead)]);
    let sizes = short(random);
    if random.one_in(2) {
        // That number is taken.
        steps.push(update(random, row, Some((n + 1) % TIGHT_ROWS as i64), sizes));
    } else {
        steps.extend([Step::Savepoint { writer }, update(random, row, None, sizes), Step::Back { writer, depth: 0 }]);
    }
    let other = (writer, table, (n + 2) % TIGHT_ROWS as i64);
    steps.extend([loose(random, other, &[Size::Short]), Step::Commit { writer }]);
}
