//! Names to columns, literals to values of their types, NOT down to the leaves.

use super::PredicateError;
use super::condition::{DEPTH_MAX, Expr};
use super::like::LikePattern;
use super::number::{Scaled, scaled};
use super::operand::{Atom, Placed};
use super::tree::{Comparison, Node, Numbers};
use crate::{DataType, Schema, Value, decimal_limit};
use std::borrow::Cow;

/// Where a literal lies among the values that a column can have.
enum Place {
    Exact(Value),
    /// Between this value and the next
    Behind(Value),
    Above,
    Below,
    /// NULL
    Unknown,
}

fn error<T>(at: &Placed, message: impl Into<String>) -> Result<T, PredicateError> {
    Err(PredicateError { position: at.position, message: message.into() })
}

struct Binder<'s> {
    schema: &'s Schema,
}

impl Binder<'_> {
    fn column(&self, placed: &Placed) -> Result<usize, PredicateError> {
        match &placed.atom {
            Atom::Column(name) => self.schema.index_of(name).or_else(|e| error(placed, e.to_string())),
            _ => error(placed, "expected a column here"),
        }
    }

    fn data_type(&self, column: usize) -> DataType {
        self.schema.columns()[column].data_type
    }

    /// Where the literal lies among the values of the column's type.
    fn place(&self, placed: &Placed, column: usize) -> Result<Place, PredicateError> {
        let name = &self.schema.columns()[column].name;
        let data_type = self.data_type(column);
        let mismatch = |what: &str| error(placed, format!("column \"{name}\" is {data_type} and cannot be compared with {what}"));
        if let Atom::Whole(number) = placed.atom
            && let Some((least, most)) = data_type.int_range()
            && matches!(data_type, DataType::SmallInt | DataType::Integer | DataType::BigInt)
        {
            return Ok(if number < least {
                Place::Below
            } else if number > most {
                Place::Above
            } else {
                Place::Exact(Value::Int(number))
            });
        }
        let whole;
        let text = match &placed.atom {
            Atom::Column(other) => return mismatch(&format!("the column \"{other}\" here")),
            Atom::Null => return Ok(Place::Unknown),
            Atom::Boolean(value) if data_type == DataType::Boolean => return Ok(Place::Exact(Value::Boolean(*value))),
            Atom::Boolean(_) => return mismatch("true or false"),
            Atom::Bytes(bytes) => {
                return match (data_type, <[u8; 16]>::try_from(bytes.as_slice())) {
                    (DataType::Bytea, _) => Ok(Place::Exact(Value::Bytes(bytes.clone()))),
                    (DataType::Uuid, Ok(uuid)) => Ok(Place::Exact(Value::Uuid(uuid))),
                    _ => mismatch("bytes"),
                };
            }
            Atom::Number(number) if data_type.is_text() => {
                return mismatch(&format!("the number {number}; text is written in quotes, '{number}'"));
            }
            Atom::Whole(number) if data_type.is_text() => {
                return mismatch(&format!("the number {number}; text is written in quotes, '{number}'"));
            }
            Atom::Number(_) | Atom::Whole(_)
                if matches!(data_type, DataType::Boolean | DataType::Bytea | DataType::Uuid | DataType::Interval) =>
            {
                return mismatch("a number");
            }
            Atom::Number(text) | Atom::Text(text) => text,
            Atom::Whole(number) => {
                whole = number.to_string();
                &whole
            }
        };
        if let Some(place) = place_of_number(text, data_type) {
            return Ok(place);
        }
        // A text too long for the column is a fine thing to compare with.
        let read_as = if matches!(data_type, DataType::Varchar(_)) { DataType::Varchar(None) } else { data_type };
        let read = match (data_type, text) {
            (DataType::Char(_), text) => Ok(Value::Text(text.clone())),
            (_, text) => crate::text::parse(text, &read_as),
        };
        let value = read.or_else(|e| error(placed, format!("column \"{name}\": {e}")))?;
        // No value of the column is between the characters that it has room for and all of them.
        if let (Value::Text(text), DataType::Varchar(Some(n))) = (&value, data_type)
            && let Some((end, _)) = text.char_indices().nth(n as usize)
        {
            return Ok(Place::Behind(Value::Text(text[..end].to_owned())));
        }
        Ok(Place::Exact(match (value, data_type) {
            (Value::Text(text), DataType::Char(n)) => {
                // Blanks at the end do not count.
                let text = text.trim_end_matches(' ').to_owned();
                let chars = text.chars().count();
                Value::Text(text + &" ".repeat((n as usize).saturating_sub(chars)))
            }
            (value, _) => value,
        }))
    }

    /// A comparison of a column with a literal.
    fn with_literal(&self, column: usize, comparison: Comparison, literal: &Placed) -> Result<Node, PredicateError> {
        use Comparison::*;
        let constant = |holds| Node::Constant { column, holds: Some(holds) };
        Ok(match (self.place(literal, column)?, comparison) {
            (Place::Exact(value), _) => Node::Compare { column, comparison, value },
            (Place::Unknown, _) => Node::Constant { column, holds: None },
            (_, Equal) => constant(false),
            (_, NotEqual) => constant(true),
            (Place::Above, Less | LessOrEqual) | (Place::Below, Greater | GreaterOrEqual) => constant(true),
            (Place::Above, _) | (Place::Below, _) => constant(false),
            (Place::Behind(value), Less | LessOrEqual) => Node::Compare { column, comparison: LessOrEqual, value },
            (Place::Behind(value), Greater | GreaterOrEqual) => Node::Compare { column, comparison: Greater, value },
        })
    }

    /// How the values of two columns are compared; an error when they cannot be.
    fn numbers(&self, left: usize, (right, placed): (usize, &Placed)) -> Result<Option<Numbers>, PredicateError> {
        let (a, b) = (self.data_type(left), self.data_type(right));
        if a == b || matches!((a, b), (DataType::Varchar(_), DataType::Varchar(_))) {
            return Ok(None);
        }
        let scale = |data_type: DataType| match data_type {
            DataType::SmallInt | DataType::Integer | DataType::BigInt => Some(0),
            DataType::Decimal { scale, .. } => Some(scale),
            _ => None,
        };
        let floating = |data_type| matches!(data_type, DataType::Real | DataType::Double);
        match (scale(a), scale(b)) {
            (Some(a), Some(b)) => Ok(Some(Numbers::Scaled(a, b))),
            _ if floating(a) && floating(b) => Ok(Some(Numbers::Floating)),
            _ => error(placed, format!("columns of two types, {a} and {b}, cannot be compared")),
        }
    }

    /// What is in double quotes behind an operator is a column, or, where the table has none of that name, text.
    fn right<'p>(&self, right: &'p Placed) -> Cow<'p, Placed> {
        match &right.atom {
            Atom::Column(name) if right.quoted && self.schema.index_of(name).is_err() => {
                Cow::Owned(Placed { atom: Atom::Text(name.clone()), ..*right })
            }
            _ => Cow::Borrowed(right),
        }
    }

    fn compare(&self, left: &Placed, comparison: Comparison, right: &Placed) -> Result<Node, PredicateError> {
        let right = &*self.right(right);
        match (&left.atom, &right.atom) {
            (Atom::Column(_), Atom::Column(_)) => {
                let (l, r) = (self.column(left)?, self.column(right)?);
                Ok(Node::CompareColumns { left: l, comparison, right: r, as_numbers: self.numbers(l, (r, right))? })
            }
            (Atom::Column(_), _) => self.with_literal(self.column(left)?, comparison, right),
            (_, Atom::Column(_)) => self.with_literal(self.column(right)?, comparison.mirrored(), left),
            _ => error(left, "neither side of the comparison is a column"),
        }
    }

    fn like(&self, column: &Placed, pattern: &Placed, escape: Option<&Placed>, negated: bool) -> Result<Node, PredicateError> {
        let position = self.column(column)?;
        let data_type = self.data_type(position);
        if !data_type.is_text() {
            return error(column, format!("like takes a column of text; \"{}\" is {data_type}", self.schema.columns()[position].name));
        }
        let escape = match escape.map(|placed| (placed, &placed.atom)) {
            None => Some('\\'),
            Some((placed, Atom::Text(text))) => {
                let mut chars = text.chars();
                match (chars.next(), chars.next()) {
                    (first, None) => first,
                    _ => return error(placed, "behind escape is one character, or none, in quotes"),
                }
            }
            Some((placed, _)) => return error(placed, "behind escape is one character, or none, in quotes"),
        };
        let text = match &pattern.atom {
            Atom::Text(text) => text,
            Atom::Null => return Ok(Node::Constant { column: position, holds: None }),
            _ => return error(pattern, "like takes a pattern in quotes"),
        };
        let Some(compiled) = LikePattern::new(text, escape) else {
            return error(pattern, "the pattern ends with the character that takes the next one as it is");
        };
        Ok(Node::Like { column: position, pattern: compiled, trim: matches!(data_type, DataType::Char(_)), negated })
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
                self.column(column)?;
                let low = self.compare(column, turned(Comparison::GreaterOrEqual), low)?;
                let nodes = vec![low, self.compare(column, turned(Comparison::LessOrEqual), high)?];
                if negate { Node::Or(nodes) } else { Node::And(nodes) }
            }
            Expr::In { column, values } => {
                let column = self.column(column)?;
                let (mut found, mut has_null) = (Vec::new(), false);
                for value in values {
                    match self.place(&self.right(value), column)? {
                        Place::Exact(value) => found.push(value),
                        Place::Unknown => has_null = true,
                        // No value of the column is that.
                        Place::Behind(_) | Place::Above | Place::Below => {}
                    }
                }
                found.sort_unstable();
                found.dedup();
                Node::In { column, values: found, has_null, negated: negate }
            }
            Expr::IsNull { column } => Node::Null { column: self.column(column)?, negated: negate },
            Expr::Like { column, pattern, escape } => self.like(column, &self.right(pattern), escape.as_ref(), negate)?,
            Expr::TooDeep => {
                let message = format!("more than {DEPTH_MAX} levels of parentheses and not");
                return Err(PredicateError { position: None, message });
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

/// Where a text lies among the numbers of a column; `None` when either is none.
fn place_of_number(text: &str, data_type: DataType) -> Option<Place> {
    let (least, most, scale) = match data_type {
        DataType::SmallInt | DataType::Integer | DataType::BigInt => {
            let (least, most) = data_type.int_range()?;
            (i128::from(least), i128::from(most), 0)
        }
        DataType::Decimal { precision, scale } => (1 - decimal_limit(precision), decimal_limit(precision) - 1, scale),
        DataType::Real | DataType::Double => return place_of_float(text, data_type),
        _ => return None,
    };
    let value = |number: i128| match data_type {
        DataType::Decimal { .. } => Value::Decimal(number),
        // Within the range of the type.
        _ => Value::Int(number as i64),
    };
    Some(match scaled(text, scale)? {
        Scaled::Exact(number) | Scaled::Behind(number) if number < least => Place::Below,
        Scaled::Exact(number) if number > most => Place::Above,
        Scaled::Behind(number) if number >= most => Place::Above,
        Scaled::Exact(number) => Place::Exact(value(number)),
        Scaled::Behind(number) => Place::Behind(value(number)),
        Scaled::Above => Place::Above,
        Scaled::Below => Place::Below,
    })
}

/// A number that is too large for a floating-point type lies between its largest and infinity.
fn place_of_float(text: &str, data_type: DataType) -> Option<Place> {
    // A number, not the name of one.
    let place = scaled(text, 0)?;
    if crate::text::parse(text, &data_type).is_ok() {
        return None;
    }
    let negative = matches!(place, Scaled::Below) || matches!(place, Scaled::Exact(n) | Scaled::Behind(n) if n < 0);
    Some(Place::Behind(match (data_type, negative) {
        (DataType::Real, false) => Value::Real(f32::MAX),
        (DataType::Real, true) => Value::Real(f32::NEG_INFINITY),
        (_, false) => Value::Double(f64::MAX),
        (_, true) => Value::Double(f64::NEG_INFINITY),
    }))
}

/// Binds a condition to a schema.
pub(super) fn bind(expr: &Expr, schema: &Schema) -> Result<Node, PredicateError> {
    Binder { schema }.node(expr, false)
}
