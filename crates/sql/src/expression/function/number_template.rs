//! Numbers by a template: `to_char` (PostgreSQL's patterns).
//!
//! | Pattern | Is |
//! |---|---|
//! | `9`, `0` | a digit; of leading zeros those from the first `0` on are written, others are blanks |
//! | `.`, `D`; `,`, `G` | the point; a comma between digits |
//! | `S`; `MI`; `PL`; `SG`; `PR` | the sign beside the number; `-`; `+`; either; `<` and `>` around a negative number |
//! | `V` | shifts the point by the digits behind it |
//! | `EEEE`; `RN` | scientific notation; Roman numerals |
//! | `TH`, `th` | the ending of an ordinal number |
//! | `FM` | without blanks and trailing zeros |
//! | `L` | the sign of a currency: there is none |
//!
//! A sign that has no place of its own stands before the first digit. A number with more digits than there are places for is written as `#`.

use super::internal::check_length;
use super::{Apply, hidden};
use super::{Function, double, immutable, take, text_of};
use crate::expression::datum::Datum;
use crate::expression::{ParamTypes, Typed, decimal, make, types};
use crate::{SqlError, SqlResult};
use pagefold_types::{DataType, ValueRef};

type Args<'x, 'a> = &'x mut [Datum<'a>];

/// A piece of a template.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Piece {
    Nine,
    Zero,
    Point,
    Comma,
    Sign,
    Minus,
    Plus,
    Either,
    Ordinal { upper: bool },
    Text(String),
}

#[derive(Clone, Debug, Default)]
struct Template {
    pieces: Vec<Piece>,
    /// Places before the point, behind it, and behind `V`.
    before: usize,
    behind: usize,
    shift: usize,
    /// Without blanks.
    tight: bool,
    in_brackets: bool,
    scientific: bool,
    /// In small letters or not.
    roman: Option<bool>,
}

fn unusable(why: &str) -> SqlError {
    SqlError::syntax(why)
}

impl Template {
    fn read(text: &str) -> SqlResult<Template> {
        let mut template = Template::default();
        let (mut rest, mut has_point, mut is_shifted) = (text, false, false);
        while let Some(c) = rest.chars().next() {
            let begins = |name: &str| rest.get(..name.len()).is_some_and(|head| head.eq_ignore_ascii_case(name));
            let (piece, length) = match c.to_ascii_uppercase() {
                '9' | '0' => {
                    match (has_point, is_shifted) {
                        (_, true) => (template.shift, template.before) = (template.shift + 1, template.before + 1),
                        (true, _) => template.behind += 1,
                        _ => template.before += 1,
                    }
                    (Some(if c == '9' { Piece::Nine } else { Piece::Zero }), 1)
                }
                '.' | 'D' if has_point => return Err(unusable("multiple decimal points")),
                '.' | 'D' if is_shifted => return Err(unusable("cannot use \"V\" and decimal point together")),
                '.' | 'D' => {
                    has_point = true;
                    (Some(Piece::Point), 1)
                }
                ',' | 'G' => (Some(Piece::Comma), 1),
                'V' if has_point => return Err(unusable("cannot use \"V\" and decimal point together")),
                'V' => {
                    is_shifted = true;
                    (None, 1)
                }
                _ if begins("FM") => {
                    template.tight = true;
                    (None, 2)
                }
                _ if begins("MI") => (Some(Piece::Minus), 2),
                _ if begins("PL") => (Some(Piece::Plus), 2),
                _ if begins("SG") => (Some(Piece::Either), 2),
                _ if begins("PR") => {
                    template.in_brackets = true;
                    (None, 2)
                }
                _ if begins("RN") => {
                    template.roman = Some(c == 'r');
                    (None, 2)
                }
                _ if begins("TH") => (Some(Piece::Ordinal { upper: c == 'T' }), 2),
                _ if begins("EEEE") => {
                    template.scientific = true;
                    (None, 4)
                }
                'S' if template.pieces.contains(&Piece::Sign) => return Err(unusable("cannot use \"S\" twice")),
                'S' => (Some(Piece::Sign), 1),
                'L' => (Some(Piece::Text(" ".into())), 1),
                '"' => {
                    let quoted = rest[1..].split('"').next().unwrap_or_default();
                    (Some(Piece::Text(quoted.to_owned())), (quoted.len() + 2).min(rest.len()))
                }
                _ => (Some(Piece::Text(c.into())), c.len_utf8()),
            };
            template.pieces.extend(piece);
            rest = &rest[length..];
        }
        let has_sign = |piece: &Piece| matches!(piece, Piece::Sign | Piece::Minus | Piece::Plus | Piece::Either);
        if template.in_brackets && template.pieces.iter().any(has_sign) {
            return Err(unusable("cannot use \"S\"/\"PL\"/\"MI\"/\"SG\" and \"PR\" together"));
        }
        let others = template.pieces.iter().any(|piece| !matches!(piece, Piece::Nine | Piece::Zero | Piece::Point));
        if template.scientific && (others || template.tight || template.in_brackets || template.roman.is_some()) {
            return Err(unusable("\"EEEE\" is incompatible with other formats"));
        }
        Ok(template)
    }

    /// `digits` are those before the point, without zeros that nobody needs, and those behind it, as many as the template has.
    fn put(&self, is_negative: bool, digits: &str, fraction: &str) -> String {
        let wanted = self.before;
        let is_too_long = digits.len() > wanted;
        // A zero before the point is left out where nothing asks for one.
        let has_zero = self.pieces.iter().take_while(|piece| **piece != Piece::Point).any(|piece| *piece == Piece::Zero);
        let mut hides_zero = digits == "0" && self.behind > 0 && !has_zero;
        let own = if is_too_long { wanted } else { digits.len() };
        let has_place = self.pieces.iter().any(|piece| matches!(piece, Piece::Sign | Piece::Minus | Piece::Either));
        let own_sign = match (has_place || self.in_brackets, is_negative) {
            (false, true) => "-",
            (false, false) if self.tight => "",
            (false, false) => " ",
            (true, _) => "",
        };
        // Trailing zeros of nines go.
        let kept = if self.tight {
            let behind =
                self.pieces.iter().skip_while(|piece| **piece != Piece::Point).filter(|piece| matches!(piece, Piece::Nine | Piece::Zero));
            let last_zero = behind.zip(1..).filter(|(piece, _)| **piece == Piece::Zero).map(|(_, at)| at).last();
            fraction.trim_end_matches('0').len().max(last_zero.unwrap_or(0))
        } else {
            fraction.len()
        };
        // Something has to be left.
        hides_zero &= kept > 0;
        // A sign before the point stands behind the number where no digit does.
        let first_digit = self.pieces.iter().position(|piece| matches!(piece, Piece::Nine | Piece::Zero)).filter(|_| wanted > 0);
        let sign_first =
            self.pieces.iter().position(|piece| *piece == Piece::Sign).zip(first_digit).is_some_and(|(sign, digit)| sign < digit);
        let anchored = match (sign_first, self.in_brackets, is_negative) {
            (true, _, negative) => {
                if negative {
                    "-"
                } else {
                    "+"
                }
            }
            (_, true, true) => "<",
            (_, true, false) if self.tight => "",
            (_, true, false) => " ",
            _ => own_sign,
        };
        let (mut out, mut place, mut behind, mut has_begun) = (String::new(), 0, 0, false);
        let mut in_zeros = false;
        let begin = |out: &mut String, has_begun: &mut bool| {
            if !std::mem::replace(has_begun, true) {
                out.push_str(anchored);
            }
        };
        let (mut has_point, mut ends_with_sign) = (false, false);
        for piece in &self.pieces {
            match piece {
                Piece::Nine | Piece::Zero if has_point => {
                    if is_too_long {
                        out.push('#');
                    } else if behind < kept {
                        out.push_str(&fraction[behind..=behind]);
                    }
                    behind += 1;
                }
                Piece::Nine | Piece::Zero => {
                    in_zeros |= *piece == Piece::Zero;
                    let missing = wanted.saturating_sub(own);
                    if place >= missing && !(hides_zero && place + 1 == wanted) {
                        begin(&mut out, &mut has_begun);
                        out.push_str(if is_too_long { "#" } else { &digits[place - missing..=place - missing] });
                    } else if in_zeros {
                        begin(&mut out, &mut has_begun);
                        out.push('0');
                    } else if !self.tight {
                        out.push(' ');
                    }
                    place += 1;
                }
                // Without digits behind it it is not written, where the number has its places.
                Piece::Point if self.behind > 0 || is_too_long => {
                    begin(&mut out, &mut has_begun);
                    has_point = true;
                    out.push('.');
                }
                Piece::Point => has_point = true,
                Piece::Comma if has_begun || in_zeros => out.push(','),
                Piece::Comma if self.tight => {}
                Piece::Comma => out.push(' '),
                Piece::Sign if sign_first => {}
                Piece::Sign if wanted == 0 && !has_point => ends_with_sign = true,
                Piece::Sign | Piece::Either => out.push(if is_negative { '-' } else { '+' }),
                Piece::Minus if is_negative => out.push('-'),
                Piece::Plus if !is_negative => out.push('+'),
                Piece::Minus | Piece::Plus if self.tight => {}
                Piece::Minus | Piece::Plus => out.push(' '),
                Piece::Ordinal { upper } if !is_negative && !has_point && !is_too_long => {
                    let ending = super::template::ordinal_ending(digits.parse().unwrap_or(0));
                    out.push_str(&if *upper { ending.to_uppercase() } else { ending.to_owned() });
                }
                Piece::Ordinal { .. } => {}
                Piece::Text(text) => out.push_str(text),
            }
        }
        if ends_with_sign {
            out.push(if is_negative { '-' } else { '+' });
        }
        match (self.in_brackets, is_negative, self.tight) {
            (true, true, _) => out.push('>'),
            (true, false, false) => out.push(' '),
            _ => {}
        }
        out
    }

    fn roman(&self, number: Option<u32>, small: bool) -> String {
        const ONES: [(u32, &str); 13] = [
            (1000, "M"),
            (900, "CM"),
            (500, "D"),
            (400, "CD"),
            (100, "C"),
            (90, "XC"),
            (50, "L"),
            (40, "XL"),
            (10, "X"),
            (9, "IX"),
            (5, "V"),
            (4, "IV"),
            (1, "I"),
        ];
        let Some(mut number) = number.filter(|number| (1..4000).contains(number)) else { return "#".repeat(15) };
        let mut out = String::new();
        for (value, letters) in ONES {
            while number >= value {
                out.push_str(letters);
                number -= value;
            }
        }
        let out = if small { out.to_lowercase() } else { out };
        if self.tight { out } else { format!("{out:>15}") }
    }
}

/// Sign, digits before the point and behind it, of a number rounded to so many places; of one shifted by `shift` places.
fn parts(number: &Datum<'_>, scale: i8, behind: usize, shift: usize) -> SqlResult<(bool, String, String)> {
    let (places, shift) = (behind.min(60), i8::try_from(shift.min(60)).unwrap_or(60));
    let (is_negative, digits) = match number.as_ref() {
        ValueRef::Decimal(value) => {
            let to = i8::try_from(places).unwrap_or(37).clamp(0, 37);
            // A value of more digits has them all behind the point.
            let shifted = decimal::rescale(value, scale.saturating_sub(shift), to)?;
            (
                shifted < 0,
                format!("{:0width$}", shifted.unsigned_abs(), width = usize::from(to.unsigned_abs()) + 1)
                    + &"0".repeat(places - usize::from(to.unsigned_abs())),
            )
        }
        _ => {
            let value = number.double() * 10_f64.powi(shift.into());
            let text = format!("{:.places$}", value.abs());
            (value < 0.0, text.replace('.', ""))
        }
    };
    let (whole, fraction) = digits.split_at(digits.len() - places);
    Ok((is_negative, whole.to_owned(), fraction.to_owned() + &"0".repeat(behind - places)))
}

/// to_char(number, template)
pub(super) fn to_char(of: Typed, template: Typed, params: &ParamTypes) -> SqlResult<Typed> {
    let of = of.known(params);
    let (of, scale) = match of.data_type {
        Some(DataType::Real | DataType::Double) | None => (make::cast(of, DataType::Double, params)?, 0),
        Some(data_type) => match types::as_decimal(&data_type) {
            Some((precision, scale)) => (make::cast(of, types::decimal_of(precision, scale), params)?, scale),
            None => return Err(SqlError::types(format!("to_char of {}", types::name(&data_type)))),
        },
    };
    let template = make::coerce(template, &types::TEXT, params)?;
    let arguments = vec![of.expr, template.expr, hidden(i64::from(scale))];
    Ok(immutable("to_char", Apply::Strict(written), arguments, types::TEXT))
}

/// The digits of a number, one of them before the point, and its power of ten; rounded half away from zero.
fn scientific(value: i128, scale: i8, behind: usize) -> (String, i32) {
    let sign = if value < 0 { "-" } else { "" };
    let digits = value.unsigned_abs().to_string();
    let mut exponent = if value == 0 { 0 } else { digits.len() as i32 - 1 - i32::from(scale) };
    let mut kept: Vec<u8> = digits.bytes().chain(std::iter::repeat(b'0')).take(behind + 1).collect();
    if digits.as_bytes().get(behind + 1).is_some_and(|next| *next >= b'5') {
        let nines = kept.iter().rev().take_while(|digit| **digit == b'9').count();
        let from = kept.len() - nines;
        kept[from..].fill(b'0');
        match from.checked_sub(1) {
            Some(last) => kept[last] += 1,
            None => {
                kept[0] = b'1';
                exponent += 1;
            }
        }
    }
    let (first, rest): (char, String) = (char::from(kept[0]), kept[1..].iter().map(|digit| char::from(*digit)).collect());
    (if rest.is_empty() { format!("{sign}{first}") } else { format!("{sign}{first}.{rest}") }, exponent)
}

fn written<'a>(_: &Function, arguments: Args<'_, 'a>) -> SqlResult<Datum<'a>> {
    let template = Template::read(text_of(arguments, 1))?;
    let scale = i8::try_from(super::int(arguments, 2)).unwrap_or(0);
    let is_infinite = matches!(arguments.first().map(Datum::as_ref), Some(ValueRef::Double(value)) if !value.is_finite());
    let number = take(arguments, 0);
    let text = if template.scientific {
        let (mantissa, exponent) = match number.as_ref() {
            ValueRef::Decimal(value) => scientific(value, scale, template.behind.min(60)),
            _ => {
                let text = format!("{:.*e}", template.behind.min(60), number.double());
                let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
                (mantissa.to_owned(), exponent.parse().unwrap_or(0))
            }
        };
        let sign = if mantissa.starts_with('-') { "" } else { " " };
        format!("{sign}{mantissa}e{}{:02}", if exponent < 0 { '-' } else { '+' }, exponent.abs())
    } else if let Some(small) = template.roman {
        let (is_negative, whole, _) = parts(&number, scale, 0, 0)?;
        template.roman(whole.parse().ok().filter(|_| !is_negative), small)
    } else if is_infinite {
        template.put(double(&[number], 0) < 0.0, &"9".repeat(template.before + 2), &"9".repeat(template.behind))
    } else {
        let (is_negative, whole, fraction) = parts(&number, scale, template.behind, template.shift)?;
        template.put(is_negative, &whole, &fraction)
    };
    check_length(text.len())?;
    Ok(Datum::from_text(text))
}
