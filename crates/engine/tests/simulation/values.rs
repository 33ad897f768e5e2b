//! Rows and their values: short ones, long ones, ones that go to large-value pages, ones that do not fit, in columns of every kind that can hold them.
//!
//! Invariant: a value follows from its column, size and seed.

use crate::world::Random;
use pagefold_types::{Column, DataType, Schema, Value};
use std::sync::Arc;

/// The values of a row.
pub(crate) type Row = Arc<Vec<Value>>;

/// Number, unique key that may be NULL.
pub(crate) const NUMBER: usize = 0;
pub(crate) const UNIQUE: usize = 6;
pub(crate) const COLUMNS: usize = 8;
const NOTE_CHARACTERS: u32 = 9_000;
const CHAR_CHARACTERS: u32 = 3_000;

pub(crate) fn schema() -> Schema {
    Schema::new(vec![
        Column::new("n", DataType::BigInt, false),
        Column::new("text", DataType::Varchar(None), false),
        Column::new("m", DataType::Integer, true),
        Column::new("wide", DataType::Varchar(None), false),
        Column::new("note", DataType::Varchar(Some(NOTE_CHARACTERS)), true),
        Column::new("data", DataType::Bytea, true),
        Column::new("u", DataType::BigInt, true),
        Column::new("c", DataType::Char(CHAR_CHARACTERS), true),
    ])
    .unwrap()
}

/// How large a value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Size {
    /// Or short, where there are no NULLs.
    Null,
    Short,
    /// Rows soon grow out of their pages by it.
    Medium,
    /// Nearly as long as a page, so that nothing else has room beside it.
    Page,
    /// Longer than a page.
    Large,
    /// More than its column takes, or a key; else as `Large`.
    TooWide,
}

impl Size {
    pub(crate) fn of(random: &mut Random, large: bool) -> Size {
        match random.below(100) {
            0..30 => Size::Null,
            30..70 => Size::Short,
            70..84 => Size::Medium,
            84..88 => Size::Page,
            88..98 if large => Size::Large,
            88..98 => Size::Medium,
            _ => Size::TooWide,
        }
    }
}

pub(crate) fn text_of(random: &mut Random) -> String {
    let count = random.below(14);
    words(random, count)
}

fn words(random: &mut Random, count: u64) -> String {
    let words = ["carefully ", "final ", "deposits ", "sleep ", "furiously ", "xq", "express "];
    (0..count).map(|_| random.pick(&words)).collect()
}

fn letters(random: &mut Random, count: u64) -> String {
    (0..count).map(|_| char::from(b'a' + random.below(26) as u8)).collect()
}

/// A value of a column, that of the number apart.
pub(crate) fn value(column: usize, size: Size, seed: u64) -> Value {
    let mut random = Random(seed.wrapping_mul(0x1_0001) + column as u64);
    let random = &mut random;
    let nullable = schema().columns()[column].nullable;
    if size == Size::Null && nullable {
        return Value::Null;
    }
    let long = 2_500 + random.below(4_000);
    // In pages of 2 KB or 4 KB; what the row has beside it is long or short as it comes.
    let page = random.pick(&[1_650, 3_700]) + random.below(330);
    let text = |random: &mut Random| match size {
        Size::Null | Size::Short => text_of(random),
        Size::Medium => words(random, 60),
        Size::Page => letters(random, page),
        Size::Large | Size::TooWide => letters(random, long),
    };
    match column {
        1 => Value::Text(text(random)),
        2 => Value::Int(random.below(7) as i64),
        // Keys so long that few rows make an index of several leaves.
        3 => Value::Text(match size {
            Size::Null | Size::Short => {
                let length = 60 + random.below(80);
                letters(random, length)
            }
            // So much in common that separators are long, too: trees of three levels.
            Size::Medium => format!("{}{}", "a".repeat(200), letters(random, 50)),
            Size::Page | Size::Large => letters(random, 150),
            Size::TooWide => letters(random, 1_200 + long),
        }),
        4 if size == Size::TooWide => Value::Text(letters(random, u64::from(NOTE_CHARACTERS) + 1)),
        4 => Value::Text(text(random)),
        5 => {
            let length = match size {
                Size::Null | Size::Short => random.below(20),
                Size::Medium => 200 + random.below(300),
                Size::Page => page,
                Size::Large | Size::TooWide => long,
            };
            Value::Bytes((0..length).map(|_| random.below(256) as u8).collect())
        }
        UNIQUE => Value::Int(random.below(60) as i64),
        // Padded: longer than a page by itself.
        7 => {
            let text: String = text(random).chars().take(CHAR_CHARACTERS as usize).collect();
            Value::Text(format!("{text:<width$}", width = CHAR_CHARACTERS as usize))
        }
        _ => unreachable!("column {column}"),
    }
}

/// A row of these sizes.
pub(crate) fn row(n: i64, sizes: &[Size; COLUMNS], seed: u64) -> Row {
    let values = (0..COLUMNS).map(|column| if column == NUMBER { Value::Int(n) } else { value(column, sizes[column], seed) });
    Arc::new(values.collect())
}

/// A short row: text, and a key that few others have.
pub(crate) fn short_row(n: i64, seed: u64) -> Row {
    let mut sizes = [Size::Short; COLUMNS];
    (sizes[UNIQUE], sizes[COLUMNS - 1]) = (Size::Null, Size::Null);
    row(n, &sizes, seed)
}

/// The number of a row.
pub(crate) fn number(row: &[Value]) -> i64 {
    let Value::Int(n) = row[NUMBER] else { panic!("{row:?}") };
    n
}

/// Its unique key.
pub(crate) fn unique(row: &[Value]) -> Option<i64> {
    if let Value::Int(u) = row[UNIQUE] { Some(u) } else { None }
}
