//! JSON lines into the elements of one JSON array.

use std::io::{self, Write};

/// Puts a comma where a line ends and another begins.
pub(crate) struct ArrayOfLines<W> {
    out: W,
    between: bool,
}

impl<W: Write> ArrayOfLines<W> {
    pub(crate) fn new(out: W) -> ArrayOfLines<W> {
        ArrayOfLines { out, between: false }
    }
}

impl<W: Write> Write for ArrayOfLines<W> {
    /// A line end is held back until something follows.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        for line in bytes.split_inclusive(|b| *b == b'\n') {
            if std::mem::take(&mut self.between) {
                self.out.write_all(b",\n")?;
            }
            let text = line.strip_suffix(b"\n");
            self.between = text.is_some();
            self.out.write_all(text.unwrap_or(line))?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_become_elements_however_they_are_cut() {
        let text = b"{\"a\":1}\n{\"a\":2}\n{\"a\":3}\n";
        for step in 1..=text.len() {
            let mut out = Vec::new();
            let mut array = ArrayOfLines::new(&mut out);
            text.chunks(step).for_each(|part| array.write_all(part).unwrap());
            assert_eq!(out, b"{\"a\":1},\n{\"a\":2},\n{\"a\":3}");
        }
    }
}
