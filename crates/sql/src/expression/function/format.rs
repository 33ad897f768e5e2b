//! Texts put together: `format`, `quote_ident`, `quote_literal`, `quote_nullable`, `overlay`.

use super::internal::check_length;
use super::{Function, int, text_of};
use crate::expression::datum::Datum;
use crate::parse::quoted_part;
use crate::{SqlError, SqlResult};

type Args<'x, 'a> = &'x mut [Datum<'a>];

/// As a literal reads it: with `E` where there is a backslash.
fn literal(text: &str) -> String {
    let prefix = if text.contains('\\') { "E" } else { "" };
    format!("{prefix}'{}'", text.replace('\'', "''").replace('\\', "\\\\"))
}

pub(super) fn quote_ident<'a>(_: &Function, arguments: Args<'_, 'a>) -> SqlResult<Datum<'a>> {
    made(quoted_part(text_of(arguments, 0)))
}

pub(super) fn quote_literal<'a>(_: &Function, arguments: Args<'_, 'a>) -> SqlResult<Datum<'a>> {
    made(literal(text_of(arguments, 0)))
}

pub(super) fn quote_nullable<'a>(_: &Function, arguments: Args<'_, 'a>) -> SqlResult<Datum<'a>> {
    match arguments.first().is_none_or(Datum::is_null) {
        true => made("NULL".to_owned()),
        false => made(literal(text_of(arguments, 0))),
    }
}

fn made<'a>(text: String) -> SqlResult<Datum<'a>> {
    check_length(text.len())?;
    Ok(Datum::from_text(text))
}

/// overlay(text PLACING other FROM start [FOR count])
pub(super) fn overlay<'a>(_: &Function, arguments: Args<'_, 'a>) -> SqlResult<Datum<'a>> {
    let (text, other, from) = (text_of(arguments, 0), text_of(arguments, 1), int(arguments, 2));
    if from < 1 {
        return Err(SqlError::new("22011", "negative substring length not allowed"));
    }
    let count = if arguments.len() > 3 { int(arguments, 3) } else { i64::try_from(other.chars().count()).unwrap_or(i64::MAX) };
    let offset = |chars: i64| {
        let chars = usize::try_from(chars.max(0)).unwrap_or(usize::MAX);
        text.char_indices().nth(chars).map_or(text.len(), |(at, _)| at)
    };
    let (head, tail) = (offset(from - 1), offset((from - 1).saturating_add(count)));
    made([&text[..head], other, &text[tail..]].concat())
}

/// A place of a format: `%[number$][-][width]type`.
#[derive(Debug, Default)]
struct Place {
    /// From 1; `None`: the next.
    number: Option<usize>,
    to_left: bool,
    width: Width,
}

#[derive(Debug, Default)]
enum Width {
    #[default]
    None,
    Of(i64),
    /// That of an argument, from 1; the next.
    Argument(Option<usize>),
}

fn digits(text: &str) -> (Option<usize>, &str) {
    let count = text.bytes().take_while(u8::is_ascii_digit).count();
    (text[..count].parse().ok(), &text[count..])
}

impl Place {
    /// And what stands behind it.
    fn read(text: &str) -> (Place, &str) {
        let mut place = Place::default();
        let mut rest = text;
        if let (Some(number), behind) = digits(text)
            && let Some(behind) = behind.strip_prefix('$')
        {
            (place.number, rest) = (Some(number), behind);
        }
        while let Some(behind) = rest.strip_prefix('-') {
            (place.to_left, rest) = (true, behind);
        }
        if let Some(behind) = rest.strip_prefix('*') {
            let (number, after) = digits(behind);
            (place.width, rest) = match (number, after.strip_prefix('$')) {
                (Some(number), Some(after)) => (Width::Argument(Some(number)), after),
                _ => (Width::Argument(None), behind),
            };
        } else if let (Some(width), behind) = digits(rest) {
            (place.width, rest) = (Width::Of(i64::try_from(width).unwrap_or(i64::MAX)), behind);
        }
        (place, rest)
    }
}

/// format(text, ...), of texts: `%s` is one, `%I` a name, `%L` a literal, `%%` a sign.
pub(super) fn format<'a>(_: &Function, arguments: Args<'_, 'a>) -> SqlResult<Datum<'a>> {
    if arguments.first().is_none_or(Datum::is_null) {
        return Ok(Datum::NULL);
    }
    let wrong = |why: String| SqlError::new("22023", why);
    let (mut out, mut rest, mut next) = (String::new(), text_of(arguments, 0), 1);
    let argument = |number: Option<usize>, next: &mut usize| -> SqlResult<usize> {
        if number == Some(0) {
            return Err(wrong("format specifies argument 0, but arguments are numbered from 1".into()));
        }
        let at = number.unwrap_or(*next);
        *next = at + 1;
        if at < arguments.len() { Ok(at) } else { Err(wrong("too few arguments for format()".into())) }
    };
    while let Some(at) = rest.find('%') {
        out.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        if let Some(behind) = rest.strip_prefix('%') {
            out.push('%');
            rest = behind;
            continue;
        }
        let (place, behind) = Place::read(rest);
        let Some(kind) = behind.chars().next() else { return Err(wrong("unterminated format() type specifier".into())) };
        if !matches!(kind, 's' | 'I' | 'L') {
            return Err(wrong(format!("unrecognized format() type specifier \"{kind}\"")).with_hint("For a single \"%\" use \"%%\"."));
        }
        rest = &behind[1..];
        let width = match place.width {
            Width::None => 0,
            Width::Of(width) => width,
            Width::Argument(number) => {
                let at = argument(number, &mut next)?;
                let text = text_of(arguments, at);
                if arguments[at].is_null() {
                    0
                } else {
                    text.trim().parse().map_err(|_| wrong(format!("a width that is no number: \"{text}\"")))?
                }
            }
        };
        let at = argument(place.number, &mut next)?;
        let text = match (kind, arguments[at].is_null()) {
            ('I', true) => return Err(SqlError::new("22004", "null values cannot be formatted as an SQL identifier")),
            ('L', true) => "NULL".to_owned(),
            (_, true) => String::new(),
            ('I', _) => quoted_part(text_of(arguments, at)),
            ('L', _) => literal(text_of(arguments, at)),
            _ => text_of(arguments, at).to_owned(),
        };
        let wide = usize::try_from(width.unsigned_abs()).unwrap_or(usize::MAX);
        let missing = wide.saturating_sub(text.chars().count());
        check_length(out.len().saturating_add(text.len()).saturating_add(missing))?;
        let blanks = " ".repeat(missing);
        match place.to_left || width < 0 {
            true => out.extend([text, blanks]),
            false => out.extend([blanks, text]),
        }
    }
    out.push_str(rest);
    made(out)
}
