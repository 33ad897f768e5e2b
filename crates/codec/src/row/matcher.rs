//! The tokens that a row's next bytes begin with.
//!
//! A trie in a double array (Aoe, "An Efficient Digital Search Algorithm by Using a Double-Array Structure", 1989): the child of node n for byte b is
//! the cell `base(n) + b`, if that cell is labelled b. No two nodes have the same base, so the label says enough. The first two bytes are looked
//! up at once.

/// No token.
const NO_TOKEN: u16 = u16::MAX;

/// Bytes a base may be followed by.
const BYTES: usize = 256;

/// Base of nodes without children: the cells from here on have no label.
const CHILDLESS: usize = 0;

/// Bases tried for the children of a node before they get a place of their own. Bounds the time to build, whatever the tokens.
const FIT_TRIES: usize = 64;

const FILTER_BITS: u32 = 14;
const FILTER_PREFIX: usize = 4;

/// A token that matches, and its length.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Match(u32);

impl Match {
    pub(super) const NONE: Self = Self::new(0, NO_TOKEN);

    const fn new(len: usize, token: u16) -> Self {
        Self(len as u32 | (token as u32) << 8)
    }

    #[inline(always)]
    pub(super) fn token(self) -> u16 {
        (self.0 >> 8) as u16
    }

    #[inline(always)]
    pub(super) fn len(self) -> usize {
        (self.0 & 0xff) as usize
    }
}

/// A node of the trie: base (24 bits), label (16 bits; above 255: none), the longest token on the way to it (24 bits).
#[derive(Clone, Copy)]
struct Cell(u64);

impl Cell {
    const FREE: Self = Self(0xffff << 24);

    fn new(label: usize, longest: Match) -> Self {
        Self((label as u64) << 24 | u64::from(longest.0) << 40)
    }

    fn with_base(self, base: usize) -> Self {
        Self(self.0 & !0xff_ffff | base as u64)
    }

    #[inline(always)]
    fn base(self) -> usize {
        (self.0 & 0xff_ffff) as usize
    }

    #[inline(always)]
    fn label(self) -> u16 {
        (self.0 >> 24) as u16
    }

    #[inline(always)]
    fn longest(self) -> Match {
        Match((self.0 >> 40) as u32)
    }
}

/// Finds tokens by the bytes of a row. Tokens are numbered in ascending order.
pub(super) struct Matcher {
    cells: Vec<Cell>,
    /// Nodes by the first two bytes (the first in the low bits).
    roots: Vec<Cell>,
    singles: [Match; BYTES],
    /// By token: the longest shorter token that it begins with.
    parents: Vec<Match>,
    /// By hash of the first four bytes: at least the length of the longest token that begins with them.
    longest_by_prefix: Vec<u8>,
}

impl Matcher {
    /// `tokens` must ascend, have at most 32 bytes, and contain the 256 single bytes; there may be 65,535.
    pub(super) fn new<T: AsRef<[u8]>>(tokens: &[T]) -> Self {
        let tokens: Vec<&[u8]> = tokens.iter().map(AsRef::as_ref).collect();
        let mut singles = [Match::NONE; BYTES];
        let mut longest_by_prefix = vec![0; 1 << FILTER_BITS];
        for (number, token) in tokens.iter().enumerate() {
            if let [byte] = token {
                singles[usize::from(*byte)] = Match::new(1, number as u16);
            }
            if let Some(prefix) = token.first_chunk() {
                let longest: &mut u8 = &mut longest_by_prefix[filter_slot(prefix)];
                *longest = (*longest).max(token.len() as u8);
            }
        }
        let (cells, roots) = Builder::build(&tokens, &singles);
        Self { cells, roots, singles, parents: parents(&tokens), longest_by_prefix }
    }

    /// The longest token that `bytes` begins with.
    ///
    /// # Panics
    /// When `bytes` is empty.
    #[inline(always)]
    pub(super) fn longest(&self, bytes: &[u8]) -> Match {
        match bytes.split_first_chunk() {
            Some((first_two, rest)) => self.descend(self.root(first_two), rest),
            None => self.singles[usize::from(bytes[0])],
        }
    }

    /// The longest token below `cell` for the bytes that follow.
    #[inline(always)]
    fn descend(&self, mut cell: Cell, rest: &[u8]) -> Match {
        for &byte in rest {
            let child = self.cells[cell.base() + usize::from(byte)];
            if child.label() != u16::from(byte) {
                break;
            }
            cell = child;
        }
        cell.longest()
    }

    #[inline(always)]
    fn root(&self, first_two: &[u8; 2]) -> Cell {
        self.roots[usize::from(u16::from_le_bytes(*first_two))]
    }

    /// The longest token shorter than `token` that it begins with, or [`Match::NONE`].
    #[inline(always)]
    pub(super) fn parent(&self, token: u16) -> Match {
        self.parents[usize::from(token)]
    }

    /// False only if no token of `len` bytes or more can match here.
    #[inline(always)]
    pub(super) fn may_match(&self, bytes: &[u8], len: usize) -> bool {
        match bytes.first_chunk() {
            Some(prefix) if len >= FILTER_PREFIX => len <= usize::from(self.longest_by_prefix[filter_slot(prefix)]) && len <= bytes.len(),
            _ => len <= bytes.len(),
        }
    }
}

#[inline(always)]
fn filter_slot(prefix: &[u8; FILTER_PREFIX]) -> usize {
    (u32::from_le_bytes(*prefix).wrapping_mul(0x9e37_79b1) >> (u32::BITS - FILTER_BITS)) as usize
}

/// By token, the longest other one that it begins with: the nearest before it in the order of which that is true.
fn parents(tokens: &[&[u8]]) -> Vec<Match> {
    let mut open: Vec<Match> = Vec::new();
    let mut parents = Vec::with_capacity(tokens.len());
    for (number, token) in tokens.iter().enumerate() {
        while open.last().is_some_and(|&before| !token.starts_with(tokens[usize::from(before.token())])) {
            open.pop();
        }
        parents.push(open.last().copied().unwrap_or(Match::NONE));
        open.push(Match::new(token.len(), number as u16));
    }
    parents
}

/// Tokens that share the bytes up to a node.
struct Range {
    start: usize,
    end: usize,
    depth: usize,
    node: Place,
}

/// Where a node lies.
#[derive(Clone, Copy)]
enum Place {
    Root(usize),
    Cell(usize),
}

struct Builder<'a> {
    tokens: &'a [&'a [u8]],
    roots: Vec<Cell>,
    cells: Vec<Cell>,
    used: Vec<bool>,
    used_bases: Vec<bool>,
    /// No cell before this one is free.
    first_free: usize,
}

impl<'a> Builder<'a> {
    fn build(tokens: &'a [&'a [u8]], singles: &[Match; BYTES]) -> (Vec<Cell>, Vec<Cell>) {
        let mut builder = Self {
            tokens,
            roots: (0..=u16::MAX).map(|first_two| Cell::new(BYTES, singles[usize::from(first_two) % BYTES])).collect(),
            cells: vec![Cell::FREE; BYTES],
            used: vec![true; BYTES],
            used_bases: vec![true],
            first_free: BYTES,
        };
        let mut ranges = Vec::new();
        let mut start = 0;
        while start < tokens.len() {
            let Some(&first_two) = tokens[start].first_chunk::<2>() else {
                start += 1;
                continue;
            };
            let end = start + tokens[start..].partition_point(|token| token.starts_with(&first_two));
            let root = usize::from(u16::from_le_bytes(first_two));
            builder.roots[root] = Cell::new(BYTES, builder.longest_at(start, 2, builder.roots[root].longest()));
            ranges.push(Range { start, end, depth: 2, node: Place::Root(root) });
            start = end;
        }
        // Breadth first: the nodes that most rows pass lie together.
        let mut next = 0;
        while next < ranges.len() {
            builder.place_children(next, &mut ranges);
            next += 1;
        }
        // A base may be followed by any byte.
        let bases = builder.roots.iter().chain(&builder.cells).map(|cell| cell.base());
        let len = bases.max().unwrap_or(CHILDLESS) + BYTES;
        builder.cells.resize(len.max(builder.cells.len()), Cell::FREE);
        (builder.cells, builder.roots)
    }

    /// The token that ends at a node: that of its first token, else the one on the way to it.
    fn longest_at(&self, first: usize, depth: usize, before: Match) -> Match {
        if self.tokens[first].len() == depth { Match::new(depth, first as u16) } else { before }
    }

    fn node(&mut self, place: Place) -> &mut Cell {
        match place {
            Place::Root(root) => &mut self.roots[root],
            Place::Cell(cell) => &mut self.cells[cell],
        }
    }

    fn place_children(&mut self, range: usize, ranges: &mut Vec<Range>) {
        let Range { mut start, end, depth, node } = ranges[range];
        if self.tokens[start].len() == depth {
            start += 1;
        }
        let mut children: Vec<(usize, usize, usize)> = Vec::new();
        while start < end {
            let byte = self.tokens[start][depth];
            let len = self.tokens[start..end].partition_point(|token| token[depth] == byte);
            children.push((usize::from(byte), start, start + len));
            start += len;
        }
        let Some(&(first_byte, ..)) = children.first() else { return };
        let base = self.base_for(first_byte, &children);
        let cell = self.node(node);
        *cell = cell.with_base(base);
        let longest = cell.longest();
        for (byte, start, end) in children {
            let place = base + byte;
            if place >= self.cells.len() {
                self.cells.resize(place + 1, Cell::FREE);
                self.used.resize(place + 1, false);
            }
            self.used[place] = true;
            self.cells[place] = Cell::new(byte, self.longest_at(start, depth + 1, longest));
            ranges.push(Range { start, end, depth: depth + 1, node: Place::Cell(place) });
        }
    }

    /// A base that no node has and that puts all children on free cells.
    fn base_for(&mut self, first_byte: usize, children: &[(usize, usize, usize)]) -> usize {
        let is_free = |used: &[bool], at: usize| !used.get(at).copied().unwrap_or(false);
        while !is_free(&self.used, self.first_free) {
            self.first_free += 1;
        }
        // Cells begin with those of `CHILDLESS`, so no base is negative.
        let first = self.first_free - first_byte;
        let fits = |base: usize| is_free(&self.used_bases, base) && children.iter().all(|(byte, ..)| is_free(&self.used, base + byte));
        let base = (first..first + FIT_TRIES).find(|&base| fits(base)).unwrap_or_else(|| {
            // Behind all cells; a base in use there belongs to a node with other children, at most as many bases as a byte has values.
            let behind = self.used.len() - first_byte;
            (behind..).find(|&base| is_free(&self.used_bases, base)).unwrap_or(behind)
        });
        if base >= self.used_bases.len() {
            self.used_bases.resize(base + 1, false);
        }
        self.used_bases[base] = true;
        base
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg_attr(miri, ignore = "safe code, slow there")]
    fn finds_what_a_linear_search_finds() {
        let mut state = 5_u64;
        let mut random = move |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        };
        for alphabet in [2, 3, 20, 256] {
            let mut tokens: Vec<Vec<u8>> = (0..=255).map(|byte| vec![byte]).collect();
            for _ in 0..1500 {
                let len = 1 + random(9);
                tokens.push((0..len).map(|_| (255 - random(alphabet)) as u8).collect());
            }
            tokens.push(vec![255; 32]);
            tokens.sort();
            tokens.dedup();
            let matcher = Matcher::new(&tokens);
            for _ in 0..3000 {
                let text: Vec<u8> = (0..1 + random(40)).map(|_| (255 - random(alphabet)) as u8).collect();
                let mut expected: Vec<u16> =
                    (0..tokens.len() as u16).filter(|&token| text.starts_with(&tokens[usize::from(token)])).collect();
                expected.sort_by_key(|&token| tokens[usize::from(token)].len());
                let mut found = matcher.longest(&text);
                while let Some(expected) = expected.pop() {
                    assert_eq!(found.token(), expected);
                    assert_eq!(found.len(), tokens[usize::from(expected)].len());
                    assert!(matcher.may_match(&text, found.len()));
                    found = matcher.parent(expected);
                }
                assert_eq!(found, Match::NONE);
            }
        }
    }
}
