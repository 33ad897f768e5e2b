//! BYTEA and UUID as text.

const HEX: &[u8; 16] = b"0123456789abcdef";

fn hex(byte: u8, out: &mut Vec<u8>) {
    out.extend([HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]]);
}

fn nibble(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).map(|d| d as u8)
}

fn byte(pair: &[u8]) -> Option<u8> {
    match pair {
        [high, low] => Some(nibble(*high)? << 4 | nibble(*low)?),
        _ => None,
    }
}

/// Appends bytes.
pub(super) fn write_bytes(bytes: &[u8], out: &mut Vec<u8>) {
    out.reserve(2 + 2 * bytes.len());
    out.extend_from_slice(b"\\x");
    bytes.iter().for_each(|b| hex(*b, out));
}

/// Appends a UUID.
pub(super) fn write_uuid(uuid: &[u8; 16], out: &mut Vec<u8>) {
    for (i, byte) in uuid.iter().enumerate() {
        if matches!(i, 4 | 6 | 8 | 10) {
            out.push(b'-');
        }
        hex(*byte, out);
    }
}

/// Reads bytes.
pub(super) fn parse_bytes(text: &str) -> Result<Vec<u8>, &'static str> {
    let digits = text.strip_prefix("\\x").ok_or("bytes are written as \\x and hexadecimal digits")?;
    if !digits.len().is_multiple_of(2) {
        return Err("an odd number of hexadecimal digits");
    }
    digits.as_bytes().chunks_exact(2).map(|pair| byte(pair).ok_or("not a hexadecimal digit")).collect()
}

/// Reads a UUID, with hyphens or without.
pub(super) fn parse_uuid(text: &str) -> Result<[u8; 16], &'static str> {
    const NOT: &str = "not a UUID";
    let mut digits = [0u8; 32];
    let mut count = 0;
    for (i, c) in text.bytes().enumerate() {
        if c == b'-' && text.len() == 36 && matches!(i, 8 | 13 | 18 | 23) {
            continue;
        }
        *digits.get_mut(count).ok_or(NOT)? = c;
        count += 1;
    }
    if count != 32 {
        return Err(NOT);
    }
    let mut uuid = [0u8; 16];
    for (to, pair) in uuid.iter_mut().zip(digits.chunks_exact(2)) {
        *to = byte(pair).ok_or(NOT)?;
    }
    Ok(uuid)
}
