//! A small binder: columns by name, no subqueries.

use crate::expression::arithmetic::Operation;
use crate::expression::{Comparison, Env, Expr, Now, ParamTypes, Typed, function, make, read};
use crate::{SqlError, SqlResult};
use pagefold_types::{DataType, Value, text};
use sqlparser::ast::{self, BinaryOperator, UnaryOperator};
use sqlparser::dialect::PostgreSqlDialect;
use sqlparser::parser::Parser;
use std::cell::RefCell;

/// 2024-02-29 12:34:56.789 UTC
pub(super) const NOW: i64 = 1_709_210_096_789_000;

/// Columns by name, with their types: their slots are their places.
pub(super) struct Columns<'c>(pub(super) &'c [(&'c str, &'c str)]);

pub(super) fn data_type(text: &str) -> DataType {
    text.parse().unwrap_or_else(|error| panic!("{error}"))
}

pub(super) struct Binder<'c> {
    columns: &'c Columns<'c>,
    pub(super) params: ParamTypes,
    /// Numbers and truth values that are put into slots, so that nothing is computed before there is a row.
    hidden: Option<RefCell<Vec<Value>>>,
}

fn text_of(value: &ast::Value) -> Option<&str> {
    match value {
        ast::Value::SingleQuotedString(text) | ast::Value::EscapedStringLiteral(text) => Some(text),
        _ => None,
    }
}

impl<'c> Binder<'c> {
    pub(super) fn new(columns: &'c Columns<'c>) -> Binder<'c> {
        Binder { columns, params: ParamTypes::default(), hidden: None }
    }

    fn hide(&self, typed: Typed) -> Typed {
        match (&self.hidden, typed) {
            (Some(hidden), Typed { expr: Expr::Literal(value), data_type: Some(data_type) }) => {
                hidden.borrow_mut().push(value);
                Typed::of(Expr::Slot(hidden.borrow().len() - 1), data_type)
            }
            (_, typed) => typed,
        }
    }

    pub(super) fn bind(&self, text: &str) -> SqlResult<Typed> {
        let parsed = Parser::new(&PostgreSqlDialect {}).try_with_sql(text).and_then(|mut parser| parser.parse_expr());
        self.expr(&parsed.unwrap_or_else(|error| panic!("{text}: {error}")))
    }

    fn cast(&self, of: Typed, to: &ast::DataType) -> SqlResult<Typed> {
        match to.to_string().to_ascii_uppercase().as_str() {
            "NUMERIC" | "DECIMAL" => make::cast_to_number(of, &self.params),
            other => make::cast(of, data_type(other), &self.params),
        }
    }

    fn all(&self, exprs: &[ast::Expr]) -> SqlResult<Vec<Typed>> {
        exprs.iter().map(|expr| self.expr(expr)).collect()
    }

    fn escape(value: Option<&ast::ValueWithSpan>) -> Option<Option<char>> {
        value.and_then(|value| text_of(&value.value)).map(|text| text.chars().next())
    }

    fn interval(&self, interval: &ast::Interval) -> SqlResult<Typed> {
        let ast::Expr::Value(value) = interval.value.as_ref() else { panic!("{interval}") };
        let (fields, digits) = crate::bind::types::interval_of_literal(interval)?;
        Ok(self.hide(make::cast_to_interval(Self::value(&value.value)?, fields, digits, &self.params)?))
    }

    fn binary(&self, left: &ast::Expr, op: &BinaryOperator, right: &ast::Expr) -> SqlResult<Typed> {
        let params = &self.params;
        let (left, right) = (self.expr(left)?, self.expr(right)?);
        let arithmetic = |operation, left, right| make::arithmetic(operation, left, right, params);
        let compare = |comparison, left, right| make::compare(comparison, left, right, params);
        match op {
            BinaryOperator::Plus => arithmetic(Operation::Add, left, right),
            BinaryOperator::Minus => arithmetic(Operation::Subtract, left, right),
            BinaryOperator::Multiply => arithmetic(Operation::Multiply, left, right),
            BinaryOperator::Divide => arithmetic(Operation::Divide, left, right),
            BinaryOperator::Modulo => arithmetic(Operation::Remainder, left, right),
            BinaryOperator::PGExp => arithmetic(Operation::Power, left, right),
            BinaryOperator::BitwiseAnd => arithmetic(Operation::BitAnd, left, right),
            BinaryOperator::BitwiseOr => arithmetic(Operation::BitOr, left, right),
            BinaryOperator::PGBitwiseXor => arithmetic(Operation::BitXor, left, right),
            BinaryOperator::PGBitwiseShiftLeft => arithmetic(Operation::ShiftLeft, left, right),
            BinaryOperator::PGBitwiseShiftRight => arithmetic(Operation::ShiftRight, left, right),
            BinaryOperator::Eq => compare(Comparison::Equal, left, right),
            BinaryOperator::NotEq => compare(Comparison::NotEqual, left, right),
            BinaryOperator::Lt => compare(Comparison::Less, left, right),
            BinaryOperator::LtEq => compare(Comparison::LessOrEqual, left, right),
            BinaryOperator::Gt => compare(Comparison::Greater, left, right),
            BinaryOperator::GtEq => compare(Comparison::GreaterOrEqual, left, right),
            BinaryOperator::And => make::and(left, right, params),
            BinaryOperator::Or => make::or(left, right, params),
            BinaryOperator::StringConcat => make::concat(left, right, params),
            other => panic!("{other}"),
        }
    }

    fn call(&self, name: &str, arguments: Vec<Typed>) -> SqlResult<Typed> {
        function::call(name, arguments, &self.params)
    }

    fn value(value: &ast::Value) -> SqlResult<Typed> {
        Ok(match value {
            ast::Value::Number(text, _) => Typed::number(text)?,
            ast::Value::Boolean(truth) => Typed::boolean(*truth),
            ast::Value::Null => Typed::null(),
            ast::Value::Placeholder(name) => {
                let number = name.trim_start_matches('$').parse::<usize>().unwrap_or(1) - 1;
                Typed { expr: Expr::Param(number), data_type: None }
            }
            other => Typed::unknown_text(text_of(other).unwrap_or_else(|| panic!("{other}")).to_owned()),
        })
    }

    fn expr(&self, expr: &ast::Expr) -> SqlResult<Typed> {
        let params = &self.params;
        let of = |expr: &ast::Expr| self.expr(expr);
        match expr {
            ast::Expr::Identifier(name) => {
                let found = self.columns.0.iter().position(|(column, _)| *column == name.value);
                match found {
                    Some(at) => Ok(Typed::of(Expr::Slot(at), data_type(self.columns.0[at].1))),
                    None => Err(SqlError::new("42703", format!("column \"{}\" does not exist", name.value))),
                }
            }
            ast::Expr::Value(value) => Ok(self.hide(Self::value(&value.value)?)),
            ast::Expr::Interval(interval) => self.interval(interval),
            ast::Expr::Nested(inner) => of(inner),
            ast::Expr::BinaryOp { left, op, right } => self.binary(left, op, right),
            ast::Expr::UnaryOp { op: UnaryOperator::Minus, expr } => make::negate(of(expr)?, params),
            ast::Expr::UnaryOp { op: UnaryOperator::Plus, expr } => of(expr),
            ast::Expr::UnaryOp { op: UnaryOperator::Not, expr } => make::not(of(expr)?, params),
            ast::Expr::IsNull(inner) => make::is_null(of(inner)?, false, params),
            ast::Expr::IsNotNull(inner) => make::is_null(of(inner)?, true, params),
            ast::Expr::IsTrue(inner) => make::is_truth(of(inner)?, Some(true), false, params),
            ast::Expr::IsNotTrue(inner) => make::is_truth(of(inner)?, Some(true), true, params),
            ast::Expr::IsFalse(inner) => make::is_truth(of(inner)?, Some(false), false, params),
            ast::Expr::IsNotFalse(inner) => make::is_truth(of(inner)?, Some(false), true, params),
            ast::Expr::IsUnknown(inner) => make::is_truth(of(inner)?, None, false, params),
            ast::Expr::IsNotUnknown(inner) => make::is_truth(of(inner)?, None, true, params),
            ast::Expr::IsDistinctFrom(a, b) => make::is_distinct(of(a)?, of(b)?, false, params),
            ast::Expr::IsNotDistinctFrom(a, b) => make::is_distinct(of(a)?, of(b)?, true, params),
            ast::Expr::InList { expr, list, negated } => make::in_list(of(expr)?, self.all(list)?, *negated, params),
            ast::Expr::Between { expr, negated, low, high } => make::between(of(expr)?, of(low)?, of(high)?, *negated, false, params),
            ast::Expr::Like { negated, expr, pattern, escape_char, .. } => {
                make::like(of(expr)?, of(pattern)?, Self::escape(escape_char.as_ref()), false, *negated, params)
            }
            ast::Expr::ILike { negated, expr, pattern, escape_char, .. } => {
                make::like(of(expr)?, of(pattern)?, Self::escape(escape_char.as_ref()), true, *negated, params)
            }
            ast::Expr::Cast { expr, data_type, .. } => self.cast(of(expr)?, data_type),
            ast::Expr::TypedString(string) => Ok(self.hide(self.cast(Self::value(&string.value.value)?, &string.data_type)?)),
            ast::Expr::Case { operand, conditions, else_result, .. } => {
                let operand = operand.as_ref().map(|operand| of(operand)).transpose()?;
                let branches: SqlResult<Vec<_>> = conditions.iter().map(|when| Ok((of(&when.condition)?, of(&when.result)?))).collect();
                let otherwise = else_result.as_ref().map(|otherwise| of(otherwise)).transpose()?;
                make::case(operand, branches?, otherwise, params)
            }
            ast::Expr::Extract { field, expr, .. } => {
                self.call("extract", vec![Typed::unknown_text(field.to_string().trim_matches('\'').to_owned()), of(expr)?])
            }
            ast::Expr::Position { expr, r#in } => self.call("position", vec![of(r#in)?, of(expr)?]),
            ast::Expr::Substring { expr, substring_from, substring_for, .. } => {
                let from = substring_from.as_ref().map_or_else(|| Typed::number("1"), |from| of(from))?;
                let mut arguments = vec![of(expr)?, from];
                if let Some(length) = substring_for {
                    arguments.push(of(length)?);
                }
                self.call("substring", arguments)
            }
            ast::Expr::Trim { trim_where, trim_what, expr, trim_characters } => {
                let name = match trim_where {
                    Some(ast::TrimWhereField::Leading) => "ltrim",
                    Some(ast::TrimWhereField::Trailing) => "rtrim",
                    _ => "btrim",
                };
                let mut arguments = vec![of(expr)?];
                arguments.extend(trim_what.as_ref().map(|what| of(what)).transpose()?);
                arguments.extend(trim_characters.iter().flatten().map(of).collect::<SqlResult<Vec<_>>>()?);
                self.call(name, arguments)
            }
            ast::Expr::Ceil { expr, .. } => self.call("ceil", vec![of(expr)?]),
            ast::Expr::Floor { expr, .. } => self.call("floor", vec![of(expr)?]),
            ast::Expr::Function(call) => {
                let mut arguments = Vec::new();
                if let ast::FunctionArguments::List(list) = &call.args {
                    for argument in &list.args {
                        match argument {
                            ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(expr)) => arguments.push(of(expr)?),
                            other => panic!("{other}"),
                        }
                    }
                }
                self.call(&call.name.to_string().to_ascii_lowercase(), arguments)
            }
            other => panic!("{other}"),
        }
    }
}

/// An expression that is evaluated on a row.
pub(super) fn on_row(text: &str, columns: &Columns<'_>, row: &[Value]) -> SqlResult<(Value, DataType)> {
    let binder = Binder::new(columns);
    let typed = make::settle(binder.bind(text)?, &binder.params)?;
    let value = typed.expr.evaluate(&Env { row, now: Now { transaction: NOW, statement: NOW }, ..Env::EMPTY })?;
    let data_type = typed.data_type.unwrap_or(DataType::Varchar(None));
    value.as_ref().check(&data_type, text).unwrap_or_else(|error| panic!("{text}: {error}"));
    Ok((value, data_type))
}

/// An expression whose literals are values of a row, as far as they have a type.
pub(super) fn unfolded(text: &str) -> SqlResult<(Value, DataType)> {
    let mut binder = Binder::new(&Columns(&[]));
    binder.hidden = Some(RefCell::default());
    let typed = make::settle(binder.bind(text)?, &binder.params)?;
    let row = binder.hidden.map(RefCell::into_inner).unwrap_or_default();
    let value = typed.expr.evaluate(&Env { row: &row, now: Now { transaction: NOW, statement: NOW }, ..Env::EMPTY })?;
    Ok((value, typed.data_type.unwrap_or(DataType::Varchar(None))))
}

/// As `psql` shows it: `NULL`, `t` and `f` apart.
pub(super) fn shown(value: &Value, data_type: &DataType) -> String {
    if value.as_ref().is_null() { text::to_text(value.as_ref(), data_type) } else { read::write(value.as_ref(), data_type) }
}
