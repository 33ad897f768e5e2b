//! Functions of values of any type.

use super::number::random_bits;
use super::{Apply, Function, Volatility, immutable, take};
use crate::SqlResult;
use crate::expression::datum::Datum;
use crate::expression::{Comparison, Env, Expr, ParamTypes, Typed, make, types};
use pagefold_types::{DataType, Value, ValueRef};

/// COALESCE: the first that is not NULL; those behind it are not evaluated.
pub(super) fn coalesce(arguments: Vec<Typed>, params: &ParamTypes) -> SqlResult<Typed> {
    let (mut all, data_type) = make::unify(arguments, "COALESCE", params)?;
    // Nothing comes after what is never NULL, and a NULL gives nothing.
    if let Some(end) = all.iter().position(|expr| matches!(expr, Expr::Literal(value) if !value.as_ref().is_null())) {
        all.truncate(end + 1);
    }
    all.retain(|expr| !matches!(expr, Expr::Literal(Value::Null)));
    match all.len() {
        0 => Ok(Typed::of(Expr::Literal(Value::Null), data_type)),
        1 => Ok(Typed::of(all.pop().unwrap_or(Expr::Literal(Value::Null)), data_type)),
        _ => Ok(immutable("coalesce", Apply::Lazy(first), all, data_type)),
    }
}

fn first<'a>(_: &Function, arguments: &'a [Expr], env: &'a Env<'a>) -> SqlResult<Datum<'a>> {
    for argument in arguments {
        let value = argument.evaluate_ref(env)?;
        if !value.is_null() {
            return Ok(value);
        }
    }
    Ok(Datum::NULL)
}

/// NULLIF: NULL if both are equal, else the first.
pub(super) fn nullif(left: Typed, right: Typed, params: &ParamTypes) -> SqlResult<Typed> {
    let left = match (left.data_type, right.data_type) {
        // A literal in quotes, or a parameter, is what the other one is.
        (None, Some(_)) => {
            let (mut both, data_type) = make::unify(vec![left, right.clone()], "NULLIF", params)?;
            Typed::of(both.swap_remove(0), data_type)
        }
        _ => make::settle(left, params)?,
    };
    let data_type = left.data_type.unwrap_or(types::TEXT);
    let equal = make::compare(Comparison::Equal, left.clone(), right, params)?;
    let null = Typed::of(Expr::Literal(Value::Null), data_type);
    make::case(None, vec![(equal, null)], Some(left), params)
}

/// GREATEST and LEAST: NULLs do not count.
pub(super) fn extreme(name: &'static str, arguments: Vec<Typed>, params: &ParamTypes) -> SqlResult<Typed> {
    let what = if name == "greatest" { "GREATEST" } else { "LEAST" };
    let (all, data_type) = make::unify(arguments, what, params)?;
    let body = if name == "greatest" { greatest } else { least };
    Ok(immutable(name, Apply::Values(body), all, data_type))
}

fn greatest<'a>(_: &Function, arguments: &mut [Datum<'a>]) -> SqlResult<Datum<'a>> {
    Ok(most(arguments, |a, b| a > b))
}

fn least<'a>(_: &Function, arguments: &mut [Datum<'a>]) -> SqlResult<Datum<'a>> {
    Ok(most(arguments, |a, b| a < b))
}

fn most<'a>(arguments: &mut [Datum<'a>], better: impl Fn(ValueRef<'_>, ValueRef<'_>) -> bool) -> Datum<'a> {
    let mut best = Datum::NULL;
    for at in 0..arguments.len() {
        let next = take(arguments, at);
        if !next.is_null() && (best.is_null() || better(next.as_ref(), best.as_ref())) {
            best = next;
        }
    }
    best
}

/// pg_typeof: known without any value.
pub(super) fn type_of(of: Typed, params: &ParamTypes) -> Typed {
    let name = types::name_of(of.known(params).data_type.as_ref());
    Typed::of(Expr::Literal(Value::Text(name.to_owned())), types::TEXT)
}

/// What a session would know of its surroundings: there is one database, and one user, who may do anything.
pub(super) fn of_session(name: &str) -> Option<Typed> {
    let text = match name {
        "current_user" | "session_user" | "user" | "current_role" | "current_database" | "current_catalog" => "pagefold",
        "current_schema" => "public",
        "version" => concat!("PostgreSQL 15.0 (pagefold ", env!("CARGO_PKG_VERSION"), ")"),
        _ => return None,
    };
    Some(Typed::of(Expr::Literal(Value::Text(text.to_owned())), types::TEXT))
}

/// A random UUID, version 4.
fn random_uuid<'a>(_: &Function, _: &'a [Expr], _: &'a Env<'a>) -> SqlResult<Datum<'a>> {
    let bits = u128::from(random_bits()) << 64 | u128::from(random_bits());
    let mut bytes = bits.to_be_bytes();
    bytes[6] = bytes[6] & 0x0F | 0x40;
    bytes[8] = bytes[8] & 0x3F | 0x80;
    Ok(Datum::Own(Value::Uuid(bytes)))
}

pub(super) fn make_random_uuid() -> Typed {
    let volatility = Volatility::Volatile;
    let function = Function { name: "gen_random_uuid", apply: Apply::Lazy(random_uuid), data_type: DataType::Uuid, volatility };
    Typed::of(Expr::Call { function, arguments: Vec::new() }, DataType::Uuid)
}
