use super::*;

const NONE: Option<(Field, Field)> = None;

fn of(months: i32, days: i32, micros: i64) -> Interval {
    Interval { months, days, micros }
}

/// A text, its fields, and what it is.
type Read = (&'static str, Option<(Field, Field)>, Interval);

#[test]
fn as_postgresql_reads_them() {
    let one = |field: Field| Some((field, field));
    let all: &[Read] = &[
        ("90", one(Field::Day), of(0, 90, 0)),
        ("3", one(Field::Month), of(3, 0, 0)),
        ("2", one(Field::Week), of(0, 14, 0)),
        ("1 year", NONE, of(12, 0, 0)),
        ("-1 year 2 mons", NONE, of(-10, 0, 0)),
        ("1 day 02:03:04.5", NONE, of(0, 1, 7_384_500_000)),
        ("1 02:03:04", NONE, of(0, 1, 7_384_000_000)),
        ("1 2 hours", NONE, of(0, 1, 7_200_000_000)),
        ("-00:00:01", NONE, of(0, 0, -1_000_000)),
        ("- 1 day", NONE, of(0, -1, 0)),
        ("@ 1 day, 2 hours ago", NONE, of(0, -1, -7_200_000_000)),
        ("1.5 days", NONE, of(0, 1, 43_200_000_000)),
        ("1.5 months", NONE, of(1, 15, 0)),
        ("-1.5 weeks", NONE, of(0, -10, -43_200_000_000)),
        ("1.3 years", NONE, of(16, 0, 0)),
        ("0.5 decade", NONE, of(60, 0, 0)),
        ("1.5 quarters", NONE, of(4, 15, 0)),
        ("1 millennium 2 centuries", NONE, of(14_400, 0, 0)),
        ("10", NONE, of(0, 0, 10_000_000)),
        (".5", NONE, of(0, 0, 500_000)),
        ("-.5 hour", NONE, of(0, 0, -1_800_000_000)),
        ("3d", NONE, of(0, 3, 0)),
        ("1-2", NONE, of(14, 0, 0)),
        ("-1-2", NONE, of(-14, 0, 0)),
        ("1-2 3 4:05:06", NONE, of(14, 3, 14_706_000_000)),
        ("1.25 seconds", NONE, of(0, 0, 1_250_000)),
        ("1 second 2 ms 3 us", NONE, of(0, 0, 1_002_003)),
        ("02:03", NONE, of(0, 0, 7_380_000_000)),
        ("02:03.5", NONE, of(0, 0, 123_500_000)),
        ("02:03", Some((Field::Minute, Field::Second)), of(0, 0, 123_000_000)),
        ("1 02:03:04", Some((Field::Day, Field::Hour)), of(0, 1, 7_200_000_000)),
        ("1-2", one(Field::Year), of(12, 0, 0)),
        ("1 month 2 days", Some((Field::Year, Field::Month)), of(1, 0, 0)),
        ("1 day 02:03:04", one(Field::Minute), of(0, 1, 7_380_000_000)),
        ("0:00:60", NONE, of(0, 0, 60_000_000)),
        ("2562047788:00:54.775807", NONE, of(0, 0, i64::MAX)),
        ("P1Y2M3DT4H5M6.5S", NONE, of(14, 3, 14_706_500_000)),
        ("P0002-10-15T10:30:20", NONE, of(34, 15, 37_820_000_000)),
        ("P00021015T103020", NONE, of(34, 15, 37_820_000_000)),
        ("P1W", NONE, of(0, 7, 0)),
        ("P-1.5M", NONE, of(-1, -15, 0)),
        ("P1.1Y", NONE, of(13, 0, 0)),
        ("PT-36H", NONE, of(0, 0, -129_600_000_000)),
        ("PT10:30", NONE, of(0, 0, 37_800_000_000)),
        ("P1e1D", NONE, of(0, 10, 0)),
        ("P2", NONE, of(24, 0, 0)),
    ];
    for (text, fields, expected) in all {
        assert_eq!(parse_interval(text, *fields), Ok(*expected), "{text} {fields:?}");
    }
}

#[test]
fn what_is_none() {
    use IntervalError::{Field as Wide, Range, Syntax};
    for (text, error) in [
        ("", Syntax),
        ("x", Syntax),
        ("1 fortnight", Syntax),
        ("1:2:3:4", Syntax),
        ("1::2", Syntax),
        ("1:60", Wide),
        ("1:02:61", Wide),
        ("ago", Syntax),
        ("1 ago", Syntax),
        ("ago 1 day", Syntax),
        ("day", Syntax),
        ("1 day day", Syntax),
        ("day 1 hour", Syntax),
        ("1 day 2 days", Syntax),
        ("1 2 days", Syntax),
        ("1 hour 02:03:04", Syntax),
        ("1 day dow", Syntax),
        ("1.2.3", Syntax),
        ("1-2-3", Syntax),
        ("1-12", Wide),
        ("1/2", Syntax),
        ("1 dä", Syntax),
        ("P", Syntax),
        ("p1y", Syntax),
        ("99999999999999999999 years", Wide),
        ("2147483648 days", Wide),
        ("2147483648 years", Wide),
        ("2147483647 years", Range),
        ("-2147483648 days ago", Wide),
        ("9223372036854775807 hours", Wide),
        ("P1e400Y", Wide),
        ("PT1:2:3:4", Syntax),
        ("P1D2", Syntax),
    ] {
        assert_eq!(parse_interval(text, NONE), Err(error), "{text}");
    }
    let many = "1 ".repeat(100_000);
    assert_eq!(parse_interval(&many, NONE), Err(Syntax));
}

#[test]
fn what_is_written_is_read() {
    let mut state = 7_u64;
    let mut random = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as i32
    };
    for round in 0..20_000 {
        let part = |bits: i32| bits >> (round % 31);
        let micros = i64::from(part(random())) * i64::from(random());
        let interval = of(part(random().wrapping_mul(2)), part(random().wrapping_mul(3)), if round % 3 == 0 { -micros } else { micros });
        let mut text = Vec::new();
        crate::interval::write(interval, &mut text);
        let text = String::from_utf8(text).unwrap();
        assert_eq!(parse_interval(&text, NONE), Ok(interval), "{text}");
    }
    for extreme in [of(i32::MIN, i32::MIN, i64::MIN), of(i32::MAX, i32::MAX, i64::MAX)] {
        let mut text = Vec::new();
        crate::interval::write(extreme, &mut text);
        assert_eq!(parse_interval(std::str::from_utf8(&text).unwrap(), NONE), Ok(extreme));
    }
}

#[test]
fn any_text_is_read_or_refused() {
    let pieces = ["1", "-", "+", ".", ":", " ", "P", "T", "Y", "e9", "day", "ago", "99999999999", "ä", "-1-2", "0:1", "\u{0}", "/", "mon"];
    let mut state = 1_usize;
    for _ in 0..50_000 {
        let mut text = String::new();
        for _ in 0..state % 9 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            text += pieces[(state >> 33) % pieces.len()];
        }
        state = state.wrapping_add(1);
        let _ = parse_interval(&text, Some((Field::Minute, Field::Second)));
        if let Ok(interval) = parse_interval(&text, NONE) {
            for digits in 0..=7 {
                let _ = interval.rounded(digits);
            }
        }
    }
}

#[test]
fn digits_are_rounded() {
    let of = |micros| Interval { micros, ..Interval::ZERO };
    assert_eq!(of(1_234_567).rounded(2), Some(of(1_230_000)));
    assert_eq!(of(1_235_000).rounded(2), Some(of(1_240_000)));
    assert_eq!(of(-1_500_000).rounded(0), Some(of(-2_000_000)));
    assert_eq!(of(1_234_567).rounded(6), Some(of(1_234_567)));
    assert_eq!(of(i64::MAX).rounded(0), None);
}
