//! LIKE patterns.

use memchr::memmem::Finder;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Piece {
    Char(char),
    /// `_`
    One,
    /// `%`
    Any,
}

/// What of a pattern is fixed, for those that need no search step by step.
#[derive(Clone, Debug)]
enum Shape {
    /// `abc`
    Exact,
    /// `abc%`
    Prefix,
    /// `abc%def%ghi`: what comes between the ends, one behind the other, and the end.
    Parts { middle: Vec<Finder<'static>>, suffix: String },
    /// With `_` in it.
    Other,
}

impl Shape {
    fn of(pieces: &[Piece]) -> Shape {
        let parts = pieces.split(|piece| *piece == Piece::Any).map(fixed).collect::<Option<Vec<String>>>();
        match parts.as_deref() {
            None => Shape::Other,
            Some([_] | []) => Shape::Exact,
            Some([_, end]) if end.is_empty() => Shape::Prefix,
            Some([_, middle @ .., end]) => {
                let middle = middle.iter().map(|part| Finder::new(part).into_owned()).collect();
                Shape::Parts { middle, suffix: end.clone() }
            }
        }
    }
}

/// A LIKE pattern, with what a text must begin with.
#[derive(Clone, Debug)]
pub struct LikePattern {
    pieces: Vec<Piece>,
    prefix: String,
    shape: Shape,
}

fn fixed(pieces: &[Piece]) -> Option<String> {
    pieces.iter().map(|p| if let Piece::Char(c) = p { Some(*c) } else { None }).collect()
}

impl LikePattern {
    /// `None` when it ends with the character that takes the next one as it is.
    pub(super) fn new(text: &str, escape: Option<char>) -> Option<LikePattern> {
        let mut pieces = Vec::new();
        let mut chars = text.chars();
        while let Some(c) = chars.next() {
            let piece = match c {
                c if Some(c) == escape => Piece::Char(chars.next()?),
                '%' => Piece::Any,
                '_' => Piece::One,
                other => Piece::Char(other),
            };
            // Several % are one: it keeps matching fast.
            if piece != Piece::Any || pieces.last() != Some(&Piece::Any) {
                pieces.push(piece);
            }
        }
        let prefix = pieces.iter().map_while(|p| if let Piece::Char(c) = p { Some(*c) } else { None }).collect();
        let shape = Shape::of(&pieces);
        Some(LikePattern { pieces, prefix, shape })
    }

    /// Does every text match that begins with [`prefix`](Self::prefix)?
    #[must_use]
    pub fn is_prefix(&self) -> bool {
        matches!(self.shape, Shape::Prefix)
    }

    /// Does only [`prefix`](Self::prefix) itself match?
    #[must_use]
    pub fn is_exact(&self) -> bool {
        matches!(self.shape, Shape::Exact)
    }

    /// What every text that matches begins with.
    #[must_use]
    pub fn prefix(&self) -> &str {
        &self.prefix
    }

    /// Does a text match?
    ///
    /// Steps: at most length of text times length of pattern.
    #[must_use]
    pub fn matches(&self, text: &str) -> bool {
        match &self.shape {
            Shape::Exact => text == self.prefix,
            Shape::Prefix => text.starts_with(&self.prefix),
            Shape::Parts { middle, suffix } => self.has_parts(text, middle, suffix),
            Shape::Other => self.matches_step_by_step(text),
        }
    }

    /// Each part is taken where it comes first: what follows has the most room then.
    fn has_parts(&self, text: &str, middle: &[Finder<'_>], suffix: &str) -> bool {
        // Nothing is compared where there is nothing: comparing no bytes at the address of an empty text took 200 ns a row (masked loads that would fault).
        let mut rest = text.as_bytes();
        if !self.prefix.is_empty() {
            let Some(behind) = rest.strip_prefix(self.prefix.as_bytes()) else { return false };
            rest = behind;
        }
        if !suffix.is_empty() {
            let Some(before) = rest.strip_suffix(suffix.as_bytes()) else { return false };
            rest = before;
        }
        middle.iter().all(|part| match part.find(rest) {
            Some(at) => {
                rest = &rest[at + part.needle().len()..];
                true
            }
            None => false,
        })
    }

    /// Only the last `%` is ever taken up again, as earlier ones have matched as early as possible.
    fn matches_step_by_step(&self, text: &str) -> bool {
        let Some(rest) = text.strip_prefix(self.prefix.as_str()) else { return false };
        let pieces = &self.pieces[self.prefix.chars().count()..];
        let mut chars = rest.chars();
        let mut at = 0;
        let mut retry: Option<(usize, std::str::Chars<'_>)> = None;
        loop {
            if pieces.get(at) == Some(&Piece::Any) {
                at += 1;
                if at == pieces.len() {
                    return true;
                }
                retry = Some((at, chars.clone()));
                continue;
            }
            let next = chars.next();
            let fits = match (pieces.get(at), next) {
                (None, None) => return true,
                (Some(Piece::Char(a)), Some(b)) => *a == b,
                (Some(Piece::One), Some(_)) => true,
                _ => false,
            };
            if fits {
                at += 1;
                continue;
            }
            let Some((again, from)) = retry.as_mut() else { return false };
            if from.next().is_none() {
                return false;
            }
            (at, chars) = (*again, from.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By definition, recursively.
    fn slow(pieces: &[Piece], text: &[char]) -> bool {
        match (pieces, text) {
            ([], []) => true,
            ([Piece::Any, rest @ ..], _) => (0..=text.len()).any(|skip| slow(rest, &text[skip..])),
            ([Piece::One, rest @ ..], [_, tail @ ..]) => slow(rest, tail),
            ([Piece::Char(a), rest @ ..], [b, tail @ ..]) => a == b && slow(rest, tail),
            _ => false,
        }
    }

    #[test]
    fn all_short_patterns_on_all_short_texts() {
        let words = |alphabet: &[char], longest: u32| -> Vec<String> {
            let mut all = vec![String::new()];
            let mut from = 0;
            for _ in 0..longest {
                let to = all.len();
                for i in from..to {
                    all.extend(alphabet.iter().map(|c| format!("{}{c}", all[i].clone())).collect::<Vec<_>>());
                }
                from = to;
            }
            all
        };
        let texts = words(&['a', 'é'], 5);
        for pattern in words(&['a', 'é', '%', '_'], 5) {
            let compiled = LikePattern::new(&pattern, Some('\\')).unwrap();
            for text in &texts {
                let chars: Vec<char> = text.chars().collect();
                assert_eq!(compiled.matches(text), slow(&compiled.pieces, &chars), "{text} like {pattern}");
                assert_eq!(compiled.matches_step_by_step(text), compiled.matches(text), "{text} like {pattern}");
            }
        }
        let like = |pattern: &str, escape| LikePattern::new(pattern, escape);
        let matches = |pattern: &str, escape, text: &str| like(pattern, escape).unwrap().matches(text);
        assert!(matches(r"100\%", Some('\\'), "100%") && !matches(r"100\%", Some('\\'), "1000"));
        assert!(matches("100!%!!_", Some('!'), "100%!x") && matches(r"a\%", None, r"a\b"));
        assert!(matches("%%_", Some('%'), "%x") && !matches("%%_", Some('%'), "xy"));
        assert_eq!(like(r"a\_b%c", Some('\\')).unwrap().prefix(), "a_b");
        assert!(like(r"a\", Some('\\')).is_none() && like("a!", Some('!')).is_none());
    }
}
