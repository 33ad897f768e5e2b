//! Pages of tables that many threads change at once: no more than one thread needs, and some for each that is at work.

use crate::tables::{FORM, begin, filled, fresh_pages, pages, text};
use crate::world::{Form, Random, is_retryable};
use crate::{Course, changes};
use pagefold_engine::database::Isolation;
use pagefold_engine::table_space::Method;
use pagefold_types::ValueRef;
use std::sync::atomic::{AtomicI64, Ordering};

const THREADS: u64 = 8;
const COUNTS: u64 = 40;
/// Of each thread one that it works on, and some.
const SLACK: u64 = 2 * THREADS;

/// Each thread has rows of its own, which it replaces, lengthens and shortens; some of that is taken back.
fn levels_off(form: Form, per_transaction: u64) {
    let method = form.method;
    let (world, live) = filled(form);
    let next = AtomicI64::new(1 << 20);
    let mut course = Course::default();
    let mut parts: Vec<_> = live.chunks(live.len().div_ceil(THREADS as usize)).map(<[_]>::to_vec).collect();
    let mut randoms: Vec<_> = (0..THREADS).map(Random).collect();
    for _ in 0..COUNTS {
        std::thread::scope(|scope| {
            for (part, random) in parts.iter_mut().zip(&mut randoms) {
                let (world, next) = (&world, &next);
                scope.spawn(move || {
                    for _ in 0..changes(80_000) / COUNTS / THREADS / per_transaction {
                        let before = part.clone();
                        let mut transaction = begin(world, Isolation::ReadCommitted);
                        for _ in 0..per_transaction {
                            let at = random.below(part.len() as u64) as usize;
                            let text = text(random);
                            let done = if random.below(3) == 0 {
                                let number = next.fetch_add(1, Ordering::Relaxed);
                                let deleted = transaction.delete(&world.table, part[at].0);
                                deleted.and_then(|_| world.insert(&mut transaction, number, 1, &text)).map(|rid| part[at] = (rid, number))
                            } else {
                                transaction.update(&world.table, part[at].0, &[(2, ValueRef::Text(&text))]).map(drop)
                            };
                            assert!(done.is_ok() || is_retryable(&done), "{done:?}");
                            if done.is_err() {
                                break;
                            }
                        }
                        if random.below(10) == 0 || transaction.commit().is_err() {
                            *part = before;
                        }
                    }
                });
            }
        });
        course.0.push(pages(&world));
    }
    let rows = world.check();
    assert_eq!(rows.len(), live.len());
    course.assert_level(&format!("{method}, {THREADS} threads, {per_transaction} a transaction"), fresh_pages(form, &rows), SLACK);
}

#[test]
fn threads_by_row() {
    levels_off(Form { method: Method::None, ..FORM }, 5);
    levels_off(Form { method: Method::Fixed, ..FORM }, 5);
}

#[test]
fn threads_by_column() {
    levels_off(Form { method: Method::Page, page_bytes: 4096, ..FORM }, 5);
}
