//! Three values: NOT, AND, OR, IN and comparisons against their tables, on rows and folded.

use super::sql::{Columns, on_row};
use pagefold_types::Value;

const COLUMNS: Columns<'static> = Columns(&[("a", "boolean"), ("b", "boolean"), ("c", "boolean")]);
const ALL: [Option<bool>; 3] = [Some(false), Some(true), None];

fn value(truth: Option<bool>) -> Value {
    truth.map_or(Value::Null, Value::Boolean)
}

fn literal(truth: Option<bool>) -> &'static str {
    match truth {
        Some(true) => "true",
        Some(false) => "false",
        None => "NULL::boolean",
    }
}

fn and(a: Option<bool>, b: Option<bool>) -> Option<bool> {
    match (a, b) {
        (Some(false), _) | (_, Some(false)) => Some(false),
        (Some(true), Some(true)) => Some(true),
        _ => None,
    }
}

fn not(a: Option<bool>) -> Option<bool> {
    a.map(|a| !a)
}

fn or(a: Option<bool>, b: Option<bool>) -> Option<bool> {
    not(and(not(a), not(b)))
}

#[test]
fn tables_of_three_values() {
    for a in ALL {
        for b in ALL {
            for c in ALL {
                let equal = |x: Option<bool>, y: Option<bool>| x.zip(y).map(|(x, y)| x == y);
                let among = or(equal(a, b), equal(a, c));
                let cases = [
                    ("not a", not(a)),
                    ("a and b", and(a, b)),
                    ("a or b", or(a, b)),
                    ("a and b and c", and(and(a, b), c)),
                    ("a or (b and not c)", or(a, and(b, not(c)))),
                    ("not (a and b)", not(and(a, b))),
                    ("not (not a)", a),
                    ("a = b", equal(a, b)),
                    ("a is distinct from b", Some(a != b)),
                    ("not (a is distinct from b)", Some(a == b)),
                    ("a in (b, c)", among),
                    ("a not in (b, c)", not(among)),
                    ("not (a in (b, c))", not(among)),
                    ("a is true", Some(a == Some(true))),
                    ("not (a is true)", Some(a != Some(true))),
                    ("a is not false", Some(a != Some(false))),
                    ("a is unknown", Some(a.is_none())),
                    ("a is null", Some(a.is_none())),
                    ("not (a is null)", Some(a.is_some())),
                    ("case when a then b else c end", if a == Some(true) { b } else { c }),
                    ("coalesce(a, b, c)", a.or(b).or(c)),
                    ("nullif(a, b)", if equal(a, b) == Some(true) { None } else { a }),
                    ("a and true", a),
                    ("a or false", a),
                    ("a and NULL", and(a, None)),
                ];
                let row = [value(a), value(b), value(c)];
                for (text, expected) in cases {
                    let (found, _) = on_row(text, &COLUMNS, &row).unwrap();
                    assert_eq!(found, value(expected), "{text} with {row:?}");
                    // The same of literals, which are computed when it is made.
                    let words: Vec<String> = text
                        .split_inclusive(|c: char| !c.is_alphanumeric())
                        .map(|word| {
                            let (name, after) = word.split_at(word.trim_end_matches(|c: char| !c.is_alphanumeric()).len());
                            let value = match name {
                                "a" => literal(a),
                                "b" => literal(b),
                                "c" => literal(c),
                                other => other,
                            };
                            format!("{value}{after}")
                        })
                        .collect();
                    let (found, _) = on_row(&words.concat(), &Columns(&[]), &[]).unwrap();
                    assert_eq!(found, value(expected), "{}", words.concat());
                }
            }
        }
    }
}

#[test]
fn what_decides_ends_it() {
    let columns = Columns(&[("a", "boolean"), ("zero", "integer")]);
    for (text, a, expected) in [
        ("a and 1 / zero = 1", Some(false), Some(Some(false))),
        ("a or 1 / zero = 1", Some(true), Some(Some(true))),
        ("case when a then true else 1 / zero = 1 end", Some(true), Some(Some(true))),
        ("coalesce(a, 1 / zero = 1)", Some(false), Some(Some(false))),
        ("a and 1 / zero = 1", Some(true), None),
        ("a and 1 / zero = 1", None, None),
        ("a or 1 / zero = 1", Some(false), None),
    ] {
        let found = on_row(text, &columns, &[value(a), Value::Int(0)]);
        match expected {
            Some(expected) => assert_eq!(found.unwrap().0, value(expected), "{text}"),
            None => assert_eq!(found.unwrap_err().sqlstate(), "22012", "{text}"),
        }
    }
}
