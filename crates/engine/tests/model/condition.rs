//! Conditions of scans: as text for the engine, and what they say of a row in three-valued logic.

use crate::random::Random;
use crate::shape::TableShape;
use crate::values::{order, stored, value};
use pagefold_types::{DataType, Value, text};
use std::cmp::Ordering;

#[derive(Clone, Debug)]
pub(crate) enum Condition {
    /// Column, operator (by its place in [`OPERATORS`]), literal.
    Compare(usize, usize, Value),
    CompareColumns(usize, usize, usize),
    Between(usize, Value, Value),
    In(usize, Vec<Value>),
    IsNull(usize),
    Like(usize, String),
    Not(Box<Condition>),
    And(Vec<Condition>),
    Or(Vec<Condition>),
}

const OPERATORS: [&str; 6] = ["=", "<>", "<", "<=", ">", ">="];

fn holds(operator: usize, ordering: Ordering) -> bool {
    match operator {
        0 => ordering == Ordering::Equal,
        1 => ordering != Ordering::Equal,
        2 => ordering == Ordering::Less,
        3 => ordering != Ordering::Greater,
        4 => ordering == Ordering::Greater,
        _ => ordering != Ordering::Less,
    }
}

fn like(pattern: &[char], text: &[char]) -> bool {
    match (pattern, text) {
        ([], _) => text.is_empty(),
        (['%', rest @ ..], _) => (0..=text.len()).any(|skip| like(rest, &text[skip..])),
        (['_', rest @ ..], [_, tail @ ..]) => like(rest, tail),
        ([p, rest @ ..], [t, tail @ ..]) => p == t && like(rest, tail),
        _ => false,
    }
}

impl Condition {
    pub(crate) fn random(random: &mut Random, table: &TableShape, depth: usize) -> Condition {
        let column = random.below(table.columns.len() as u64) as usize;
        let data_type = table.columns[column].data_type;
        // A literal: none that is NULL, none of many bytes.
        let literal = |random: &mut Random| {
            let value = value(random, data_type, false, false);
            if let Value::Text(text) = &value { Value::Text(text.chars().take(30).collect()) } else { value }
        };
        let is_text = matches!(data_type, DataType::Char(_) | DataType::Varchar(_));
        match random.below(if depth == 0 { 9 } else { 13 }) {
            0..4 => Condition::Compare(column, random.below(6) as usize, literal(random)),
            4 => {
                let other = random.below(table.columns.len() as u64) as usize;
                let kind = table.columns[other].data_type;
                let both = matches!((data_type, kind), (DataType::Varchar(_), DataType::Varchar(_)));
                if kind == data_type || both {
                    Condition::CompareColumns(column, random.below(6) as usize, other)
                } else {
                    Condition::IsNull(column)
                }
            }
            5 => Condition::Between(column, literal(random), literal(random)),
            6 => Condition::In(column, (0..1 + random.below(4)).map(|_| literal(random)).collect()),
            7 if is_text => {
                let pieces = ["a", "%", "_", "é", "f", "\0", "日"];
                Condition::Like(column, (0..random.below(5)).map(|_| random.of(&pieces)).collect())
            }
            7 | 8 => Condition::IsNull(column),
            9 => Condition::Not(Box::new(Condition::random(random, table, depth - 1))),
            10 => Condition::And((0..2 + random.below(2)).map(|_| Condition::random(random, table, depth - 1)).collect()),
            _ => Condition::Or((0..2 + random.below(2)).map(|_| Condition::random(random, table, depth - 1)).collect()),
        }
    }

    /// True, false or unknown.
    pub(crate) fn says(&self, table: &TableShape, row: &[Value]) -> Option<bool> {
        let compare = |column: usize, literal: &Value| {
            let found = &row[column];
            (!matches!(found, Value::Null)).then(|| order(found, &stored(literal, table.columns[column].data_type)))
        };
        match self {
            Condition::Compare(column, operator, literal) => compare(*column, literal).map(|o| holds(*operator, o)),
            Condition::CompareColumns(left, operator, right) => match (&row[*left], &row[*right]) {
                (Value::Null, _) | (_, Value::Null) => None,
                (left, right) => Some(holds(*operator, order(left, right))),
            },
            Condition::Between(column, low, high) => {
                Some(compare(*column, low)? != Ordering::Less && compare(*column, high)? != Ordering::Greater)
            }
            Condition::In(column, values) => {
                let mut any = false;
                for value in values {
                    any |= compare(*column, value)? == Ordering::Equal;
                }
                Some(any)
            }
            Condition::IsNull(column) => Some(matches!(row[*column], Value::Null)),
            Condition::Like(column, pattern) => match &row[*column] {
                Value::Text(text) => {
                    let padded = matches!(table.columns[*column].data_type, DataType::Char(_));
                    let text = if padded { text.trim_end_matches(' ') } else { text };
                    // A pattern of five pieces at most: what is behind does not matter to the recursion's depth.
                    Some(like(&pattern.chars().collect::<Vec<_>>(), &text.chars().collect::<Vec<_>>()))
                }
                _ => None,
            },
            Condition::Not(inner) => inner.says(table, row).map(|said| !said),
            Condition::And(terms) => {
                let said: Vec<_> = terms.iter().map(|term| term.says(table, row)).collect();
                if said.contains(&Some(false)) { Some(false) } else { (!said.contains(&None)).then_some(true) }
            }
            Condition::Or(terms) => {
                let said: Vec<_> = terms.iter().map(|term| term.says(table, row)).collect();
                if said.contains(&Some(true)) { Some(true) } else { (!said.contains(&None)).then_some(false) }
            }
        }
    }

    pub(crate) fn text(&self, table: &TableShape) -> String {
        let literal = |column: usize, value: &Value| {
            let data_type = match table.columns[column].data_type {
                DataType::Char(_) | DataType::Varchar(_) => DataType::Varchar(None),
                other => other,
            };
            format!("'{}'", text::to_text(value.as_ref(), &data_type).replace('\'', "''"))
        };
        let terms = |terms: &[Condition], word: &str| {
            let terms: Vec<_> = terms.iter().map(|term| term.text(table)).collect();
            format!("({})", terms.join(word))
        };
        match self {
            Condition::Compare(column, operator, value) => format!("c{column} {} {}", OPERATORS[*operator], literal(*column, value)),
            Condition::CompareColumns(left, operator, right) => format!("c{left} {} c{right}", OPERATORS[*operator]),
            Condition::Between(column, low, high) => {
                format!("c{column} between {} and {}", literal(*column, low), literal(*column, high))
            }
            Condition::In(column, values) => {
                let values: Vec<_> = values.iter().map(|value| literal(*column, value)).collect();
                format!("c{column} in ({})", values.join(", "))
            }
            Condition::IsNull(column) => format!("c{column} is null"),
            Condition::Like(column, pattern) => format!("c{column} like '{pattern}'"),
            Condition::Not(inner) => format!("not ({})", inner.text(table)),
            Condition::And(all) => terms(all, " and "),
            Condition::Or(all) => terms(all, " or "),
        }
    }
}
