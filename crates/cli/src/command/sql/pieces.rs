//! Cuts what is typed, or a script, into statements and commands of the shell.
//!
//! A statement ends at a `;` that is in no quotes, dollar quotes and comments. A line that begins with `.` or `\` where a statement could begin is a command of the shell.
//!
//! Invariants:
//! - bytes come one by one, so a script of any size is read in bounded memory: no more than one statement is kept;
//! - a piece begins at its first byte that is no blank, so places in it are places in the script.

/// What the parser reads at once. Longer statements are refused before they are complete.
pub(super) const STATEMENT_BYTES_MAX: usize = 64 << 20;
const COMMAND_BYTES_MAX: usize = 1 << 20;
/// Longer words between dollars are no tags.
const TAG_BYTES_MAX: usize = 64;

/// A piece of a script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    pub(super) text: String,
    /// The line on which it begins, from 1.
    pub(super) line: u64,
    pub(super) kind: PieceKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PieceKind {
    Statement,
    Command,
}

/// Why a script cannot be cut: what is wrong, and in which line.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct CutError {
    pub(super) line: u64,
    pub(super) reason: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum State {
    Plain,
    /// In single quotes; with `escapes` a backslash takes the next byte with it.
    Text {
        escapes: bool,
        is_escaped: bool,
    },
    Name,
    LineComment,
    /// Comments within each other.
    Comment(u32),
    /// The closing `$tag$`, and how much of it has come.
    Dollar {
        end: Vec<u8>,
        matched: usize,
    },
    /// A command of the shell, up to the end of the line.
    Command,
}

/// Takes bytes, gives pieces.
#[derive(Debug)]
pub(super) struct Splitter {
    state: State,
    bytes: Vec<u8>,
    /// The line of the next byte.
    line: u64,
    begin: u64,
    /// Something but blanks and comments has come.
    has_content: bool,
    /// The last byte outside quotes and comments.
    last: u8,
    /// Bytes of the identifier or number that ends here.
    word: usize,
    /// What stands behind a dollar that may begin a dollar quote.
    tag: Option<Vec<u8>>,
    /// The text that has just ended had escapes: a quote makes it go on.
    had_escapes: bool,
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80
}

impl Splitter {
    pub(super) fn new() -> Splitter {
        Splitter {
            state: State::Plain,
            bytes: Vec::new(),
            line: 1,
            begin: 1,
            has_content: false,
            last: b'\n',
            word: 0,
            tag: None,
            had_escapes: false,
        }
    }

    /// Has a statement begun that has not ended?
    pub(super) fn is_within(&self) -> bool {
        self.has_content || !matches!(self.state, State::Plain | State::LineComment)
    }

    /// Is what has come more than comments? A byte that could have begun one has not when nothing follows.
    fn is_statement(&self) -> bool {
        self.is_within() || (self.state == State::Plain && matches!(self.last, b'-' | b'/'))
    }

    /// What has come of the piece so far goes.
    pub(super) fn clear(&mut self) {
        let line = self.line;
        *self = Splitter { line, begin: line, ..Splitter::new() };
    }

    /// Lines that were read past it, where no piece has begun.
    pub(super) fn add_lines(&mut self, lines: u64) {
        self.line += lines;
    }

    /// Takes a byte; gives the piece that ends with it.
    pub(super) fn push(&mut self, byte: u8) -> Result<Option<Piece>, CutError> {
        let line = self.line;
        if byte == b'\n' {
            self.line += 1;
        }
        if self.bytes.is_empty() && (byte.is_ascii_whitespace() || byte == b';') {
            return Ok(None);
        }
        if self.bytes.is_empty() {
            self.begin = line;
        }
        // A command stands where a statement could begin; what comes before it on other lines is comments.
        if !self.has_content
            && self.state == State::Plain
            && matches!(byte, b'.' | b'\\')
            && self.bytes.iter().rev().take_while(|b| **b != b'\n').all(u8::is_ascii_whitespace)
        {
            self.bytes.clear();
            self.begin = line;
            self.state = State::Command;
        }
        if self.state == State::Command {
            if byte == b'\n' {
                return self.end(PieceKind::Command).map(Some);
            }
            self.keep(byte, COMMAND_BYTES_MAX)?;
            return Ok(None);
        }
        if self.state == State::Plain && byte == b';' {
            if self.is_statement() {
                return self.end(PieceKind::Statement).map(Some);
            }
            // Nothing but comments.
            self.clear();
            return Ok(None);
        }
        self.keep(byte, STATEMENT_BYTES_MAX)?;
        self.step(byte);
        Ok(None)
    }

    /// Nothing more comes: what has begun is a piece, too.
    pub(super) fn finish(&mut self) -> Result<Option<Piece>, CutError> {
        match self.state {
            State::Command => self.end(PieceKind::Command).map(Some),
            _ if self.is_statement() => self.end(PieceKind::Statement).map(Some),
            _ => {
                self.clear();
                Ok(None)
            }
        }
    }

    fn keep(&mut self, byte: u8, most: usize) -> Result<(), CutError> {
        if self.bytes.len() >= most {
            let line = self.begin;
            self.clear();
            return Err(CutError { line, reason: format!("a statement of more than {most} bytes") });
        }
        self.bytes.push(byte);
        Ok(())
    }

    fn end(&mut self, kind: PieceKind) -> Result<Piece, CutError> {
        let (bytes, line) = (std::mem::take(&mut self.bytes), self.begin);
        self.clear();
        match String::from_utf8(bytes) {
            Ok(text) => Ok(Piece { text: text.trim_end().to_owned(), line, kind }),
            Err(error) => {
                let before = error.as_bytes().iter().take(error.utf8_error().valid_up_to()).filter(|byte| **byte == b'\n').count();
                Err(CutError { line: line + before as u64, reason: "the text is not UTF-8".into() })
            }
        }
    }

    fn step(&mut self, byte: u8) {
        match &mut self.state {
            State::Plain => self.plain(byte),
            State::Text { escapes, is_escaped } => match byte {
                _ if *is_escaped => *is_escaped = false,
                b'\\' if *escapes => *is_escaped = true,
                b'\'' => {
                    self.had_escapes = *escapes;
                    self.begin_plain(byte);
                }
                _ => {}
            },
            State::Name => {
                if byte == b'"' {
                    self.begin_plain(byte);
                }
            }
            State::LineComment => {
                if byte == b'\n' {
                    self.begin_plain(byte);
                }
            }
            State::Comment(depth) => {
                match (self.last, byte) {
                    (b'/', b'*') => *depth += 1,
                    (b'*', b'/') => *depth -= 1,
                    _ => {
                        self.last = byte;
                        return;
                    }
                }
                self.last = 0;
                if *depth == 0 {
                    self.begin_plain(0);
                }
            }
            State::Dollar { end, matched } => {
                *matched = match end.get(*matched) {
                    Some(next) if *next == byte => *matched + 1,
                    _ => usize::from(byte == b'$'),
                };
                if *matched == end.len() {
                    self.begin_plain(0);
                }
            }
            State::Command => {}
        }
    }

    fn begin_plain(&mut self, last: u8) {
        (self.state, self.last, self.word, self.tag) = (State::Plain, last, 0, None);
    }

    fn plain(&mut self, byte: u8) {
        let (last, word) = (self.last, self.word);
        let went_on = std::mem::take(&mut self.had_escapes) && last == b'\'' && byte == b'\'';
        self.last = byte;
        // A byte that could have begun a comment has not.
        let is_comment = matches!((last, byte), (b'-', b'-') | (b'/', b'*'));
        if matches!(last, b'-' | b'/') && !is_comment {
            self.has_content = true;
        }
        if !byte.is_ascii_whitespace() && !matches!(byte, b'-' | b'/') && !is_comment {
            self.has_content = true;
        }
        self.word = if is_word(byte) { word + 1 } else { 0 };
        if let Some(mut tag) = self.tag.take() {
            if byte == b'$' {
                tag.insert(0, b'$');
                tag.push(b'$');
                self.state = State::Dollar { end: tag, matched: 0 };
                return;
            }
            let begins_with_digit = tag.is_empty() && byte.is_ascii_digit();
            if is_word(byte) && !begins_with_digit && tag.len() < TAG_BYTES_MAX {
                tag.push(byte);
                self.tag = Some(tag);
            }
        }
        match byte {
            b'\'' => self.state = State::Text { escapes: went_on || (word == 1 && matches!(last, b'e' | b'E')), is_escaped: false },
            b'"' => self.state = State::Name,
            b'-' if is_comment => self.state = State::LineComment,
            b'*' if is_comment => (self.state, self.last) = (State::Comment(1), 0),
            b'$' if word == 0 && self.tag.is_none() => self.tag = Some(Vec::new()),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(text: &str) -> Vec<(u64, String)> {
        let mut splitter = Splitter::new();
        let mut pieces: Vec<Piece> = text.bytes().filter_map(|byte| splitter.push(byte).unwrap()).collect();
        pieces.extend(splitter.finish().unwrap());
        pieces.into_iter().map(|piece| (piece.line, piece.text)).collect()
    }

    fn texts(text: &str) -> Vec<String> {
        cut(text).into_iter().map(|(_, text)| text).collect()
    }

    #[test]
    fn a_statement_ends_at_a_semicolon() {
        assert_eq!(
            cut("select 1;\n\n  select\n 2 ; ;;select 3"),
            [(1, "select 1".into()), (3, "select\n 2".into()), (4, "select 3".into())]
        );
        assert_eq!(texts("  \n;;\n"), [""; 0]);
    }

    #[test]
    fn quotes_and_comments_keep_semicolons() {
        for whole in [
            "select ';', \"a;b\"",
            "select 'it''s;'",
            "select E'a\\';b'",
            "select e'a''\\';b'",
            "select 'a\\'",
            "select $$a;b$$",
            "select $x$ a;$$;$y$; $x$",
            "select a$b, c$d",
            "select 1 -- a;b\n + 1",
            "select 1 /* a; /* b; */ c; */ + 1",
            "select 1 /*/ ; */",
            "select $1 + $2",
            "select 4 - -1, 6 / 2",
            "-",
        ] {
            assert_eq!(texts(whole), [whole]);
            assert_eq!(texts(&format!("{whole};select 2;")), [whole, "select 2"], "{whole}");
        }
        // Not closed.
        assert_eq!(texts("select 'a; select 2;"), ["select 'a; select 2;"]);
    }

    #[test]
    fn comments_alone_are_no_statement() {
        assert_eq!(texts("-- a;b\n/* c; */ ;\nselect 1;"), ["select 1"]);
        assert_eq!(texts("-- to the end"), [""; 0]);
        // Before a statement they stay, so that lines are counted.
        assert_eq!(cut("\n-- first\nselect 1;"), [(2, "-- first\nselect 1".into())]);
    }

    #[test]
    fn commands_take_a_line() {
        assert_eq!(
            cut(".tables\n  \\d t;\nselect 1\n.5;\n.quit"),
            [(1, ".tables".into()), (2, "\\d t;".into()), (3, "select 1\n.5".into()), (5, ".quit".into())]
        );
        assert_eq!(texts("-- a comment\n.tables\n"), [".tables"]);
        assert_eq!(texts("select 1; .tables\n"), ["select 1", ".tables"]);
    }

    #[test]
    fn what_is_not_closed_is_within() {
        for (text, is_within) in
            [("", false), ("-- a", false), ("select 1", true), ("/* a", true), ("'", true), ("select 1;", false), ("  ", false)]
        {
            let mut splitter = Splitter::new();
            text.bytes().for_each(|byte| drop(splitter.push(byte)));
            assert_eq!(splitter.is_within(), is_within, "{text}");
            splitter.clear();
            assert!(!splitter.is_within());
        }
    }

    #[test]
    fn what_is_no_text_is_refused_with_its_line() {
        let mut splitter = Splitter::new();
        let cut = b"select 1;\nselect\n'\xff';".iter().map(|byte| splitter.push(*byte));
        let errors: Vec<CutError> = cut.filter_map(Result::err).collect();
        assert_eq!(errors, [CutError { line: 3, reason: "the text is not UTF-8".into() }]);
    }

    #[test]
    fn a_statement_without_an_end_is_refused() {
        let mut splitter = Splitter::new();
        let longest = (0..=COMMAND_BYTES_MAX).map(|_| splitter.push(b'.')).find_map(Result::err);
        assert!(longest.unwrap().reason.contains("more than"));
        assert!(splitter.bytes.len() < COMMAND_BYTES_MAX);
    }
}
