//! Who waits first is called, may be passed, and is handed the lock in the end.

use crate::transaction::lock_queue::{Asked, Mode, Outcome, PASSES_MAX, Queue, Resource, Waiter};
use crate::transaction::{LockError, LockTable};
use pagefold_types::Rid;
use std::sync::Arc;
use std::time::Duration;

const LONG: Duration = Duration::from_secs(60);

fn row() -> Resource {
    Resource::Row(1, Rid::new(0, 1, 1))
}

/// Held by 1, with these behind, who do not come unless they are told to.
fn queue(waiters: &[u64]) -> (Queue, Vec<Arc<Waiter>>) {
    let mut queue = Queue::held_by(1, Mode::Exclusive);
    let waiters = waiters.iter().map(|&waiter| {
        assert!(matches!(queue.ask(waiter, Mode::Exclusive, true), Asked::Blocked(_)));
        queue.enqueue(waiter, row(), Mode::Exclusive)
    });
    let waiters = waiters.collect();
    (queue, waiters)
}

fn outcome(waiter: &Waiter) -> Option<Outcome> {
    waiter.outcome.lock().take()
}

#[test]
fn who_does_not_come_is_passed_so_often_and_no_more() {
    let (mut queue, waiters) = queue(&[2, 3]);
    queue.release(1, 1);
    assert!(matches!(outcome(&waiters[0]), Some(Outcome::Called)));
    for other in 10..10 + u64::from(PASSES_MAX) {
        assert!(matches!(queue.ask(other, Mode::Exclusive, false), Asked::Blocked(3)), "who does not wait passes nobody");
        assert!(matches!(queue.ask(other, Mode::Exclusive, true), Asked::Granted));
        assert!(matches!(queue.ask(9, Mode::Exclusive, true), Asked::Blocked(_)));
        assert!(outcome(&waiters[0]).is_none(), "it is woken once");
        queue.release(other, 1);
    }
    assert!(matches!(outcome(&waiters[0]), Some(Outcome::Granted)), "handed over");
    assert!(!waiters[0].is_queued() && waiters[1].is_queued());
    assert!(matches!(queue.ask(9, Mode::Exclusive, true), Asked::Blocked(_)));
    // The next one is passed as often.
    queue.release(2, 1);
    assert!(matches!(outcome(&waiters[1]), Some(Outcome::Called)));
    assert!(matches!(queue.ask(9, Mode::Exclusive, true), Asked::Granted));
}

#[test]
fn who_has_come_in_vain_is_next() {
    let (mut queue, waiters) = queue(&[2, 3]);
    queue.release(1, 1);
    assert!(matches!(queue.ask(9, Mode::Exclusive, true), Asked::Granted));
    assert!(!queue.come(&waiters[0]));
    assert_eq!(queue.blockers(&waiters[1]), [9, 2]);
    queue.release(9, 1);
    assert!(matches!(outcome(&waiters[0]), Some(Outcome::Granted)));
    assert!(matches!(queue.ask(9, Mode::Exclusive, true), Asked::Blocked(2)));
    queue.release(2, 1);
    assert!(queue.come(&waiters[1]), "called, and nobody was faster");
    queue.release(3, 1);
    assert!(queue.is_free());
}

/// The one who was called times out, or is cancelled: the next one is served, and a queue that nobody needs goes.
#[test]
fn who_was_called_does_not_come() {
    let (mut queue, waiters) = queue(&[2, 3]);
    queue.release(1, 1);
    assert!(!queue.is_free());
    assert!(queue.withdraw(&waiters[0], Some(Outcome::Cancelled)));
    assert!(matches!(outcome(&waiters[0]), Some(Outcome::Cancelled)) && !queue.come(&waiters[0]));
    assert!(matches!(outcome(&waiters[1]), Some(Outcome::Called)));
    assert!(queue.withdraw(&waiters[1], None));
    assert!(queue.is_free());
}

/// A shared lock is not worth passing for: all who can have it at once are handed it.
#[test]
fn those_who_share_are_served_together() {
    let mut queue = Queue::held_by(1, Mode::Exclusive);
    let waiters: Vec<_> = (2..5).map(|waiter| queue.enqueue(waiter, row(), Mode::Shared)).collect();
    queue.release(1, 1);
    assert!(waiters.iter().all(|waiter| matches!(outcome(waiter), Some(Outcome::Granted))));
}

/// Who passes closes no cycle, and who waits behind him finds him on one.
#[test]
fn a_cycle_through_one_who_has_passed() {
    let table = LockTable::new();
    let other = Resource::Row(1, Rid::new(0, 1, 2));
    let wait_for = |waiting: usize| {
        while table.waiting() < waiting {
            std::thread::yield_now();
        }
    };
    for _ in 0..200 {
        table.lock(1, row(), Mode::Exclusive, LONG).unwrap();
        table.lock(2, other, Mode::Exclusive, LONG).unwrap();
        std::thread::scope(|scope| {
            let second = scope.spawn(|| {
                let outcome = table.lock(2, row(), Mode::Exclusive, LONG);
                table.release_all(2);
                outcome
            });
            wait_for(1);
            table.release_all(1);
            // This one passes 2, or comes behind it; then it waits for what 2 has.
            let passed = table.lock(3, row(), Mode::Exclusive, LONG).and_then(|_| table.lock(3, other, Mode::Exclusive, LONG));
            table.release_all(3);
            let second = second.join().unwrap();
            assert!(second.is_ok());
            assert!(passed.is_ok() || matches!(passed, Err(LockError::Deadlock { victim: 3, .. })), "{passed:?}");
        });
        assert!(table.is_empty());
    }
}
