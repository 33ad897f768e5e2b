//! The text of an interval in its words, as PostgreSQL takes texts of times apart.
//!
//! Blanks and other punctuation (`@`, commas) only divide. A sign belongs to the number behind it, blanks between them or not.

/// A part of the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Word<'t> {
    /// Begins with a digit or point: `3`, `1.5`, `1-2`
    Number(&'t str),
    /// `01:02:03`
    Time(&'t str),
    /// A sign, and a number or time without it.
    Signed { negative: bool, rest: &'t str },
    /// Letters.
    Name(&'t str),
}

/// Cuts off the beginning of which all bytes are such.
fn take<'t>(text: &mut &'t str, is_such: impl Fn(u8) -> bool) -> &'t str {
    let end = text.bytes().position(|byte| !is_such(byte)).unwrap_or(text.len());
    // What is cut off is ASCII, so both are text.
    let (taken, rest) = text.split_at_checked(end).unwrap_or((text, ""));
    *text = rest;
    taken
}

/// The beginning of `whole` up to where `rest` begins.
fn before<'t>(whole: &'t str, rest: &str) -> &'t str {
    whole.get(..whole.len().saturating_sub(rest.len())).unwrap_or(whole)
}

/// The next word. `None` at the end, `Err` for what is none.
pub(super) fn next<'t>(text: &mut &'t str) -> Result<Option<Word<'t>>, ()> {
    loop {
        let whole = *text;
        let Some(first) = whole.bytes().next() else { return Ok(None) };
        return Ok(Some(match first {
            b'0'..=b'9' => {
                take(text, |byte| byte.is_ascii_digit());
                match text.bytes().next() {
                    Some(b':') => {
                        take(text, |byte| byte.is_ascii_digit() || matches!(byte, b':' | b'.'));
                        return Ok(Some(Word::Time(before(whole, text))));
                    }
                    Some(b'.') => {
                        take(text, |byte| byte.is_ascii_digit() || byte == b'.');
                    }
                    Some(b'-' | b'/') => {
                        take(text, |byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'/' | b'.'));
                    }
                    _ => {}
                }
                Word::Number(before(whole, text))
            }
            b'.' => {
                *text = &whole[1..];
                take(text, |byte| byte.is_ascii_digit());
                Word::Number(before(whole, text))
            }
            b'a'..=b'z' | b'A'..=b'Z' => Word::Name(take(text, |byte| byte.is_ascii_alphabetic())),
            b'+' | b'-' => {
                let mut rest = whole[1..].trim_start();
                let number = take(&mut rest, |byte| byte.is_ascii_digit() || matches!(byte, b':' | b'.' | b'-'));
                *text = rest;
                if !number.starts_with(|c: char| c.is_ascii_digit() || c == '.') {
                    return Err(());
                }
                Word::Signed { negative: first == b'-', rest: number }
            }
            other if other.is_ascii_whitespace() || other.is_ascii_punctuation() => {
                *text = &whole[1..];
                continue;
            }
            _ => return Err(()),
        }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_texts() {
        let all = |mut text: &'static str| {
            let mut words = Vec::new();
            while let Some(word) = next(&mut text).unwrap() {
                words.push(word);
            }
            words
        };
        assert_eq!(all("@ 1 day, 02:03:04.5 ago"), [Word::Number("1"), Word::Name("day"), Word::Time("02:03:04.5"), Word::Name("ago"),]);
        assert_eq!(
            all("-1-2 + 3y.5"),
            [
                Word::Signed { negative: true, rest: "1-2" },
                Word::Signed { negative: false, rest: "3" },
                Word::Name("y"),
                Word::Number(".5"),
            ]
        );
        assert_eq!(all(" "), []);
        for wrong in ["- x", "1 ä", "+", "\u{7f}"] {
            let mut text = wrong;
            assert!(std::iter::from_fn(|| next(&mut text).transpose()).any(|word| word.is_err()), "{wrong}");
        }
    }
}
