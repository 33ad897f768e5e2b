//! What two byte strings have in common.

/// Length of the prefix that both share.
#[inline]
#[must_use]
pub fn common_prefix(a: &[u8], b: &[u8]) -> usize {
    let n = a.len().min(b.len());
    let mut at = 0;
    while let (Some(x), Some(y)) = (a[at..n].first_chunk::<8>(), b[at..n].first_chunk::<8>()) {
        let difference = u64::from_le_bytes(*x) ^ u64::from_le_bytes(*y);
        if difference != 0 {
            return at + difference.trailing_zeros() as usize / 8;
        }
        at += 8;
    }
    while at < n && a[at] == b[at] {
        at += 1;
    }
    at
}

/// Length of the suffix that both share.
#[inline]
#[must_use]
pub fn common_suffix(a: &[u8], b: &[u8]) -> usize {
    let (a_words, b_words) = (a.as_rchunks().1, b.as_rchunks().1);
    let mut len = 0;
    for (x, y) in a_words.iter().rev().zip(b_words.iter().rev()) {
        let differing = u64::from_le_bytes(*x) ^ u64::from_le_bytes(*y);
        if differing != 0 {
            return len + differing.leading_zeros() as usize / 8;
        }
        len += 8;
    }
    let (a, b) = (&a[..a.len() - len], &b[..b.len() - len]);
    len + a.iter().rev().zip(b.iter().rev()).take_while(|(x, y)| x == y).count()
}

/// What turns `from` into `to`: where they differ, how many bytes go there, which come.
#[must_use]
pub fn difference<'t>(from: &[u8], to: &'t [u8]) -> (usize, usize, &'t [u8]) {
    let head = common_prefix(from, to);
    let tail = common_suffix(&from[head..], &to[head..]);
    (head, from.len() - head - tail, &to[head..to.len() - tail])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_far_as_they_agree() {
        for (a_len, b_len) in (0..40).flat_map(|a| (0..40).map(move |b| (a, b))) {
            for at in 0..a_len.min(b_len) + 1 {
                // Zeros but for one byte, counted from the front and from the end.
                let (mut a, b) = (vec![0; a_len], vec![0; b_len]);
                let same = a_len.min(b_len);
                let expected = if at < same { at } else { same };
                if at < same {
                    a[at] = 1;
                }
                assert_eq!(common_prefix(&a, &b), expected);
                a.reverse();
                assert_eq!(common_suffix(&a, &b), expected);
            }
        }
    }
}
