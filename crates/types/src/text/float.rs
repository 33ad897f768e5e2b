//! Floating-point numbers as text. The standard library prints the shortest digits that read back as the same number.

use std::fmt::{Display, LowerExp};
use std::io::Write;

fn write_finite(value: impl Display + LowerExp, magnitude: f64, out: &mut Vec<u8>) {
    // Writing to a Vec cannot fail.
    let _ = if magnitude == 0.0 || (1e-5..1e16).contains(&magnitude) { write!(out, "{value}") } else { write!(out, "{value:e}") };
}

fn write_special(value: f64, out: &mut Vec<u8>) -> bool {
    let text: &[u8] = match value {
        v if v.is_nan() => b"NaN",
        f64::INFINITY => b"Infinity",
        f64::NEG_INFINITY => b"-Infinity",
        _ => return false,
    };
    out.extend_from_slice(text);
    true
}

/// Appends a REAL.
pub(super) fn write_f32(value: f32, out: &mut Vec<u8>) {
    if !write_special(f64::from(value), out) {
        write_finite(value, f64::from(value.abs()), out);
    }
}

/// Appends a DOUBLE.
pub(super) fn write_f64(value: f64, out: &mut Vec<u8>) {
    if !write_special(value, out) {
        write_finite(value, value.abs(), out);
    }
}

/// Reads a REAL or DOUBLE. A finite text that would become infinite is an error.
pub(super) fn parse_float<F: std::str::FromStr + Into<f64> + Copy>(text: &str) -> Result<F, &'static str> {
    let value: F = text.parse().map_err(|_| "not a number")?;
    if value.into().is_infinite() && text.bytes().any(|b| b.is_ascii_digit()) {
        return Err("out of range");
    }
    Ok(value)
}
