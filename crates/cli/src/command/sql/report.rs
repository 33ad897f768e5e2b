//! What is wrong with a statement, as it is told: at the terminal with the place in its line, in scripts with file and line.

use super::format::shown;
use super::pieces::Piece;
use pagefold::sql::{Notice, SqlError};
use unicode_width::UnicodeWidthStr;

/// Characters of a line that are shown before and behind a place.
const AROUND: usize = 60;

/// What is to be known of a statement that has done what it says.
pub(super) fn notice(notice: &Notice) -> String {
    match &notice.detail {
        Some(detail) => format!("NOTICE: {}\nDETAIL: {detail}", notice.message),
        None => format!("NOTICE: {}", notice.message),
    }
}

/// For a script: `FILE:LINE: SQLSTATE message`, with DETAIL, HINT and CONTEXT on lines of their own.
pub(super) fn in_script(source: &str, piece: &Piece, error: &SqlError) -> String {
    let line = piece.line + error.position().map_or(0, |(line, _)| line.saturating_sub(1));
    let mut text = format!("{source}:{line}: {} {}", error.sqlstate(), error.message());
    put_rest(error, &mut text);
    text
}

/// For the terminal: message, the line of the statement with the place in it, DETAIL, HINT, CONTEXT.
pub(super) fn at_terminal(piece: &Piece, error: &SqlError) -> String {
    let mut text = format!("ERROR {}: {}", error.sqlstate(), error.message());
    if let Some(place) = place(&piece.text, error.position()) {
        text += &place;
    }
    put_rest(error, &mut text);
    text
}

fn put_rest(error: &SqlError, text: &mut String) {
    // What is told of rows may have anything in it.
    let context = error.context().map(|context| shown(context, 0));
    for (name, more) in [("DETAIL", error.detail()), ("HINT", error.hint()), ("CONTEXT", context.as_deref())] {
        if let Some(more) = more {
            text.push_str(&format!("\n{name}: {more}"));
        }
    }
}

/// The line of the statement, and a caret under the place.
fn place(statement: &str, position: Option<(u64, u64)>) -> Option<String> {
    let (line, column) = position?;
    let text = statement.lines().nth(usize::try_from(line).ok()?.checked_sub(1)?)?;
    let at = usize::try_from(column).ok()?.checked_sub(1)?;
    let from = at.saturating_sub(AROUND);
    let one_line = |text: String| shown(&text.replace('\t', " "), 0);
    let before = one_line(text.chars().skip(from).take(at - from).collect());
    let behind = one_line(text.chars().skip(at).take(AROUND).collect());
    let (left, right) = (if from > 0 { "…" } else { "" }, if text.chars().count() > at + AROUND { "…" } else { "" });
    let head = format!("LINE {line}: {left}");
    let blanks = " ".repeat(head.width() + before.width());
    Some(format!("\n{head}{before}{behind}{right}\n{blanks}^"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_caret_is_under_the_place() {
        assert_eq!(place("select *\nfrom 船 x, y", Some((2, 9))).unwrap(), "\nLINE 2: from 船 x, y\n                 ^");
        assert_eq!(place("select a", Some((1, 9))).unwrap(), "\nLINE 1: select a\n                ^");
        assert_eq!(place("select a", Some((3, 1))), None);
        assert_eq!(place("select a", Some((0, 0))), None);
        let long = format!("select {}x{}", "1 + ".repeat(100), " + 1".repeat(100));
        let told = place(&long, Some((1, 408))).unwrap();
        let mut lines = told.lines().skip(1);
        let (text, caret) = (lines.next().unwrap(), lines.next().unwrap());
        assert!(text.starts_with("LINE 1: …") && text.ends_with('…') && text.width() < 140, "{text}");
        assert_eq!(text.chars().nth(caret.chars().count() - 1), Some('x'));
    }
}
