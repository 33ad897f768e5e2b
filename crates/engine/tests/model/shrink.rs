//! A program that fails, made as short as it still fails: steps are left out, then values, indexes and settings become the simplest. Delta debugging (Zeller, Hildebrandt 2002).

use crate::program::{Change, Program, Step};
use crate::run::{Tally, run};
use crate::values::simplest;
use pagefold_engine::table_space::Method;
use pagefold_types::Value;
use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Once;

/// Runs of the program after which it is as short as it is.
const RUNS: usize = 1_500;

thread_local! {
    /// What the last panic of this thread said, while programs run.
    static PANIC: RefCell<Option<String>> = const { RefCell::new(None) };
    static RUNNING: RefCell<bool> = const { RefCell::new(false) };
}

/// Runs a program; a panic is a failure like others.
pub(crate) fn attempt(program: &Program, progress: &dyn Fn()) -> Result<Tally, String> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if RUNNING.with_borrow(|running| *running) {
                PANIC.set(Some(info.to_string()));
            } else {
                before(info);
            }
        }));
    });
    RUNNING.set(true);
    let result = catch_unwind(AssertUnwindSafe(|| run(program, progress)));
    RUNNING.set(false);
    result.unwrap_or_else(|_| Err(format!("panicked: {}", PANIC.take().unwrap_or_default())))
}

/// The shortest program found that fails, and how it does.
pub(crate) fn shrink(program: &Program, error: String, progress: &dyn Fn()) -> (Program, String) {
    let mut shrinking = Shrinking { best: program.clone(), error, runs: 0, progress };
    loop {
        let before = shrinking.size();
        shrinking.leave_out_steps();
        shrinking.simplify_steps();
        shrinking.simplify_shape();
        if shrinking.size() == before || shrinking.runs >= RUNS {
            return (shrinking.best, shrinking.error);
        }
    }
}

struct Shrinking<'p> {
    best: Program,
    error: String,
    runs: usize,
    progress: &'p dyn Fn(),
}

impl Shrinking<'_> {
    fn size(&self) -> usize {
        format!("{:?}", self.best).len()
    }

    /// Takes this program if it fails, too.
    fn try_this(&mut self, program: Program) -> bool {
        if self.runs >= RUNS {
            return false;
        }
        self.runs += 1;
        match attempt(&program, self.progress) {
            Ok(_) => false,
            Err(error) => {
                (self.best, self.error) = (program, error);
                true
            }
        }
    }

    fn leave_out_steps(&mut self) {
        let mut length = self.best.steps.len().div_ceil(2);
        loop {
            let mut at = 0;
            while at < self.best.steps.len() {
                let mut shorter = self.best.clone();
                let end = (at + length).min(shorter.steps.len());
                shorter.steps.drain(at..end);
                if !self.try_this(shorter) {
                    at += length;
                }
            }
            if length <= 1 {
                return;
            }
            length /= 2;
        }
    }

    fn simplify_steps(&mut self) {
        for at in 0..self.best.steps.len() {
            if let Step::Change { times, .. } = &self.best.steps[at] {
                let times = *times;
                for fewer in [1, times / 4, times / 2, times - 1].into_iter().filter(|fewer| *fewer > 0 && *fewer < times) {
                    if self.change_step(at, |step| {
                        if let Step::Change { times, .. } = step {
                            *times = fewer;
                        }
                    }) {
                        break;
                    }
                }
            }
            if let Step::Commits { count, .. } = &self.best.steps[at] {
                let count = *count;
                for fewer in [1, count / 4, count / 2, count - 1].into_iter().filter(|fewer| *fewer > 0 && *fewer < count) {
                    if self.change_step(at, |step| {
                        if let Step::Commits { count, .. } = step {
                            *count = fewer;
                        }
                    }) {
                        break;
                    }
                }
            }
            let values = match &self.best.steps[at] {
                Step::Change { change: Change::Insert(row), .. } => row.len(),
                Step::Change { change: Change::Update(_, changes), .. } => changes.len(),
                _ => 0,
            };
            let tables = self.best.shape.tables.clone();
            for value in 0..values {
                let simple = self.change_step(at, |step| {
                    if let Step::Change { table, change, .. } = step {
                        match change {
                            Change::Insert(row) => row[value] = simplest(tables[*table].columns[value].data_type),
                            Change::Update(_, changes) => changes[value].1 = simplest(tables[*table].columns[changes[value].0].data_type),
                            _ => {}
                        }
                    }
                });
                if !simple {
                    self.halve(at, value);
                }
            }
            if let Step::Change { change: Change::Update(..), .. } = &self.best.steps[at] {
                for value in (0..values).rev() {
                    self.change_step(at, |step| {
                        if let Step::Change { change: Change::Update(_, changes), .. } = step
                            && changes.len() > 1
                        {
                            changes.remove(value);
                        }
                    });
                }
            }
        }
    }

    /// Long values become shorter.
    fn halve(&mut self, at: usize, value: usize) {
        for _ in 0..12 {
            let halved = self.change_step(at, |step| {
                let found = match step {
                    Step::Change { change: Change::Insert(row), .. } => row.get_mut(value),
                    Step::Change { change: Change::Update(_, changes), .. } => changes.get_mut(value).map(|(_, value)| value),
                    _ => None,
                };
                match found {
                    Some(Value::Text(text)) => *text = text.chars().take(text.chars().count() / 2).collect(),
                    Some(Value::Bytes(bytes)) => bytes.truncate(bytes.len() / 2),
                    _ => {}
                }
            });
            if !halved {
                return;
            }
        }
    }

    fn change_step(&mut self, at: usize, change: impl FnOnce(&mut Step)) -> bool {
        let mut other = self.best.clone();
        change(&mut other.steps[at]);
        format!("{:?}", other.steps[at]) != format!("{:?}", self.best.steps[at]) && self.try_this(other)
    }

    fn simplify_shape(&mut self) {
        let unchanged = |a: &Program, b: &Program| format!("{:?}", a.shape) == format!("{:?}", b.shape);
        let mut try_shape = |change: &dyn Fn(&mut Program)| {
            let mut other = self.best.clone();
            change(&mut other);
            !unchanged(&other, &self.best) && self.try_this(other)
        };
        try_shape(&|program| program.shape.memory_bytes = 8 << 20);
        try_shape(&|program| program.shape.checkpoint_bytes = 256 << 20);
        for table in (0..3).rev() {
            let of = |change: &'static dyn Fn(&mut crate::shape::TableShape)| {
                move |program: &mut Program| {
                    if let Some(table) = program.shape.tables.get_mut(table) {
                        change(table);
                    }
                }
            };
            try_shape(&|program| {
                if table + 1 == program.shape.tables.len() && table > 0 {
                    program.shape.tables.pop();
                }
            });
            try_shape(&of(&|table| table.method = Method::None));
            try_shape(&of(&|table| table.method = Method::Row));
            try_shape(&of(&|table| table.dictionary = None));
            try_shape(&of(&|table| table.small_partitions = false));
            try_shape(&of(&|table| table.maxrows = 4096));
            try_shape(&of(&|table| table.page_bytes = 8192));
            for index in (0..4).rev() {
                try_shape(&|program| {
                    if let Some(table) = program.shape.tables.get_mut(table).filter(|table| table.indexes.len() > 1)
                        && index < table.indexes.len()
                    {
                        table.indexes.remove(index);
                        table.primary_key &= index > 0;
                    }
                });
            }
            try_shape(&of(&|table| table.primary_key = false));
            try_shape(&of(&|table| table.indexes.iter_mut().for_each(|index| index.columns.truncate(1))));
            try_shape(&of(&|table| table.indexes.iter_mut().for_each(|index| index.unique = false)));
        }
    }
}
