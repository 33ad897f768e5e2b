//! Short transactions over the rows 1, 2 (there at first) and 3, 4 (not there).

/// A statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Op {
    /// Reads a row by its number.
    Read(i64),
    /// Reads all rows by the index on numbers.
    ReadAll,
    /// Reads all rows by the index on values.
    ReadByValue,
    /// Reads all rows by a scan.
    Scan,
    /// Inserts a row; refused when the number is taken.
    Insert(i64, i64),
    /// Sets the value of a row, if it is there.
    Update(i64, i64),
    /// Adds to the value that a row was read with, if it is there.
    Add(i64, i64),
    /// Gives a row another number; refused when that is taken.
    Renumber(i64, i64),
    Delete(i64),
    /// The last step; always there.
    Commit,
    Rollback,
}

/// What a step gave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// Rows read: number and value.
    Rows(Vec<(i64, i64)>),
    Done,
    /// The row is not there.
    Absent,
    Duplicate,
    /// The transaction is a victim: of a deadlock, of a change since its snapshot, of a failure of serialization.
    Deadlock,
    Conflict,
    Serialization,
}

impl Outcome {
    pub(super) fn is_victim(&self) -> bool {
        matches!(self, Outcome::Deadlock | Outcome::Conflict | Outcome::Serialization)
    }
}

pub(super) const FIRST_ROWS: [(i64, i64); 2] = [(1, 10), (2, 20)];

/// The transactions, without their ends. `salt` keeps what two of a pair write apart.
pub(super) fn programs(salt: i64) -> Vec<Vec<Op>> {
    use Op::*;
    let value = |n: i64| 100 * salt + n;
    vec![
        vec![Read(1), Read(2)],
        vec![ReadAll, ReadByValue],
        vec![Scan, Read(3)],
        vec![Read(1), Update(2, value(2))],
        vec![Read(2), Update(1, value(1))],
        vec![Update(1, value(1)), Update(2, value(2))],
        vec![Update(2, value(2)), Update(1, value(1))],
        vec![Add(1, salt), Add(2, salt)],
        vec![ReadAll, Insert(3, value(3))],
        vec![ReadByValue, Insert(4, value(4))],
        vec![Scan, Update(1, value(1))],
        vec![Read(3), Insert(3, value(3)), ReadAll],
        vec![Read(1), Insert(1, value(1))],
        vec![Read(1), Delete(1), Insert(1, value(1))],
        vec![Delete(2), ReadAll],
        vec![Insert(3, value(3)), Delete(1), ReadByValue],
        vec![Renumber(2, 3), Read(2)],
        vec![Renumber(1, 2), Read(1), Insert(1, value(1))],
        vec![ReadAll, Update(1, value(1)), Insert(3, value(3)), Read(2)],
        vec![Delete(1), Insert(3, value(3)), Read(2), Update(2, value(2))],
    ]
}

/// Calls `visit` with every order of so many steps of the first and of the second.
pub(super) fn orders(left: [usize; 2], order: &mut Vec<usize>, visit: &mut impl FnMut(&[usize])) {
    if left == [0, 0] {
        return visit(order);
    }
    for who in 0..2 {
        if left[who] > 0 {
            let mut rest = left;
            rest[who] -= 1;
            order.push(who);
            orders(rest, order, visit);
            order.pop();
        }
    }
}
