//! Finding the tokens.
//!
//! Rounds of pair merging: the sample is parsed with the tokens so far, tokens and adjacent pairs are counted, the tokens that save least make
//! room for the pairs that would save most. A token in place of two saves one code wherever it is used, whatever its length.

use std::collections::HashMap;

use super::codes::CODE_COUNT;
use super::dictionary::{Dictionary, MAX_TOKEN_LEN};
use super::sample::RowSample;
use super::trie::Trie;

/// How to train.
#[derive(Debug, Clone, Copy)]
pub struct TrainOptions {
    /// Rows are taken evenly from the whole sample until they have this many bytes.
    pub bytes: usize,
    /// Rounds of merging.
    pub rounds: usize,
}

impl Default for TrainOptions {
    fn default() -> Self {
        Self { bytes: 2 << 20, rounds: 24 }
    }
}

/// Trains a dictionary. The same sample and options give the same dictionary.
#[must_use]
pub fn train(sample: &RowSample<'_>, options: &TrainOptions) -> Dictionary {
    let mut tokens: Vec<Vec<u8>> = (0..=255).map(|byte| vec![byte]).collect();
    let step = sample.byte_len().div_ceil(options.bytes.max(1)).max(1);
    for round in 0..options.rounds {
        let trie = Trie::new(tokens.iter().map(Vec::as_slice));
        let mut uses = vec![0_u32; tokens.len()];
        let mut pairs: HashMap<u32, u32> = HashMap::new();
        for row in sample.rows().step_by(step) {
            let mut rest = row;
            let mut before = None;
            while !rest.is_empty() {
                let (len, token) = trie.longest(rest);
                uses[usize::from(token)] += 1;
                if let Some(before) = before {
                    *pairs.entry(u32::from(before) << 16 | u32::from(token)).or_default() += 1;
                }
                before = Some(token);
                rest = &rest[len..];
            }
        }
        let target = (256 + (CODE_COUNT - 256) * (round + 1) * 3 / (options.rounds * 2)).min(CODE_COUNT);
        // (saved codes, bytes)
        let mut candidates: Vec<(u32, Vec<u8>)> =
            tokens.iter().zip(&uses).filter(|(token, _)| token.len() > 1).map(|(token, &uses)| (uses, token.clone())).collect();
        for (&pair, &count) in &pairs {
            let token = [tokens[(pair >> 16) as usize].as_slice(), tokens[(pair & 0xffff) as usize].as_slice()].concat();
            if token.len() <= MAX_TOKEN_LEN && count > 1 {
                candidates.push((count, token));
            }
        }
        candidates.sort_by(|a, b| a.1.cmp(&b.1).then(b.0.cmp(&a.0)));
        candidates.dedup_by(|a, b| a.1 == b.1);
        candidates.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
        candidates.truncate(target - 256);
        tokens.truncate(256);
        tokens.extend(candidates.into_iter().map(|(_, token)| token));
    }
    Dictionary::from_tokens(&tokens).expect("trained tokens keep the invariants")
}
