//! What of an index a condition can be true for.
//!
//! The ranges are necessary: every row that satisfies the condition has its key in one of them. They are sufficient as well only where they are said to be exact; else the condition is still to
//! be evaluated on each row.
//! Of an OR the ranges of all its alternatives count, if each of them bounds what is looked at.
//! Equalities (and IN, IS NULL) on the first key columns make prefixes, comparisons (and LIKE with a fixed beginning) on the next column bound the ranges within.

use super::Predicate;
use super::tree::{Comparison, Node};
use crate::key::{Direction, KeyLayout, prefix_end};
use crate::{DataType, Value, ValueRef};

/// Keys from `start` (inclusive) to `end` (exclusive; `None` = all above), as byte strings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyRange {
    /// First key bytes of the range
    pub start: Vec<u8>,
    /// First key bytes behind it
    pub end: Option<Vec<u8>>,
}

impl KeyRange {
    /// Is the key in it?
    #[inline]
    #[must_use]
    pub fn contains(&self, key: &[u8]) -> bool {
        *key >= *self.start && self.end.as_ref().is_none_or(|end| *key < **end)
    }
}

/// IN lists over several columns multiply: not above this many ranges.
const RANGES_MAX: usize = 1_024;

/// What the AND-ed terms say of one column.
#[derive(Default)]
struct Bounds<'p> {
    /// One of these (NULL for IS NULL)
    equal: Option<Vec<ValueRef<'p>>>,
    /// Value, and whether it is itself within
    low: Option<(ValueRef<'p>, bool)>,
    high: Option<(ValueRef<'p>, bool)>,
    prefix: Option<&'p str>,
    not_null: bool,
}

impl<'p> Bounds<'p> {
    fn set_equal(&mut self, values: Vec<ValueRef<'p>>) {
        // Of two lists any one is a necessary condition: keep the shorter.
        if self.equal.as_ref().is_none_or(|have| have.len() > values.len()) {
            self.equal = Some(values);
        }
    }

    fn set_low(&mut self, value: ValueRef<'p>, within: bool) {
        if self.low.is_none_or(|(have, have_within)| value > have || (value == have && have_within)) {
            self.low = Some((value, within));
        }
    }

    fn set_high(&mut self, value: ValueRef<'p>, within: bool) {
        if self.high.is_none_or(|(have, have_within)| value < have || (value == have && have_within)) {
            self.high = Some((value, within));
        }
    }

    fn add(&mut self, node: &'p Node, column: usize) {
        match node {
            Node::Compare { column: c, comparison, value } if *c == column => {
                self.not_null = true;
                let value = value.as_ref();
                match comparison {
                    Comparison::Equal => self.set_equal(vec![value]),
                    Comparison::Less => self.set_high(value, false),
                    Comparison::LessOrEqual => self.set_high(value, true),
                    Comparison::Greater => self.set_low(value, false),
                    Comparison::GreaterOrEqual => self.set_low(value, true),
                    Comparison::NotEqual => {}
                }
            }
            Node::CompareColumns { left, right, .. } if *left == column || *right == column => self.not_null = true,
            Node::Constant { column: c, holds } if *c == column => {
                self.not_null = true;
                if *holds != Some(true) {
                    self.set_equal(Vec::new());
                }
            }
            Node::In { column: c, values, negated, .. } if *c == column => {
                self.not_null = true;
                if !negated {
                    self.set_equal(values.iter().map(Value::as_ref).collect());
                }
            }
            Node::Null { column: c, negated } if *c == column => {
                if *negated {
                    self.not_null = true;
                } else {
                    self.set_equal(vec![ValueRef::Null]);
                }
            }
            Node::Like { column: c, pattern, negated, .. } if *c == column => {
                self.not_null = true;
                let longer = self.prefix.is_none_or(|have| have.len() < pattern.prefix().len());
                if !negated && longer && !pattern.prefix().is_empty() {
                    self.prefix = Some(pattern.prefix());
                }
            }
            Node::And(nodes) => nodes.iter().for_each(|n| self.add(n, column)),
            _ => {}
        }
    }
}

/// All keys that begin with `prefix`.
fn within(prefix: Vec<u8>) -> KeyRange {
    let mut end = prefix.clone();
    let bounded = prefix_end(&mut end);
    KeyRange { start: prefix, end: bounded.then_some(end) }
}

/// One end of a range: at the keys of `values`, or behind them. `None`: there is nothing behind.
fn edge(layout: &KeyLayout, values: &[ValueRef<'_>], behind: bool) -> Option<Option<Vec<u8>>> {
    let mut bytes = Vec::new();
    layout.encode(values, &mut bytes).ok()?;
    Some((!behind || prefix_end(&mut bytes)).then_some(bytes))
}

/// The range below one prefix of equal values. `None`: it is empty. `is_exact` becomes false when a bound is not in it.
fn narrowed(layout: &KeyLayout, equal: &[ValueRef<'_>], bounds: &Bounds<'_>, is_exact: &mut bool) -> Option<KeyRange> {
    let all = || {
        let mut prefix = Vec::new();
        // Values that were encoded before.
        let _ = layout.encode(equal, &mut prefix);
        prefix
    };
    if equal.len() == layout.column_count() {
        return Some(within(all()));
    }
    if let Some(text) = bounds.prefix {
        let mut bytes = Vec::new();
        if layout.encode_text_prefix(equal, text, &mut bytes).is_ok() {
            return Some(within(bytes));
        }
    }
    let mut range = if bounds.not_null { within(layout.not_null_prefix(equal)) } else { within(all()) };
    let descending = layout.direction(equal.len()) == Direction::Descending;
    let (first, last) = if descending { (bounds.high, bounds.low) } else { (bounds.low, bounds.high) };
    let with = |value| [equal, &[value]].concat();
    if let Some((value, inside)) = first {
        match edge(layout, &with(value), !inside) {
            Some(start) => range.start = start?,
            None => *is_exact = false,
        }
    }
    if let Some((value, inside)) = last {
        match edge(layout, &with(value), inside) {
            Some(end) => range.end = end,
            None => *is_exact = false,
        }
    }
    range.end.as_ref().is_none_or(|end| range.start < *end).then_some(range)
}

/// The ranges for rows that satisfy all of these, ascending and apart. `is_exact` becomes false when they do not say all that their terms do.
fn ranges_of(nodes: &[&Node], layout: &KeyLayout, is_exact: &mut bool) -> Vec<KeyRange> {
    let mut prefixes: Vec<Vec<ValueRef<'_>>> = vec![Vec::new()];
    let mut next = Bounds::default();
    for (column, _) in layout.columns() {
        next = Bounds::default();
        nodes.iter().for_each(|node| next.add(node, column));
        let Some(values) = &next.equal else { break };
        if values.len().saturating_mul(prefixes.len()) > RANGES_MAX {
            *is_exact = false;
            break;
        }
        let longer: Vec<Vec<ValueRef<'_>>> = prefixes.iter().flat_map(|p| values.iter().map(|v| [p.as_slice(), &[*v]].concat())).collect();
        // IS NULL of a NOT NULL column, or a value no key has room for: the shorter prefixes will do.
        if longer.iter().any(|p| layout.encode(p, &mut Vec::new()).is_err()) {
            *is_exact = false;
            break;
        }
        prefixes = longer;
    }
    let mut ranges: Vec<KeyRange> = prefixes.iter().filter_map(|p| narrowed(layout, p, &next, is_exact)).collect();
    ranges.sort_unstable_by(|a, b| a.start.cmp(&b.start));
    ranges
}

/// The same keys in ranges that ascend and have none in common.
fn apart(mut ranges: Vec<KeyRange>) -> Vec<KeyRange> {
    ranges.sort_unstable_by(|a, b| a.start.cmp(&b.start));
    let mut apart: Vec<KeyRange> = Vec::with_capacity(ranges.len());
    for range in ranges {
        match apart.last_mut() {
            Some(last) if last.end.as_ref().is_none_or(|end| range.start <= *end) => {
                let is_longer = match (&last.end, &range.end) {
                    (Some(end), Some(other)) => other > end,
                    (end, _) => end.is_some(),
                };
                if is_longer {
                    last.end = range.end;
                }
            }
            _ => apart.push(range),
        }
    }
    apart
}

impl Predicate {
    /// The ranges of an index, ascending and apart, outside which no row satisfies the condition. One range of everything when the condition
    /// does not bound the index's first column; none when nothing can satisfy it.
    #[must_use]
    pub fn key_ranges(&self, layout: &KeyLayout) -> Vec<KeyRange> {
        self.key_ranges_and_exactness(layout).0
    }

    /// The same; and whether every row whose key is in one of them satisfies the condition, so that it need not be evaluated.
    #[must_use]
    pub fn key_ranges_and_exactness(&self, layout: &KeyLayout) -> (Vec<KeyRange>, bool) {
        let mut is_exact = self.is_told_by_ranges(layout);
        let ranges = ranges_of(&[&self.root], layout, &mut is_exact);
        let narrower = self.terms().iter().find_map(|term| self.ranges_of_alternatives(term, layout, &ranges));
        match narrower {
            Some(narrower) => (narrower, false),
            None => (ranges, is_exact),
        }
    }

    /// The ranges of all alternatives of an OR among the terms together, unless one of them allows as much as the condition does without: `all`.
    fn ranges_of_alternatives(&self, term: &Node, layout: &KeyLayout, all: &[KeyRange]) -> Option<Vec<KeyRange>> {
        let Node::Or(alternatives) = term else { return None };
        let mut ranges = Vec::with_capacity(alternatives.len());
        for alternative in alternatives {
            let own = ranges_of(&[&self.root, alternative], layout, &mut false);
            if own == all || ranges.len() + own.len() > RANGES_MAX {
                return None;
            }
            ranges.extend(own);
        }
        Some(apart(ranges))
    }

    /// What is true of all rows that satisfy the condition.
    fn terms(&self) -> &[Node] {
        match &self.root {
            Node::And(terms) => terms,
            term => std::slice::from_ref(term),
        }
    }

    /// Is each term one that ranges tell wholly, as far as their ends have room in keys: one value or list for each of the first key columns, comparisons of the next one?
    fn is_told_by_ranges(&self, layout: &KeyLayout) -> bool {
        let terms = self.terms();
        let mut told = 0;
        for (i, (column, _)) in layout.columns().enumerate() {
            // A key does not tell a NaN from another one, and zero from minus zero; what CHAR is compared with has no blanks at its end.
            // A column that is there twice tells nothing more.
            let is_told = layout.columns().take(i).any(|(before, _)| before == column);
            if is_told || !layout.decodes_exactly(i) || matches!(layout.data_type(i), DataType::Char(_)) {
                break;
            }
            let (mut equalities, mut bounds) = (0, 0);
            for term in terms {
                match term {
                    Node::Compare { column: of, comparison: Comparison::Equal, .. }
                    | Node::In { column: of, negated: false, .. }
                    | Node::Null { column: of, negated: false }
                        if *of == column =>
                    {
                        equalities += 1;
                    }
                    Node::Compare { column: of, comparison, .. } if *of == column && *comparison != Comparison::NotEqual => bounds += 1,
                    _ => {}
                }
            }
            match (equalities, bounds) {
                (1, 0) => told += 1,
                (0, bounds) => {
                    told += bounds;
                    break;
                }
                _ => return false,
            }
        }
        told == terms.len()
    }
}
