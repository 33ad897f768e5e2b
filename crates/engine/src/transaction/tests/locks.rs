//! The lock table against naive queues, with deadlocks looked for by brute force. Each transaction has a thread of its own; a step ends
//! when everybody has either an answer or waits, so a run depends on its seed alone.

use crate::test_random::Random;
use crate::transaction::{LockError, LockTable, Mode, Resource};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, mpsc};
use std::time::Duration;

const LONG: Duration = Duration::from_secs(60);
const MODES: [Mode; 4] = [Mode::IntentShared, Mode::IntentExclusive, Mode::Shared, Mode::Exclusive];

#[derive(Default)]
struct NaiveQueue {
    /// (Transaction, mode, requests).
    holders: Vec<(u64, Mode, u32)>,
    /// (Transaction, mode, upgrade).
    waiters: Vec<(u64, Mode, bool)>,
}

#[derive(Default)]
struct Naive {
    queues: BTreeMap<Resource, NaiveQueue>,
}

fn allows(queue: &NaiveQueue, transaction: u64, mode: Mode) -> bool {
    queue.holders.iter().all(|holder| holder.0 == transaction || holder.1.compatible(mode))
}

impl Naive {
    /// Whether it is granted at once; else it waits.
    fn lock(&mut self, transaction: u64, resource: Resource, mode: Mode) -> bool {
        let queue = self.queues.entry(resource).or_default();
        if let Some(held) = queue.holders.iter().position(|holder| holder.0 == transaction) {
            let wanted = queue.holders[held].1.join(mode);
            if wanted == queue.holders[held].1 || allows(queue, transaction, wanted) {
                queue.holders[held] = (transaction, wanted, queue.holders[held].2 + 1);
                return true;
            }
            let upgrades = queue.waiters.iter().filter(|waiter| waiter.2).count();
            queue.waiters.insert(upgrades, (transaction, wanted, true));
            return false;
        }
        if queue.waiters.is_empty() && allows(queue, transaction, mode) {
            queue.holders.push((transaction, mode, 1));
            return true;
        }
        queue.waiters.push((transaction, mode, false));
        false
    }

    /// Who is served now.
    fn serve(&mut self) -> BTreeSet<u64> {
        let mut served = BTreeSet::new();
        for queue in self.queues.values_mut() {
            while let Some(&(transaction, mode, upgrade)) = queue.waiters.first() {
                if !allows(queue, transaction, mode) {
                    break;
                }
                queue.waiters.remove(0);
                if upgrade {
                    queue
                        .holders
                        .iter_mut()
                        .filter(|holder| holder.0 == transaction)
                        .for_each(|holder| *holder = (transaction, mode, holder.2 + 1));
                } else {
                    queue.holders.push((transaction, mode, 1));
                }
                served.insert(transaction);
            }
        }
        served
    }

    fn stop_waiting(&mut self, transaction: u64) {
        self.queues.values_mut().for_each(|queue| queue.waiters.retain(|waiter| waiter.0 != transaction));
    }

    fn release(&mut self, transaction: u64, resource: Option<Resource>) {
        for (&at, queue) in &mut self.queues {
            if resource.is_none() {
                queue.holders.retain(|holder| holder.0 != transaction);
            } else if resource == Some(at) {
                queue.holders.iter_mut().filter(|holder| holder.0 == transaction).for_each(|holder| holder.2 -= 1);
                queue.holders.retain(|holder| holder.2 > 0);
            }
        }
    }

    fn held(&self, transaction: u64) -> usize {
        self.queues.values().filter(|queue| queue.holders.iter().any(|holder| holder.0 == transaction)).count()
    }

    /// (Waiter, resource, who must go on before).
    fn edges(&self) -> BTreeSet<(u64, Resource, u64)> {
        let mut edges = BTreeSet::new();
        for (&resource, queue) in &self.queues {
            for (place, &(transaction, mode, _)) in queue.waiters.iter().enumerate() {
                let holders = queue.holders.iter().filter(|holder| !holder.1.compatible(mode)).map(|holder| holder.0);
                let others = holders.chain(queue.waiters[..place].iter().map(|waiter| waiter.0));
                edges.extend(others.filter(|&other| other != transaction).map(|other| (transaction, resource, other)));
            }
        }
        edges
    }

    fn has_cycle(&self) -> bool {
        let mut edges: Vec<(u64, u64)> = self.edges().into_iter().map(|edge| (edge.0, edge.2)).collect();
        // Who waits for nobody is no part of a cycle.
        loop {
            let before = edges.len();
            let waiters: BTreeSet<u64> = edges.iter().map(|edge| edge.0).collect();
            edges.retain(|edge| waiters.contains(&edge.1));
            if edges.len() == before {
                return before > 0;
            }
        }
    }
}

type Answer = (u64, Result<bool, LockError>);

fn run(seed: u64, steps: usize) -> usize {
    let table = Arc::new(LockTable::new());
    let (answers, answered) = mpsc::channel::<Answer>();
    let mut random = Random(seed);
    let transactions = 2 + random.below(5);
    let resources: Vec<Resource> =
        (0..1 + random.below(4)).map(|n| if n % 2 == 0 { Resource::Object(n as u32) } else { Resource::Key(3, n) }).collect();
    let exclusive_only = random.below(3) == 0;
    let clients: Vec<mpsc::Sender<(Resource, Mode)>> = (1..=transactions)
        .map(|transaction| {
            let (sender, requests) = mpsc::channel();
            let (table, answers) = (Arc::clone(&table), answers.clone());
            std::thread::spawn(move || {
                for (resource, mode) in requests {
                    answers.send((transaction, table.lock(transaction, resource, mode, LONG))).unwrap();
                }
            });
            sender
        })
        .collect();
    let mut naive = Naive::default();
    let mut waiting: BTreeSet<u64> = BTreeSet::new();
    let mut deadlocks = 0;
    for _ in 0..steps {
        let transaction = 1 + random.below(transactions);
        let resource = resources[random.index(resources.len())];
        let mut expected = BTreeSet::new();
        let mut cancelled = None;
        let victims_before = table.deadlocks();
        if waiting.contains(&transaction) {
            if random.below(6) > 0 {
                continue;
            }
            assert!(table.cancel(transaction));
            naive.stop_waiting(transaction);
            cancelled = Some(transaction);
            expected.insert(transaction);
        } else {
            match random.below(8) {
                0 => {
                    table.release_all(transaction);
                    naive.release(transaction, None);
                }
                1 | 2 => {
                    table.release(transaction, resource);
                    naive.release(transaction, Some(resource));
                }
                _ => {
                    let mode = if exclusive_only { Mode::Exclusive } else { MODES[random.index(4)] };
                    clients[transaction as usize - 1].send((resource, mode)).unwrap();
                    if naive.lock(transaction, resource, mode) {
                        expected.insert(transaction);
                    } else {
                        // It waits, or is a victim already.
                        while !table.is_waiting(transaction) && table.deadlocks() == victims_before {
                            std::thread::yield_now();
                        }
                        // The search for cycles is over when the graph is free again.
                        table.is_waiting(transaction);
                        waiting.insert(transaction);
                    }
                }
            }
        }
        let edges = naive.edges();
        expected.extend(naive.serve());
        let mut got = BTreeSet::new();
        let mut victims = table.deadlocks() - victims_before;
        while got != expected || victims > 0 {
            let (transaction, answer) = answered.recv_timeout(LONG).unwrap();
            match answer {
                Ok(_) => {}
                Err(LockError::Cancelled { waiter, .. }) => assert_eq!(Some(waiter), cancelled),
                Err(LockError::Deadlock { victim, cycle }) => {
                    deadlocks += 1;
                    victims -= 1;
                    assert_eq!(victim, transaction);
                    assert_eq!(cycle.iter().map(|edge| edge.waiter).max(), Some(victim), "seed {seed}: not the youngest");
                    assert!(cycle.iter().all(|edge| edges.contains(&(edge.waiter, edge.resource, edge.holder))), "seed {seed}: {cycle:?}");
                    let next = cycle.iter().skip(1).chain(&cycle[..1]);
                    assert!(cycle.iter().zip(next).all(|(edge, next)| edge.holder == next.waiter));
                    naive.stop_waiting(victim);
                    expected.insert(victim);
                    expected.extend(naive.serve());
                }
                Err(other) => panic!("seed {seed}: {other}"),
            }
            waiting.remove(&transaction);
            got.insert(transaction);
        }
        assert!(!naive.has_cycle(), "seed {seed}");
        for transaction in (1..=transactions).filter(|transaction| !waiting.contains(transaction)) {
            assert_eq!(table.held(transaction), naive.held(transaction), "seed {seed}: transaction {transaction}");
        }
        assert!(answered.try_recv().is_err(), "seed {seed}: an answer too many");
    }
    for transaction in waiting {
        table.cancel(transaction);
    }
    drop((clients, answers));
    while answered.recv().is_ok() {}
    (1..=transactions).for_each(|transaction| table.release_all(transaction));
    assert!(table.is_empty());
    deadlocks
}

#[test]
fn random_schedules_against_naive_queues() {
    let deadlocks: usize = (0..150).map(|seed| run(seed, 300)).sum();
    assert!(deadlocks > 500, "{deadlocks}");
}
