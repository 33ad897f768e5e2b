//! Subqueries of expressions: those that need nothing of the row are run once, and what came is kept.
//!
//!
//! Of one that needs the row around it the values for the last row are kept: the next row is often the same to it, where it needs one that is further out.
//!
//! Invariants:
//! - what is kept is charged to the statement, which keeps it until it ends;
//! - who asks whether a value is among the rows looks in a set of keys: that costs the same however many rows there are.

use super::key::{encode as encode_key, is_null, values_of};
use super::{Context, Execution, Tuple, bytes_of, open};
use crate::SqlResult;
use crate::bind::beforehand::Beforehand;
use crate::expression::Subqueries;
use pagefold_types::{Value, ValueRef};
use std::cell::{Cell, RefCell};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// First values of the rows of subqueries, by number.
#[derive(Default)]
pub(super) struct Known {
    values: RefCell<HashMap<usize, Arc<[Value]>>>,
    keys: RefCell<HashMap<usize, Arc<Keys>>>,
    last: RefCell<HashMap<usize, Last>>,
    /// Of all of it.
    bytes: Cell<usize>,
}

impl Known {
    pub(super) fn bytes(&self) -> usize {
        self.bytes.get()
    }

    pub(super) fn charge(&self, bytes: usize) {
        self.bytes.set(self.bytes.get() + bytes);
    }
}

/// So many bytes of values are kept for the last row, and charged for it.
const LAST_BYTES_MAX: usize = 128 << 10;
/// After so many rows that are different each time no more are kept.
const MISSES_MAX: u32 = 64;

/// The first values of the rows of a subquery for the last row around it.
enum Last {
    Values {
        outer: Vec<Value>,
        values: Arc<[Value]>,
        misses: u32,
    },
    /// They are not kept.
    Never,
}

/// Rows as a set: equal ones have equal keys.
#[derive(Default)]
struct Keys {
    keys: HashSet<Box<[u8]>>,
    /// Those with a NULL among their values, but for rows that are nothing else.
    partial: HashSet<Box<[u8]>>,
    /// There is a row of NULLs: nothing is known to be unequal to it.
    has_null: bool,
}

impl Keys {
    /// Three-valued, as IN is.
    fn has(&self, of: &[ValueRef<'_>]) -> Option<bool> {
        let nulls = of.iter().filter(|value| value.is_null()).count();
        if nulls == of.len() {
            let is_empty = self.keys.is_empty() && self.partial.is_empty() && !self.has_null;
            return if is_empty { Some(false) } else { None };
        }
        if nulls == 0 {
            let mut key = Vec::with_capacity(16);
            of.iter().for_each(|value| encode_key(*value, &mut key));
            if self.keys.contains(key.as_slice()) {
                return Some(true);
            }
        }
        let of: Vec<Box<[u8]>> = of.iter().map(|value| key_of(std::slice::from_ref(value))).collect();
        let is_unknown = self.has_null
            || self.partial.iter().any(|key| may_equal(key, &of))
            || nulls > 0 && self.keys.iter().any(|key| may_equal(key, &of));
        if is_unknown { None } else { Some(false) }
    }

    /// Takes a row in; false when it was there.
    fn insert(&mut self, row: &[Value]) -> Option<usize> {
        let row: Vec<ValueRef<'_>> = row.iter().map(Value::as_ref).collect();
        let nulls = row.iter().filter(|value| value.is_null()).count();
        if nulls == row.len() {
            self.has_null = true;
            return None;
        }
        let key = key_of(&row);
        let bytes = key.len() + 2 * size_of::<Box<[u8]>>();
        let own = if nulls == 0 { &mut self.keys } else { &mut self.partial };
        own.insert(key).then_some(bytes)
    }
}

fn key_of(row: &[ValueRef<'_>]) -> Box<[u8]> {
    let mut key = Vec::with_capacity(16);
    row.iter().for_each(|value| encode_key(*value, &mut key));
    key.into()
}

/// Has a row no value that is unequal to that of another one? A NULL is unequal to none.
fn may_equal(key: &[u8], of: &[Box<[u8]>]) -> bool {
    values_of(key).zip(of).all(|(value, of)| is_null(value) || is_null(of) || *value == **of)
}

impl Execution {
    /// Runs subqueries now: later their tables are others.
    pub(super) fn know(&self, wanted: &[Beforehand]) -> SqlResult<()> {
        wanted.iter().try_for_each(|Beforehand { number, is_set }| match is_set {
            true => self.is_among(*number, &[ValueRef::Null]).map(drop),
            false => self.run(*number, &[], &mut |_| Ok(true)),
        })
    }

    /// Is this, a value for each column, among the rows of a subquery that needs nothing of the row?
    pub(super) fn is_among_known(&self, number: usize, of: &[ValueRef<'_>]) -> SqlResult<Option<bool>> {
        let known = self.known.keys.borrow().get(&number).cloned();
        if let Some(keys) = known {
            return Ok(keys.has(of));
        }
        let (mut keys, mut bytes) = (Keys::default(), 0);
        self.visit_opened(number, &[], &mut |row| {
            if let Some(more) = keys.insert(&row) {
                self.budget.take(more)?;
                bytes += more;
            }
            Ok(true)
        })?;
        let keys = Arc::new(keys);
        self.known.keys.borrow_mut().insert(number, Arc::clone(&keys));
        self.known.charge(bytes);
        Ok(keys.has(of))
    }

    /// Shows the first value of each row of a subquery.
    pub(super) fn visit_rows(&self, number: usize, outer: &[Value], visit: &mut dyn FnMut(Value) -> SqlResult<bool>) -> SqlResult<()> {
        if !outer.is_empty() {
            return self.visit_for_row(number, outer, visit);
        }
        let known = self.known.values.borrow().get(&number).cloned();
        let known = match known {
            Some(known) => known,
            None => {
                let (mut values, mut bytes) = (Vec::new(), 0);
                self.visit_opened(number, &[], &mut |row| {
                    let value = first_of(row);
                    let more = bytes_of(std::slice::from_ref(&value));
                    self.budget.take(more)?;
                    bytes += more;
                    values.push(value);
                    Ok(true)
                })?;
                let values: Arc<[Value]> = values.into();
                self.known.values.borrow_mut().insert(number, Arc::clone(&values));
                self.known.charge(bytes);
                values
            }
        };
        self.visit_values(&known, visit)
    }

    /// The same of one that needs the row around it.
    fn visit_for_row(&self, number: usize, outer: &[Value], visit: &mut dyn FnMut(Value) -> SqlResult<bool>) -> SqlResult<()> {
        // Whoever is shown a value may run other subqueries: nothing is borrowed then.
        let (same, misses) = match self.known.last.borrow_mut().get_mut(&number) {
            None => (None, Some(0)),
            Some(Last::Never) => (None, None),
            Some(Last::Values { outer: last, values, misses }) if last.as_slice() == outer => {
                *misses = 0;
                (Some(Arc::clone(values)), None)
            }
            Some(Last::Values { misses, .. }) => (None, Some(*misses + 1)),
        };
        if let Some(values) = same {
            return self.visit_values(&values, visit);
        }
        let plan = &self.subplans[number];
        // What is equal may look different, as 0 and -0 do.
        let is_plain = |value: &Value| !matches!(value, Value::Real(_) | Value::Double(_) | Value::Interval(_));
        let misses = misses.filter(|misses| *misses < MISSES_MAX && outer.iter().all(is_plain) && self.may_keep_last(number));
        let Some(misses) = misses else {
            self.known.last.borrow_mut().insert(number, Last::Never);
            return self.visit_opened(number, outer, &mut |row| visit(first_of(row)));
        };
        let (mut values, mut bytes, mut is_all) = (Vec::new(), 0, true);
        self.visit_opened(number, outer, &mut |row| {
            let value = first_of(row);
            bytes += bytes_of(std::slice::from_ref(&value));
            is_all &= bytes <= LAST_BYTES_MAX;
            if is_all {
                values.push(value.clone());
            }
            let goes_on = visit(value)?;
            is_all &= goes_on || plan.gives_one_row();
            Ok(goes_on)
        })?;
        let last = match is_all {
            true => Last::Values { outer: outer.to_vec(), values: values.into(), misses },
            false => Last::Values { outer: Vec::new(), values: Arc::default(), misses },
        };
        self.known.last.borrow_mut().insert(number, last);
        Ok(())
    }

    /// May the values of a subquery for the last row be kept? They are charged as if they were many.
    fn may_keep_last(&self, number: usize) -> bool {
        if self.known.last.borrow().contains_key(&number) {
            return true;
        }
        let may = !self.subplans[number].is_volatile(&self.subplans) && self.budget.take(LAST_BYTES_MAX).is_ok();
        if may {
            self.known.charge(LAST_BYTES_MAX);
        }
        may
    }

    fn visit_values(&self, values: &[Value], visit: &mut dyn FnMut(Value) -> SqlResult<bool>) -> SqlResult<()> {
        for value in values {
            self.look()?;
            if !visit(value.clone())? {
                break;
            }
        }
        Ok(())
    }

    /// Runs it.
    fn visit_opened(&self, number: usize, outer: &[Value], visit: &mut dyn FnMut(Tuple) -> SqlResult<bool>) -> SqlResult<()> {
        let context = Context { execution: self, outer };
        let mut operator = open(&self.subplans[number], &context)?;
        while let Some(row) = operator.next(&context)? {
            if !visit(row)? {
                break;
            }
        }
        Ok(())
    }
}

fn first_of(row: Tuple) -> Value {
    row.into_iter().next().unwrap_or(Value::Null)
}

#[cfg(test)]
mod unit {
    use super::super::{Limits, Run};
    use super::*;
    use crate::expression::{Expr, Now, Subqueries};
    use crate::plan::Plan;
    use crate::{Database, SqlError};
    use pagefold_engine::database::{Database as Engine, OpenMode, Settings, TransactionOptions};
    use pagefold_io::{MemoryStorage, OsClock};
    use std::path::Path;
    use std::sync::Arc;

    fn execution(values: Vec<Value>, memory: usize) -> Execution {
        let storage = Arc::new(MemoryStorage::new());
        let engine = Engine::open(storage, Arc::new(OsClock), Path::new("memory"), OpenMode::Create, Settings::default()).unwrap();
        let database = Database::new(Arc::new(engine));
        let limits = Limits { cancelled: Arc::default(), clock: Arc::new(OsClock), deadline: None };
        let view = database.engine().begin_owned(TransactionOptions::default()).read_view().unwrap();
        let rows = values.into_iter().map(|value| vec![Expr::Literal(value)]).collect();
        let subplans: Arc<[Plan]> = Arc::new([Plan::Values(Arc::new(rows))]);
        Execution::new(
            &Run { database: &database, now: Now::default(), memory, limits, drawn: &Arc::default() },
            view,
            Vec::new(),
            subplans,
        )
    }

    #[test]
    fn a_value_is_looked_up_not_searched() {
        let execution = execution((0..1000).map(Value::Int).collect(), 1 << 20);
        for number in 0..2000 {
            assert_eq!(execution.is_among(0, &[ValueRef::Int(number)]).unwrap(), Some(number < 1000));
        }
        // Each value that is shown is one look.
        assert_eq!(execution.looks.get(), 0);
        assert_eq!(execution.budget.taken(), execution.known.bytes());
        assert!(execution.budget.taken() > 1000 * 9);
        let mut shown = 0;
        let mut count = |_| -> SqlResult<bool> {
            shown += 1;
            Ok(true)
        };
        execution.run(0, &[], &mut count).unwrap();
        assert_eq!((shown, execution.looks.get()), (1000, 1000));
    }

    #[test]
    fn three_valued() {
        let among = |values: &[Value], of: Value| execution(values.to_vec(), 1 << 20).is_among(0, &[of.as_ref()]).unwrap();
        let (one, two) = (Value::Int(1), Value::Int(2));
        assert_eq!(among(&[], Value::Null), Some(false));
        assert_eq!(among(std::slice::from_ref(&one), Value::Null), None);
        assert_eq!(among(&[one.clone(), Value::Null], one.clone()), Some(true));
        assert_eq!(among(&[one.clone(), Value::Null], two.clone()), None);
        assert_eq!(among(&[Value::Null], two.clone()), None);
        assert_eq!(among(&[one], two), Some(false));
    }

    #[test]
    fn what_does_not_fit_is_an_error() {
        let execution = execution((0..1000).map(Value::Int).collect(), 10_000);
        let error: SqlError = execution.is_among(0, &[ValueRef::Int(1)]).unwrap_err();
        assert_eq!(error.sqlstate(), "53200");
        assert_eq!(execution.budget.taken(), 0);
    }
}
