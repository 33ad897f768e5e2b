//! Sizes in bytes, as people write and read them. K, M, G and T are powers of 1,024.

use std::fmt;
use std::str::FromStr;

/// A number of bytes given on the command line: `4096`, `4K`, `8KB`, `64MB`, `1.5G`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ByteSize(pub(crate) u64);

const UNITS: [(&str, u32); 5] = [("B", 0), ("K", 10), ("M", 20), ("G", 30), ("T", 40)];

impl FromStr for ByteSize {
    type Err = String;

    fn from_str(text: &str) -> Result<ByteSize, String> {
        let refuse = || format!("\"{text}\" is no size; write 4096, 4K, 8KB or 64MB");
        let text_trimmed = text.trim();
        let digits = text_trimmed.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text_trimmed.len());
        let (number, unit) = text_trimmed.split_at(digits);
        let unit = unit.trim().to_ascii_uppercase();
        let shift = match unit.as_str() {
            "" => 0,
            unit => {
                let letter = unit.strip_suffix("IB").or_else(|| unit.strip_suffix('B').filter(|u| !u.is_empty())).unwrap_or(unit);
                UNITS.iter().find(|(name, _)| *name == letter).ok_or_else(refuse)?.1
            }
        };
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        if number.starts_with('.') || number.is_empty() || number.ends_with('.') || fraction.len() > 3 {
            return Err(refuse());
        }
        let too_large = || format!("\"{text}\" is more than 16 EB");
        let whole: u64 = whole.parse().map_err(|_| too_large())?;
        let mut bytes = whole.checked_mul(1 << shift).ok_or_else(too_large)?;
        if !fraction.is_empty() {
            let thousandths: u64 = format!("{fraction:0<3}").parse().map_err(|_| refuse())?;
            // At most 999 << 40: no overflow.
            bytes = bytes.checked_add(thousandths * (1 << shift) / 1000).ok_or_else(too_large)?;
        }
        Ok(ByteSize(bytes))
    }
}

impl fmt::Display for ByteSize {
    /// `8 KB`, `64 MB`, `61.4 MB`, `512 bytes`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some((unit, shift)) = UNITS.iter().skip(1).rev().find(|(_, shift)| self.0 >= 1 << shift) else {
            return write!(f, "{} bytes", self.0);
        };
        if self.0.is_multiple_of(1 << shift) {
            return write!(f, "{} {unit}B", self.0 >> shift);
        }
        let value = self.0 as f64 / (1u64 << shift) as f64;
        let decimals = if value < 10.0 { 2 } else { usize::from(value < 1000.0) };
        write!(f, "{value:.decimals$} {unit}B")
    }
}

/// A time given on the command line: `10s`, `500ms`, `2m`, `10` (seconds).
pub(crate) fn duration(text: &str) -> Result<std::time::Duration, String> {
    let refuse = || format!("\"{text}\" is no time; write 10s, 500ms or 2m");
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let number: u64 = text[..digits].parse().map_err(|_| refuse())?;
    let milliseconds = match text[digits..].trim() {
        "ms" => 1,
        "" | "s" => 1_000,
        "m" | "min" => 60_000,
        "h" => 3_600_000,
        _ => return Err(refuse()),
    };
    number.checked_mul(milliseconds).map(std::time::Duration::from_millis).ok_or_else(refuse)
}

/// `8 KB`.
pub(crate) fn size_text(bytes: u64) -> String {
    ByteSize(bytes).to_string()
}

/// `6,001,215`.
pub(crate) fn grouped(n: u64) -> String {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_as_people_write_them() {
        let cases = [
            ("0", 0),
            ("4096", 4096),
            ("4K", 4096),
            ("8KB", 8192),
            ("8 kib", 8192),
            ("64MB", 64 << 20),
            ("1.5G", 3 << 29),
            ("17B", 17),
            ("2tb", 2 << 40),
        ];
        for (text, bytes) in cases {
            assert_eq!(text.parse::<ByteSize>(), Ok(ByteSize(bytes)), "{text}");
        }
        for bad in ["", "K", "-1", "4X", "1..5K", ".5K", "5.K", "4K4", "99999999999999999999", "17179869184G", "0x10", "1e6", "1.2345K"] {
            let error = bad.parse::<ByteSize>().unwrap_err();
            assert!(error.contains(bad), "{bad}: {error}");
        }
    }

    #[test]
    fn times_are_read_as_people_write_them() {
        let ms = |text: &str| duration(text).map(|d| d.as_millis());
        assert_eq!([ms("10s"), ms("500ms"), ms("2m"), ms("3")], [Ok(10_000), Ok(500), Ok(120_000), Ok(3_000)]);
        for bad in ["", "s", "10x", "-1s", "1.5s", "99999999999999999999s", "18446744073709551615h"] {
            assert!(duration(bad).unwrap_err().contains(bad));
        }
    }

    #[test]
    fn sizes_are_printed_short() {
        let cases = [(0, "0 bytes"), (512, "512 bytes"), (8192, "8 KB"), (1536, "1.50 KB"), (64 << 20, "64 MB"), (64_400_000, "61.4 MB")];
        for (bytes, text) in cases {
            assert_eq!(size_text(bytes), text);
        }
        assert_eq!([0, 999, 1000, 6_001_215].map(grouped), ["0", "999", "1,000", "6,001,215"]);
    }
}
