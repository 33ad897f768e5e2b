//! Tokens by prefix: the tokens that a row's next bytes match.
//!
//! A trie whose edges lie in one open-addressed hash table; a node is the place of the edge that leads to it.

use super::dictionary::MAX_TOKEN_LEN;

/// No token ends at this node.
pub(super) const NO_TOKEN: u16 = u16::MAX;

const EMPTY: u32 = u32::MAX;
const ROOT: u32 = 0x00ff_ffff;

#[derive(Clone, Copy)]
struct Edge {
    /// Node it comes from (24 bits) and byte.
    key: u32,
    token: u16,
}

/// A trie of up to 65,535 tokens.
pub(super) struct Trie {
    edges: Vec<Edge>,
    mask: u32,
}

impl Trie {
    /// `tokens` in the order of their numbers.
    pub(super) fn new<'a>(tokens: impl Iterator<Item = &'a [u8]> + Clone) -> Self {
        let bytes: usize = tokens.clone().map(<[u8]>::len).sum();
        let slots = (bytes * 2).next_power_of_two().max(1024);
        assert!(slots < ROOT as usize, "tokens of {bytes} bytes");
        let mut trie = Self { edges: vec![Edge { key: EMPTY, token: NO_TOKEN }; slots], mask: slots as u32 - 1 };
        for (number, token) in tokens.enumerate() {
            debug_assert!((1..=MAX_TOKEN_LEN).contains(&token.len()));
            let mut node = ROOT;
            for &byte in token {
                let key = node << 8 | u32::from(byte);
                let mut slot = trie.home(key);
                while trie.edges[slot as usize].key != EMPTY && trie.edges[slot as usize].key != key {
                    slot = (slot + 1) & trie.mask;
                }
                trie.edges[slot as usize].key = key;
                node = slot;
            }
            trie.edges[node as usize].token = number as u16;
        }
        trie
    }

    #[inline(always)]
    fn home(&self, key: u32) -> u32 {
        (key.wrapping_mul(0x9e37_79b1) >> 7) & self.mask
    }

    #[inline(always)]
    fn child(&self, node: u32, byte: u8) -> Option<(u32, u16)> {
        let key = node << 8 | u32::from(byte);
        let mut slot = self.home(key);
        loop {
            let edge = self.edges[slot as usize];
            if edge.key == key {
                return Some((slot, edge.token));
            }
            if edge.key == EMPTY {
                return None;
            }
            slot = (slot + 1) & self.mask;
        }
    }

    /// Calls `found` with length and number of each token that `bytes` begins with, shortest first.
    #[inline(always)]
    pub(super) fn matches(&self, bytes: &[u8], mut found: impl FnMut(usize, u16)) {
        let mut node = ROOT;
        for (index, &byte) in bytes.iter().take(MAX_TOKEN_LEN).enumerate() {
            let Some((next, token)) = self.child(node, byte) else { break };
            if token != NO_TOKEN {
                found(index + 1, token);
            }
            node = next;
        }
    }

    /// Length and number of the longest token that `bytes` begins with.
    #[inline]
    pub(super) fn longest(&self, bytes: &[u8]) -> (usize, u16) {
        let mut best = (0, NO_TOKEN);
        self.matches(bytes, |len, token| best = (len, token));
        best
    }
}
