//! Dependencies between transactions, and circles among them (Adya 1999).
//!
//! Invariant: moments are nodes of their own, in a chain, so that "ended before that one began" takes few edges.

use super::history::{History, Outcome};
use super::order::Orders;

/// How one transaction depends on another, which comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Edge {
    /// It wrote the version behind that of the other.
    Ww,
    /// It read what the other wrote.
    Wr,
    /// It wrote the version behind the one that the other read.
    Rw,
    /// It began after the other had ended.
    Time,
}

/// Which circles are looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Circles {
    /// Of writes.
    Writes,
    /// Of writes and reads of what was written.
    Information,
    /// Those in which no two reads of what was then overwritten follow each other: what snapshots exclude (Cerone, Gotsman 2016; Fekete et al. 2005).
    Snapshots,
    /// All.
    Any,
}

impl Circles {
    fn takes(self, edge: Edge) -> bool {
        match self {
            Circles::Writes => matches!(edge, Edge::Ww | Edge::Time),
            Circles::Information => edge != Edge::Rw,
            Circles::Snapshots | Circles::Any => true,
        }
    }
}

#[derive(Debug)]
pub(super) struct Graph {
    edges: Vec<Vec<(usize, Edge)>>,
    transactions: usize,
}

impl Graph {
    pub(super) fn new(history: &History, orders: &Orders) -> Graph {
        let count = history.len();
        // Node `count + i` is the moment in which the i-th of those committed has ended.
        // A commit that was cut off may be seen after the crash only, and not by who reads before it.
        let mut ends: Vec<(u64, usize)> =
            (0..count).filter(|n| history[*n].outcome == Outcome::Committed).map(|n| (history[n].ended, n)).collect();
        ends.sort_unstable();
        let mut graph = Graph { edges: vec![Vec::new(); count + ends.len()], transactions: count };
        for (i, (_, number)) in ends.iter().enumerate() {
            graph.edges[*number].push((count + i, Edge::Time));
            if i > 0 {
                graph.edges[count + i - 1].push((count + i, Edge::Time));
            }
        }
        for number in (0..count).filter(|number| orders.committed[*number]) {
            let before = ends.partition_point(|(ended, _)| *ended < history[number].begun);
            if before > 0 {
                graph.edges[count + before - 1].push((number, Edge::Time));
            }
        }
        for list in orders.lists.values() {
            for pair in list.windows(2) {
                graph.add(orders.writers[&pair[0]], orders.writers[&pair[1]], Edge::Ww);
            }
        }
        for (reader, key, length) in orders.reads.iter().filter(|(reader, ..)| orders.committed[*reader]) {
            let list = &orders.lists[key];
            if let Some(before) = length.checked_sub(1) {
                graph.add(orders.writers[&list[before]], *reader, Edge::Wr);
            }
            if let Some(behind) = list.get(*length) {
                graph.add(*reader, orders.writers[behind], Edge::Rw);
            }
        }
        graph
    }

    fn add(&mut self, from: usize, to: usize, edge: Edge) {
        if from != to {
            self.edges[from].push((to, edge));
        }
    }

    /// A circle, as its transactions with the edges that leave them.
    pub(super) fn find(&self, circles: Circles) -> Option<Vec<(usize, Edge)>> {
        // Each node twice: reached by a read of what was overwritten, or not.
        let mut state = vec![Visit::No; self.edges.len() * 2];
        for root in 0..self.edges.len() {
            if state[root * 2] != Visit::No {
                continue;
            }
            let mut path: Vec<(usize, usize)> = vec![(root * 2, 0)];
            state[root * 2] = Visit::OnPath;
            while let Some((node, next)) = path.last_mut() {
                let Some(&(to, edge)) = self.edges[*node / 2].get(*next) else {
                    state[*node] = Visit::Done;
                    path.pop();
                    continue;
                };
                *next += 1;
                let by_rw = circles == Circles::Snapshots && edge == Edge::Rw;
                if !circles.takes(edge) || by_rw && *node % 2 == 1 {
                    continue;
                }
                let to = to * 2 + usize::from(by_rw);
                match state[to] {
                    Visit::No => {
                        state[to] = Visit::OnPath;
                        path.push((to, 0));
                    }
                    Visit::OnPath => {
                        let from = path.iter().position(|(node, _)| *node == to)?;
                        return Some(self.circle(&path[from..]));
                    }
                    Visit::Done => {}
                }
            }
        }
        None
    }

    fn circle(&self, path: &[(usize, usize)]) -> Vec<(usize, Edge)> {
        let edges = path.iter().map(|(node, next)| (*node / 2, self.edges[*node / 2][*next - 1].1));
        edges.filter(|(node, _)| *node < self.transactions).collect()
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Visit {
    No,
    OnPath,
    Done,
}
