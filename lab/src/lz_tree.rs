//! The reference that sizes are compared with: a static Ziv-Lempel tree of 4,096 nodes, codes of 12 bits, rows one by one, each cut greedily.
//!
//! It stands for row compression with fixed codes as it is done by Db2 for z/OS and its hardware. What is published of that: codes are numbers of nodes, the first 256 nodes are the single
//! bytes, a row is cut by longest match, a node stands for at most 260 bytes. How the tree is built is described in US patents 5,412,384 and 5,534,861 (Chang and others, expired; the abstract):
//! the tree of a Ziv-Lempel parse (LZ78, Ziv and Lempel 1978) of sampled rows is overbuilt substantially, then pruned to its final size by taking away childless nodes with the lowest use count,
//! of equal ones the least recently used. That is done here; a tree that just stops growing when it is full, the other simple way, is [`Growth::Frozen`].
//!
//! Two things are kinder to the reference than the abstract says: rows are taken from all over the sample while the tree grows, and uses are counted anew by the final parse, each time the tree
//! has been halved. One is not done: seeding the tree with what NULL and default values look like; there are many such rows in the samples.
//!
//! Not a part of the product, and slow.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Nodes of the tree: as many as codes of 12 bits.
pub const NODES: usize = 4096;
/// A node stands for so many bytes at most.
const BYTES_MAX: usize = 260;
/// The single bytes.
const ROOTS: usize = 256;
/// An overbuilt tree has so many times as many nodes.
const OVERBUILT: usize = 16;
/// No node.
const NONE: u16 = u16::MAX;

/// How the tree comes to its size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Growth {
    /// It grows until it is full.
    Frozen,
    /// It grows to many times its size; then the nodes that are used least go.
    Pruned,
}

/// A trained tree.
#[derive(Clone, Debug)]
pub struct LzTree {
    /// By node and byte: the node of the longer string.
    children: Vec<[u16; 256]>,
    /// By node: the string without its last byte, and that byte.
    parents: Vec<(u16, u8)>,
}

/// A tree that grows and is cut.
struct Trainer {
    /// By node and byte: the node of the longer string; 0 where there is none.
    longer: Vec<[u32; 256]>,
    nodes: Vec<Node>,
}

#[derive(Clone, Copy)]
struct Node {
    parent: u32,
    byte: u8,
    bytes: usize,
    /// Children that are left.
    children: u32,
    uses: u64,
    used_last: u64,
    gone: bool,
}

impl LzTree {
    /// Trains a tree on rows. The same rows give the same tree.
    #[must_use]
    pub fn train(rows: &[&[u8]], growth: Growth) -> LzTree {
        let mut trainer = Trainer::new();
        match growth {
            Growth::Frozen => trainer.grow(rows, NODES),
            Growth::Pruned => {
                trainer.grow(rows, OVERBUILT * NODES);
                let mut left = trainer.nodes.len();
                while left > NODES {
                    left = (left / 2).max(NODES);
                    trainer.count(rows);
                    trainer.prune(left);
                }
            }
        }
        trainer.finish()
    }

    /// Number of nodes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.parents.len()
    }

    /// Never: the single bytes are there.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        false
    }

    /// Calls `emit` with the node of each longest match.
    pub fn parse(&self, row: &[u8], mut emit: impl FnMut(u16)) {
        let mut node = NONE;
        for byte in row {
            let next = if node == NONE { NONE } else { self.children[usize::from(node)][usize::from(*byte)] };
            if next == NONE {
                if node != NONE {
                    emit(node);
                }
                node = u16::from(*byte);
            } else {
                node = next;
            }
        }
        if node != NONE {
            emit(node);
        }
    }

    /// Bytes of the codes of a row; `None` when they are not fewer than its own, which is stored as it is then.
    #[must_use]
    pub fn encoded_len(&self, row: &[u8]) -> Option<usize> {
        let mut codes = 0_usize;
        self.parse(row, |_| codes += 1);
        Some((codes * 12).div_ceil(8)).filter(|bytes| *bytes < row.len())
    }

    /// Appends the codes of a row, most significant bits first, and returns how many bytes they take. `None`, and nothing appended, as in [`encoded_len`](Self::encoded_len).
    pub fn encode(&self, row: &[u8], out: &mut Vec<u8>) -> Option<usize> {
        let bytes = self.encoded_len(row)?;
        let (mut word, mut bits) = (0_u32, 0);
        self.parse(row, |code| {
            word = word << 12 | u32::from(code);
            bits += 12;
            while bits >= 8 {
                bits -= 8;
                out.push((word >> bits) as u8);
            }
        });
        if bits > 0 {
            out.push((word << (8 - bits)) as u8);
        }
        Some(bytes)
    }

    /// Appends the row of these codes. False when there is a code of no node; `out` is as before then.
    #[must_use]
    pub fn decode(&self, codes: &[u8], out: &mut Vec<u8>) -> bool {
        let start = out.len();
        let (mut word, mut bits) = (0_u32, 0);
        for byte in codes {
            word = word << 8 | u32::from(*byte);
            bits += 8;
            if bits < 12 {
                continue;
            }
            bits -= 12;
            let mut node = (word >> bits & 0xFFF) as u16;
            let at = out.len();
            loop {
                let Some((parent, byte)) = self.parents.get(usize::from(node)) else {
                    out.truncate(start);
                    return false;
                };
                out.push(*byte);
                if *parent == NONE {
                    break;
                }
                node = *parent;
            }
            out[at..].reverse();
        }
        true
    }
}

fn greatest_common_divisor(a: usize, b: usize) -> usize {
    if b == 0 { a } else { greatest_common_divisor(b, a % b) }
}

impl Trainer {
    fn new() -> Trainer {
        let root = |byte| Node { parent: u32::MAX, byte, bytes: 1, children: 0, uses: 0, used_last: 0, gone: false };
        Trainer { longer: vec![[0; 256]; ROOTS], nodes: (0..=255).map(root).collect() }
    }

    /// The longest match at the beginning of `rest`, which is not empty: its node and bytes.
    fn longest(&self, rest: &[u8]) -> (u32, usize) {
        let mut node = u32::from(rest[0]);
        for (len, byte) in rest.iter().enumerate().skip(1) {
            match self.longer[node as usize][usize::from(*byte)] {
                0 => return (node, len),
                next => node = next,
            }
        }
        (node, rest.len())
    }

    /// Parses rows as LZ78 does: each match makes a node for itself and the byte behind it, until there are so many nodes.
    fn grow(&mut self, rows: &[&[u8]], limit: usize) {
        // A step that has no divisor in common with the number of rows visits all of them, and soon rows of every part.
        let step = (rows.len() * 5 / 8 + 1..).find(|step| greatest_common_divisor(*step, rows.len()) == 1).unwrap_or(1);
        for number in 0..rows.len() {
            let mut rest = rows[number * step % rows.len()];
            while !rest.is_empty() {
                if self.nodes.len() >= limit {
                    return;
                }
                let (node, len) = self.longest(rest);
                let bytes = self.nodes[node as usize].bytes;
                if let Some(byte) = rest.get(len).filter(|_| bytes < BYTES_MAX) {
                    self.longer[node as usize][usize::from(*byte)] = self.nodes.len() as u32;
                    self.longer.push([0; 256]);
                    self.nodes[node as usize].children += 1;
                    self.nodes.push(Node { parent: node, byte: *byte, bytes: bytes + 1, children: 0, uses: 0, used_last: 0, gone: false });
                }
                rest = &rest[len..];
            }
        }
    }

    /// Counts the uses of each node, as rows will be cut.
    fn count(&mut self, rows: &[&[u8]]) {
        self.nodes.iter_mut().for_each(|node| node.uses = 0);
        let mut time = 0;
        for row in rows {
            let mut rest = *row;
            while !rest.is_empty() {
                let (node, len) = self.longest(rest);
                time += 1;
                let node = &mut self.nodes[node as usize];
                node.uses += 1;
                node.used_last = time;
                rest = &rest[len..];
            }
        }
    }

    /// Takes childless nodes away, those that are used least first, until so many are left. What a node was used for, its parent will be.
    fn prune(&mut self, left: usize) {
        let mut now = self.nodes.iter().filter(|node| !node.gone).count();
        let entry = |nodes: &[Node], number: usize| Reverse((nodes[number].uses, nodes[number].used_last, number));
        let childless = |number: &usize| *number >= ROOTS && !self.nodes[*number].gone && self.nodes[*number].children == 0;
        let mut heap: BinaryHeap<_> = (0..self.nodes.len()).filter(childless).map(|number| entry(&self.nodes, number)).collect();
        while now > left
            && let Some(Reverse((uses, used_last, number))) = heap.pop()
        {
            let Node { parent, byte, .. } = self.nodes[number];
            self.nodes[number].gone = true;
            self.longer[parent as usize][usize::from(byte)] = 0;
            now -= 1;
            let node = &mut self.nodes[parent as usize];
            node.children -= 1;
            node.uses += uses;
            node.used_last = node.used_last.max(used_last);
            if node.children == 0 && parent as usize >= ROOTS {
                heap.push(entry(&self.nodes, parent as usize));
            }
        }
    }

    /// Numbers the nodes that are left.
    fn finish(self) -> LzTree {
        let mut numbers = vec![NONE; self.nodes.len()];
        let mut tree = LzTree { children: Vec::new(), parents: Vec::new() };
        // A node comes behind its parent.
        for (number, node) in self.nodes.iter().enumerate().filter(|(_, node)| !node.gone) {
            let parent = if number < ROOTS { NONE } else { numbers[node.parent as usize] };
            numbers[number] = tree.parents.len() as u16;
            if parent != NONE {
                tree.children[usize::from(parent)][usize::from(node.byte)] = numbers[number];
            }
            tree.parents.push((parent, node.byte));
            tree.children.push([NONE; 256]);
        }
        tree
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lineitem::Selection;

    fn check(tree: &LzTree, row: &[u8]) -> usize {
        let mut codes = vec![7];
        let Some(bytes) = tree.encode(row, &mut codes) else {
            assert_eq!((tree.encoded_len(row), codes), (None, vec![7]));
            return row.len();
        };
        assert_eq!((tree.encoded_len(row), codes.len()), (Some(bytes), 1 + bytes));
        assert!(bytes < row.len());
        let mut out = b"before".to_vec();
        assert!(tree.decode(&codes[1..], &mut out));
        assert_eq!(&out[6..], row);
        bytes
    }

    #[test]
    fn rows_come_back_and_never_get_larger() {
        let rows = Selection { scale_factor: 0.001, offset: 0, step: 1 }.text();
        let rows: Vec<&[u8]> = rows.iter().collect();
        let plain: usize = rows.iter().map(|row| row.len()).sum();
        let [frozen, pruned] = [Growth::Frozen, Growth::Pruned].map(|growth| {
            let tree = LzTree::train(&rows, growth);
            assert_eq!(tree.len(), NODES);
            for row in [&b""[..], b"x", b"xy", b"\xff\xfe\0\x01", &[b'0'; 2000]] {
                check(&tree, row);
            }
            rows.iter().map(|row| check(&tree, row)).sum::<usize>()
        });
        assert!(pruned < frozen && frozen < plain, "{pruned} {frozen} {plain}");
    }

    #[test]
    fn few_rows_make_a_small_tree() {
        let rows: [&[u8]; 3] = [b"abab", b"", b"ababab"];
        let tree = LzTree::train(&rows, Growth::Pruned);
        // Rows 1, 2 and 0 in this order, or another: ab and aba are learnt in any.
        assert!(tree.len() > 257 && tree.len() < 264);
        rows.iter().for_each(|row| _ = check(&tree, row));
        assert_eq!(LzTree::train(&[], Growth::Pruned).len(), 256);
        assert!(!tree.decode(&[0xFF, 0xFF], &mut Vec::new()));
    }

    #[test]
    fn a_match_is_the_longest() {
        let rows = [&b"aaaaaaaaaaaaaaaaaaaa"[..]; 50];
        let tree = LzTree::train(&rows, Growth::Frozen);
        let mut codes = Vec::new();
        tree.parse(rows[0], |code| codes.push(code));
        assert_eq!(codes.len(), 1);
    }
}
