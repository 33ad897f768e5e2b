//! Is the first line of a file names?
//!
//! Compared with the lines behind it, as far as they are known:
//! 1. when one of its fields does not fit the type that the others of its column have, it is names (a word for a missing value does not count);
//! 2. when it fits columns that are no text, it is a row;
//! 3. else all depends on text. It is a row when one of its fields is a number or date, is longer than a name, comes again in its column, or is empty where others are too; and when
//!    there is one column alone, or no other line. Otherwise it is names.

use super::sniff::Record;
use crate::text::{DateOrder, Guess, Kind};

/// A name is no longer.
const NAME_CHARS_MAX: usize = 100;

const MISSING: [&str; 10] = ["na", "n/a", "null", "none", "nan", "-", "?", "\\n", "missing", "unknown"];

/// Whether it is, and why.
pub(super) type Verdict = (bool, &'static str);

fn is_missing(field: &str) -> bool {
    MISSING.iter().any(|word| field.eq_ignore_ascii_case(word))
}

/// Decides by the first records of a file.
pub(super) fn find_header(records: &[Record], told: Option<DateOrder>) -> Verdict {
    let [first, rest @ ..] = records else { return (false, "the file has no lines") };
    let columns = first.fields.len();
    let rest: Vec<&Record> = rest.iter().filter(|record| record.fields.len() == columns).collect();
    if rest.is_empty() {
        return (false, "there is no line to compare the first one with");
    }
    let mut scratch = Vec::new();
    let mut guesses = vec![Guess::new(None, told); columns];
    for record in &rest {
        record.fields.iter().zip(&mut guesses).for_each(|(field, guess)| guess.add(field.as_deref(), Kind::Any, &mut scratch));
    }
    let (mut misfits, mut fits, mut nameless) = (0, 0, 0);
    for (field, guess) in first.fields.iter().zip(&guesses) {
        let is_ambiguous = guess.is_ambiguous();
        let Ok(data_type) = guess.data_type() else { continue };
        if data_type.is_text() && !is_ambiguous {
            continue;
        }
        match field.as_deref().map(str::trim_ascii).filter(|f| !f.is_empty()) {
            None => nameless += usize::from(!guess.nullable()),
            Some(field) if is_ambiguous => *(if is_value(field) { &mut fits } else { &mut misfits }) += 1,
            Some(field) if guess.takes(field, &data_type) => fits += 1,
            Some(field) if is_missing(field) => {}
            Some(_) => misfits += 1,
        }
    }
    if misfits > 0 {
        return (true, "the first line does not fit the types of the others");
    }
    if fits > 0 {
        return (false, "the first line fits the types of the others");
    }
    let texts = first.fields.iter().zip(&guesses).enumerate();
    let mut named = 0;
    for (column, (field, guess)) in texts.filter(|(_, (_, guess))| guess.data_type().is_ok_and(|t| t.is_text())) {
        let Some(name) = field.as_deref().map(str::trim_ascii).filter(|f| !f.is_empty()) else {
            if guess.nullable() {
                return (false, "the first line has an empty field, as others have");
            }
            continue;
        };
        named += 1;
        if is_value(name) {
            return (false, "a field of the first line is a value, not a name");
        }
        if name.chars().count() > NAME_CHARS_MAX {
            return (false, "a field of the first line is longer than a name");
        }
        if rest.iter().any(|record| record.fields[column].as_deref().is_some_and(|f| f.trim_ascii() == name)) {
            return (false, "a field of the first line comes again in its column");
        }
    }
    if named == 0 || (columns == 1 && nameless == 0) {
        return (false, "nothing tells the first line from the others");
    }
    (true, "no field of the first line comes again in its column")
}

/// A number, truth value, date or the like?
fn is_value(field: &str) -> bool {
    let mut guess = Guess::new(None, None);
    guess.add(Some(field), Kind::Any, &mut Vec::new());
    guess.data_type().is_ok_and(|t| !t.is_text()) || guess.is_ambiguous()
}

/// Names of columns from the fields of a header: without blanks around, those that are missing by number, and each once.
pub(super) fn names(fields: &[Option<String>]) -> Vec<String> {
    let mut names: Vec<String> = Vec::with_capacity(fields.len());
    for (i, field) in fields.iter().enumerate() {
        let name = field.as_deref().map(str::trim).filter(|n| !n.is_empty()).map_or_else(|| format!("column{}", i + 1), str::to_owned);
        let later = |wanted: &str| fields[i + 1..].iter().flatten().any(|f| f.trim() == wanted);
        let mut unique = name.clone();
        let mut number = 2;
        while names.contains(&unique) || (unique != name && later(&unique)) {
            unique = format!("{name}_{number}");
            number += 1;
        }
        names.push(unique);
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    fn records(lines: &[&[&str]]) -> Vec<Record> {
        let field = |f: &&str| (!f.is_empty()).then(|| (*f).to_owned());
        lines.iter().enumerate().map(|(i, fields)| Record { fields: fields.iter().map(field).collect(), line: i as u64 + 1 }).collect()
    }

    #[test]
    fn headers_by_types_and_by_text() {
        for (lines, expected) in [
            (&[&["id", "name"][..], &["1", "x"]][..], true),
            (&[&["1", "x"], &["2", "y"]], false),
            (&[&["name", "town"], &["Ann", "Bonn"], &["Bob", "Rome"]], true),
            (&[&["Ann", "Bonn"], &["Bob", "Bonn"]], false),
            (&[&["", "name"], &["1", "x"], &["2", "y"]], true),
            (&[&["", "name"], &["1", "x"], &["", "y"]], true),
            (&[&["id", "id", ""], &["1", "2", "x"]], true),
            (&[&["name", ""], &["Ann", ""], &["Bob", "Rome"]], false),
            (&[&["name", "2019"], &["Ann", "1"], &["Bob", "2"]], false),
            (&[&["name", "2019"], &["Ann", "x"], &["Bob", "y"]], false),
            (&[&["1", "n/a"], &["2", "3"]], false),
            (&[&["id", "n/a"], &["2", "3"]], true),
            (&[&["apple"], &["pear"], &["plum"]], false),
            (&[&["a", "b"]], false),
            (&[&["day", "name"], &["01/02/2024", "x"], &["02/03/2024", "y"]], true),
        ] {
            assert_eq!(find_header(&records(lines), None).0, expected, "{lines:?}");
        }
    }

    #[test]
    fn names_are_different_and_not_empty() {
        let of = |fields: &[&str]| names(&records(&[fields])[0].fields);
        assert_eq!(of(&["a", "", " b "]), ["a", "column2", "b"]);
        assert_eq!(of(&["a", "a", "a_2", "a"]), ["a", "a_3", "a_2", "a_4"]);
        assert_eq!(of(&["column2", ""]), ["column2", "column2_2"]);
    }
}
