//! Conditions as text: what the parser reads as the same tree.

use super::condition::{Condition, Expr};
use super::operand::{Atom, Placed};
use super::tree::Comparison;
use std::fmt::{Display, Formatter, Result, Write};

/// In quotes, those within doubled.
fn quoted(text: &str, quote: char, f: &mut Formatter<'_>) -> Result {
    f.write_char(quote)?;
    for c in text.chars() {
        if c == quote {
            f.write_char(quote)?;
        }
        f.write_char(c)?;
    }
    f.write_char(quote)
}

impl Display for Placed {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match &self.atom {
            Atom::Column(name) => quoted(name, '"', f),
            Atom::Number(text) => f.write_str(text),
            Atom::Whole(number) => write!(f, "{number}"),
            Atom::Text(text) => quoted(text, '\'', f),
            Atom::Bytes(bytes) => {
                f.write_str("x'")?;
                bytes.iter().try_for_each(|byte| write!(f, "{byte:02x}"))?;
                f.write_char('\'')
            }
            Atom::Boolean(value) => write!(f, "{value}"),
            Atom::Null => f.write_str("null"),
        }
    }
}

impl Display for Comparison {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        f.write_str(match self {
            Comparison::Equal => "=",
            Comparison::NotEqual => "<>",
            Comparison::Less => "<",
            Comparison::LessOrEqual => "<=",
            Comparison::Greater => ">",
            Comparison::GreaterOrEqual => ">=",
        })
    }
}

fn list<T: Display>(items: impl IntoIterator<Item = T>, between: &str, f: &mut Formatter<'_>) -> Result {
    for (i, item) in items.into_iter().enumerate() {
        if i > 0 {
            f.write_str(between)?;
        }
        write!(f, "{item}")?;
    }
    Ok(())
}

/// In parentheses, where asked.
struct Within<'e>(&'e Expr, bool);

impl Display for Within<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        if self.1 { write!(f, "({})", self.0) } else { write!(f, "{}", self.0) }
    }
}

impl Display for Expr {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match self {
            Expr::Compare { left, comparison, right } => write!(f, "{left} {comparison} {right}"),
            Expr::Between { column, low, high } => write!(f, "{column} between {low} and {high}"),
            Expr::In { column, values } => {
                write!(f, "{column} in (")?;
                list(values, ", ", f)?;
                f.write_char(')')
            }
            Expr::IsNull { column } => write!(f, "{column} is null"),
            Expr::Like { column, pattern, escape: None } => write!(f, "{column} like {pattern}"),
            Expr::Like { column, pattern, escape: Some(escape) } => write!(f, "{column} like {pattern} escape {escape}"),
            Expr::Alone(column) => write!(f, "{column}"),
            Expr::Not(inner) => write!(f, "not {}", Within(inner, inner.is_compound())),
            Expr::And(terms) if terms.is_empty() => f.write_str("true"),
            Expr::Or(terms) if terms.is_empty() => f.write_str("false"),
            Expr::And(terms) => list(terms.iter().map(|t| Within(t, matches!(t, Expr::Or(inner) if !inner.is_empty()))), " and ", f),
            Expr::Or(terms) => list(terms, " or ", f),
            Expr::TooDeep => f.write_str("..."),
        }
    }
}

impl Display for Condition {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        Display::fmt(&self.expr, f)
    }
}
