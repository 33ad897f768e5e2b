//! Code lengths of least total cost under a limit: package-merge (Larmore, Hirschberg, "A Fast Algorithm for Optimal Length-Limited Huffman
//! Codes", 1990).
//!
//! Every symbol offers one coin for each level, that is for each bit that its code may have. From the deepest level up, the coins of a level and the
//! packages (pairs) of the level below are merged by weight. Of the topmost list the first 2 n - 2 items are bought; a symbol's length is
//! the number of its coins among all that was bought. Within a level the lightest coins are bought, so the lists need not keep what is in a package:
//! how many are packages says enough.

/// Code lengths in bits, one for each weight, of a complete prefix code that minimises the sum of weight times length, none above `limit`.
/// Ties go to the lower symbol.
///
/// # Panics
/// When there are fewer than two weights, or more than `limit` bits can tell apart; when the weights' sum overflows after `limit` doublings.
pub(super) fn length_limited(weights: &[u64], limit: u32) -> Vec<u8> {
    let count = weights.len();
    assert!(count >= 2 && limit < usize::BITS && count <= 1 << limit);
    let mut by_weight: Vec<usize> = (0..count).collect();
    by_weight.sort_unstable_by_key(|&symbol| (weights[symbol], symbol));
    // By level from the deepest up: which items of the merged list are packages.
    let mut levels: Vec<Vec<bool>> = Vec::with_capacity(limit as usize);
    let mut below: Vec<u64> = Vec::new();
    for _ in 0..limit {
        let mut packages = below.as_chunks::<2>().0.iter().map(|pair| pair[0] + pair[1]).peekable();
        let mut coins = by_weight.iter().map(|&symbol| weights[symbol]).peekable();
        let (mut merged, mut is_package) = (Vec::new(), Vec::new());
        loop {
            let take_package = match (coins.peek(), packages.peek()) {
                (None, None) => break,
                (Some(coin), Some(package)) => package < coin,
                (coin, _) => coin.is_none(),
            };
            merged.extend(if take_package { packages.next() } else { coins.next() });
            is_package.push(take_package);
        }
        levels.push(is_package);
        below = merged;
    }
    let mut lens = vec![0; count];
    let mut bought = 2 * count - 2;
    for is_package in levels.iter().rev() {
        let packages = is_package[..bought].iter().filter(|&&package| package).count();
        by_weight[..bought - packages].iter().for_each(|&symbol| lens[symbol] += 1);
        bought = 2 * packages;
    }
    lens
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::row::tests::random;
    use std::cmp::Reverse;
    use std::collections::BinaryHeap;

    fn cost(weights: &[u64], lens: &[u8]) -> u64 {
        weights.iter().zip(lens).map(|(weight, &len)| weight * u64::from(len)).sum()
    }

    /// Cost of a Huffman code without a limit: the sum of the weights of all inner nodes.
    fn huffman_cost(weights: &[u64]) -> u64 {
        let mut heap: BinaryHeap<Reverse<u64>> = weights.iter().copied().map(Reverse).collect();
        let mut total = 0;
        while let (Some(Reverse(a)), Some(Reverse(b))) = (heap.pop(), heap.pop()) {
            total += a + b;
            if heap.is_empty() {
                break;
            }
            heap.push(Reverse(a + b));
        }
        total
    }

    /// The least cost by trying all complete codes; `weights` descend, so lengths ascend.
    fn least_cost(weights: &[u64], limit: u32, len: u32, room: u64) -> Option<u64> {
        let Some((&weight, rest)) = weights.split_first() else { return (room == 0).then_some(0) };
        (len..=limit)
            .filter(|&len| 1 << (limit - len) <= room)
            .filter_map(|len| Some(weight * u64::from(len) + least_cost(rest, limit, len, room - (1 << (limit - len)))?))
            .min()
    }

    #[test]
    #[cfg_attr(miri, ignore = "safe code, slow there")]
    fn no_complete_code_costs_less() {
        let mut state = 3;
        for _ in 0..400 {
            let count = 2 + random(&mut state, 9);
            let mut weight = || {
                let top = 1 << random(&mut state, 12);
                1 + random(&mut state, top) as u64
            };
            let mut weights: Vec<u64> = (0..count).map(|_| weight()).collect();
            weights.sort_unstable_by_key(|&weight| Reverse(weight));
            for limit in count.next_power_of_two().ilog2().max(1)..7 {
                let lens = length_limited(&weights, limit);
                assert!(lens.iter().all(|&len| (1..=limit).contains(&u32::from(len))));
                assert_eq!(lens.iter().map(|&len| 1_u64 << (limit - u32::from(len))).sum::<u64>(), 1 << limit);
                assert_eq!(Some(cost(&weights, &lens)), least_cost(&weights, limit, 1, 1 << limit), "{weights:?}");
            }
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "safe code, slow there")]
    fn as_huffman_where_the_limit_does_not_bind() {
        let mut state = 5;
        for count in [2, 3, 256, 1000, 4096] {
            let weights: Vec<u64> = (0..count).map(|_| 1 + random(&mut state, 9) as u64).collect();
            let lens = length_limited(&weights, 16);
            assert_eq!(cost(&weights, &lens), huffman_cost(&weights));
        }
        // Fibonacci numbers want codes as long as there are symbols.
        let mut weights = vec![1_u64, 1];
        while weights.len() < 40 {
            weights.push(weights[weights.len() - 1] + weights[weights.len() - 2]);
        }
        let lens = length_limited(&weights, 16);
        assert!(cost(&weights, &lens) > huffman_cost(&weights));
        assert_eq!(lens.iter().max(), Some(&16));
        assert_eq!(lens.iter().map(|&len| 1 << (16 - len)).sum::<u32>(), 1 << 16);
    }
}
