//! Cuts a row into the tokens whose code words have the fewest bits together.
//!
//! A shortest path: from the end of the row to its beginning, the best token at each place is the one that, with the best that can follow it, takes
//! the fewest bits. Ties go to the longer token. Long rows are cut in windows; of a window's codes those that end well before its end
//! are kept, and the next window begins there.

use super::codes::{CODE_WORD_BITS_MAX, CodeWord};
use crate::row::codes::CODE_COUNT;
use crate::row::matcher::{Match, Matcher};
use crate::row::table::MAX_TOKEN_LEN;

/// Bytes looked at at once.
const WINDOW: usize = 512;

/// Codes that begin in the last bytes of a window, while there are more bytes behind it, are chosen again by the next.
const MARGIN: usize = 2 * MAX_TOKEN_LEN;

const _: () = assert!(WINDOW as u32 * CODE_WORD_BITS_MAX < u16::MAX as u32, "the bits of a window fit the type");
const _: () = assert!(MARGIN + MAX_TOKEN_LEN <= WINDOW, "a window gets further");

/// Calls `emit` with the token of each code of `row`, in order. Returns a number of tokens that no way to cut the row falls below.
#[inline]
pub(super) fn parse(matcher: &Matcher, words: &[CodeWord; CODE_COUNT], row: &[u8], mut emit: impl FnMut(u16)) -> usize {
    let mut rest = row;
    // Fewest bits from a place of the window to its end, and the token to take there.
    let mut fewest = [0_u16; WINDOW + 1];
    let mut chosen = [Match::NONE; WINDOW];
    // Fewest tokens.
    let mut least = [0_u16; WINDOW + 1];
    let mut least_of_all = 0;
    while !rest.is_empty() {
        let len = rest.len().min(WINDOW);
        let keep = if len < rest.len() { len - MARGIN } else { len };
        (fewest[len], least[len]) = (0, 0);
        for start in (0..len).rev() {
            let mut matched = matcher.longest(&rest[start..len]);
            let (mut bits, mut best, mut tokens) = (u16::MAX, matched, u16::MAX);
            while matched != Match::NONE {
                let with_it = fewest[start + matched.len()] + u16::from(words[usize::from(matched.token())].len);
                if with_it < bits {
                    (bits, best) = (with_it, matched);
                }
                tokens = tokens.min(least[start + matched.len()] + 1);
                matched = matcher.parent(matched.token());
            }
            (fewest[start], chosen[start], least[start]) = (bits, best, tokens);
        }
        let mut at = 0;
        while at < keep {
            emit(chosen[at].token());
            at += chosen[at].len();
        }
        // What the parts of a long row say is no bound for the whole.
        least_of_all = if at == row.len() { usize::from(least[0]) } else { 0 };
        rest = &rest[at..];
    }
    least_of_all
}
