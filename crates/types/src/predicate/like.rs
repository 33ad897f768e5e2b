//! LIKE patterns.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Piece {
    Char(char),
    /// `_`
    One,
    /// `%`
    Any,
}

/// A LIKE pattern, with what a text must begin with.
#[derive(Clone, Debug)]
pub(super) struct Pattern {
    pieces: Vec<Piece>,
    prefix: String,
}

impl Pattern {
    pub(super) fn new(text: &str) -> Pattern {
        let mut pieces = Vec::new();
        let mut chars = text.chars();
        while let Some(c) = chars.next() {
            let piece = match c {
                '%' => Piece::Any,
                '_' => Piece::One,
                '\\' => Piece::Char(chars.next().unwrap_or('\\')),
                other => Piece::Char(other),
            };
            // Several % are one: it keeps matching fast.
            if piece != Piece::Any || pieces.last() != Some(&Piece::Any) {
                pieces.push(piece);
            }
        }
        let prefix = pieces.iter().map_while(|p| if let Piece::Char(c) = p { Some(*c) } else { None }).collect();
        Pattern { pieces, prefix }
    }

    /// What every text that matches begins with.
    pub(super) fn prefix(&self) -> &str {
        &self.prefix
    }

    /// Steps: at most length of text times length of pattern. Only the last `%` is ever taken up again, as earlier ones have matched as early as possible.
    pub(super) fn matches(&self, text: &str) -> bool {
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
            let compiled = Pattern::new(&pattern);
            for text in &texts {
                let chars: Vec<char> = text.chars().collect();
                assert_eq!(compiled.matches(text), slow(&compiled.pieces, &chars), "{text} like {pattern}");
            }
        }
        assert!(Pattern::new(r"100\%").matches("100%") && !Pattern::new(r"100\%").matches("1000"));
        assert_eq!(Pattern::new(r"a\_b%c").prefix(), "a_b");
    }
}
