//! All pairs in all orders.

use super::model::Model;
use super::programs::{Op, Outcome, orders, programs};
use super::stepper::{Event, Stepper};
use crate::world::World;
use pagefold_engine::database::Isolation::{self, ReadCommitted, RepeatableRead, Serializable};

#[derive(Debug, Default)]
struct Tally {
    pairs: u64,
    interleavings: u64,
    with_waits: u64,
    with_victims: u64,
}

/// Calls `judge` with each pair of programs, what happened and what is committed then.
fn all_interleavings(level: Isolation, judge: impl Fn([&[Op]; 2], &[Event], &[(i64, i64)])) {
    let world = World::new();
    let mut tally = Tally::default();
    std::thread::scope(|scope| {
        let stepper = Stepper::start(&world, level, scope);
        let (firsts, seconds) = (programs(1), programs(2));
        for (i, first) in firsts.iter().enumerate() {
            for second in &seconds[i..] {
                tally.pairs += 1;
                for ends in [[Op::Commit, Op::Commit], [Op::Rollback, Op::Commit], [Op::Commit, Op::Rollback]] {
                    let whole = [[first.as_slice(), &ends[..1]].concat(), [second.as_slice(), &ends[1..]].concat()];
                    orders([whole[0].len(), whole[1].len()], &mut Vec::new(), &mut |order| {
                        stepper.reset();
                        let events = stepper.run([&whole[0], &whole[1]], order);
                        tally.interleavings += 1;
                        tally.with_waits += u64::from(events.iter().any(|event| matches!(event, Event::Waits(_))));
                        tally.with_victims += u64::from(events.iter().any(|e| matches!(e, Event::Ended(_, _, o) if o.is_victim())));
                        judge([&whole[0], &whole[1]], &events, &stepper.rows());
                    });
                }
            }
        }
    });
    world.check();
    println!("{level:?}: {tally:?}");
    assert!(tally.with_waits > 1_000, "{tally:?}");
}

/// The model is told what began and ended when; results and waits are its own.
fn by_the_model(level: Isolation, events: &[Event], rows: &[(i64, i64)]) {
    let mut model = Model::new(level);
    let mut waiting = [false; 2];
    for (at, event) in events.iter().enumerate() {
        let so_far = || format!("{level:?}: {:?}", &events[..=at]);
        match event {
            Event::Begun(who, op) => {
                model.begin(*who, *op);
                let waits = matches!(events.get(at + 1), Some(Event::Waits(_)));
                // What would close a circle of waits makes a victim instead.
                assert!(waits || waiting[1 - who] || !model.must_wait(*who, *op), "does not wait: {}", so_far());
            }
            Event::Waits(who) => waiting[*who] = true,
            Event::Ended(who, _, Outcome::Deadlock) => {
                assert!(waiting[0] || waiting[1], "no deadlock: {}", so_far());
                waiting[*who] = false;
                model.give_up(*who);
            }
            Event::Ended(who, op, outcome) => {
                waiting[*who] = false;
                assert_eq!(*outcome, model.end(*who, *op), "{}", so_far());
                if outcome.is_victim() {
                    model.give_up(*who);
                }
            }
        }
    }
    assert_eq!(rows, model.rows(), "{level:?}: {events:?}");
}

#[test]
fn at_read_committed_statements_see_what_is_committed() {
    all_interleavings(ReadCommitted, |_, events, rows| by_the_model(ReadCommitted, events, rows));
}

#[test]
fn at_repeatable_read_transactions_see_one_snapshot() {
    all_interleavings(RepeatableRead, |_, events, rows| by_the_model(RepeatableRead, events, rows));
}

/// What one after the other give.
fn serially(programs: &[(usize, &[Op])]) -> ([Vec<Outcome>; 2], Vec<(i64, i64)>) {
    let mut model = Model::new(Serializable);
    let mut outcomes = [Vec::new(), Vec::new()];
    for (who, program) in programs {
        for op in *program {
            model.begin(*who, *op);
            outcomes[*who].push(model.end(*who, *op));
        }
    }
    (outcomes, model.rows())
}

fn by_an_order(programs: [&[Op]; 2], events: &[Event], rows: &[(i64, i64)]) {
    let mut found = [Vec::new(), Vec::new()];
    for event in events {
        if let Event::Ended(who, _, outcome) = event {
            found[*who].push(outcome.clone());
        }
    }
    let ran: Vec<usize> = (0..2).filter(|who| !found[*who].iter().any(Outcome::is_victim)).collect();
    assert!(!ran.is_empty(), "both are victims: {events:?}");
    let of = |who: usize| (who, programs[who]);
    let fits = |order: &[usize]| {
        let order: Vec<_> = order.iter().map(|who| of(*who)).collect();
        let (outcomes, state) = serially(&order);
        state == rows && order.iter().all(|(who, _)| outcomes[*who] == found[*who])
    };
    let reversed: Vec<usize> = ran.iter().rev().copied().collect();
    assert!(fits(&ran) || fits(&reversed), "as no order gives it: {events:?}, then {rows:?}");
}

#[test]
fn at_serializable_they_are_as_one_after_the_other() {
    all_interleavings(Serializable, by_an_order);
}
