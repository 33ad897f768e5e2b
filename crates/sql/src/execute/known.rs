//! Subqueries of expressions: those that need nothing of the row are run once, and what came is kept.
//!
//! Invariants:
//! - what is kept is charged to the statement, which keeps it until it ends;
//! - who asks whether a value is among the rows looks in a set of keys: that costs the same however many rows there are.

use super::{Context, Execution, bytes_of, encode_key, open};
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

/// Values as a set: equal ones have equal keys.
#[derive(Default)]
struct Keys {
    keys: HashSet<Box<[u8]>>,
    has_null: bool,
    is_empty: bool,
}

impl Keys {
    /// Three-valued, as IN is.
    fn has(&self, of: ValueRef<'_>) -> Option<bool> {
        if self.is_empty {
            return Some(false);
        }
        if of.is_null() {
            return None;
        }
        let mut key = Vec::with_capacity(16);
        encode_key(of, &mut key);
        match self.keys.contains(key.as_slice()) {
            false if self.has_null => None,
            found => Some(found),
        }
    }
}

impl Execution {
    /// Runs subqueries now: later their tables are others.
    pub(super) fn know(&self, wanted: &[Beforehand]) -> SqlResult<()> {
        wanted.iter().try_for_each(|Beforehand { number, is_set }| match is_set {
            true => self.is_among(*number, ValueRef::Null).map(drop),
            false => self.run(*number, &[], &mut |_| Ok(true)),
        })
    }

    /// Is this among the first values of the rows of a subquery that needs nothing of the row?
    pub(super) fn is_among_known(&self, number: usize, of: ValueRef<'_>) -> SqlResult<Option<bool>> {
        let known = self.known.keys.borrow().get(&number).cloned();
        if let Some(keys) = known {
            return Ok(keys.has(of));
        }
        let (mut keys, mut bytes) = (Keys { is_empty: true, ..Keys::default() }, 0);
        self.visit_opened(number, &[], &mut |value| {
            keys.is_empty = false;
            if value == Value::Null {
                keys.has_null = true;
                return Ok(true);
            }
            let mut key = Vec::with_capacity(16);
            encode_key(value.as_ref(), &mut key);
            let more = key.len() + 2 * size_of::<Box<[u8]>>();
            if keys.keys.insert(key.into()) {
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
            return self.visit_opened(number, outer, visit);
        }
        let known = self.known.values.borrow().get(&number).cloned();
        let known = match known {
            Some(known) => known,
            None => {
                let (mut values, mut bytes) = (Vec::new(), 0);
                self.visit_opened(number, &[], &mut |value| {
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
        for value in known.iter() {
            self.look()?;
            if !visit(value.clone())? {
                break;
            }
        }
        Ok(())
    }

    /// Runs it.
    fn visit_opened(&self, number: usize, outer: &[Value], visit: &mut dyn FnMut(Value) -> SqlResult<bool>) -> SqlResult<()> {
        let context = Context { execution: self, outer };
        let mut operator = open(&self.subplans[number], &context)?;
        while let Some(row) = operator.next(&context)? {
            if !visit(row.into_iter().next().unwrap_or(Value::Null))? {
                break;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod unit {
    use super::super::{Limits, Run};
    use super::*;
    use crate::expression::{Expr, Subqueries};
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
        Execution::new(&Run { database: &database, now: 0, memory, limits, drawn: &Arc::default() }, view, Vec::new(), subplans)
    }

    #[test]
    fn a_value_is_looked_up_not_searched() {
        let execution = execution((0..1000).map(Value::Int).collect(), 1 << 20);
        for number in 0..2000 {
            assert_eq!(execution.is_among(0, ValueRef::Int(number)).unwrap(), Some(number < 1000));
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
        let among = |values: &[Value], of: Value| execution(values.to_vec(), 1 << 20).is_among(0, of.as_ref()).unwrap();
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
        let error: SqlError = execution.is_among(0, ValueRef::Int(1)).unwrap_err();
        assert_eq!(error.sqlstate(), "53200");
        assert_eq!(execution.budget.taken(), 0);
    }
}
