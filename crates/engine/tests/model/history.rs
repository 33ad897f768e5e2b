//! Histories of transactions on registers whose versions are numbered, and what they must not have in them.
//!
//! Each version names its writer, and who writes one has read the one before: so who depends on whom is known. With D for "came before, as it wrote what the other read or wrote over, or as the
//! same client ran it before", and A for "read what the other has overwritten", a history is one of snapshot isolation exactly when D followed by at most one A has no circle (Cerone, Gotsman
//! 2018), and serializable when D and A together have none (Adya 1999). A lost update, G-single and a long fork are circles of the first kind; a write skew is one of the second only.

use std::collections::{BTreeMap, BTreeSet};

/// Who wrote the first versions.
pub(crate) const INITIAL: u64 = 0;

/// A committed transaction.
#[derive(Clone, Debug, Default)]
pub(crate) struct Committed {
    pub(crate) id: u64,
    /// Register, version, writer.
    pub(crate) reads: Vec<(usize, u64, u64)>,
    /// Register, version.
    pub(crate) writes: Vec<(usize, u64)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Level {
    Snapshot,
    Serializable,
}

/// What is wrong with the histories of some clients, each in the order in which it ran its transactions.
pub(crate) fn check(clients: &[Vec<Committed>], level: Level) -> Result<(), String> {
    let all: Vec<&Committed> = clients.iter().flatten().collect();
    let place: BTreeMap<u64, usize> = all.iter().enumerate().map(|(place, t)| (t.id, place)).collect();
    let mut writer: BTreeMap<(usize, u64), usize> = BTreeMap::new();
    for (number, t) in all.iter().enumerate() {
        for written in &t.writes {
            if let Some(other) = writer.insert(*written, number)
                && other != number
            {
                return Err(format!("lost update: {written:?} by {:?} and by {t:?}", all[other]));
            }
        }
    }
    let last: BTreeSet<(usize, u64)> = all
        .iter()
        .flat_map(|t| {
            let mut last: BTreeMap<usize, u64> = BTreeMap::new();
            t.writes.iter().for_each(|(register, version)| _ = last.insert(*register, *version));
            last
        })
        .collect();
    let (mut before, mut anti) = (Edges::new(), Edges::new());
    for client in clients {
        for pair in client.windows(2) {
            before.insert((place[&pair[0].id], place[&pair[1].id]));
        }
    }
    for ((register, version), number) in &writer {
        if let Some(next) = writer.get(&(*register, version + 1)) {
            before.insert((*number, *next));
        }
    }
    for (number, t) in all.iter().enumerate() {
        for (register, version, by) in &t.reads {
            if *by != t.id && *by != INITIAL {
                let Some(other) = place.get(by) else {
                    return Err(format!("{t:?} has read what {by} has not committed"));
                };
                if writer.get(&(*register, *version)) != Some(other) {
                    return Err(format!("{t:?} has read version {version} of {register} by {:?}, who has not written it", all[*other]));
                }
                if !last.contains(&(*register, *version)) {
                    return Err(format!("{t:?} has read version {version} of {register}, which {:?} has overwritten itself", all[*other]));
                }
                before.insert((*other, number));
            }
            if let Some(next) = writer.get(&(*register, version + 1)) {
                anti.insert((number, *next));
            }
        }
    }
    before.retain(|(a, b)| a != b);
    anti.retain(|(a, b)| a != b);
    let mut edges = before.clone();
    match level {
        Level::Serializable => edges.extend(&anti),
        Level::Snapshot => {
            for (from, by) in &before {
                edges.extend(anti.range((*by, 0)..=(*by, usize::MAX)).map(|(_, to)| (*from, *to)));
            }
        }
    }
    match circle(&edges, all.len()) {
        None => Ok(()),
        Some(circle) => {
            let shown: Vec<String> = circle.iter().map(|number| format!("{:?}", all[*number])).collect();
            Err(format!("a circle that {level:?} must not have: {}", shown.join(" -> ")))
        }
    }
}

type Edges = BTreeSet<(usize, usize)>;

/// A circle: nodes without an edge that leads to a node that is left go, until none goes.
fn circle(edges: &Edges, nodes: usize) -> Option<Vec<usize>> {
    let mut out = vec![0; nodes];
    let mut into: Vec<Vec<usize>> = vec![Vec::new(); nodes];
    for (from, to) in edges {
        if from == to {
            return Some(vec![*from]);
        }
        out[*from] += 1;
        into[*to].push(*from);
    }
    let mut free: Vec<usize> = (0..nodes).filter(|node| out[*node] == 0).collect();
    while let Some(node) = free.pop() {
        for from in &into[node] {
            out[*from] -= 1;
            if out[*from] == 0 {
                free.push(*from);
            }
        }
    }
    let mut path = vec![(0..nodes).find(|node| out[*node] > 0)?];
    loop {
        let at = path[path.len() - 1];
        let next = edges.range((at, 0)..=(at, usize::MAX)).map(|(_, to)| *to).find(|to| out[*to] > 0)?;
        if let Some(start) = path.iter().position(|node| *node == next) {
            return Some(path.split_off(start));
        }
        path.push(next);
    }
}

mod by_hand {
    use super::*;

    fn ran(id: u64, reads: &[(usize, u64, u64)], writes: &[(usize, u64)]) -> Vec<Committed> {
        vec![Committed { id, reads: reads.to_vec(), writes: writes.to_vec() }]
    }

    #[track_caller]
    fn says(clients: &[Vec<Committed>], snapshot: bool, serializable: bool) {
        assert_eq!((check(clients, Level::Snapshot).is_ok(), check(clients, Level::Serializable).is_ok()), (snapshot, serializable));
    }

    #[test]
    fn one_after_the_other() {
        says(&[ran(1, &[(0, 0, 0)], &[(0, 1)]), ran(2, &[(0, 1, 1)], &[(0, 2)]), ran(3, &[(0, 2, 2)], &[])], true, true);
    }

    #[test]
    fn a_lost_update() {
        says(&[ran(1, &[(0, 0, 0)], &[(0, 1)]), ran(2, &[(0, 0, 0)], &[(0, 1)])], false, false);
    }

    #[test]
    fn a_write_skew() {
        says(&[ran(1, &[(0, 0, 0), (1, 0, 0)], &[(0, 1)]), ran(2, &[(0, 0, 0), (1, 0, 0)], &[(1, 1)])], true, false);
    }

    #[test]
    fn g_single() {
        says(&[ran(1, &[(0, 0, 0), (1, 0, 0)], &[(0, 1), (1, 1)]), ran(2, &[(0, 1, 1), (1, 0, 0)], &[])], false, false);
    }

    #[test]
    fn a_long_fork() {
        let readers = [ran(3, &[(0, 1, 1), (1, 0, 0)], &[]), ran(4, &[(0, 0, 0), (1, 1, 2)], &[])];
        let writers = [ran(1, &[(0, 0, 0)], &[(0, 1)]), ran(2, &[(1, 0, 0)], &[(1, 1)])];
        says(&[&writers[..], &readers[..]].concat(), false, false);
    }

    #[test]
    fn reads_of_what_was_not_committed() {
        says(&[ran(1, &[(0, 1, 9)], &[])], false, false);
        says(&[ran(1, &[(0, 0, 0)], &[(0, 1), (0, 2)]), ran(2, &[(0, 1, 1)], &[])], false, false);
    }

    #[test]
    fn a_client_that_sees_its_own_past() {
        let client = [ran(1, &[(0, 0, 0)], &[(0, 1)]), ran(2, &[(0, 0, 0)], &[])].concat();
        says(&[client], false, false);
    }
}
