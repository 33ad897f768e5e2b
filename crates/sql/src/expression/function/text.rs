//! Functions of texts. Positions and lengths are in characters; results are limited to what one value may have.

use super::internal::check_length;
use super::{Function, int, take, text_of};
use crate::expression::datum::Datum;
use crate::{SqlError, SqlResult};
use pagefold_types::ValueRef;

type Args<'x, 'a> = &'x mut [Datum<'a>];

fn made<'a>(text: String) -> SqlResult<Datum<'a>> {
    check_length(text.len())?;
    Ok(Datum::from_text(text))
}

/// Byte offset of a character; the end of the text if it has not that many.
fn offset(text: &str, chars: usize) -> usize {
    text.char_indices().nth(chars).map_or(text.len(), |(at, _)| at)
}

fn count(text: &str) -> i64 {
    i64::try_from(text.chars().count()).unwrap_or(i64::MAX)
}

pub(super) fn lower<'a>(_: &Function, arguments: Args<'_, 'a>) -> SqlResult<Datum<'a>> {
    made(text_of(arguments, 0).to_lowercase())
}

pub(super) fn upper<'a>(_: &Function, arguments: Args<'_, 'a>) -> SqlResult<Datum<'a>> {
    made(text_of(arguments, 0).to_uppercase())
}

/// Words begin with a letter or digit after something else.
pub(super) fn initcap<'a>(_: &Function, arguments: Args<'_, 'a>) -> SqlResult<Datum<'a>> {
    let text = text_of(arguments, 0);
    let mut made_text = String::with_capacity(text.len());
    let mut within = false;
    for c in text.chars() {
        if within {
            made_text.extend(c.to_lowercase());
        } else {
            made_text.extend(c.to_uppercase());
        }
        within = c.is_alphanumeric();
    }
    made(made_text)
}

pub(super) fn length<'a>(_: &Function, arguments: Args<'_, 'a>) -> SqlResult<Datum<'a>> {
    Ok(Datum::from_int(match take(arguments, 0).as_ref() {
        ValueRef::Text(text) => count(text),
        ValueRef::Bytes(bytes) => i64::try_from(bytes.len()).unwrap_or(i64::MAX),
        _ => 0,
    }))
}

pub(super) fn octet_length<'a>(_: &Function, arguments: Args<'_, 'a>) -> SqlResult<Datum<'a>> {
    let bytes = match take(arguments, 0).as_ref() {
        ValueRef::Text(text) => text.len(),
        ValueRef::Bytes(bytes) => bytes.len(),
        _ => 0,
    };
    Ok(Datum::from_int(i64::try_from(bytes).unwrap_or(i64::MAX)))
}

pub(super) fn bit_length<'a>(function: &Function, arguments: Args<'_, 'a>) -> SqlResult<Datum<'a>> {
    Ok(Datum::from_int(octet_length(function, arguments)?.int() * 8))
}

/// substring(text, from[, for]): positions from 1; those before the text count as characters that are not there.
pub(super) fn substring<'a>(_: &Function, arguments: Args<'_, 'a>) -> SqlResult<Datum<'a>> {
    let start = int(arguments, 1);
    let end = match arguments.get(2) {
        Some(length) if length.int() < 0 => return Err(SqlError::new("22011", "negative substring length not allowed")),
        Some(length) => start.saturating_add(length.int()),
        None => i64::MAX,
    };
    let first = usize::try_from(start.max(1) - 1).unwrap_or(usize::MAX);
    let after = usize::try_from(end.max(1) - 1).unwrap_or(usize::MAX).max(first);
    let text = text_of(arguments, 0);
    let from = offset(text, first);
    let to = from + offset(text.get(from..).unwrap_or_default(), after - first);
    Ok(take(arguments, 0).cut(from..to))
}

pub(super) fn position<'a>(_: &Function, arguments: Args<'_, 'a>) -> SqlResult<Datum<'a>> {
    let (text, wanted) = (text_of(arguments, 0), text_of(arguments, 1));
    let found = text.find(wanted).map_or(0, |at| count(text.get(..at).unwrap_or_default()) + 1);
    Ok(Datum::from_int(found))
}

/// The characters that are trimmed: blanks, unless others are said.
fn trimmed(arguments: &[Datum<'_>]) -> Vec<char> {
    if arguments.len() > 1 { text_of(arguments, 1).chars().collect() } else { vec![' '] }
}

fn trim<'a>(arguments: Args<'_, 'a>, front: bool, back: bool) -> Datum<'a> {
    let chars = trimmed(arguments);
    let text = text_of(arguments, 0);
    let start = if front { text.len() - text.trim_start_matches(chars.as_slice()).len() } else { 0 };
    let end = if back { text.trim_end_matches(chars.as_slice()).len() } else { text.len() };
    take(arguments, 0).cut(start..end.max(start))
}

pub(super) fn btrim<'a>(_: &Function, arguments: Args<'_, 'a>) -> SqlResult<Datum<'a>> {
    Ok(trim(arguments, true, true))
}

pub(super) fn ltrim<'a>(_: &Function, arguments: Args<'_, 'a>) -> SqlResult<Datum<'a>> {
    Ok(trim(arguments, true, false))
}

pub(super) fn rtrim<'a>(_: &Function, arguments: Args<'_, 'a>) -> SqlResult<Datum<'a>> {
    Ok(trim(arguments, false, true))
}

/// Characters from the front: `n`, or all but the last `-n`.
fn from_front(text: &str, n: i64) -> usize {
    let n = if n < 0 { count(text).saturating_add(n).max(0) } else { n };
    offset(text, usize::try_from(n).unwrap_or(usize::MAX))
}

pub(super) fn left<'a>(_: &Function, arguments: Args<'_, 'a>) -> SqlResult<Datum<'a>> {
    let end = from_front(text_of(arguments, 0), int(arguments, 1));
    Ok(take(arguments, 0).cut(0..end))
}

pub(super) fn right<'a>(_: &Function, arguments: Args<'_, 'a>) -> SqlResult<Datum<'a>> {
    let (text, n) = (text_of(arguments, 0), int(arguments, 1));
    let skipped = if n < 0 { n.saturating_neg() } else { (count(text) - n).max(0) };
    let (start, end) = (from_front(text, skipped), text.len());
    Ok(take(arguments, 0).cut(start..end))
}

fn pad<'a>(arguments: Args<'_, 'a>, front: bool) -> SqlResult<Datum<'a>> {
    let text = text_of(arguments, 0);
    let wanted = usize::try_from(int(arguments, 1).max(0)).unwrap_or(usize::MAX);
    let fill = if arguments.len() > 2 { text_of(arguments, 2) } else { " " };
    let has = text.chars().count();
    if has >= wanted || fill.is_empty() {
        let end = offset(text, wanted);
        return Ok(take(arguments, 0).cut(0..end));
    }
    check_length(wanted)?;
    let padding: String = fill.chars().cycle().take(wanted - has).collect();
    check_length(padding.len() + text.len())?;
    Ok(Datum::from_text(if front { format!("{padding}{text}") } else { format!("{text}{padding}") }))
}

pub(super) fn lpad<'a>(_: &Function, arguments: Args<'_, 'a>) -> SqlResult<Datum<'a>> {
    pad(arguments, true)
}

pub(super) fn rpad<'a>(_: &Function, arguments: Args<'_, 'a>) -> SqlResult<Datum<'a>> {
    pad(arguments, false)
}

pub(super) fn repeat<'a>(_: &Function, arguments: Args<'_, 'a>) -> SqlResult<Datum<'a>> {
    let text = text_of(arguments, 0);
    let times = usize::try_from(int(arguments, 1).max(0)).unwrap_or(usize::MAX);
    check_length(text.len().saturating_mul(times))?;
    Ok(Datum::from_text(text.repeat(times)))
}

pub(super) fn replace<'a>(_: &Function, arguments: Args<'_, 'a>) -> SqlResult<Datum<'a>> {
    let (text, from, to) = (text_of(arguments, 0), text_of(arguments, 1), text_of(arguments, 2));
    if from.is_empty() || !text.contains(from) {
        return Ok(take(arguments, 0));
    }
    let found = text.matches(from).count();
    check_length((text.len() - found * from.len()).saturating_add(found.saturating_mul(to.len())))?;
    Ok(Datum::from_text(text.replace(from, to)))
}

/// Each character of one text becomes that at its place in another, or nothing.
pub(super) fn translate<'a>(_: &Function, arguments: Args<'_, 'a>) -> SqlResult<Datum<'a>> {
    let (text, from, to) = (text_of(arguments, 0), text_of(arguments, 1), text_of(arguments, 2));
    let mut becomes = std::collections::HashMap::new();
    let mut to = to.chars();
    for c in from.chars() {
        let next = to.next();
        becomes.entry(c).or_insert(next);
    }
    made(text.chars().filter_map(|c| becomes.get(&c).copied().unwrap_or(Some(c))).collect())
}

pub(super) fn reverse<'a>(_: &Function, arguments: Args<'_, 'a>) -> SqlResult<Datum<'a>> {
    made(text_of(arguments, 0).chars().rev().collect())
}

/// split_part(text, delimiter, n): the n-th part from 1, or from the end for n below 0.
pub(super) fn split_part<'a>(_: &Function, arguments: Args<'_, 'a>) -> SqlResult<Datum<'a>> {
    let (text, delimiter, n) = (text_of(arguments, 0), text_of(arguments, 1), int(arguments, 2));
    if n == 0 {
        return Err(SqlError::new("22023", "field position must not be zero"));
    }
    let nth = usize::try_from(n.unsigned_abs() - 1).unwrap_or(usize::MAX);
    let part = match (delimiter.is_empty(), n > 0) {
        (true, _) => (nth == 0).then_some(text),
        (false, true) => text.split(delimiter).nth(nth),
        (false, false) => {
            let parts = text.split(delimiter).count();
            parts.checked_sub(nth.saturating_add(1)).and_then(|at| text.split(delimiter).nth(at))
        }
    };
    made(part.unwrap_or_default().to_owned())
}

pub(super) fn starts_with<'a>(_: &Function, arguments: Args<'_, 'a>) -> SqlResult<Datum<'a>> {
    Ok(Datum::boolean(Some(text_of(arguments, 0).starts_with(text_of(arguments, 1)))))
}

pub(super) fn ascii<'a>(_: &Function, arguments: Args<'_, 'a>) -> SqlResult<Datum<'a>> {
    Ok(Datum::from_int(text_of(arguments, 0).chars().next().map_or(0, |c| i64::from(u32::from(c)))))
}

pub(super) fn chr<'a>(_: &Function, arguments: Args<'_, 'a>) -> SqlResult<Datum<'a>> {
    let code = int(arguments, 0);
    if code == 0 {
        return Err(SqlError::new("54000", "null character not permitted"));
    }
    let c = u32::try_from(code).ok().and_then(char::from_u32);
    let c = c.ok_or_else(|| SqlError::new("54000", format!("requested character not valid for encoding: {code}")))?;
    Ok(Datum::from_text(c.to_string()))
}

/// Hexadecimal digits, of negative numbers those of two's complement.
pub(super) fn to_hex<'a>(_: &Function, arguments: Args<'_, 'a>) -> SqlResult<Datum<'a>> {
    Ok(Datum::from_text(format!("{:x}", int(arguments, 0) as i32)))
}

/// As [`to_hex`], of BIGINT.
pub(super) fn to_hex_of_bigint<'a>(_: &Function, arguments: Args<'_, 'a>) -> SqlResult<Datum<'a>> {
    Ok(Datum::from_text(format!("{:x}", int(arguments, 0))))
}

/// concat(...): NULLs are nothing.
pub(super) fn concat<'a>(_: &Function, arguments: Args<'_, 'a>) -> SqlResult<Datum<'a>> {
    join(arguments, "")
}

/// concat_ws(separator, ...)
pub(super) fn concat_ws<'a>(_: &Function, arguments: Args<'_, 'a>) -> SqlResult<Datum<'a>> {
    match arguments.split_first() {
        Some((separator, rest)) if !separator.is_null() => join(rest, separator.text()),
        _ => Ok(Datum::NULL),
    }
}

fn join<'a>(parts: &[Datum<'_>], separator: &str) -> SqlResult<Datum<'a>> {
    let mut all = String::new();
    for (at, part) in parts.iter().filter(|part| !part.is_null()).enumerate() {
        if at > 0 {
            all.push_str(separator);
        }
        all.push_str(part.text());
        check_length(all.len())?;
    }
    Ok(Datum::from_text(all))
}
