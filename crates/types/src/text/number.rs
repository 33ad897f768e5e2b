//! Integers and decimals as text.

/// Appends an unsigned integer of at least this many digits (up to 48).
pub(super) fn write_u128(mut value: u128, least_digits: usize, out: &mut Vec<u8>) {
    let mut digits = [b'0'; 48];
    let mut at = digits.len();
    // Division of 128 bits is slow: leave it as soon as the rest fits 64.
    while value > u128::from(u64::MAX) {
        at -= 1;
        digits[at] = b'0' + (value % 10) as u8;
        value /= 10;
    }
    let mut low = value as u64;
    while low > 0 {
        at -= 1;
        digits[at] = b'0' + (low % 10) as u8;
        low /= 10;
    }
    at = at.min(digits.len() - least_digits.clamp(1, digits.len()));
    out.extend_from_slice(&digits[at..]);
}

/// Appends an integer.
pub(super) fn write_int(value: i64, out: &mut Vec<u8>) {
    if value < 0 {
        out.push(b'-');
    }
    write_u128(u128::from(value.unsigned_abs()), 1, out);
}

/// Appends a decimal: `scale` digits behind the point.
pub(super) fn write_decimal(value: i128, scale: i8, out: &mut Vec<u8>) {
    if value < 0 {
        out.push(b'-');
    }
    let digits = usize::from(scale.max(0).unsigned_abs());
    let start = out.len();
    write_u128(value.unsigned_abs(), digits + 1, out);
    if digits > 0 {
        let point = out.len() - digits;
        debug_assert!(point > start);
        out.insert(point, b'.');
    } else if value != 0 {
        out.resize(out.len() + usize::from(scale.unsigned_abs()), b'0');
    }
}

/// Reads an integer: a sign, digits.
pub(super) fn parse_int(text: &str) -> Result<i64, &'static str> {
    text.parse::<i64>().map_err(|e| match e.kind() {
        std::num::IntErrorKind::PosOverflow | std::num::IntErrorKind::NegOverflow => "out of range",
        _ => "not an integer",
    })
}

/// Appends decimal digits to `value`, below `limit`.
fn append_digits(mut value: u128, digits: &[u8], limit: u128) -> Result<u128, &'static str> {
    for byte in digits {
        value = value.checked_mul(10).and_then(|v| v.checked_add(u128::from(byte - b'0'))).filter(|v| *v < limit).ok_or("out of range")?;
    }
    Ok(value)
}

/// Reads a decimal as the unscaled number. Digits that would be lost are an error.
pub(super) fn parse_decimal(text: &str, precision: u8, scale: i8) -> Result<i128, &'static str> {
    let limit = crate::data_type::decimal_limit(precision).unsigned_abs();
    let (negative, digits) = match text.as_bytes() {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        all => (false, all),
    };
    let point = digits.iter().position(|b| *b == b'.');
    let (mut before, mut behind) = point.map_or((digits, &[][..]), |at| (&digits[..at], &digits[at + 1..]));
    if before.len() + behind.len() == 0 || !before.iter().chain(behind).all(u8::is_ascii_digit) {
        return Err("not a decimal number");
    }
    let zeros = |digits: &[u8]| digits.iter().all(|b| *b == b'0');
    let kept = usize::from(scale.max(0).unsigned_abs());
    if behind.len() > kept {
        if !zeros(&behind[kept..]) {
            return Err("more digits behind the point than the type has");
        }
        behind = &behind[..kept];
    }
    if scale < 0 {
        let kept = before.len().saturating_sub(usize::from(scale.unsigned_abs()));
        if !zeros(&before[kept..]) {
            return Err("more digits before the point than the type has");
        }
        before = &before[..kept];
    }
    let mut value = append_digits(0, before, limit)?;
    value = append_digits(value, behind, limit)?;
    if value > 0 {
        for _ in behind.len()..kept {
            value = append_digits(value, b"0", limit)?;
        }
    }
    Ok(if negative { -(value as i128) } else { value as i128 })
}

/// The one text of an integer?
pub(super) fn is_canonical_int(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text).as_bytes();
    match digits {
        [] => false,
        [b'0'] => text.len() == 1,
        [b'0', ..] => false,
        _ => digits.len() <= 19 && digits.iter().all(u8::is_ascii_digit) && text.parse::<i64>().is_ok(),
    }
}
