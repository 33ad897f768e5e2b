//! Bytes as texts, texts as bytes, and digests: `encode`, `decode`, `md5`, `sha256` and their like.

use super::internal::check_length;
use super::{Function, text_of};
use crate::expression::datum::Datum;
use crate::{SqlError, SqlResult};
use md5::Md5;
use pagefold_types::{Value, ValueRef};
use sha2::{Digest, Sha224, Sha256, Sha384, Sha512};

type Args<'x, 'a> = &'x mut [Datum<'a>];

/// So many letters has a line of base64.
const LINE: usize = 76;
const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

enum Encoding {
    Hex,
    Base64,
    Escape,
}

fn encoding(name: &str) -> SqlResult<Encoding> {
    match name.to_ascii_lowercase().as_str() {
        "hex" => Ok(Encoding::Hex),
        "base64" => Ok(Encoding::Base64),
        "escape" => Ok(Encoding::Escape),
        _ => Err(SqlError::new("22023", format!("unrecognized encoding: \"{}\"", crate::expression::read::shown(name)))),
    }
}

/// The bytes of an argument, those of a text too.
fn bytes_of<'d>(arguments: &'d [Datum<'_>]) -> &'d [u8] {
    match arguments.first().map_or(ValueRef::Null, Datum::as_ref) {
        ValueRef::Bytes(bytes) => bytes,
        ValueRef::Text(text) => text.as_bytes(),
        _ => &[],
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]).filter_map(|digit| char::from_digit(digit.into(), 16)).collect()
}

/// encode(bytes, format)
pub(super) fn encode<'a>(_: &Function, arguments: Args<'_, 'a>) -> SqlResult<Datum<'a>> {
    let bytes = bytes_of(arguments);
    check_length(bytes.len().saturating_mul(4))?;
    Ok(Datum::from_text(match encoding(text_of(arguments, 1))? {
        Encoding::Hex => hex(bytes),
        Encoding::Base64 => base64(bytes),
        Encoding::Escape => {
            let written = bytes.iter().map(|byte| match byte {
                b'\\' => "\\\\".to_owned(),
                0 | 128.. => format!("\\{byte:03o}"),
                byte => char::from(*byte).to_string(),
            });
            written.collect()
        }
    }))
}

fn base64(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() / 3 * 4 + 4);
    for (at, three) in bytes.chunks(3).enumerate() {
        if at > 0 && (at * 4).is_multiple_of(LINE) {
            text.push('\n');
        }
        let bits = (0..3).fold(0, |bits, at| bits << 8 | usize::from(three.get(at).copied().unwrap_or(0)));
        for letter in 0..4 {
            text.push(if letter <= three.len() { char::from(LETTERS[bits >> (18 - 6 * letter) & 63]) } else { '=' });
        }
    }
    text
}

/// decode(text, format)
pub(super) fn decode<'a>(_: &Function, arguments: Args<'_, 'a>) -> SqlResult<Datum<'a>> {
    let text = text_of(arguments, 0);
    let bytes = match encoding(text_of(arguments, 1))? {
        Encoding::Hex => from_hex(text)?,
        Encoding::Base64 => from_base64(text)?,
        Encoding::Escape => from_escape(text).ok_or_else(|| SqlError::new("22P02", "invalid input syntax for type bytea"))?,
    };
    Ok(Datum::Own(Value::Bytes(bytes)))
}

fn from_hex(text: &str) -> SqlResult<Vec<u8>> {
    let mut digits = Vec::with_capacity(text.len());
    for c in text.chars().filter(|c| !matches!(c, ' ' | '\n' | '\t' | '\r')) {
        let digit = c.to_digit(16).ok_or_else(|| SqlError::new("22023", format!("invalid hexadecimal digit: \"{c}\"")))?;
        digits.push(digit as u8);
    }
    match digits.len().is_multiple_of(2) {
        true => Ok(digits.chunks_exact(2).map(|two| two[0] << 4 | two[1]).collect()),
        false => Err(SqlError::new("22023", "invalid hexadecimal data: odd number of digits")),
    }
}

fn from_base64(text: &str) -> SqlResult<Vec<u8>> {
    let wrong = |what: String| SqlError::new("22023", what);
    let end =
        || wrong("invalid base64 end sequence".into()).with_hint("Input data is missing padding, is truncated, or is otherwise corrupted.");
    let (mut bytes, mut bits, mut letters, mut filled) = (Vec::with_capacity(text.len() / 4 * 3), 0_u32, 0, 0);
    for c in text.chars().filter(|c| !matches!(c, ' ' | '\n' | '\t' | '\r')) {
        let value = match c {
            '=' if letters >= 2 && letters + filled < 4 => {
                filled += 1;
                if letters + filled == 4 {
                    bits <<= 6 * filled;
                    bytes.extend(&bits.to_be_bytes()[1..4 - filled]);
                    (bits, letters) = (0, 0);
                }
                continue;
            }
            '=' => return Err(wrong("unexpected \"=\" while decoding base64 sequence".into())),
            c => LETTERS.iter().position(|letter| char::from(*letter) == c),
        };
        let Some(value) = value.filter(|_| filled == 0) else {
            return Err(wrong(format!("invalid symbol \"{c}\" found while decoding base64 sequence")));
        };
        bits = bits << 6 | value as u32;
        letters += 1;
        if letters == 4 {
            bytes.extend(&bits.to_be_bytes()[1..]);
            (bits, letters) = (0, 0);
        }
    }
    if letters > 0 { Err(end()) } else { Ok(bytes) }
}

fn from_escape(text: &str) -> Option<Vec<u8>> {
    let (mut bytes, mut rest) = (Vec::with_capacity(text.len()), text.as_bytes());
    while let Some((first, behind)) = rest.split_first() {
        rest = match (first, behind) {
            (b'\\', [b'\\', behind @ ..]) => {
                bytes.push(b'\\');
                behind
            }
            (b'\\', [a @ b'0'..=b'3', b @ b'0'..=b'7', c @ b'0'..=b'7', behind @ ..]) => {
                bytes.push((a - b'0') << 6 | (b - b'0') << 3 | (c - b'0'));
                behind
            }
            (b'\\', _) => return None,
            (byte, behind) => {
                bytes.push(*byte);
                behind
            }
        };
    }
    Some(bytes)
}

/// md5(text or bytes): a text.
pub(super) fn md5<'a>(_: &Function, arguments: Args<'_, 'a>) -> SqlResult<Datum<'a>> {
    Ok(Datum::from_text(hex(&Md5::digest(bytes_of(arguments)))))
}

fn digest<'a, D: Digest>(arguments: Args<'_, 'a>) -> SqlResult<Datum<'a>> {
    Ok(Datum::Own(Value::Bytes(D::digest(bytes_of(arguments)).to_vec())))
}

pub(super) fn sha224<'a>(_: &Function, arguments: Args<'_, 'a>) -> SqlResult<Datum<'a>> {
    digest::<Sha224>(arguments)
}

pub(super) fn sha256<'a>(_: &Function, arguments: Args<'_, 'a>) -> SqlResult<Datum<'a>> {
    digest::<Sha256>(arguments)
}

pub(super) fn sha384<'a>(_: &Function, arguments: Args<'_, 'a>) -> SqlResult<Datum<'a>> {
    digest::<Sha384>(arguments)
}

pub(super) fn sha512<'a>(_: &Function, arguments: Args<'_, 'a>) -> SqlResult<Datum<'a>> {
    digest::<Sha512>(arguments)
}
