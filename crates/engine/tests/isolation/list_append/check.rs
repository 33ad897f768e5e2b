//! Which anomalies a level forbids.

use super::graph::{Circles, Edge, Graph};
use super::history::{History, Outcome};
use super::order::{Fault, orders};
use pagefold_engine::database::Isolation;

/// What is wrong with a history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Anomaly {
    /// A read that no order explains.
    Read(Fault, String),
    /// A circle: its kind, and its transactions with the edges that leave them.
    Circle(&'static str, Vec<(usize, Edge)>),
}

/// The first anomaly that the level forbids. Forbidden circles count with real time, too: who begins after another has ended sees it.
pub(super) fn check(history: &History, level: Isolation) -> Result<(), Anomaly> {
    let orders = orders(history).map_err(|(fault, what)| Anomaly::Read(fault, what))?;
    let graph = Graph::new(history, &orders);
    let forbidden: &[(Circles, &str)] = &[
        (Circles::Writes, "G0"),
        (Circles::Information, "G1c"),
        // With a lost update among them.
        (Circles::Snapshots, "G-single"),
        (Circles::Any, "G2"),
    ];
    let forbidden = match level {
        Isolation::ReadCommitted => &forbidden[..2],
        Isolation::RepeatableRead => &forbidden[..3],
        Isolation::Serializable => forbidden,
    };
    for (circles, name) in forbidden {
        if let Some(circle) = graph.find(*circles) {
            return Err(Anomaly::Circle(name, circle));
        }
    }
    Ok(())
}

/// As [`check`]; panics with what is needed to understand an anomaly.
pub(super) fn assert_allowed(history: &History, level: Isolation, what: &str) {
    match check(history, level) {
        Ok(()) => {}
        Err(Anomaly::Read(fault, reason)) => panic!("{what}, {level:?}: {fault:?}: {reason}"),
        Err(Anomaly::Circle(name, circle)) => {
            let shown: Vec<String> = circle.iter().map(|(number, edge)| format!("{number} -{edge:?}-> {:?}", history[*number])).collect();
            panic!("{what}, {level:?}: {name}: {}", shown.join("\n"))
        }
    }
}

/// Committed transactions, and others.
pub(super) fn counts(history: &History) -> (usize, usize) {
    let committed = history.iter().filter(|t| t.outcome == Outcome::Committed).count();
    (committed, history.len() - committed)
}

/// Bad histories made by hand.
mod by_hand {
    use super::super::history::Step::{self, Append, Read};
    use super::super::history::{History, Outcome, Transaction};
    use super::super::order::Fault;
    use super::{Anomaly, check};
    use pagefold_engine::database::Isolation::{self, ReadCommitted, RepeatableRead, Serializable};

    fn of(outcome: Outcome, begun: u64, ended: u64, steps: Vec<Step>) -> Transaction {
        Transaction { steps, outcome, begun, ended }
    }

    /// One that ran at the same time as all others made with this; `number` keeps moments apart.
    fn at_once(number: u64, steps: Vec<Step>) -> Transaction {
        of(Outcome::Committed, number, 1_000 + number, steps)
    }

    fn reading(number: u64, lists: &[(u64, &[u64])]) -> Transaction {
        let steps = lists.iter().map(|(key, list)| Read(*key, list.to_vec())).collect();
        of(Outcome::Committed, 2_000 + number, 3_000 + number, steps)
    }

    /// What the history is at each level.
    fn at_levels(history: &History) -> [Option<String>; 3] {
        [ReadCommitted, RepeatableRead, Serializable].map(|level: Isolation| match check(history, level) {
            Ok(()) => None,
            Err(Anomaly::Read(fault, _)) => Some(format!("{fault:?}")),
            Err(Anomaly::Circle(name, _)) => Some(name.into()),
        })
    }

    fn refused_from(level: usize, name: &str, history: History) {
        let expected = [0, 1, 2].map(|at| (at >= level).then(|| name.to_owned()));
        assert_eq!(at_levels(&history), expected, "{history:?}");
    }

    fn allowed(history: History) {
        assert_eq!(at_levels(&history), [None, None, None], "{history:?}");
    }

    #[test]
    fn good_ones() {
        allowed(vec![]);
        allowed(vec![
            at_once(1, vec![Append(1, 10), Read(1, vec![10]), Append(1, 11)]),
            at_once(2, vec![Read(1, vec![10, 11]), Append(2, 20)]),
            of(Outcome::Aborted, 3, 4, vec![Read(1, vec![]), Append(1, 12)]),
            of(Outcome::InDoubt, 5, 6, vec![Append(1, 13)]),
            of(Outcome::InDoubt, 7, 8, vec![Append(2, 21), Append(3, 31)]),
            // Between the crash in its commit and the recovery that found it.
            of(Outcome::Committed, 9, 10, vec![Read(3, vec![])]),
            reading(1, &[(1, &[10, 11]), (2, &[20, 21]), (3, &[31])]),
        ]);
    }

    #[test]
    fn reads_without_an_order() {
        let fault = |fault: Fault, history| refused_from(0, &format!("{fault:?}"), history);
        let one = || at_once(1, vec![Append(1, 10), Append(1, 11), Append(2, 20)]);
        fault(Fault::Garbage, vec![one(), reading(1, &[(1, &[10, 12])])]);
        fault(Fault::Garbage, vec![one(), reading(1, &[(1, &[10, 20])])]);
        fault(Fault::Twice, vec![one(), reading(1, &[(1, &[10, 11, 10])])]);
        fault(Fault::NotOwn, vec![at_once(1, vec![Append(1, 10), Read(1, vec![])])]);
        fault(Fault::NotOwn, vec![one(), at_once(2, vec![Append(1, 12), Read(1, vec![12, 10, 11])])]);
        fault(Fault::G1a, vec![of(Outcome::Aborted, 1, 2, vec![Append(1, 10)]), reading(1, &[(1, &[10])])]);
        fault(Fault::G1b, vec![one(), reading(1, &[(1, &[10])]), reading(2, &[(1, &[10, 11]), (2, &[20])])]);
        let other = || at_once(2, vec![Append(1, 12)]);
        fault(Fault::NoOrder, vec![one(), other(), reading(1, &[(1, &[12])]), reading(2, &[(1, &[10, 11, 12])])]);
        // An update that went lost: neither saw the other, and one is not there.
        fault(Fault::Lost, vec![one(), other(), reading(1, &[(1, &[10, 11]), (2, &[20])])]);
        // In doubt, but seen in part.
        let doubt = of(Outcome::InDoubt, 1, 2, vec![Append(1, 10), Append(2, 20)]);
        fault(Fault::Lost, vec![doubt, reading(1, &[(1, &[10]), (2, &[])])]);
    }

    #[test]
    fn g0() {
        let history = vec![
            at_once(1, vec![Append(1, 10), Append(2, 20)]),
            at_once(2, vec![Append(1, 11), Append(2, 21)]),
            reading(1, &[(1, &[10, 11]), (2, &[21, 20])]),
        ];
        refused_from(0, "G0", history);
        // Against time.
        let first = of(Outcome::Committed, 1, 2, vec![Append(1, 10)]);
        let second = of(Outcome::Committed, 3, 4, vec![Append(1, 11)]);
        refused_from(0, "G0", vec![first, second, reading(1, &[(1, &[11, 10])])]);
    }

    #[test]
    fn g1c() {
        let history = vec![
            at_once(1, vec![Append(1, 10), Read(2, vec![20])]),
            at_once(2, vec![Append(2, 20), Read(1, vec![10])]),
            reading(1, &[(1, &[10]), (2, &[20])]),
        ];
        refused_from(0, "G1c", history);
    }

    #[test]
    fn g_single() {
        // Read skew.
        let history = vec![
            at_once(1, vec![Append(1, 10), Append(2, 20)]),
            at_once(2, vec![Read(1, vec![]), Read(2, vec![20])]),
            reading(1, &[(1, &[10]), (2, &[20])]),
        ];
        refused_from(1, "G-single", history);
        // Lost update: the second did not see what it went on from.
        let history = vec![
            at_once(1, vec![Read(1, vec![]), Append(1, 10)]),
            at_once(2, vec![Read(1, vec![]), Append(1, 11)]),
            reading(1, &[(1, &[10, 11])]),
        ];
        refused_from(1, "G-single", history);
        // An old snapshot: what was committed before it began is not seen.
        let first = of(Outcome::Committed, 1, 2, vec![Append(1, 10)]);
        let second = of(Outcome::Committed, 3, 4, vec![Read(1, vec![])]);
        refused_from(1, "G-single", vec![first, second, reading(1, &[(1, &[10])])]);
        // Two such reads, with what depends on a write between: a long fork.
        let history = vec![
            at_once(1, vec![Append(1, 10)]),
            at_once(2, vec![Append(2, 20)]),
            at_once(3, vec![Read(1, vec![10]), Read(2, vec![])]),
            at_once(4, vec![Read(1, vec![]), Read(2, vec![20])]),
            reading(1, &[(1, &[10]), (2, &[20])]),
        ];
        refused_from(1, "G-single", history);
    }

    #[test]
    fn g2() {
        // Write skew.
        let history = vec![
            at_once(1, vec![Read(1, vec![]), Append(2, 20)]),
            at_once(2, vec![Read(2, vec![]), Append(1, 10)]),
            reading(1, &[(1, &[10]), (2, &[20])]),
        ];
        refused_from(2, "G2", history);
        // The anomaly of one that only reads (Fekete, O'Neil, O'Neil 2004).
        let history = vec![
            of(Outcome::Committed, 1, 90, vec![Read(1, vec![]), Read(2, vec![]), Append(2, 20)]),
            of(Outcome::Committed, 2, 10, vec![Append(1, 10)]),
            of(Outcome::Committed, 11, 20, vec![Read(1, vec![10]), Read(2, vec![])]),
            reading(1, &[(1, &[10]), (2, &[20])]),
        ];
        refused_from(2, "G2", history);
    }
}
