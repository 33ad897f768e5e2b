//! All orders in which a few threads can take and give up latches: nobody waits for ever, and who
//! waits for an exclusive latch is passed only so often.
//!
//! Each operation of a page word is one atomic step, so threads are told apart by where they are in
//! their programs, and every state that can be reached is looked at once. Threads that
//! find a latch busy stay where they are: sleeping and waking change nothing in that.

use crate::frames::{Latch, Order, PASSES_MAX, PageWord};
use std::collections::HashSet;

/// A step of a thread's program, on a page.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// A shared latch, by who comes after so many that it holds.
    Shared(usize, u32),
    Exclusive(usize),
    EndShared(usize),
    EndExclusive(usize),
    /// From the start again, for ever.
    Again,
}

use Step::{Again, EndExclusive, EndShared, Exclusive, Shared};

/// What decides where a shared latch stands to others: how many the thread holds, and comes after.
type Rule = fn(u32, u32) -> Order;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Thread {
    at: usize,
    held: u32,
    waits: bool,
    /// Shared latches of its page that others have taken since it waits, and no exclusive one.
    passes: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct State {
    words: Vec<u64>,
    threads: Vec<Thread>,
}

#[derive(Debug, Default)]
struct Found {
    states: usize,
    /// States in which every thread that has not ended waits.
    stuck: usize,
    passes_max: u64,
}

/// A resident page that nobody has.
fn resident() -> u64 {
    let word = PageWord::default();
    assert!(word.claim());
    word.set_frame(0, false, 3);
    word.release_exclusive();
    word.bits()
}

/// The state after a thread's next step; `None` when it has ended, `Some(None)` when it finds the
/// latch busy.
fn after(state: &State, thread: usize, program: &[Step], rule: Rule) -> Option<Option<State>> {
    let step = *program.get(state.threads[thread].at)?;
    let mut next = state.clone();
    let own = &mut next.threads[thread];
    own.at += 1;
    let page = match step {
        Shared(page, _) | Exclusive(page) | EndShared(page) | EndExclusive(page) => page,
        Again => {
            own.at = 0;
            return Some(Some(next));
        }
    };
    let word = PageWord::from_bits(state.words[page]);
    match step {
        Shared(_, ordered) => {
            if word.try_shared(true, rule(own.held, ordered)) == Latch::Busy {
                return Some(None);
            }
            own.held += 1;
        }
        Exclusive(_) => {
            if word.try_exclusive() == Latch::Busy {
                if own.waits {
                    return Some(None);
                }
                // Counted from now on.
                std::mem::forget(word.wait_for_exclusive());
                *own = Thread { at: own.at - 1, held: own.held, waits: true, passes: 0 };
                next.words[page] = word.bits();
                return Some(Some(next));
            }
            if std::mem::take(&mut own.waits) {
                drop(word.counted());
            }
            own.held += 1;
            own.passes = 0;
        }
        EndShared(_) => {
            word.release_shared();
            own.held -= 1;
        }
        EndExclusive(_) => {
            word.release_exclusive();
            own.held -= 1;
        }
        Again => {}
    }
    next.words[page] = word.bits();
    if state.words.len() == 1 {
        next.threads.iter_mut().enumerate().for_each(|(other, state)| note_pass(other != thread, step, state));
    }
    Some(Some(next))
}

/// Counts a latch that was taken for somebody who waits for the (only) page exclusively.
fn note_pass(is_other: bool, step: Step, thread: &mut Thread) {
    if is_other && thread.waits {
        match step {
            Shared(..) => thread.passes += 1,
            Exclusive(_) => thread.passes = 0,
            _ => {}
        }
    }
}

fn explore(pages: usize, programs: &[&[Step]], rule: Rule) -> Found {
    let thread = Thread { at: 0, held: 0, waits: false, passes: 0 };
    let start = State { words: vec![resident(); pages], threads: vec![thread; programs.len()] };
    let (mut known, mut todo) = (HashSet::from([start.clone()]), vec![start]);
    let mut found = Found::default();
    while let Some(state) = todo.pop() {
        found.states += 1;
        let passes = state.threads.iter().map(|thread| thread.passes).max().unwrap_or(0);
        found.passes_max = found.passes_max.max(passes);
        if passes > 4 * PASSES_MAX {
            return found;
        }
        let outcomes: Vec<Option<State>> =
            programs.iter().enumerate().filter_map(|(thread, program)| after(&state, thread, program, rule)).collect();
        found.stuck += usize::from(!outcomes.is_empty() && outcomes.iter().all(Option::is_none));
        for next in outcomes.into_iter().flatten() {
            if known.insert(next.clone()) {
                todo.push(next);
            }
        }
    }
    found
}

/// What the buffer manager does, but for patience.
fn by_what_is_held(held: u32, ordered: u32) -> Order {
    Order::of(held, ordered, 0)
}

fn always_in_turn(_: u32, _: u32) -> Order {
    Order::InTurn
}

fn always_ahead(_: u32, _: u32) -> Order {
    Order::Ahead
}

const READER: &[Step] = &[Shared(0, 0), EndShared(0), Again];
const WRITER: &[Step] = &[Exclusive(0), EndExclusive(0)];

#[test]
fn readers_of_a_page_pass_a_writer_only_so_often() {
    for readers in [1, 2, 4] {
        let programs: Vec<&[Step]> = std::iter::once(WRITER).chain(std::iter::repeat_n(READER, readers)).collect();
        let found = explore(1, &programs, by_what_is_held);
        assert_eq!((found.stuck, found.passes_max), (0, PASSES_MAX), "{readers} readers: {found:?}");
        assert!(explore(1, &programs, always_ahead).passes_max > 4 * PASSES_MAX, "readers that go ahead pass without end");
    }
    let found = explore(1, &[WRITER, WRITER, WRITER, READER, READER], by_what_is_held);
    assert_eq!((found.stuck, found.passes_max), (0, PASSES_MAX), "{found:?}");
}

/// A visitor reads rows of the page that its thread has latched.
#[test]
fn a_reader_of_a_page_that_it_holds_does_not_wait_behind_a_writer() {
    let again: &[Step] = &[Shared(0, 0), Shared(0, 0), EndShared(0), EndShared(0), Again];
    let programs = [WRITER, again, READER];
    assert_eq!(explore(1, &programs, by_what_is_held).stuck, 0);
    // The passes of others are used up one by one.
    assert!(explore(1, &programs, always_in_turn).stuck > 0);
}

/// Rows that have moved are read with their home latched: from one page to the other and back.
#[test]
fn readers_that_hold_one_page_of_another_order_do_not_wait_behind_writers() {
    let there: &[Step] = &[Shared(0, 0), Shared(1, 0), EndShared(1), EndShared(0), Again];
    let back: &[Step] = &[Shared(1, 0), Shared(0, 0), EndShared(0), EndShared(1), Again];
    let writers: [&[Step]; 2] = [&[Exclusive(0), EndExclusive(0)], &[Exclusive(1), EndExclusive(1)]];
    let programs = [there, back, writers[0], writers[1]];
    assert_eq!(explore(2, &programs, by_what_is_held).stuck, 0);
    assert!(explore(2, &programs, always_in_turn).stuck > 0);
}

/// In a tree everybody goes from the parent to the child; those who split latch both, those who
/// change a leaf let go of the parent.
#[test]
fn who_comes_from_the_parent_waits_in_turn() {
    let reader: &[Step] = &[Shared(0, 0), Shared(1, 1), EndShared(0), EndShared(1), Again];
    let writer: &[Step] = &[Shared(0, 0), Exclusive(1), EndShared(0), EndExclusive(1)];
    let splitter: &[Step] = &[Exclusive(0), Exclusive(1), EndExclusive(1), EndExclusive(0)];
    let found = explore(2, &[reader, reader, writer, splitter], by_what_is_held);
    assert_eq!(found.stuck, 0, "{found:?}");
}
