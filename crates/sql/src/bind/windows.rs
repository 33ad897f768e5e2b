//! Calls of window functions, and the windows that they are over.
//!
//! What stands for a call in an expression is a column of [`WINDOWS`]. Calls are noted in the scope, as aggregates are; their arguments and windows are expressions of rows, or of
//! groups if the query has any.

use super::aggregates::Place;
use super::expression::refuse_count_of_nothing;
use super::frame::wrong;
use super::{Binder, Frame};
use crate::exclusion;
use crate::expression::aggregate::Aggregate;
use crate::expression::{Expr, Typed, aggregate, is_aggregate, make};
use crate::parse::{At, identifier};
use crate::{SqlError, SqlResult};
use pagefold_types::{DataType, Value};
use sqlparser::ast::{self, FunctionArg, FunctionArgExpr, NamedWindowExpr, WindowType};

/// Number of the relation of a query's calls of window functions.
pub(crate) const WINDOWS: usize = usize::MAX - 2;

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum WindowFunction {
    RowNumber,
    Rank,
    DenseRank,
    PercentRank,
    CumeDist,
    Ntile,
    /// Arguments: the value, and if there are any the distance and what comes where there is no such row.
    Lag,
    Lead,
    FirstValue,
    LastValue,
    NthValue,
    /// Its argument, if it has one, is that of the call.
    Aggregate(Aggregate),
}

/// What rows of a partition are ordered by.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct WindowOrder {
    pub(crate) expr: Expr,
    pub(crate) descending: bool,
    pub(crate) nulls_first: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Window {
    pub(crate) partition: Vec<Expr>,
    pub(crate) order: Vec<WindowOrder>,
    pub(crate) frame: Frame,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct WindowCall {
    pub(crate) function: WindowFunction,
    pub(crate) arguments: Vec<Expr>,
    pub(crate) filter: Option<Expr>,
    pub(crate) window: Window,
}

/// Windows of a query.
#[derive(Debug, Default)]
pub(crate) struct Windows {
    /// Those of WINDOW, with what they refine.
    named: Vec<(String, ast::WindowSpec)>,
    pub(crate) calls: Vec<WindowCall>,
    /// Why there can be none where aggregates may be.
    refused: Option<&'static str>,
}

impl WindowFunction {
    fn named(name: &str) -> Option<WindowFunction> {
        Some(match name {
            "row_number" => WindowFunction::RowNumber,
            "rank" => WindowFunction::Rank,
            "dense_rank" => WindowFunction::DenseRank,
            "percent_rank" => WindowFunction::PercentRank,
            "cume_dist" => WindowFunction::CumeDist,
            "ntile" => WindowFunction::Ntile,
            "lag" => WindowFunction::Lag,
            "lead" => WindowFunction::Lead,
            "first_value" => WindowFunction::FirstValue,
            "last_value" => WindowFunction::LastValue,
            "nth_value" => WindowFunction::NthValue,
            _ => return None,
        })
    }

    /// Is there a window function of this name, which is no aggregate? In lower case.
    pub(crate) fn is_one(name: &str) -> bool {
        WindowFunction::named(name).is_some()
    }
}

impl WindowCall {
    /// Shows the expressions of rows in it.
    pub(crate) fn exprs_mut(&mut self, each: &mut dyn FnMut(&mut Expr)) {
        self.arguments.iter_mut().chain(&mut self.filter).chain(&mut self.window.partition).for_each(&mut *each);
        self.window.order.iter_mut().for_each(|order| each(&mut order.expr));
        self.window.frame.exprs_mut(each);
    }
}

impl Binder<'_> {
    /// Runs something at a place where aggregates may be, but no window functions.
    pub(super) fn without_windows<R>(&mut self, why: &'static str, run: impl FnOnce(&mut Self) -> SqlResult<R>) -> SqlResult<R> {
        let before = self.scope().windows.refused.replace(why);
        let done = run(self);
        self.scope().windows.refused = before;
        done
    }

    /// The windows of WINDOW.
    pub(super) fn named_windows(&mut self, definitions: &[ast::NamedWindowDefinition]) -> SqlResult<()> {
        for ast::NamedWindowDefinition(name, definition) in definitions {
            let own = identifier(name);
            if self.scope().windows.named.iter().any(|(known, _)| *known == own) {
                return Err(wrong(format!("window \"{own}\" is already defined")).at_span(name.span));
            }
            let NamedWindowExpr::WindowSpec(spec) = definition else {
                return Err(SqlError::syntax("behind WINDOW ... AS stands a window in parentheses").at_span(name.span));
            };
            let spec = self.refined(spec)?;
            // Those that nobody uses are looked at, too.
            self.window(&spec).at_span(name.span)?;
            self.scope().windows.named.push((own, spec));
        }
        Ok(())
    }

    fn named_window(&mut self, name: &str) -> SqlResult<ast::WindowSpec> {
        let found = self.scope().windows.named.iter().find(|(known, _)| known == name).map(|(_, spec)| spec.clone());
        found.ok_or_else(|| SqlError::new("42704", format!("window \"{name}\" does not exist")))
    }

    /// A window with what it has of the one that it names; the name keeps only what is excluded.
    fn refined(&mut self, spec: &ast::WindowSpec) -> SqlResult<ast::WindowSpec> {
        let mut spec = spec.clone();
        let name = spec.window_name.as_ref().map(identifier);
        let Some(base) = name.as_deref().and_then(|name| exclusion::split(name).1) else { return Ok(spec) };
        let of = self.named_window(base)?;
        if !spec.partition_by.is_empty() {
            return Err(wrong(format!("cannot override PARTITION BY clause of window \"{base}\"")));
        }
        if !spec.order_by.is_empty() && !of.order_by.is_empty() {
            return Err(wrong(format!("cannot override ORDER BY clause of window \"{base}\"")));
        }
        if of.window_frame.is_some() {
            return Err(wrong(format!("cannot copy window \"{base}\" because it has a frame clause")));
        }
        spec.partition_by = of.partition_by;
        if spec.order_by.is_empty() {
            spec.order_by = of.order_by;
        }
        if let Some(name) = &mut spec.window_name {
            name.value.truncate(name.value.len() - base.len());
        }
        Ok(spec)
    }

    /// Binds a window that names no other one.
    fn window(&mut self, spec: &ast::WindowSpec) -> SqlResult<Window> {
        self.without_windows("window functions are not allowed in window definitions", |binder| {
            let mut partition = Vec::with_capacity(spec.partition_by.len());
            for expr in &spec.partition_by {
                let typed = binder.expression(expr)?;
                partition.push(binder.settled(typed)?.0);
            }
            let mut order = Vec::with_capacity(spec.order_by.len());
            for key in &spec.order_by {
                let typed = binder.expression(&key.expr)?;
                let (expr, _) = binder.settled(typed)?;
                let descending = key.options.asc == Some(false);
                order.push(WindowOrder { expr, descending, nulls_first: key.options.nulls_first.unwrap_or(descending) });
            }
            let exclusion = spec.window_name.as_ref().map_or_else(Default::default, |name| exclusion::split(&name.value).0);
            let frame = match &spec.window_frame {
                Some(frame) => binder.frame(frame, &spec.order_by, exclusion)?,
                None => Frame::default(),
            };
            Ok(Window { partition, order, frame })
        })
    }

    fn check_place(&mut self, name: &str) -> SqlResult<()> {
        let scope = self.scope();
        match (&scope.aggregates, scope.windows.refused) {
            (Place::In("the argument of an aggregate function"), _) => {
                Err(SqlError::new("42803", "aggregate function calls cannot contain window function calls"))
            }
            (Place::In(place), _) => Err(wrong(format!("window functions are not allowed in {place}"))),
            (Place::Nowhere, _) => Err(wrong(format!("window functions are not allowed here: {name}"))),
            (Place::Noted(_), Some(why)) => Err(wrong(why)),
            (Place::Noted(_), None) => Ok(()),
        }
    }

    /// `name(...) OVER ...`
    pub(super) fn window_call(
        &mut self,
        name: &str,
        call: &ast::Function,
        arguments: &[FunctionArg],
        distinct: bool,
        over: &WindowType,
    ) -> SqlResult<Typed> {
        let own = WindowFunction::named(name);
        if own.is_none() && !is_aggregate(name) {
            let message = format!("OVER specified, but {name} is not a window function nor an aggregate function");
            return Err(SqlError::new("42809", message));
        }
        self.check_place(name)?;
        if distinct {
            return Err(SqlError::new("0A000", "DISTINCT is not implemented for window functions"));
        }
        if own.is_some() && call.filter.is_some() {
            return Err(SqlError::new("0A000", "FILTER is not implemented for non-aggregate window functions"));
        }
        refuse_count_of_nothing(name, arguments)?;
        let bound = self.without_windows("window function calls cannot be nested", |binder| {
            let mut bound = Vec::with_capacity(arguments.len());
            for argument in arguments {
                match argument {
                    FunctionArg::Unnamed(FunctionArgExpr::Expr(argument)) => bound.push(binder.expression(argument)?),
                    FunctionArg::Unnamed(FunctionArgExpr::Wildcard) if name == "count" && arguments.len() == 1 => {}
                    other => return Err(SqlError::syntax(format!("{name}({other}) is no call of a window function"))),
                }
            }
            Ok(bound)
        })?;
        let filter = match &call.filter {
            Some(filter) => Some(self.without_aggregates("FILTER", |binder| binder.condition(filter, "FILTER"))?),
            None => None,
        };
        let (function, arguments, data_type) = match own {
            Some(function) => self.window_arguments(name, function, bound)?,
            None => {
                let mut aggregate = aggregate(name, bound, false, self.params)?;
                let (argument, data_type) = (aggregate.argument.take(), aggregate.data_type);
                (WindowFunction::Aggregate(aggregate), argument.into_iter().collect(), data_type)
            }
        };
        let spec = match over {
            WindowType::NamedWindow(name) => self.named_window(&identifier(name)).at_span(name.span)?,
            WindowType::WindowSpec(spec) => self.refined(spec)?,
        };
        let window = self.window(&spec)?;
        let noted = WindowCall { function, arguments, filter, window };
        let is_volatile = {
            let mut noted = noted.clone();
            let mut found = false;
            noted.exprs_mut(&mut |expr| found |= expr.any(Expr::is_volatile));
            found
        };
        let calls = &mut self.scope().windows.calls;
        let known = if is_volatile { None } else { calls.iter().position(|known| *known == noted) };
        let column = known.unwrap_or_else(|| {
            calls.push(noted);
            calls.len() - 1
        });
        Ok(Typed::of(Expr::Column { relation: WINDOWS, column }, data_type))
    }

    /// Arguments of a function that is no aggregate, and the type of what it gives.
    fn window_arguments(
        &mut self,
        name: &str,
        function: WindowFunction,
        bound: Vec<Typed>,
    ) -> SqlResult<(WindowFunction, Vec<Expr>, DataType)> {
        use WindowFunction as F;
        let params = self.params;
        let count = bound.len();
        let mut bound = bound.into_iter();
        let mut next = || bound.next().unwrap_or_else(Typed::null);
        let whole = |typed: Typed| -> SqlResult<Expr> {
            if !typed.data_type.is_none_or(|of| matches!(of, DataType::SmallInt | DataType::Integer)) {
                return Err(SqlError::new("42883", format!("function {name} of such arguments does not exist")));
            }
            Ok(make::coerce(typed, &DataType::Integer, params)?.expr)
        };
        let (arguments, data_type) = match (&function, count) {
            (F::RowNumber | F::Rank | F::DenseRank, 0) => (Vec::new(), DataType::BigInt),
            (F::PercentRank | F::CumeDist, 0) => (Vec::new(), DataType::Double),
            (F::Ntile, 1) => (vec![whole(next())?], DataType::Integer),
            (F::FirstValue | F::LastValue, 1) | (F::Lag | F::Lead, 1) => {
                let (of, data_type) = self.settled(next())?;
                (vec![of], data_type)
            }
            (F::NthValue, 2) | (F::Lag | F::Lead, 2) => {
                let (of, data_type) = self.settled(next())?;
                (vec![of, whole(next())?], data_type)
            }
            (F::Lag | F::Lead, 3) => {
                let (of, by, otherwise) = (next(), whole(next())?, next());
                let (mut both, data_type) = make::unify(vec![of, otherwise], name, params)?;
                let otherwise = both.pop().unwrap_or(Expr::Literal(Value::Null));
                both.extend([by, otherwise]);
                (both, data_type)
            }
            _ => return Err(SqlError::new("42883", format!("function {name} with {count} arguments does not exist"))),
        };
        Ok((function, arguments, data_type))
    }
}
