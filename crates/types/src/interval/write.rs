//! Intervals to text: `1 year 2 mons -3 days +04:05:06.7`.

use super::Interval;
use std::io::Write;

/// Appends the text, as PostgreSQL writes it: units that are 0 are left out; behind a negative one a positive one has its sign.
pub(crate) fn write(interval: Interval, out: &mut Vec<u8>) {
    let start = out.len();
    let mut was_negative = false;
    // Years and months have the sign of all months.
    for (amount, unit) in [(interval.months / 12, "year"), (interval.months % 12, "mon"), (interval.days, "day")] {
        if amount == 0 {
            continue;
        }
        let blank = if out.len() > start { " " } else { "" };
        let sign = if was_negative && amount > 0 { "+" } else { "" };
        let plural = if amount == 1 { "" } else { "s" };
        put(format_args!("{blank}{sign}{amount} {unit}{plural}"), out);
        was_negative = amount < 0;
    }
    if interval.micros == 0 && out.len() > start {
        return;
    }
    let blank = if out.len() > start { " " } else { "" };
    let sign = match interval.micros {
        micros if micros < 0 => "-",
        _ if was_negative => "+",
        _ => "",
    };
    let micros = interval.micros.unsigned_abs();
    let (seconds, fraction) = (micros / 1_000_000, micros % 1_000_000);
    put(format_args!("{blank}{sign}{:02}:{:02}:{:02}", seconds / 3_600, seconds / 60 % 60, seconds % 60), out);
    if fraction > 0 {
        put(format_args!(".{fraction:06}"), out);
        while out.last() == Some(&b'0') {
            out.pop();
        }
    }
}

fn put(text: std::fmt::Arguments<'_>, out: &mut Vec<u8>) {
    let written = out.write_fmt(text);
    debug_assert!(written.is_ok(), "memory takes what is written");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_postgresql_writes_them() {
        for ((months, days, micros), text) in [
            ((0, 0, 0), "00:00:00"),
            ((14, 3, 14_706_700_000), "1 year 2 mons 3 days 04:05:06.7"),
            ((-14, 3, -1), "-1 years -2 mons +3 days -00:00:00.000001"),
            ((-1, 0, 1_000_000), "-1 mons +00:00:01"),
            ((1, -1, 0), "1 mon -1 days"),
            ((12, 0, 0), "1 year"),
            ((0, 1, 0), "1 day"),
            ((0, 0, 90_000_000_000_000), "25000:00:00"),
            ((i32::MIN, i32::MIN, i64::MIN), "-178956970 years -8 mons -2147483648 days -2562047788:00:54.775808"),
        ] {
            let mut out = Vec::new();
            write(Interval { months, days, micros }, &mut out);
            assert_eq!(String::from_utf8(out).unwrap(), text);
        }
    }
}
