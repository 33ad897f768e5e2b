//! Text in columns, and numbers that can be read.

use std::fmt;

/// Where a column's text stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Align {
    Left,
    Right,
}

/// Rows of equal columns.
pub(crate) struct Grid {
    align: Vec<Align>,
    rows: Vec<Vec<String>>,
}

impl Grid {
    /// With these headings; columns without an alignment stand right.
    pub(crate) fn new(head: &[&str], align: &[Align]) -> Grid {
        let align = (0..head.len()).map(|i| align.get(i).copied().unwrap_or(Align::Right)).collect();
        Grid { align, rows: vec![head.iter().map(ToString::to_string).collect()] }
    }

    pub(crate) fn row(&mut self, row: Vec<String>) {
        self.rows.push(row);
    }
}

fn width(text: &str) -> usize {
    text.chars().count()
}

impl fmt::Display for Grid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let widths: Vec<usize> =
            (0..self.align.len()).map(|i| self.rows.iter().filter_map(|row| row.get(i)).map(|t| width(t)).max().unwrap_or(0)).collect();
        for row in &self.rows {
            let mut line = String::new();
            for ((text, align), width_max) in row.iter().zip(&self.align).zip(&widths) {
                let pad = " ".repeat(width_max - width(text));
                match align {
                    Align::Left => line.push_str(&format!("{text}{pad}  ")),
                    Align::Right => line.push_str(&format!("{pad}{text}  ")),
                }
            }
            writeln!(f, "{}", line.trim_end())?;
        }
        Ok(())
    }
}

/// 1234567 as 1,234,567.
pub(crate) fn count(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::with_capacity(digits.len() * 4 / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// Bytes in the unit that suits them.
pub(crate) fn size(bytes: u64) -> String {
    const UNITS: [&str; 4] = ["KB", "MB", "GB", "TB"];
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    let mut value = bytes as f64 / 1024.0;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    if value.fract() == 0.0 { format!("{value} {}", UNITS[unit]) } else { format!("{value:.1} {}", UNITS[unit]) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers() {
        assert_eq!([0, 999, 1000, 1_234_567].map(count), ["0", "999", "1,000", "1,234,567"]);
        assert_eq!([12, 8192, 1_500_000, 3 << 30].map(size), ["12 B", "8 KB", "1.4 MB", "3 GB"]);
    }

    #[test]
    fn grids_align() {
        let mut grid = Grid::new(&["NAME", "N"], &[Align::Left]);
        grid.row(vec!["ä".into(), "10".into()]);
        assert_eq!(grid.to_string(), "NAME   N\nä     10\n");
    }
}
