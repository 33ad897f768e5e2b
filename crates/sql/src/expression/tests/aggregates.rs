//! Aggregates: types, values, NULLs, DISTINCT, limits.

use super::sql::{Binder, Columns, data_type, shown};
use crate::SqlResult;
use crate::expression::aggregate::{Aggregate, aggregate, is_aggregate};
use crate::expression::{Accumulator, Expr, ParamTypes, Typed};
use pagefold_types::{Value, ValueRef};

fn made(name: &str, of: &str, distinct: bool) -> SqlResult<Aggregate> {
    aggregate(name, vec![Typed::of(Expr::Slot(0), data_type(of))], distinct, &ParamTypes::default())
}

fn result(aggregate: &Aggregate, values: &[Value]) -> SqlResult<Value> {
    let mut accumulator = Accumulator::new(aggregate);
    for value in values {
        let env = crate::expression::Env { row: std::slice::from_ref(value), ..crate::expression::Env::EMPTY };
        let argument = aggregate.argument.as_ref().map(|argument| argument.evaluate(&env)).transpose()?;
        accumulator.add(argument.as_ref().map_or(ValueRef::Int(1), Value::as_ref))?;
    }
    accumulator.finish()
}

/// Texts to values of a type; empty is NULL.
fn values(of: &str, texts: &str) -> Vec<Value> {
    let read = |text: &str| pagefold_types::text::parse(text, &data_type(of)).unwrap();
    texts.split(' ').map(|text| if text.is_empty() { Value::Null } else { read(text) }).collect()
}

#[test]
fn types_and_values() {
    for (name, of, gives, texts, expected) in [
        ("count", "integer", "bigint", "1 2  2", "3"),
        ("sum", "smallint", "bigint", "30000 30000  30000", "90000"),
        ("sum", "integer", "bigint", "2147483647 2147483647", "4294967294"),
        ("sum", "bigint", "decimal(38,0)", "9223372036854775807 9223372036854775807", "18446744073709551614"),
        ("sum", "decimal(15,2)", "decimal(38,2)", "1.50 2.25 ", "3.75"),
        ("sum", "double", "double", "0.1 0.2", "0.30000000000000004"),
        ("sum", "real", "real", "0.5 0.25", "0.75"),
        ("avg", "integer", "decimal(38,16)", "1 2 ", "1.5000000000000000"),
        ("avg", "integer", "decimal(38,16)", "1 1 0", "0.6666666666666667"),
        ("avg", "bigint", "decimal(38,16)", "9223372036854775807 9223372036854775807", "9223372036854775807.0000000000000000"),
        ("avg", "decimal(15,2)", "decimal(38,16)", "25.50 25.53", "25.5150000000000000"),
        ("avg", "decimal(30,20)", "decimal(38,20)", "1.00000000000000000001 2.00000000000000000001", "1.50000000000000000001"),
        ("avg", "double", "double", "1 2", "1.5"),
        ("avg", "real", "double", "1 2", "1.5"),
        ("min", "text", "text", "b a  c", "a"),
        ("max", "text", "text", "b a  c", "c"),
        ("max", "date", "date", "2024-01-02 2024-01-01", "2024-01-02"),
        ("min", "double", "double", "1 NaN -1", "-1"),
        ("max", "double", "double", "1 NaN -1", "NaN"),
        ("max", "char(3)", "char(3)", "a b", "b  "),
        ("bool_and", "boolean", "boolean", "true  true", "true"),
        ("every", "boolean", "boolean", "true false", "false"),
        ("bool_or", "boolean", "boolean", "false  true", "true"),
        ("var_pop", "integer", "double", "2 4 4 4 5 5 7 9", "4"),
        ("stddev_pop", "decimal(3,1)", "double", "2.0 4.0 4.0 4.0 5.0 5.0 7.0 9.0", "2"),
        ("var_samp", "double", "double", "1 2 3 4", "1.6666666666666667"),
        ("variance", "double", "double", "1 2 3 4", "1.6666666666666667"),
        ("stddev", "double", "double", "1 3", "1.4142135623730951"),
        ("stddev_samp", "double", "double", "5", "NULL"),
        ("var_pop", "double", "double", "5", "0"),
        ("bit_and", "integer", "integer", "6 3", "2"),
        ("bit_or", "integer", "integer", "6 3", "7"),
        ("bit_xor", "bigint", "bigint", "6 3", "5"),
    ] {
        let aggregate = made(name, of, false).unwrap();
        assert_eq!(aggregate.data_type, data_type(gives), "{name} of {of}");
        let value = result(&aggregate, &values(of, texts)).unwrap();
        value.as_ref().check(&aggregate.data_type, name).unwrap();
        let value = if let (Value::Text(text), "char(3)") = (&value, of) { Value::Text(format!("{text:3}")) } else { value };
        assert_eq!(shown(&value, &aggregate.data_type), expected, "{name} of {of}: {texts}");
        assert!(is_aggregate(name));
        // Without values: NULL, and 0 of count.
        let nothing = result(&aggregate, &[Value::Null]).unwrap();
        assert_eq!(nothing, if name == "count" { Value::Int(0) } else { Value::Null }, "{name}");
    }
    assert!(!is_aggregate("lower"));
}

#[test]
fn rows_are_counted_with_their_nulls() {
    let rows = aggregate("count", Vec::new(), false, &ParamTypes::default()).unwrap();
    assert_eq!(result(&rows, &values("integer", "1  2 ")).unwrap(), Value::Int(4));
}

#[test]
fn distinct_values_count_once() {
    for (name, of, texts, expected) in [
        ("count", "integer", "1 2 1  2", "2"),
        ("sum", "integer", "1 2 1  2", "3"),
        ("avg", "decimal(5,2)", "1.00 1.00 2.00", "1.5000000000000000"),
        ("max", "text", "a b b", "b"),
        ("count", "double", "0 -0 NaN NaN", "2"),
    ] {
        let aggregate = made(name, of, true).unwrap();
        let value = result(&aggregate, &values(of, texts)).unwrap();
        assert_eq!(shown(&value, &aggregate.data_type), expected, "{name} of {texts}");
    }
}

#[test]
fn texts_are_joined_and_their_memory_is_counted() {
    let binder = Binder::new(&Columns(&[("t", "text")]));
    let arguments = |separator: &str| vec![binder.bind("t").unwrap(), binder.bind(separator).unwrap()];
    let joined = aggregate("string_agg", arguments("', '"), false, &binder.params).unwrap();
    assert_eq!(result(&joined, &values("text", "a b  a")).unwrap(), Value::Text("a, b, a".to_owned()));
    let distinct = aggregate("string_agg", arguments("''"), true, &binder.params).unwrap();
    assert_eq!(result(&distinct, &values("text", "a b a")).unwrap(), Value::Text("ab".to_owned()));
    let bytes = |aggregate: &Aggregate, of: &dyn Fn(usize) -> String| {
        let mut accumulator = Accumulator::new(aggregate);
        let before = accumulator.grown_bytes();
        for n in 0..100 {
            accumulator.add(ValueRef::Text(&of(n))).unwrap();
        }
        accumulator.grown_bytes() - before
    };
    assert!(bytes(&joined, &|_| "x".repeat(100)) >= 10_000);
    assert!(bytes(&distinct, &|n| format!("{n:0100}")) >= 20_000);
    assert!(bytes(&distinct, &|_| "x".repeat(100)) < 1_000);
}

#[test]
fn refusals() {
    let refused = |name: &str, of: &str| made(name, of, false).unwrap_err();
    assert_eq!(refused("sum", "text").message(), "function sum(text) does not exist");
    assert_eq!(refused("avg", "date").sqlstate(), "42883");
    assert_eq!(refused("bool_and", "integer").sqlstate(), "42883");
    assert_eq!(refused("stddev", "text").sqlstate(), "42883");
    assert_eq!(refused("bit_and", "double").sqlstate(), "42883");
    assert_eq!(refused("string_agg", "text").sqlstate(), "42883");
    assert_eq!(aggregate("sum", Vec::new(), false, &ParamTypes::default()).unwrap_err().message(), "function sum() does not exist");
    let sum = made("sum", "integer", false).unwrap();
    let mut accumulator = Accumulator::new(&sum);
    accumulator.add(ValueRef::Int(i64::MAX)).unwrap();
    accumulator.add(ValueRef::Int(1)).unwrap();
    assert_eq!(accumulator.finish().unwrap_err().message(), "bigint out of range");
    let wide = made("sum", "decimal(38,0)", false).unwrap();
    let most = Value::Decimal(10i128.pow(38) - 1);
    assert_eq!(result(&wide, &[most.clone(), Value::Decimal(1)]).unwrap_err().sqlstate(), "22003");
    assert_eq!(result(&wide, &[most.clone(), most]).unwrap_err().sqlstate(), "22003");
    let double = made("sum", "double", false).unwrap();
    assert_eq!(result(&double, &[Value::Double(1e308), Value::Double(1e308)]).unwrap_err().message(), "value out of range: overflow");
}
