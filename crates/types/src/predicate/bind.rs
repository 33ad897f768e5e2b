//! Names to columns, literals to values of their types, NOT down to the leaves.

use super::PredicateError;
use super::like::Pattern;
use super::parse::{Expr, Operand, Placed};
use super::tree::{Comparison, Node};
use crate::{DataType, Schema, Value};

fn error<T>(at: &Placed, message: impl Into<String>) -> Result<T, PredicateError> {
    Err(PredicateError { position: at.position, message: message.into() })
}

struct Binder<'s> {
    schema: &'s Schema,
}

impl Binder<'_> {
    fn column(&self, placed: &Placed) -> Result<usize, PredicateError> {
        match &placed.operand {
            Operand::Column(name) => self.schema.index_of(name).or_else(|e| error(placed, e.to_string())),
            _ => error(placed, "expected a column here"),
        }
    }

    fn data_type(&self, column: usize) -> DataType {
        self.schema.columns()[column].data_type
    }

    /// The literal as a value of the column's type.
    fn literal(&self, placed: &Placed, column: usize) -> Result<Value, PredicateError> {
        let name = &self.schema.columns()[column].name;
        let data_type = self.data_type(column);
        let mismatch = |what: &str| error(placed, format!("column \"{name}\" is {data_type} and cannot be compared with {what}"));
        let text = match &placed.operand {
            Operand::Column(other) => return mismatch(&format!("the column \"{other}\" here")),
            Operand::Null => return error(placed, "a comparison with null is never true; write is null or is not null"),
            Operand::Boolean(value) if data_type == DataType::Boolean => return Ok(Value::Boolean(*value)),
            Operand::Boolean(_) => return mismatch("true or false"),
            Operand::Number(number) if data_type.is_text() => {
                return mismatch(&format!("the number {number}; text is written in quotes, '{number}'"));
            }
            Operand::Number(_) if matches!(data_type, DataType::Boolean | DataType::Bytea | DataType::Uuid) => return mismatch("a number"),
            Operand::Number(text) | Operand::Text(text) => text,
        };
        // A text too long for the column is a fine thing to compare with.
        let read_as = if matches!(data_type, DataType::Varchar(_)) { DataType::Varchar(None) } else { data_type };
        let value = crate::text::parse(text, &read_as).or_else(|e| error(placed, format!("column \"{name}\": {e}")))?;
        Ok(match (value, data_type) {
            (Value::Text(text), DataType::Char(n)) => {
                let chars = text.chars().count();
                Value::Text(text + &" ".repeat((n as usize).saturating_sub(chars)))
            }
            (value, _) => value,
        })
    }

    fn compare(&self, left: &Placed, comparison: Comparison, right: &Placed) -> Result<Node, PredicateError> {
        match (&left.operand, &right.operand) {
            (Operand::Column(_), Operand::Column(_)) => {
                let (l, r) = (self.column(left)?, self.column(right)?);
                let (a, b) = (self.data_type(l), self.data_type(r));
                let both_varchar = matches!((a, b), (DataType::Varchar(_), DataType::Varchar(_)));
                if a != b && !both_varchar {
                    return error(right, format!("columns of two types, {a} and {b}, cannot be compared"));
                }
                Ok(Node::CompareColumns { left: l, comparison, right: r })
            }
            (Operand::Column(_), _) => {
                let column = self.column(left)?;
                Ok(Node::Compare { column, comparison, value: self.literal(right, column)? })
            }
            (_, Operand::Column(_)) => {
                let column = self.column(right)?;
                Ok(Node::Compare { column, comparison: comparison.mirrored(), value: self.literal(left, column)? })
            }
            _ => error(left, "neither side of the comparison is a column"),
        }
    }

    fn node(&self, expr: &Expr, negate: bool) -> Result<Node, PredicateError> {
        let turned = |c: Comparison| if negate { c.negated() } else { c };
        Ok(match expr {
            Expr::Not(inner) => self.node(inner, !negate)?,
            Expr::And(terms) | Expr::Or(terms) => {
                let nodes = terms.iter().map(|t| self.node(t, negate)).collect::<Result<Vec<_>, _>>()?;
                if matches!(expr, Expr::And(_)) == negate { Node::Or(nodes) } else { Node::And(nodes) }
            }
            Expr::Compare { left, comparison, right } => self.compare(left, turned(*comparison), right)?,
            Expr::Between { column, low, high } => {
                let column = self.column(column)?;
                let ends = [(Comparison::GreaterOrEqual, low), (Comparison::LessOrEqual, high)];
                let nodes = ends
                    .map(|(comparison, end)| {
                        Ok(Node::Compare { column, comparison: turned(comparison), value: self.literal(end, column)? })
                    })
                    .into_iter()
                    .collect::<Result<Vec<_>, _>>()?;
                if negate { Node::Or(nodes) } else { Node::And(nodes) }
            }
            Expr::In { column, values } => {
                let column = self.column(column)?;
                let mut values = values.iter().map(|v| self.literal(v, column)).collect::<Result<Vec<_>, _>>()?;
                values.sort_unstable();
                values.dedup();
                Node::In { column, values, negated: negate }
            }
            Expr::IsNull { column } => Node::Null { column: self.column(column)?, negated: negate },
            Expr::Like { column, pattern } => {
                let position = self.column(column)?;
                let data_type = self.data_type(position);
                if !data_type.is_text() {
                    return error(column, format!("like takes a column of text, not {data_type}"));
                }
                let Operand::Text(text) = &pattern.operand else {
                    return error(pattern, "like takes a pattern in quotes");
                };
                Node::Like { column: position, pattern: Pattern::new(text), trim: matches!(data_type, DataType::Char(_)), negated: negate }
            }
            Expr::Alone(placed) => {
                let column = self.column(placed)?;
                let data_type = self.data_type(column);
                if data_type != DataType::Boolean {
                    return error(placed, format!("expected an operator behind the column: it is {data_type}, not BOOLEAN"));
                }
                Node::Compare { column, comparison: Comparison::Equal, value: Value::Boolean(!negate) }
            }
        })
    }
}

/// Binds a condition to a schema.
pub(super) fn bind(expr: &Expr, schema: &Schema) -> Result<Node, PredicateError> {
    Binder { schema }.node(expr, false)
}
