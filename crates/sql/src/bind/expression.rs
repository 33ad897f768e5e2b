//! Expressions.

use super::aggregates::Noted;
use super::series::SERIES;
use super::{Binder, WindowFunction, rows, types};
use crate::dialect::{DISTINCT, NOT_DISTINCT, NOT_SYMMETRIC, SYMMETRIC};
use crate::expression::arithmetic::Operation;
use crate::expression::{Comparison, Expr, ParamTypes, Typed, aggregate, function, is_aggregate, make};
use crate::parse::{At, identifier, parts};
use crate::{SqlError, SqlResult};
use pagefold_types::{DataType, Value};
use sqlparser::ast::{
    self, BinaryOperator, FunctionArg, FunctionArgExpr, FunctionArgumentClause, FunctionArguments, Spanned, UnaryOperator,
};
use sqlparser::tokenizer::Span;

/// Levels of expressions within each other.
const DEPTH_MAX: usize = 500;

impl Binder<'_> {
    /// Binds an expression; errors without a place get its.
    pub(crate) fn expression(&mut self, expr: &ast::Expr) -> SqlResult<Typed> {
        self.bound_expression(expr, 0)
    }

    /// One that is a condition.
    pub(crate) fn condition(&mut self, expr: &ast::Expr, place: &str) -> SqlResult<Expr> {
        let typed = self.expression(expr)?;
        make::condition(typed, place, self.params).at_span(start_of(expr))
    }

    pub(super) fn bound_expression(&mut self, expr: &ast::Expr, depth: usize) -> SqlResult<Typed> {
        if depth > DEPTH_MAX {
            return Err(SqlError::new("54001", format!("an expression of more than {DEPTH_MAX} levels")));
        }
        // Expressions may be deeper than the stack of a thread is long.
        let bound = stacker::maybe_grow(128 << 10, 2 << 20, || self.bind_node(expr, depth + 1));
        bound.map_err(|error| error.at_span(start_of(expr)))
    }

    fn bind_node(&mut self, expr: &ast::Expr, depth: usize) -> SqlResult<Typed> {
        use ast::Expr as Node;
        let params = self.params;
        match expr {
            Node::Identifier(name) => self.find_column(None, name),
            Node::CompoundIdentifier(names) => match names.as_slice() {
                [relation, column] => self.find_column(Some(relation), column),
                [schema, relation, column] if identifier(schema) == "public" => self.find_column(Some(relation), column),
                _ => Err(SqlError::unsupported(format!("the name {expr}"))),
            },
            Node::Nested(inner) => self.bound_expression(inner, depth),
            Node::Value(value) => self.literal(&value.value),
            Node::TypedString(typed) => {
                let to = types::data_type(&typed.data_type)?;
                let text = string(&typed.value.value).ok_or_else(|| SqlError::syntax(format!("{expr} is no literal")))?;
                make::cast(Typed::unknown_text(text), to, params)
            }
            Node::IsNull(of) => self.is_null(of, false, depth),
            Node::IsNotNull(of) => self.is_null(of, true, depth),
            Node::IsTrue(of) => make::is_truth(self.bound_expression(of, depth)?, Some(true), false, params),
            Node::IsNotTrue(of) => make::is_truth(self.bound_expression(of, depth)?, Some(true), true, params),
            Node::IsFalse(of) => make::is_truth(self.bound_expression(of, depth)?, Some(false), false, params),
            Node::IsNotFalse(of) => make::is_truth(self.bound_expression(of, depth)?, Some(false), true, params),
            Node::IsUnknown(of) => make::is_truth(self.bound_expression(of, depth)?, None, false, params),
            Node::IsNotUnknown(of) => make::is_truth(self.bound_expression(of, depth)?, None, true, params),
            Node::InList { expr: of, list, negated } => self.in_list(of, list, *negated, depth),
            Node::InSubquery { expr: of, subquery, negated } => {
                let of = self.row_or_value(of, depth)?;
                self.in_subquery(of, subquery, *negated)
            }
            Node::Between { expr: of, negated, low, high } => self.between(of, low, high, (*negated, false), depth),
            Node::BinaryOp { left, op, right } => self.binary(left, op, right, depth),
            Node::UnaryOp { op, expr: of } => self.unary(op, of, depth),
            Node::Like { negated, any: false, expr: of, pattern, escape_char } => {
                self.like(of, pattern, escape_char.as_ref(), (false, *negated), depth)
            }
            Node::ILike { negated, any: false, expr: of, pattern, escape_char } => {
                self.like(of, pattern, escape_char.as_ref(), (true, *negated), depth)
            }
            Node::Cast { kind: ast::CastKind::Cast | ast::CastKind::DoubleColon, expr: of, data_type, array: false, format: None } => {
                let of = self.bound_expression(of, depth)?;
                if types::is_any_number(data_type) {
                    return make::cast_to_number(of, params);
                }
                if let Some((fields, digits)) = types::interval(data_type) {
                    return make::cast_to_interval(of, fields, digits, params);
                }
                make::cast(of, types::data_type(data_type)?, params)
            }
            Node::Case { operand, conditions, else_result, .. } => {
                let operand = operand.as_ref().map(|operand| self.bound_expression(operand, depth)).transpose()?;
                let mut branches = Vec::with_capacity(conditions.len());
                for branch in conditions {
                    branches.push((self.bound_expression(&branch.condition, depth)?, self.bound_expression(&branch.result, depth)?));
                }
                let otherwise = else_result.as_ref().map(|otherwise| self.bound_expression(otherwise, depth)).transpose()?;
                make::case(operand, branches, otherwise, params)
            }
            Node::Extract { field, expr: of, .. } => {
                // It may be written as a text.
                let field = Typed::unknown_text(field.to_string().trim_matches('\'').to_lowercase());
                self.call_bound("extract", vec![field], &[of], depth)
            }
            Node::Ceil { expr: of, field: ast::CeilFloorKind::DateTimeField(ast::DateTimeField::NoDateTime) } => {
                self.call_bound("ceil", vec![], &[of], depth)
            }
            Node::Floor { expr: of, field: ast::CeilFloorKind::DateTimeField(ast::DateTimeField::NoDateTime) } => {
                self.call_bound("floor", vec![], &[of], depth)
            }
            Node::Position { expr: what, r#in } => {
                let what = self.bound_expression(what, depth)?;
                let within = self.bound_expression(r#in, depth)?;
                function::call("strpos", vec![within, what], params)
            }
            Node::Substring { expr: of, substring_from, substring_for, .. } => {
                let of = self.bound_expression(of, depth)?;
                let from = match substring_from {
                    Some(from) => self.bound_expression(from, depth)?,
                    None => Typed::of(Expr::Literal(Value::Int(1)), DataType::Integer),
                };
                let mut arguments = vec![of, from];
                if let Some(count) = substring_for {
                    arguments.push(self.bound_expression(count, depth)?);
                }
                function::call("substring", arguments, params)
            }
            Node::Overlay { expr: of, overlay_what, overlay_from, overlay_for } => {
                let all = [Some(of), Some(overlay_what), Some(overlay_from), overlay_for.as_ref()].into_iter().flatten();
                let arguments = all.map(|of| self.bound_expression(of, depth)).collect::<SqlResult<Vec<_>>>()?;
                function::call("overlay", arguments, params)
            }
            Node::SimilarTo { negated, expr: of, pattern, escape_char } => {
                let (of, pattern) = (self.bound_expression(of, depth)?, self.bound_expression(pattern, depth)?);
                let escape = match escape_char.as_ref().map(|escape| string(&escape.value)) {
                    None => "\\".to_owned(),
                    Some(escape) => escape.ok_or_else(|| SqlError::syntax("behind ESCAPE stands a text"))?.to_owned(),
                };
                let [of, pattern] = make::two_texts(of, pattern, "similar to", params)?;
                let found = function::call("similar_to", vec![of, pattern, Typed::unknown_text(escape)], params)?;
                if *negated { make::not(found, params) } else { Ok(found) }
            }
            Node::Trim { trim_where, trim_what, expr: of, trim_characters } => {
                let name = match trim_where {
                    None | Some(ast::TrimWhereField::Both) => "btrim",
                    Some(ast::TrimWhereField::Leading) => "ltrim",
                    Some(ast::TrimWhereField::Trailing) => "rtrim",
                };
                let mut arguments = vec![self.bound_expression(of, depth)?];
                if let Some(what) = trim_what {
                    arguments.push(self.bound_expression(what, depth)?);
                }
                for what in trim_characters.iter().flatten() {
                    arguments.push(self.bound_expression(what, depth)?);
                }
                function::call(name, arguments, params)
            }
            Node::Collate { expr: of, collation } => match collation.to_string().trim_matches('"').to_lowercase().as_str() {
                "c" | "posix" | "ucs_basic" | "default" => self.bound_expression(of, depth),
                _ => Err(SqlError::unsupported(format!("collation {collation}")).with_hint("Text is ordered by its bytes: COLLATE \"C\".")),
            },
            Node::Function(call) => self.function(call, depth),
            Node::Exists { subquery, negated } => {
                let exists = self.exists(subquery)?;
                if *negated { make::not(exists, params) } else { Ok(exists) }
            }
            Node::Subquery(query) => self.scalar(query),
            Node::AnyOp { left, compare_op, right, .. } => self.quantified(left, compare_op, right, false, depth),
            Node::AllOp { left, compare_op, right } => self.quantified(left, compare_op, right, true, depth),
            Node::AtTimeZone { timestamp, time_zone } => {
                let (zone, of) = (self.bound_expression(time_zone, depth)?, self.bound_expression(timestamp, depth)?);
                if matches!(of.data_type, Some(DataType::Time { .. })) {
                    return Err(SqlError::unsupported("TIME WITH TIME ZONE"));
                }
                function::call("timezone", vec![zone, of], params)
            }
            Node::Interval(interval) => interval_literal(interval, params),
            Node::Tuple(fields) if fields.is_empty() => Err(SqlError::syntax("syntax error at or near \")\"")),
            Node::Tuple(_) => Err(rows::refused()),
            other => Err(SqlError::unsupported(format!("the expression {other}"))),
        }
    }

    fn literal(&mut self, value: &ast::Value) -> SqlResult<Typed> {
        Ok(match value {
            ast::Value::Number(text, _) => Typed::number(text)?,
            ast::Value::Boolean(value) => Typed::of(Expr::Literal(Value::Boolean(*value)), DataType::Boolean),
            ast::Value::Null => Typed::null(),
            ast::Value::HexStringLiteral(digits) => make::cast(Typed::unknown_text(format!("\\x{digits}")), DataType::Bytea, self.params)?,
            ast::Value::Placeholder(name) => {
                let number = name.strip_prefix('$').and_then(|digits| digits.parse::<usize>().ok());
                match number {
                    Some(number @ 1..=65_535) => {
                        let mut types = self.params.0.borrow_mut();
                        if types.len() < number {
                            types.resize(number, None);
                        }
                        let data_type = types[number - 1];
                        Typed { expr: Expr::Param(number - 1), data_type }
                    }
                    _ => return Err(SqlError::syntax(format!("{name} is no parameter: they are $1, $2, ... (or ?)"))),
                }
            }
            other => match string(other) {
                Some(text) => Typed::unknown_text(text),
                None => return Err(SqlError::unsupported(format!("the literal {other}"))),
            },
        })
    }

    fn in_list(&mut self, of: &ast::Expr, list: &[ast::Expr], negated: bool, depth: usize) -> SqlResult<Typed> {
        let params = self.params;
        if let Some(columns) = rows::fields(of) {
            // (a, b) IN ((1, 2), (3, 4)): one of the rows has equal values.
            let mut any = Vec::with_capacity(list.len());
            for row in list {
                let equal = self.compared_rows(Comparison::Equal, &columns, row, depth)?;
                any.push(equal.ok_or_else(|| SqlError::types(format!("{row} has not {} values", columns.len())))?);
            }
            let any = self.joined(any, make::or)?;
            return if negated { make::not(any, params) } else { Ok(any) };
        }
        let of = self.bound_expression(of, depth)?;
        let mut list = list.iter().map(|value| self.bound_expression(value, depth)).collect::<SqlResult<Vec<_>>>()?;
        // Values without a column, if they are several, have one type with what is looked for, and that of REAL and exact numbers is REAL. All else is compared as by `=`.
        let is_alone = |value: &Typed| !value.expr.any(|part| matches!(part, Expr::Column { .. }));
        let becomes_real = |value: &Typed| {
            use DataType::{BigInt, Decimal, Integer, Real, SmallInt};
            matches!(value.data_type, None | Some(SmallInt | Integer | BigInt | Decimal { .. } | Real))
        };
        let alone = || list.iter().filter(|value| is_alone(value));
        if of.data_type == Some(DataType::Real) && alone().count() > 1 && alone().all(becomes_real) {
            let cast = |value: Typed| if is_alone(&value) { make::cast(value, DataType::Real, params) } else { Ok(value) };
            list = list.into_iter().map(cast).collect::<SqlResult<_>>()?;
        }
        make::in_list(of, list, negated, params)
    }

    /// All of these by AND, or by OR.
    pub(super) fn joined(&self, terms: Vec<Typed>, join: fn(Typed, Typed, &ParamTypes) -> SqlResult<Typed>) -> SqlResult<Typed> {
        let mut terms = terms.into_iter();
        let first = terms.next().unwrap_or_else(|| Typed::boolean(true));
        terms.try_fold(first, |all, term| join(all, term, self.params))
    }

    fn binary(&mut self, left: &ast::Expr, operator: &BinaryOperator, right: &ast::Expr, depth: usize) -> SqlResult<Typed> {
        let params = self.params;
        if matches!(operator, BinaryOperator::And | BinaryOperator::Or) {
            // Long chains lean to the left: they are walked, not descended.
            let (mut chain, mut rest) = (vec![right], left);
            while let ast::Expr::BinaryOp { left, op, right } = rest
                && op == operator
            {
                chain.push(right);
                rest = left;
            }
            chain.push(rest);
            let terms = chain.into_iter().rev().map(|term| self.bound_expression(term, depth)).collect::<SqlResult<Vec<_>>>()?;
            return self.joined(terms, if *operator == BinaryOperator::And { make::and } else { make::or });
        }
        if let BinaryOperator::Custom(name) = operator
            && (name == SYMMETRIC || name == NOT_SYMMETRIC)
        {
            let ast::Expr::BinaryOp { left: low, op: BinaryOperator::And, right: high } = right else {
                return Err(SqlError::syntax(format!("{name} without AND")));
            };
            return self.between(left, low, high, (name == NOT_SYMMETRIC, true), depth);
        }
        if let Some(compared) = self.row_operator(left, operator, right, depth)? {
            return Ok(compared);
        }
        let (left, right) = (self.bound_expression(left, depth)?, self.bound_expression(right, depth)?);
        if let Some(comparison) = comparison(operator) {
            return make::compare(comparison, left, right, params);
        }
        let operation = match operator {
            BinaryOperator::Plus => Operation::Add,
            BinaryOperator::Minus => Operation::Subtract,
            BinaryOperator::Multiply => Operation::Multiply,
            BinaryOperator::Divide => Operation::Divide,
            BinaryOperator::Modulo => Operation::Remainder,
            BinaryOperator::PGExp => Operation::Power,
            BinaryOperator::BitwiseAnd => Operation::BitAnd,
            BinaryOperator::BitwiseOr => Operation::BitOr,
            BinaryOperator::PGBitwiseXor => Operation::BitXor,
            BinaryOperator::PGBitwiseShiftLeft => Operation::ShiftLeft,
            BinaryOperator::PGBitwiseShiftRight => Operation::ShiftRight,
            BinaryOperator::StringConcat => return make::concat(left, right, params),
            BinaryOperator::PGLikeMatch => return make::like(left, right, None, false, false, params),
            BinaryOperator::PGNotLikeMatch => return make::like(left, right, None, false, true, params),
            BinaryOperator::PGILikeMatch => return make::like(left, right, None, true, false, params),
            BinaryOperator::PGNotILikeMatch => return make::like(left, right, None, true, true, params),
            BinaryOperator::PGRegexMatch => return self.matches(left, right, "~", (false, false)),
            BinaryOperator::PGRegexIMatch => return self.matches(left, right, "~*", (true, false)),
            BinaryOperator::PGRegexNotMatch => return self.matches(left, right, "!~", (false, true)),
            BinaryOperator::PGRegexNotIMatch => return self.matches(left, right, "!~*", (true, true)),
            BinaryOperator::PGStartsWith => return function::call("starts_with", vec![left, right], params),
            BinaryOperator::Custom(name) if name == DISTINCT => return make::is_distinct(left, right, false, params),
            BinaryOperator::Custom(name) if name == NOT_DISTINCT => return make::is_distinct(left, right, true, params),
            other => return Err(SqlError::unsupported(format!("the operator {other}"))),
        };
        make::arithmetic(operation, left, right, params)
    }

    /// A text and a regular expression.
    fn matches(&self, of: Typed, pattern: Typed, operator: &str, (ignores_case, negated): (bool, bool)) -> SqlResult<Typed> {
        let flags = ignores_case.then(|| Typed::unknown_text("i".into()));
        let arguments = make::two_texts(of, pattern, operator, self.params)?.into_iter().chain(flags).collect();
        let found = function::call("regexp_like", arguments, self.params)?;
        if negated { make::not(found, self.params) } else { Ok(found) }
    }

    fn unary(&mut self, operator: &UnaryOperator, of: &ast::Expr, depth: usize) -> SqlResult<Typed> {
        if let (UnaryOperator::Minus, ast::Expr::Value(value)) = (operator, of)
            && let ast::Value::Number(text, _) = &value.value
        {
            // The least integers are numbers only with their sign.
            return Typed::number(&format!("-{text}"));
        }
        let typed = self.bound_expression(of, depth)?;
        match operator {
            UnaryOperator::Not => make::not(typed, self.params),
            UnaryOperator::Minus => make::negate(typed, self.params),
            UnaryOperator::Plus => Ok(typed),
            other => Err(SqlError::unsupported(format!("the operator {other}"))),
        }
    }

    fn like(
        &mut self,
        of: &ast::Expr,
        pattern: &ast::Expr,
        escape: Option<&ast::ValueWithSpan>,
        (ignores_case, negated): (bool, bool),
        depth: usize,
    ) -> SqlResult<Typed> {
        let (of, pattern) = (self.bound_expression(of, depth)?, self.bound_expression(pattern, depth)?);
        let escape = match escape.map(|escape| string(&escape.value)) {
            None => None,
            Some(Some(text)) => {
                let mut characters = text.chars();
                let escape = characters.next();
                if characters.next().is_some() {
                    return Err(SqlError::new("22019", "invalid escape string: it has one character, or none"));
                }
                Some(escape)
            }
            Some(None) => return Err(SqlError::syntax("behind ESCAPE stands a text")),
        };
        make::like(of, pattern, escape, ignores_case, negated, self.params)
    }

    fn call_bound(&mut self, name: &str, mut arguments: Vec<Typed>, more: &[&ast::Expr], depth: usize) -> SqlResult<Typed> {
        for argument in more {
            arguments.push(self.bound_expression(argument, depth)?);
        }
        function::call(name, arguments, self.params)
    }

    fn function(&mut self, call: &ast::Function, depth: usize) -> SqlResult<Typed> {
        let name = match parts(&call.name)?.as_slice() {
            [name] => identifier(name),
            [schema, name] if identifier(schema) == "pg_catalog" => identifier(name),
            _ => return Err(SqlError::new("42883", format!("function {} does not exist", call.name))),
        };
        if call.null_treatment.is_some() || !call.within_group.is_empty() || !matches!(call.parameters, FunctionArguments::None) {
            return Err(SqlError::unsupported(format!("this form of {name}")));
        }
        let (arguments, distinct, clauses): (&[FunctionArg], bool, &[FunctionArgumentClause]) = match &call.args {
            FunctionArguments::None => (&[], false, &[]),
            FunctionArguments::List(list) => {
                (&list.args, matches!(list.duplicate_treatment, Some(ast::DuplicateTreatment::Distinct)), &list.clauses)
            }
            FunctionArguments::Subquery(_) => return Err(SqlError::unsupported(format!("{name} of a subquery"))),
        };
        let order: &[ast::OrderByExpr] = match clauses {
            [] => &[],
            [FunctionArgumentClause::OrderBy(order)] if call.over.is_some() => {
                return Err(SqlError::unsupported("ORDER BY of an aggregate that is a window function").at_span(order[0].span()));
            }
            [FunctionArgumentClause::OrderBy(order)] if is_aggregate(&name) => order,
            [FunctionArgumentClause::OrderBy(_)] => {
                return Err(SqlError::new("42809", format!("ORDER BY specified, but {name} is not an aggregate function")));
            }
            _ => return Err(SqlError::unsupported(format!("clauses within the parentheses of {name}"))),
        };
        if let Some(over) = &call.over {
            return self.window_call(&name, call, arguments, distinct, over);
        }
        if is_aggregate(&name) {
            return self.aggregate(&name, call, (arguments, order), distinct);
        }
        if name == "current_time" {
            return Err(SqlError::unsupported("TIME WITH TIME ZONE").with_hint("LOCALTIME has no time zone."));
        }
        if name == rows::ROW {
            return Err(rows::refused());
        }
        if name == "grouping" {
            return self.grouping(arguments);
        }
        if let Some(series) = self.scope().series.filter(|_| name == SERIES) {
            return Ok(self.scope().column(series, 0));
        }
        if let Some(call) = self.sequence_call(&name, arguments, depth)? {
            return Ok(call);
        }
        if WindowFunction::is_one(&name) {
            return Err(SqlError::new("42809", format!("window function {name} requires an OVER clause")));
        }
        if call.filter.is_some() || distinct {
            return Err(SqlError::new("42809", format!("{name} is no aggregate function")));
        }
        let bound = self.arguments(&name, arguments, depth)?;
        let call = function::call(&name, bound, self.params)?;
        self.drawn += usize::from(call.expr.any(Expr::is_volatile));
        Ok(call)
    }

    /// The arguments of a function. Those of make_interval may have names.
    fn arguments(&mut self, name: &str, arguments: &[FunctionArg], depth: usize) -> SqlResult<Vec<Typed>> {
        let mut bound = Vec::with_capacity(arguments.len());
        let mut named: Vec<Option<Typed>> = Vec::new();
        for argument in arguments {
            match argument {
                FunctionArg::Unnamed(FunctionArgExpr::Expr(argument)) if named.is_empty() => {
                    bound.push(self.bound_expression(argument, depth)?);
                }
                FunctionArg::ExprNamed { name: ast::Expr::Identifier(own), arg: FunctionArgExpr::Expr(argument), .. }
                    if name == "make_interval" =>
                {
                    let own = identifier(own);
                    let at = function::MAKE_INTERVAL.iter().position(|known| *known == own);
                    let free = at.filter(|at| *at >= bound.len() && !matches!(named.get(*at), Some(Some(_))));
                    let Some(at) = free else {
                        return Err(SqlError::new("42883", format!("function make_interval({own} => ...) does not exist")));
                    };
                    let argument = self.bound_expression(argument, depth)?;
                    named.resize(named.len().max(at + 1), None);
                    named[at] = Some(argument);
                }
                _ => return Err(SqlError::unsupported(format!("the argument {argument} of {name}"))),
            }
        }
        let zero = || Typed::of(Expr::Literal(Value::Int(0)), DataType::Integer);
        let behind = named.into_iter().skip(bound.len()).map(|argument| argument.unwrap_or_else(zero));
        bound.extend(behind);
        Ok(bound)
    }

    fn aggregate(
        &mut self,
        name: &str,
        call: &ast::Function,
        (arguments, order): (&[FunctionArg], &[ast::OrderByExpr]),
        distinct: bool,
    ) -> SqlResult<Typed> {
        refuse_count_of_nothing(name, arguments)?;
        let (bound, by, filter) = self.without_aggregates("the argument of an aggregate function", |binder| {
            let mut bound = Vec::with_capacity(arguments.len());
            for argument in arguments {
                match argument {
                    FunctionArg::Unnamed(FunctionArgExpr::Expr(argument)) => bound.push(binder.expression(argument)?),
                    FunctionArg::Unnamed(FunctionArgExpr::Wildcard) if name == "count" && arguments.len() == 1 => {}
                    other => return Err(SqlError::syntax(format!("{name}({other}) is no call of an aggregate function"))),
                }
            }
            let filter = call.filter.as_ref().map(|filter| binder.condition(filter, "FILTER")).transpose()?;
            let by = order.iter().map(|key| Ok(binder.expression(&key.expr).and_then(|of| binder.settled(of))?.0));
            let by = by.collect::<SqlResult<Vec<Expr>>>()?;
            Ok((bound, by, filter))
        })?;
        let keys = order.iter().enumerate().map(|(at, key)| super::select::sort_key(at, key)).collect();
        let aggregate = aggregate(name, bound, distinct, self.params)?.ordered(by, keys)?;
        // Whose aggregate it is, is said by the columns of argument and FILTER together.
        let parts = || aggregate.exprs().chain(&filter);
        let has_own = parts().any(|part| part.any(|part| matches!(part, Expr::Column { .. })));
        if !has_own && parts().any(|part| part.any(|part| matches!(part, Expr::Outer(_)))) {
            return Err(SqlError::unsupported(format!("{name} of columns of the query around, which is an aggregate of that query")));
        }
        self.note_aggregate(name, Noted { aggregate, filter })
    }
}

/// count() counts nothing: who means rows says count(*).
pub(super) fn refuse_count_of_nothing(name: &str, arguments: &[FunctionArg]) -> SqlResult<()> {
    match name == "count" && arguments.is_empty() {
        true => Err(SqlError::new("42809", "count(*) must be used to call a parameterless aggregate function")),
        false => Ok(()),
    }
}

/// Where an expression begins. sqlparser's own way to it goes through the whole tree, however deep it is.
fn start_of(mut expr: &ast::Expr) -> Span {
    loop {
        expr = match expr {
            ast::Expr::BinaryOp { left, .. } => left,
            ast::Expr::IsNull(of) | ast::Expr::IsNotNull(of) | ast::Expr::Nested(of) => of,
            ast::Expr::InList { expr, .. }
            | ast::Expr::InSubquery { expr, .. }
            | ast::Expr::Between { expr, .. }
            | ast::Expr::Like { expr, .. }
            | ast::Expr::ILike { expr, .. }
            | ast::Expr::UnaryOp { expr, .. }
            | ast::Expr::Cast { expr, .. } => expr,
            ast::Expr::Identifier(name) => return name.span,
            ast::Expr::CompoundIdentifier(names) => return names.first().map_or_else(Span::empty, |name| name.span),
            ast::Expr::Value(value) => return value.span,
            ast::Expr::Function(call) => return call.name.span(),
            _ => return Span::empty(),
        };
    }
}

/// `INTERVAL '1 02:03' DAY TO MINUTE`
fn interval_literal(interval: &ast::Interval, params: &ParamTypes) -> SqlResult<Typed> {
    let text = match &*interval.value {
        ast::Expr::Value(value) => match &value.value {
            ast::Value::Number(text, _) => Some(text.clone()),
            other => string(other),
        },
        _ => None,
    };
    let Some(text) = text else { return Err(SqlError::unsupported("an INTERVAL that is no literal")) };
    let (fields, digits) = types::interval_of_literal(interval)?;
    make::cast_to_interval(Typed::unknown_text(text), fields, digits, params)
}

/// The text of a literal that is one.
pub(crate) fn string(value: &ast::Value) -> Option<String> {
    use ast::Value as Literal;
    match value {
        Literal::SingleQuotedString(text)
        | Literal::EscapedStringLiteral(text)
        | Literal::UnicodeStringLiteral(text)
        | Literal::NationalStringLiteral(text) => Some(text.clone()),
        Literal::DollarQuotedString(text) => Some(text.value.clone()),
        _ => None,
    }
}

/// The comparison that an operator is, if it is one.
pub(super) fn comparison(operator: &BinaryOperator) -> Option<Comparison> {
    Some(match operator {
        BinaryOperator::Eq => Comparison::Equal,
        BinaryOperator::NotEq => Comparison::NotEqual,
        BinaryOperator::Lt => Comparison::Less,
        BinaryOperator::LtEq => Comparison::LessOrEqual,
        BinaryOperator::Gt => Comparison::Greater,
        BinaryOperator::GtEq => Comparison::GreaterOrEqual,
        _ => return None,
    })
}
