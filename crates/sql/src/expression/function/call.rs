//! Names of functions, their overloads, and the types of their results.

use super::Apply::{Strict, Values};
use super::number::Rounding;
use super::{
    Apply, bytes, format, general, hidden, immutable, interval, number, number_template, pattern, template, text, time, trigonometry,
};
use crate::expression::types::{self, Context, TEXT, castable};
use crate::expression::{ParamTypes, Typed, arithmetic, make};
use crate::{SqlError, SqlResult};
use pagefold_types::{DataType, TimeUnit};

/// A function whose types are fixed. One name may have several; the first is the one for arguments without types.
struct Signature {
    name: &'static str,
    parameters: &'static [DataType],
    result: DataType,
    apply: Apply,
}

const fn of(name: &'static str, parameters: &'static [DataType], result: DataType, apply: Apply) -> Signature {
    Signature { name, parameters, result, apply }
}

const INT: DataType = DataType::Integer;
const BIGINT: DataType = DataType::BigInt;
const DOUBLE: DataType = DataType::Double;
/// CHAR of any length, with the blanks at its end: never cast to.
const CHAR: DataType = DataType::Char(1);
const BYTEA: DataType = DataType::Bytea;
const BOOLEAN: DataType = DataType::Boolean;
const DATE: DataType = DataType::Date;
const TIMESTAMP: DataType = DataType::Timestamp { unit: TimeUnit::Micro, with_zone: false };
const INTERVAL: DataType = DataType::Interval;
const TIME: DataType = DataType::Time { unit: TimeUnit::Micro };
const TIMESTAMPTZ: DataType = DataType::Timestamp { unit: TimeUnit::Micro, with_zone: true };

const FIXED: &[Signature] = &[
    of("lower", &[TEXT], TEXT, Strict(text::lower)),
    of("upper", &[TEXT], TEXT, Strict(text::upper)),
    of("initcap", &[TEXT], TEXT, Strict(text::initcap)),
    of("length", &[TEXT], INT, Strict(text::length)),
    of("length", &[BYTEA], INT, Strict(text::length)),
    of("char_length", &[TEXT], INT, Strict(text::length)),
    of("character_length", &[TEXT], INT, Strict(text::length)),
    of("octet_length", &[TEXT], INT, Strict(text::octet_length)),
    of("octet_length", &[CHAR], INT, Strict(text::octet_length)),
    of("octet_length", &[BYTEA], INT, Strict(text::octet_length)),
    of("bit_length", &[TEXT], INT, Strict(text::bit_length)),
    of("bit_length", &[BYTEA], INT, Strict(text::bit_length)),
    of("substring", &[TEXT, TEXT], TEXT, Strict(pattern::part)),
    of("substring", &[TEXT, INT], TEXT, Strict(text::substring)),
    of("substring", &[TEXT, INT, INT], TEXT, Strict(text::substring)),
    of("substr", &[TEXT, INT], TEXT, Strict(text::substring)),
    of("substr", &[TEXT, INT, INT], TEXT, Strict(text::substring)),
    of("position", &[TEXT, TEXT], INT, Strict(text::position)),
    of("strpos", &[TEXT, TEXT], INT, Strict(text::position)),
    of("trim", &[TEXT], TEXT, Strict(text::btrim)),
    of("trim", &[TEXT, TEXT], TEXT, Strict(text::btrim)),
    of("btrim", &[TEXT], TEXT, Strict(text::btrim)),
    of("btrim", &[TEXT, TEXT], TEXT, Strict(text::btrim)),
    of("ltrim", &[TEXT], TEXT, Strict(text::ltrim)),
    of("ltrim", &[TEXT, TEXT], TEXT, Strict(text::ltrim)),
    of("rtrim", &[TEXT], TEXT, Strict(text::rtrim)),
    of("rtrim", &[TEXT, TEXT], TEXT, Strict(text::rtrim)),
    of("left", &[TEXT, INT], TEXT, Strict(text::left)),
    of("right", &[TEXT, INT], TEXT, Strict(text::right)),
    of("lpad", &[TEXT, INT], TEXT, Strict(text::lpad)),
    of("lpad", &[TEXT, INT, TEXT], TEXT, Strict(text::lpad)),
    of("rpad", &[TEXT, INT], TEXT, Strict(text::rpad)),
    of("rpad", &[TEXT, INT, TEXT], TEXT, Strict(text::rpad)),
    of("repeat", &[TEXT, INT], TEXT, Strict(text::repeat)),
    of("replace", &[TEXT, TEXT, TEXT], TEXT, Strict(text::replace)),
    of("translate", &[TEXT, TEXT, TEXT], TEXT, Strict(text::translate)),
    of("reverse", &[TEXT], TEXT, Strict(text::reverse)),
    of("split_part", &[TEXT, TEXT, INT], TEXT, Strict(text::split_part)),
    of("starts_with", &[TEXT, TEXT], BOOLEAN, Strict(text::starts_with)),
    of("ascii", &[TEXT], INT, Strict(text::ascii)),
    of("chr", &[INT], TEXT, Strict(text::chr)),
    of("to_hex", &[INT], TEXT, Strict(text::to_hex)),
    of("to_hex", &[BIGINT], TEXT, Strict(text::to_hex_of_bigint)),
    of("quote_ident", &[TEXT], TEXT, Strict(format::quote_ident)),
    of("quote_literal", &[TEXT], TEXT, Strict(format::quote_literal)),
    of("quote_nullable", &[TEXT], TEXT, Values(format::quote_nullable)),
    of("overlay", &[TEXT, TEXT, INT], TEXT, Strict(format::overlay)),
    of("overlay", &[TEXT, TEXT, INT, INT], TEXT, Strict(format::overlay)),
    of("regexp_like", &[TEXT, TEXT], BOOLEAN, Strict(pattern::is_like)),
    of("regexp_like", &[TEXT, TEXT, TEXT], BOOLEAN, Strict(pattern::is_like)),
    of("similar_to", &[TEXT, TEXT, TEXT], BOOLEAN, Strict(pattern::is_similar)),
    of("regexp_count", &[TEXT, TEXT], INT, Strict(pattern::count)),
    of("regexp_count", &[TEXT, TEXT, INT], INT, Strict(pattern::count)),
    of("regexp_count", &[TEXT, TEXT, INT, TEXT], INT, Strict(pattern::count)),
    of("regexp_substr", &[TEXT, TEXT], TEXT, Strict(pattern::nth)),
    of("regexp_substr", &[TEXT, TEXT, INT], TEXT, Strict(pattern::nth)),
    of("regexp_substr", &[TEXT, TEXT, INT, INT], TEXT, Strict(pattern::nth)),
    of("regexp_substr", &[TEXT, TEXT, INT, INT, TEXT], TEXT, Strict(pattern::nth)),
    of("regexp_substr", &[TEXT, TEXT, INT, INT, TEXT, INT], TEXT, Strict(pattern::nth)),
    of("regexp_instr", &[TEXT, TEXT], INT, Strict(pattern::place)),
    of("regexp_instr", &[TEXT, TEXT, INT], INT, Strict(pattern::place)),
    of("regexp_instr", &[TEXT, TEXT, INT, INT], INT, Strict(pattern::place)),
    of("regexp_instr", &[TEXT, TEXT, INT, INT, INT], INT, Strict(pattern::place)),
    of("regexp_instr", &[TEXT, TEXT, INT, INT, INT, TEXT], INT, Strict(pattern::place)),
    of("regexp_instr", &[TEXT, TEXT, INT, INT, INT, TEXT, INT], INT, Strict(pattern::place)),
    of("regexp_replace", &[TEXT, TEXT, TEXT], TEXT, Strict(pattern::replace)),
    of("regexp_replace", &[TEXT, TEXT, TEXT, TEXT], TEXT, Strict(pattern::replace)),
    of("regexp_replace", &[TEXT, TEXT, TEXT, INT], TEXT, Strict(pattern::replace_from)),
    of("regexp_replace", &[TEXT, TEXT, TEXT, INT, INT], TEXT, Strict(pattern::replace_from)),
    of("regexp_replace", &[TEXT, TEXT, TEXT, INT, INT, TEXT], TEXT, Strict(pattern::replace_from)),
    of("encode", &[BYTEA, TEXT], TEXT, Strict(bytes::encode)),
    of("decode", &[TEXT, TEXT], BYTEA, Strict(bytes::decode)),
    of("md5", &[TEXT], TEXT, Strict(bytes::md5)),
    of("md5", &[BYTEA], TEXT, Strict(bytes::md5)),
    of("sha224", &[BYTEA], BYTEA, Strict(bytes::sha224)),
    of("sha256", &[BYTEA], BYTEA, Strict(bytes::sha256)),
    of("sha384", &[BYTEA], BYTEA, Strict(bytes::sha384)),
    of("sha512", &[BYTEA], BYTEA, Strict(bytes::sha512)),
    of("sqrt", &[DOUBLE], DOUBLE, Strict(number::sqrt)),
    of("cbrt", &[DOUBLE], DOUBLE, Strict(number::cbrt)),
    of("exp", &[DOUBLE], DOUBLE, Strict(number::exp)),
    of("ln", &[DOUBLE], DOUBLE, Strict(number::ln)),
    of("log", &[DOUBLE], DOUBLE, Strict(number::log10)),
    of("log10", &[DOUBLE], DOUBLE, Strict(number::log10)),
    of("log", &[DOUBLE, DOUBLE], DOUBLE, Strict(number::log)),
    of("power", &[DOUBLE, DOUBLE], DOUBLE, Strict(number::power)),
    of("pow", &[DOUBLE, DOUBLE], DOUBLE, Strict(number::power)),
    of("degrees", &[DOUBLE], DOUBLE, Strict(number::degrees)),
    of("radians", &[DOUBLE], DOUBLE, Strict(number::radians)),
    of("sin", &[DOUBLE], DOUBLE, Strict(trigonometry::sin)),
    of("cos", &[DOUBLE], DOUBLE, Strict(trigonometry::cos)),
    of("tan", &[DOUBLE], DOUBLE, Strict(trigonometry::tan)),
    of("cot", &[DOUBLE], DOUBLE, Strict(trigonometry::cot)),
    of("asin", &[DOUBLE], DOUBLE, Strict(trigonometry::asin)),
    of("acos", &[DOUBLE], DOUBLE, Strict(trigonometry::acos)),
    of("atan", &[DOUBLE], DOUBLE, Strict(trigonometry::atan)),
    of("sinh", &[DOUBLE], DOUBLE, Strict(trigonometry::sinh)),
    of("cosh", &[DOUBLE], DOUBLE, Strict(trigonometry::cosh)),
    of("tanh", &[DOUBLE], DOUBLE, Strict(trigonometry::tanh)),
    of("asinh", &[DOUBLE], DOUBLE, Strict(trigonometry::asinh)),
    of("acosh", &[DOUBLE], DOUBLE, Strict(trigonometry::acosh)),
    of("atanh", &[DOUBLE], DOUBLE, Strict(trigonometry::atanh)),
    of("sind", &[DOUBLE], DOUBLE, Strict(trigonometry::sind)),
    of("cosd", &[DOUBLE], DOUBLE, Strict(trigonometry::cosd)),
    of("tand", &[DOUBLE], DOUBLE, Strict(trigonometry::tand)),
    of("cotd", &[DOUBLE], DOUBLE, Strict(trigonometry::cotd)),
    of("asind", &[DOUBLE], DOUBLE, Strict(trigonometry::asind)),
    of("acosd", &[DOUBLE], DOUBLE, Strict(trigonometry::acosd)),
    of("atand", &[DOUBLE], DOUBLE, Strict(trigonometry::atand)),
    of("atan2", &[DOUBLE, DOUBLE], DOUBLE, Strict(trigonometry::atan2)),
    of("atan2d", &[DOUBLE, DOUBLE], DOUBLE, Strict(trigonometry::atan2d)),
    of("pi", &[], DOUBLE, Strict(number::pi)),
    of("gcd", &[INT, INT], INT, Strict(number::gcd)),
    of("gcd", &[BIGINT, BIGINT], BIGINT, Strict(number::gcd)),
    of("lcm", &[INT, INT], INT, Strict(number::lcm)),
    of("lcm", &[BIGINT, BIGINT], BIGINT, Strict(number::lcm)),
    of("width_bucket", &[DOUBLE, DOUBLE, DOUBLE, INT], INT, Strict(number::width_bucket)),
    of("make_date", &[INT, INT, INT], DATE, Strict(time::make_date)),
    of("make_timestamp", &[INT, INT, INT, INT, INT, DOUBLE], TIMESTAMP, Strict(time::make_timestamp)),
    of("make_time", &[INT, INT, DOUBLE], TIME, Strict(time::make_time)),
    of("date_bin", &[INTERVAL, TIMESTAMPTZ, TIMESTAMPTZ], TIMESTAMPTZ, Strict(time::date_bin)),
    of("date_bin", &[INTERVAL, TIMESTAMP, TIMESTAMP], TIMESTAMP, Strict(time::date_bin)),
    of("timezone", &[TEXT, TIMESTAMPTZ], TIMESTAMP, Strict(time::in_zone)),
    of("timezone", &[INTERVAL, TIMESTAMPTZ], TIMESTAMP, Strict(time::in_zone)),
    of("timezone", &[TEXT, TIMESTAMP], TIMESTAMPTZ, Strict(time::in_zone)),
    of("timezone", &[INTERVAL, TIMESTAMP], TIMESTAMPTZ, Strict(time::in_zone)),
    of("to_timestamp", &[DOUBLE], TIMESTAMPTZ, Strict(time::to_timestamp)),
    of("to_timestamp", &[TEXT, TEXT], TIMESTAMPTZ, Strict(template::timestamp_of)),
    of("to_date", &[TEXT, TEXT], DATE, Strict(template::date_of)),
    of("justify_hours", &[INTERVAL], INTERVAL, Strict(interval::justify_hours)),
    of("justify_days", &[INTERVAL], INTERVAL, Strict(interval::justify_days)),
    of("justify_interval", &[INTERVAL], INTERVAL, Strict(interval::justify_interval)),
    of("isfinite", &[TIMESTAMPTZ], BOOLEAN, Strict(interval::is_finite)),
    of("isfinite", &[TIMESTAMP], BOOLEAN, Strict(interval::is_finite)),
    of("isfinite", &[DATE], BOOLEAN, Strict(interval::is_finite)),
    of("isfinite", &[INTERVAL], BOOLEAN, Strict(interval::is_finite)),
];

/// Functions whose types depend on those of their arguments.
const OTHER: &[&str] = &[
    "abs",
    "age",
    "ceil",
    "ceiling",
    "clock_timestamp",
    "coalesce",
    "concat",
    "concat_ws",
    "current_catalog",
    "current_database",
    "current_date",
    "current_role",
    "current_schema",
    "current_timestamp",
    "current_user",
    "date_part",
    "date_trunc",
    "extract",
    "floor",
    "format",
    "gen_random_uuid",
    "greatest",
    "least",
    "localtime",
    "localtimestamp",
    "make_interval",
    "mod",
    "now",
    "nullif",
    "pg_typeof",
    "random",
    "round",
    "session_user",
    "sign",
    "statement_timestamp",
    "to_char",
    "transaction_timestamp",
    "trunc",
    "user",
    "version",
];

fn names() -> impl Iterator<Item = &'static str> {
    FIXED.iter().map(|signature| signature.name).chain(OTHER.iter().copied())
}

/// As messages say it: `lower(integer)`.
fn shown(name: &str, arguments: &[Typed]) -> String {
    let types: Vec<&str> = arguments.iter().map(|argument| types::name_of(argument.data_type.as_ref())).collect();
    format!("function {name}({}) does not exist", types.join(", "))
}

fn no_such_call(name: &str, arguments: &[Typed]) -> SqlError {
    SqlError::new("42883", shown(name, arguments))
        .with_hint("No function matches the given name and argument types. You might need to add explicit type casts.")
}

fn unknown(name: &str, arguments: &[Typed]) -> SqlError {
    let error = SqlError::new("42883", shown(&crate::expression::read::shown(name), arguments));
    match crate::parse::nearest(name, names()) {
        Some(known) => error.with_hint(format!("Perhaps you meant the function \"{known}\".")),
        None => error,
    }
}

/// A call of a function by its name, in lower case. `extract` and `date_part` take the field first, as a text; `position` takes the text first.
pub(crate) fn call(name: &str, arguments: Vec<Typed>, params: &ParamTypes) -> SqlResult<Typed> {
    let arguments: Vec<Typed> = arguments.into_iter().map(|argument| argument.known(params)).collect();
    if FIXED.iter().any(|signature| signature.name == name) {
        return fixed(name, arguments, params);
    }
    let Some(name) = OTHER.iter().copied().find(|known| *known == name) else { return Err(unknown(name, &arguments)) };
    let refused = no_such_call(name, &arguments);
    let numeric = |of: Typed, rounding: Rounding, refused: SqlError| {
        let is_number = of.data_type.is_none_or(|data_type| types::is_number(&data_type));
        if is_number { number::rounded(name, rounding, of, params) } else { Err(refused) }
    };
    let mut rest = arguments.into_iter();
    match (name, rest.next(), rest.next(), rest.next()) {
        ("coalesce" | "greatest" | "least" | "concat" | "concat_ws" | "format", Some(first), second, third) => {
            let all: Vec<Typed> = [Some(first), second, third].into_iter().flatten().chain(rest).collect();
            of_any_number(name, all, params, refused)
        }
        ("abs", Some(of), None, None) => numeric(of, Rounding::Abs, refused),
        ("sign", Some(of), None, None) => numeric(of, Rounding::Sign, refused),
        ("ceil" | "ceiling", Some(of), None, None) => numeric(of, Rounding::Ceil, refused),
        ("floor", Some(of), None, None) => numeric(of, Rounding::Floor, refused),
        ("round", Some(of), None, None) => numeric(of, Rounding::Round, refused),
        ("trunc", Some(of), None, None) => numeric(of, Rounding::Trunc, refused),
        ("round" | "trunc", Some(of), Some(digits), None) => {
            let rounding = if name == "round" { Rounding::Round } else { Rounding::Trunc };
            let takes = |typed: &Typed, to: &DataType| typed.data_type.is_none_or(|from| castable(&from, to, Context::Implicit));
            let is_decimal = of.data_type.is_none_or(|data_type| types::as_decimal(&data_type).is_some());
            if is_decimal && takes(&digits, &INT) { number::to_digits(name, rounding, of, digits, params) } else { Err(refused) }
        }
        ("mod", Some(left), Some(right), None) => make::arithmetic(arithmetic::Operation::Remainder, left, right, params),
        ("nullif", Some(left), Some(right), None) => general::nullif(left, right, params),
        ("pg_typeof", Some(of), None, None) => Ok(general::type_of(of, params)),
        ("extract", Some(field), Some(of), None) => time::extract("extract", field, of, params),
        ("date_part", Some(field), Some(of), None) => time::extract("date_part", field, of, params),
        ("date_trunc", Some(field), Some(of), None) => time::date_trunc(field, of, params),
        ("to_char", Some(of), Some(template), None) => match of.data_type {
            Some(DataType::Date | DataType::Timestamp { .. } | DataType::Interval) => template::to_char(of, template, params),
            data_type if data_type.is_none_or(|data_type| types::is_number(&data_type)) => number_template::to_char(of, template, params),
            _ => Err(refused),
        },
        ("age", Some(of), earlier, None) => interval::age(of, earlier, refused, params),
        ("make_interval", first, second, third) => {
            interval::make_interval([first, second, third].into_iter().flatten().chain(rest).collect(), refused, params)
        }
        ("current_timestamp" | "localtimestamp" | "localtime", Some(digits), None, None) => time::now_to_digits(name, &digits),
        ("random", None, None, None) => Ok(number::make_random()),
        ("gen_random_uuid", None, None, None) => Ok(general::make_random_uuid()),
        (name, None, None, None) => general::of_session(name).or_else(|| time::now(name)).ok_or(refused),
        _ => Err(refused),
    }
}

/// Functions of one argument or more.
fn of_any_number(name: &'static str, all: Vec<Typed>, params: &ParamTypes, refused: SqlError) -> SqlResult<Typed> {
    match name {
        "coalesce" => general::coalesce(all, params),
        "greatest" | "least" => general::extreme(name, all, params),
        "concat_ws" if all.len() < 2 => Err(refused),
        _ => {
            // Values of any type, as texts.
            let texts = all.into_iter().map(|typed| {
                let typed = make::settle(typed, params)?;
                let is_truth = typed.data_type == Some(BOOLEAN);
                let text = make::cast(typed, TEXT, params)?;
                // Where values are written, unlike in a cast, a truth value is one letter.
                Ok(if is_truth { immutable("left", Strict(text::left), vec![text.expr, hidden(1)], TEXT) } else { text }.expr)
            });
            let texts: SqlResult<Vec<_>> = texts.collect();
            let body = match name {
                "concat" => text::concat,
                "format" => format::format,
                _ => text::concat_ws,
            };
            Ok(immutable(name, Values(body), texts?, TEXT))
        }
    }
}

/// The overload that takes most arguments as they are; the first of several such.
fn fixed(name: &str, arguments: Vec<Typed>, params: &ParamTypes) -> SqlResult<Typed> {
    let exact = |signature: &&Signature| {
        let same = |(typed, to): (&Typed, &DataType)| {
            typed.data_type.is_some_and(|from| match (from, to) {
                (DataType::Timestamp { with_zone: from, .. }, DataType::Timestamp { with_zone: to, .. }) => from == *to,
                (from, to) => std::mem::discriminant(&from) == std::mem::discriminant(to),
            })
        };
        arguments.iter().zip(signature.parameters).filter(|pair| same(*pair)).count()
    };
    let fits = |signature: &&Signature| {
        signature.name == name
            && signature.parameters.len() == arguments.len()
            && arguments
                .iter()
                .zip(signature.parameters)
                .all(|(typed, to)| typed.data_type.is_none_or(|from| castable(&from, to, Context::Implicit)))
    };
    // The last of the best is what max gives, and so the first of them from the back.
    let Some(found) = FIXED.iter().rev().filter(fits).max_by_key(exact) else { return Err(no_such_call(name, &arguments)) };
    let converted: SqlResult<Vec<_>> = arguments
        .into_iter()
        .zip(found.parameters)
        .map(|(typed, to)| match (to, typed.data_type) {
            (DataType::Char(_), Some(DataType::Char(_))) => Ok(typed.expr),
            _ => Ok(make::coerce(typed, to, params)?.expr),
        })
        .collect();
    Ok(immutable(found.name, found.apply, converted?, found.result))
}
