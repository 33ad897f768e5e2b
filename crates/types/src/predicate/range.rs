//! What of an index a condition can be true for.
//!
//! The ranges are necessary, not sufficient: every row that satisfies the condition has its key in one of them; the condition is still to be evaluated on each row.
//! Equalities (and IN, IS NULL) on the first key columns make prefixes, comparisons (and LIKE with a fixed beginning) on the next column bound the ranges within.

use super::Predicate;
use super::tree::{Comparison, Node};
use crate::key::{Direction, KeyLayout, prefix_end};
use crate::{Value, ValueRef};

/// Keys from `start` (inclusive) to `end` (exclusive; `None` = all above), as byte strings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyRange {
    /// First key bytes of the range
    pub start: Vec<u8>,
    /// First key bytes behind it
    pub end: Option<Vec<u8>>,
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

/// The range below one prefix of equal values. `None`: it is empty.
fn narrowed(layout: &KeyLayout, equal: &[ValueRef<'_>], bounds: &Bounds<'_>) -> Option<KeyRange> {
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
    if let Some((value, inside)) = first
        && let Some(start) = edge(layout, &with(value), !inside)
    {
        range.start = start?;
    }
    if let Some((value, inside)) = last
        && let Some(end) = edge(layout, &with(value), inside)
    {
        range.end = end;
    }
    range.end.as_ref().is_none_or(|end| range.start < *end).then_some(range)
}

impl Predicate {
    /// The ranges of an index, ascending and apart, outside which no row satisfies the condition. One range of everything when the condition
    /// does not bound the index's first column; none when nothing can satisfy it.
    #[must_use]
    pub fn key_ranges(&self, layout: &KeyLayout) -> Vec<KeyRange> {
        let mut prefixes: Vec<Vec<ValueRef<'_>>> = vec![Vec::new()];
        let mut next = Bounds::default();
        for (column, _) in layout.columns() {
            next = Bounds::default();
            next.add(&self.root, column);
            let Some(values) = next.equal.as_ref().filter(|v| v.len().saturating_mul(prefixes.len()) <= RANGES_MAX) else { break };
            let longer: Vec<Vec<ValueRef<'_>>> =
                prefixes.iter().flat_map(|p| values.iter().map(|v| [p.as_slice(), &[*v]].concat())).collect();
            // IS NULL of a NOT NULL column, or a value no key has room for: the shorter prefixes will do.
            if longer.iter().any(|p| layout.encode(p, &mut Vec::new()).is_err()) {
                break;
            }
            prefixes = longer;
        }
        let mut ranges: Vec<KeyRange> = prefixes.iter().filter_map(|p| narrowed(layout, p, &next)).collect();
        ranges.sort_unstable_by(|a, b| a.start.cmp(&b.start));
        ranges
    }
}
