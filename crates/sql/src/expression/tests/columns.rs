//! Expressions on rows: what of them is cast and what stays as it is, parameters, assignments, subqueries.

use super::sql::{Binder, Columns, data_type, on_row, shown};
use crate::expression::datum::Datum;
use crate::expression::{Comparison, Env, Expr, Subqueries, SubqueryKind, Typed, make};
use crate::{SqlError, SqlResult};
use pagefold_types::{DataType, Value, ValueRef};

const COLUMNS: Columns<'static> = Columns(&[
    ("s", "smallint"),
    ("i", "integer"),
    ("g", "bigint"),
    ("d", "decimal(15,2)"),
    ("r", "real"),
    ("f", "double"),
    ("day", "date"),
    ("at", "timestamp"),
    ("second", "timestamp(0)"),
    ("c", "char(10)"),
    ("v", "varchar(10)"),
    ("t", "text"),
    ("b", "boolean"),
    ("w", "decimal(38,6)"),
    ("x", "decimal(38,16)"),
]);

fn bound(text: &str) -> Typed {
    Binder::new(&COLUMNS).bind(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// Is a column cast?
fn casts_column(expr: &Expr) -> bool {
    let mut casts = false;
    expr.visit(&mut |part| {
        if let Expr::Cast { of, .. } = part {
            casts |= matches!(of.as_ref(), Expr::Slot(_));
        }
    });
    casts
}

#[test]
fn a_literal_becomes_what_the_column_is_if_it_can() {
    for text in [
        "s = 5",
        "g < 5",
        "i = 5.0",
        "d < 24",
        "d between 0.06 - 0.01 and 0.06 + 0.01",
        "d = '24.50'",
        "r = 0.5",
        "f = 0.1",
        "f < 3",
        "day <= date '1998-12-01' - interval '90' day",
        "day >= '1994-01-01' and day < date '1994-01-01' + interval '1' year",
        "at >= date '2024-01-01'",
        "at = '2024-01-01 10:00:00.5'",
        "second = '2024-01-01 10:00:00'",
        "second < timestamp '2024-01-01 10:00:00'",
        "c = 'BUILDING'",
        "c in ('a', 'b')",
        "v = 'x'",
        "v = 'longer than the column'",
        "t = v",
        "v like 'a%'",
        "s in (1, 2, 3)",
        "d in (1, 2.5)",
        "day in ('2024-01-01', '2024-01-02')",
        "5 > s",
        "day is distinct from '2024-01-01'",
    ] {
        assert!(!casts_column(&bound(text).expr), "{text}: {:?}", bound(text).expr);
    }
    for text in ["i = 1.5", "s = 40000", "r = 0.1", "day < timestamp '2024-01-01 00:00:01'", "i = g", "c = t", "d = f", "day = at"] {
        assert!(casts_column(&bound(text).expr), "{text}");
    }
}

fn row() -> Vec<Value> {
    vec![
        Value::Int(5),
        Value::Int(5),
        Value::Int(5),
        Value::Decimal(2_450),
        Value::Real(0.1),
        Value::Double(0.1),
        Value::Int(19_724),
        Value::Int(19_724 * 86_400_000_000),
        Value::Int(19_724 * 86_400),
        Value::Text("BUILDING  ".to_owned()),
        Value::Text("a".to_owned()),
        Value::Text("BUILDING".to_owned()),
        Value::Boolean(true),
        Value::Decimal(2_500_000),
        Value::Decimal(25_000_000_000_000_000),
    ]
}

#[test]
fn comparisons_of_columns() {
    for (text, expected) in [
        ("s = 5", true),
        ("s = 5.5", false),
        ("s < 40000", true),
        ("i in (1, 2.5, 5)", true),
        ("i in (1, 2.5, 6000000000)", false),
        ("d = 24.5", true),
        ("d > 24.499", true),
        ("d < 24.501", true),
        ("d = '24.505'", false),
        ("r = 0.1", false),
        ("r = 0.1::real", true),
        ("r < 0.2", true),
        ("f = 0.1", true),
        ("f = r", false),
        ("day = '2024-01-02'", true),
        ("day = timestamp '2024-01-02 00:00:00'", true),
        ("day < timestamp '2024-01-02 00:00:01'", true),
        ("day = at", true),
        ("second = at", true),
        ("second < '2024-01-02 00:00:00.5'", true),
        ("c = 'BUILDING'", true),
        ("c = 'BUILDING '", true),
        ("c = 'BUILDING and more'", false),
        ("c < 'BUILDING and more'", true),
        ("c = t", true),
        ("c like 'BUILDING'", false),
        ("c in ('x', 'BUILDING')", true),
        ("c || '!' = 'BUILDING!'", true),
        ("v between 'a' and 'b'", true),
        ("w = x", true),
        ("w < x", false),
        ("x >= w", true),
        ("w = 2.5", true),
        ("w < 99999999999999999999999999999999", true),
        ("-w < x", true),
        ("g = 5.0::double precision", true),
        ("d < 24.6::double precision", true),
    ] {
        let (found, _) = on_row(text, &COLUMNS, &row()).unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(found, Value::Boolean(expected), "{text}");
    }
}

#[test]
fn long_lists_are_searched() {
    let columns = Columns(&[("i", "integer"), ("t", "text")]);
    let numbers: Vec<String> = (0..200).map(|n| (n * 7 % 400).to_string()).collect();
    let texts: Vec<String> = numbers.iter().map(|n| format!("'{n}'")).collect();
    let (null, numbers_text, texts_text) = (Value::Null, numbers.join(", "), texts.join(", "));
    for n in -1..402 {
        let row = [Value::Int(n), Value::Text(n.to_string())];
        let there = numbers.contains(&n.to_string());
        for (text, found) in [
            (format!("i in ({numbers_text})"), Value::Boolean(there)),
            (format!("i not in ({numbers_text})"), Value::Boolean(!there)),
            (format!("t in ({texts_text})"), Value::Boolean(there)),
            (format!("i in (NULL, {numbers_text})"), if there { Value::Boolean(true) } else { null.clone() }),
            (format!("not (i in ({numbers_text}, NULL))"), if there { Value::Boolean(false) } else { null.clone() }),
        ] {
            assert_eq!(on_row(&text, &columns, &row).unwrap().0, found, "{n}: {}", &text[..20]);
        }
    }
}

#[test]
fn decimals_too_wide_for_a_common_type_are_compared_exactly() {
    let columns = Columns(&[("a", "decimal(38,0)"), ("b", "decimal(38,38)")]);
    let most = 10i128.pow(38) - 1;
    for (a, b, less, equal) in [
        (most, most, false, false),
        (-most, most, true, false),
        (0, 0, false, true),
        (0, 1, true, false),
        (0, -1, false, false),
        (1, most, false, false),
    ] {
        let row = [Value::Decimal(a), Value::Decimal(b)];
        for (text, expected) in [("a < b", less), ("a = b", equal), ("b > a", less), ("a >= b", !less)] {
            assert_eq!(on_row(text, &columns, &row).unwrap().0, Value::Boolean(expected), "{text} {a} {b}");
        }
    }
}

#[test]
fn prices() {
    let columns =
        Columns(&[("price", "decimal(15,2)"), ("discount", "decimal(15,2)"), ("tax", "decimal(15,2)"), ("quantity", "decimal(15,2)")]);
    let row = [Value::Decimal(2_116_823), Value::Decimal(4), Value::Decimal(2), Value::Decimal(1_700)];
    for (text, expected, of) in [
        ("price * (1 - discount)", "20321.5008", "decimal(31,4)"),
        ("price * (1 - discount) * (1 + tax)", "20727.930816", "decimal(38,6)"),
        ("price / quantity", "1245.1900000000000000", "decimal(31,16)"),
        ("100.00 * price / price", "100.0000000000000000", "decimal(34,16)"),
        ("price * 2", "42336.46", "decimal(16,2)"),
        ("price + 1", "21169.23", "decimal(16,2)"),
        ("-price", "-21168.23", "decimal(15,2)"),
        ("price * 0.0001", "2.116823", "decimal(19,6)"),
    ] {
        let (value, data_type_found) = on_row(text, &columns, &row).unwrap();
        assert_eq!((shown(&value, &data_type_found).as_str(), data_type_found), (expected, data_type(of)), "{text}");
    }
}

#[test]
fn parameters_take_the_type_of_what_they_meet() {
    for (text, expected) in [
        ("i = $1", "integer"),
        ("$1 < d", "decimal(15,2)"),
        ("s in ($1, 2)", "smallint"),
        ("$1 in (1, 2)", "integer"),
        ("v = $1", "text"),
        ("c = $1", "char(10)"),
        ("v like $1", "text"),
        ("$1 like 'a%'", "text"),
        ("day >= $1", "date"),
        ("day + $1 > '2024-01-01'", "integer"),
        ("day - $1 > 3", "date"),
        ("i + $1 > 3", "integer"),
        ("f * $1 > 3", "double"),
        ("b and $1", "boolean"),
        ("coalesce($1, i) = 1", "integer"),
        ("case when b then $1 else 1.5 end > 1", "decimal(2,1)"),
        ("$1::bigint = 1", "bigint"),
        ("lower($1) = 'a'", "text"),
        ("$1 is null", "text"),
        ("i = $1 and d = $1", "integer"),
        ("i between $1 and 7", "integer"),
        ("t || $1 = 'x'", "text"),
    ] {
        let binder = Binder::new(&COLUMNS);
        binder.bind(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(binder.params.get(0), Some(data_type(expected)), "{text}");
    }
    let binder = Binder::new(&COLUMNS);
    let typed = binder.bind("i = $1 and d = $1").unwrap();
    let env = Env { params: &[Value::Int(5)], ..Env::EMPTY };
    let row = row();
    assert!(!typed.expr.is_true(&Env { row: &row, ..env }).unwrap());
}

/// Assigns a literal or an expression of a row to a column of a type.
fn assigned(text: &str, to: &str) -> SqlResult<String> {
    let binder = Binder::new(&COLUMNS);
    let to = data_type(to);
    let typed = make::assign(binder.bind(text)?, &to, "target", &binder.params)?;
    assert_eq!(typed.data_type, Some(to));
    let value = typed.expr.evaluate(&Env { row: &row(), ..Env::EMPTY })?;
    value.as_ref().check(&to, "target").unwrap();
    Ok(shown(&value, &to))
}

#[test]
fn assignments() {
    for (text, to, expected) in [
        ("1", "smallint", "1"),
        ("1.5", "integer", "2"),
        ("i", "smallint", "5"),
        ("d", "integer", "25"),
        ("d", "decimal(4,1)", "24.5"),
        ("1", "decimal(5,2)", "1.00"),
        ("'1.005'", "decimal(5,2)", "1.01"),
        ("f", "real", "0.1"),
        ("i", "text", "5"),
        ("day", "varchar(10)", "2024-01-02"),
        ("'abc  '", "varchar(3)", "abc"),
        ("'abc'", "char(5)", "abc  "),
        ("'abc   '", "char(3)", "abc"),
        ("t", "char(9)", "BUILDING "),
        ("c", "varchar(8)", "BUILDING"),
        ("'ä€'", "varchar(2)", "ä€"),
        ("v", "varchar(20)", "a"),
        ("at", "date", "2024-01-02"),
        ("day", "timestamp(3)", "2024-01-02 00:00:00"),
        ("'2024-01-02'", "date", "2024-01-02"),
        ("'yes'", "boolean", "true"),
        ("NULL", "integer", "NULL"),
        ("NULL", "varchar(3)", "NULL"),
        ("'\\x01'", "bytea", "\\x01"),
    ] {
        assert_eq!(assigned(text, to).unwrap_or_else(|error| panic!("{text} to {to}: {error}")), expected, "{text} to {to}");
    }
    for (text, to, state, message) in [
        ("'abcd'", "varchar(3)", "22001", "value too long for type character varying(3)"),
        ("t", "varchar(3)", "22001", "value too long for type character varying(3)"),
        ("t", "char(3)", "22001", "value too long for type character(3)"),
        ("123456", "varchar(3)", "22001", "value too long for type character varying(3)"),
        ("40000", "smallint", "22003", "smallint out of range"),
        ("g * 10000000000", "integer", "22003", "integer out of range"),
        ("'x'", "integer", "22P02", "invalid input syntax for type integer: \"x\""),
        ("'40000'", "smallint", "22003", "value \"40000\" is out of range for type smallint"),
        ("1234.5", "decimal(5,2)", "22003", "numeric field overflow"),
        ("'2023-02-30'", "date", "22008", "date/time field value out of range: \"2023-02-30\""),
        ("'soon'", "date", "22007", "invalid input syntax for type date: \"soon\""),
        ("t", "integer", "42804", "column \"target\" is of type integer but expression is of type text"),
        ("i", "boolean", "42804", "column \"target\" is of type boolean but expression is of type integer"),
        ("b", "integer", "42804", "column \"target\" is of type integer but expression is of type boolean"),
        ("i", "date", "42804", "column \"target\" is of type date but expression is of type integer"),
    ] {
        let error = assigned(text, to).unwrap_err();
        assert_eq!((error.sqlstate(), error.message()), (state, message), "{text} to {to}");
    }
    let error = assigned("1234.5", "decimal(5,2)").unwrap_err();
    assert_eq!(error.detail(), Some("A field with precision 5, scale 2 must round to an absolute value less than 10^3."));
}

#[test]
fn texts_are_borrowed() {
    let row = row();
    for text in ["t", "v", "substring(t from 2 for 3)", "trim(t)", "left(t, 2)", "c::text", "coalesce(t, 'x')", "case when b then t end"] {
        let expr = bound(text).expr;
        let env = Env { row: &row, ..Env::EMPTY };
        let found = expr.evaluate_ref(&env).unwrap();
        assert!(matches!(found, Datum::Ref(ValueRef::Text(_))), "{text}: {found:?}");
    }
}

/// Values of subqueries, by number.
struct Fixed(Vec<Vec<Value>>);

impl Subqueries for Fixed {
    fn number(&self, _: &crate::sequences::SequenceCall) -> SqlResult<i64> {
        Err(SqlError::new("XX000", "no sequence"))
    }

    fn set_number(&self, _: &crate::sequences::SequenceRef, _: i64, _: bool) -> SqlResult<()> {
        Err(SqlError::new("XX000", "no sequence"))
    }

    fn clock(&self) -> SqlResult<i64> {
        Err(SqlError::new("XX000", "no clock"))
    }

    fn run(&self, number: usize, _: &[Value], visit: &mut dyn FnMut(Value) -> SqlResult<bool>) -> SqlResult<()> {
        let rows = self.0.get(number).ok_or_else(|| SqlError::new("XX000", "no such subquery"))?;
        for value in rows {
            if !visit(value.clone())? {
                break;
            }
        }
        Ok(())
    }

    fn is_among(&self, number: usize, of: &[ValueRef<'_>]) -> SqlResult<Option<bool>> {
        let of = of[0];
        let rows = self.0.get(number).ok_or_else(|| SqlError::new("XX000", "no such subquery"))?;
        let is_unknown = !rows.is_empty() && (of.is_null() || rows.contains(&Value::Null));
        let found = rows.iter().any(|value| !of.is_null() && value.as_ref() == of);
        Ok(if !found && is_unknown { None } else { Some(found) })
    }
}

#[test]
fn subqueries() {
    let int = Value::Int;
    let subqueries = Fixed(vec![vec![], vec![int(1)], vec![int(1), int(2)], vec![int(1), Value::Null], vec![Value::Null]]);
    let env = Env { row: &[int(1), int(3), Value::Null], subqueries: &subqueries, ..Env::EMPTY };
    let evaluate = |number, kind| Expr::Subquery { number, kind, outer: Vec::new() }.evaluate(&env);
    assert_eq!(evaluate(0, SubqueryKind::Scalar).unwrap(), Value::Null);
    assert_eq!(evaluate(1, SubqueryKind::Scalar).unwrap(), int(1));
    assert_eq!(evaluate(2, SubqueryKind::Scalar).unwrap_err().sqlstate(), "21000");
    assert_eq!(evaluate(0, SubqueryKind::Exists).unwrap(), Value::Boolean(false));
    assert_eq!(evaluate(4, SubqueryKind::Exists).unwrap(), Value::Boolean(true));
    let truth = |truth: Option<bool>| truth.map_or(Value::Null, Value::Boolean);
    // Rows: the value 1, 3 and NULL; columns: the subqueries from 0.
    let within = [
        [Some(false), Some(true), Some(true), Some(true), None],
        [Some(false), Some(false), Some(false), None, None],
        [Some(false), None, None, None, None],
    ];
    let at_least_all = [
        [Some(true), Some(true), Some(false), None, None],
        [Some(true), Some(true), Some(true), None, None],
        [Some(true), None, None, None, None],
    ];
    for slot in 0..3 {
        for number in 0..5 {
            let of = || Box::new(Expr::Slot(slot));
            let found = evaluate(number, SubqueryKind::In { of: vec![*of()], negated: false }).unwrap();
            assert_eq!(found, truth(within[slot][number]), "{slot} in {number}");
            let found = evaluate(number, SubqueryKind::In { of: vec![*of()], negated: true }).unwrap();
            assert_eq!(found, truth(within[slot][number].map(|t| !t)), "{slot} not in {number}");
            let any = SubqueryKind::Quantified { of: of(), comparison: Comparison::Equal, all: false };
            assert_eq!(evaluate(number, any).unwrap(), truth(within[slot][number]), "{slot} = any {number}");
            let all = SubqueryKind::Quantified { of: of(), comparison: Comparison::GreaterOrEqual, all: true };
            assert_eq!(evaluate(number, all).unwrap(), truth(at_least_all[slot][number]), "{slot} >= all {number}");
        }
    }
}

#[test]
fn parts_are_visited_and_replaced() {
    let mut expr = bound("case when i = 5 and v like 'a%' then lower(t) || c else 'x' end").expr;
    let mut slots = Vec::new();
    expr.visit(&mut |part| {
        if let Expr::Slot(at) = part {
            slots.push(*at);
        }
    });
    assert_eq!(slots, [1, 10, 11, 9]);
    expr.rewrite(&mut |part| {
        if let Expr::Slot(at) = part {
            *part = Expr::Outer(*at);
        }
    });
    let found = expr.evaluate(&Env { outer: &row(), ..Env::EMPTY }).unwrap();
    assert_eq!(found, Value::Text("buildingBUILDING".to_owned()));
    for text in ["1 + 2 * 3 = 7", "lower('A')", "case when 1 in (1, 2) then 'a' end"] {
        assert!(bound(text).literal().is_some(), "{text}");
    }
    for text in ["i", "now()", "random()", "$1 + 1", "current_date", "1 / 0"] {
        assert!(bound(text).literal().is_none(), "{text}");
    }
    let (a, b) = (bound("gen_random_uuid()").expr, bound("random()").expr);
    assert_ne!(a.evaluate(&Env::EMPTY).unwrap(), a.evaluate(&Env::EMPTY).unwrap());
    assert!(matches!(b.evaluate(&Env::EMPTY).unwrap(), Value::Double(x) if (0.0..1.0).contains(&x)));
}

#[test]
fn a_name_that_is_nearly_one_is_suggested() {
    let hint = |text: &str| Binder::new(&COLUMNS).bind(text).unwrap_err().hint().map(str::to_owned);
    assert_eq!(hint("lowre(t)"), Some("Perhaps you meant the function \"lower\".".to_owned()));
    assert_eq!(hint("char_lenght(t)"), Some("Perhaps you meant the function \"char_length\".".to_owned()));
    assert_eq!(hint("quite_something_else(t)"), None);
    let error = Binder::new(&COLUMNS).bind("d = t").unwrap_err();
    assert_eq!(error.message(), "operator does not exist: numeric = text");
    assert!(error.hint().unwrap_or_default().starts_with("No operator matches"));
    let settled = make::settle(Typed::null(), &Binder::new(&COLUMNS).params).unwrap();
    assert_eq!(settled.data_type, Some(DataType::Varchar(None)));
}
