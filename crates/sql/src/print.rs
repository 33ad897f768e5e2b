//! Parts of statements as texts that are read again: what the catalog keeps of views, defaults and conditions.
//!
//! sqlparser prints a tree. Not all that it prints is read as that tree again; where it is not, the text is mended.
//!
//! Invariant: what is given here is read, and printed as the same text again; else it is refused. Trees are not compared: that would take the stack, and they may be as deep as a
//! statement may be long.

use crate::exclusion;
use crate::forms::ONLY;
use crate::parse::{parse_expression, parse_query};
use crate::{SqlError, SqlResult};
use sqlparser::ast::{Expr, Query};
use std::iter::Peekable;
use std::str::Chars;

/// The text of a query.
pub(crate) fn printed_query(query: &Query) -> SqlResult<String> {
    let text = mended(&query.to_string());
    let is_same = parse_query(&text).is_ok_and(|read| mended(&read.to_string()) == text);
    if is_same { Ok(text) } else { Err(refused()) }
}

/// The text of an expression.
pub(crate) fn printed(expr: &Expr) -> SqlResult<String> {
    let text = mended(&expr.to_string());
    let is_same = parse_expression(&text).is_ok_and(|read| mended(&read.to_string()) == text);
    if is_same { Ok(text) } else { Err(refused()) }
}

fn refused() -> SqlError {
    SqlError::unsupported("an expression that is read as another one when it is printed, in a definition")
}

/// What sqlparser prints, such that it is read as that which was printed:
///
/// * a blank between two signs, which would begin a comment;
/// * EXCLUDE of a window frame, for which there is a mark in the name of its window, and ONLY, which is one.
fn mended(text: &str) -> String {
    let mut mended = String::with_capacity(text.len() + 16);
    let mut rest = text.chars().peekable();
    // What comes before the end of each pair of parentheses.
    let mut ends: Vec<&str> = Vec::new();
    while let Some(c) = rest.next() {
        match c {
            '-' | '+' if mended.ends_with(['-', '+']) => mended.extend([' ', c]),
            '\'' => copy_quoted(&mut rest, &mut mended, c),
            '"' => {
                let begin = mended.len();
                copy_quoted(&mut rest, &mut mended, c);
                let name = mended.get(begin + 1..mended.len() - 1).unwrap_or_default();
                if name == ONLY && rest.next_if_eq(&'.').is_some() {
                    mended.replace_range(begin.., "ONLY ");
                    continue;
                }
                let (exclusion, own) = exclusion::split(name);
                if let Some(words) = exclusion.words() {
                    let own = own.map_or_else(String::new, |own| format!("\"{own}\""));
                    mended.replace_range(begin.., &own);
                    if let Some(end) = ends.last_mut() {
                        *end = words;
                    }
                }
            }
            '$' => copy_dollars(&mut rest, &mut mended),
            '(' => {
                ends.push("");
                mended.push(c);
            }
            ')' => {
                mended.push_str(ends.pop().unwrap_or_default());
                mended.push(c);
            }
            c => mended.push(c),
        }
    }
    mended
}

/// A text or name in quotes, of which the first was taken.
fn copy_quoted(rest: &mut Peekable<Chars<'_>>, to: &mut String, quote: char) {
    let has_escapes = quote == '\'' && {
        let mut before = to.chars().rev();
        matches!(before.next(), Some('E' | 'e')) && before.next().is_none_or(|c| !(c.is_alphanumeric() || c == '_'))
    };
    to.push(quote);
    while let Some(c) = rest.next() {
        to.push(c);
        if c == quote {
            match rest.next_if_eq(&quote) {
                Some(second) => to.push(second),
                None => return,
            }
        } else if c == '\\' && has_escapes {
            to.extend(rest.next());
        }
    }
}

/// A text between dollars, of which the first was taken; or that dollar alone.
fn copy_dollars(rest: &mut Peekable<Chars<'_>>, to: &mut String) {
    let is_in_name = to.ends_with(|c: char| c.is_alphanumeric() || c == '_');
    to.push('$');
    let mut ahead = rest.clone();
    let tag: String = ahead.by_ref().take_while(|c| *c != '$').collect();
    let is_tag = !tag.starts_with(|c: char| c.is_ascii_digit()) && tag.chars().all(|c| c.is_alphanumeric() || c == '_');
    if is_in_name || !is_tag {
        return;
    }
    let mark = format!("${tag}$");
    let text: String = ahead.collect();
    let Some(end) = text.find(&mark) else { return };
    let count = mark.chars().count() - 1 + text[..end].chars().count() + mark.chars().count();
    to.extend(rest.by_ref().take(count));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::{Syntax, parse};
    use sqlparser::ast::Statement;

    #[test]
    fn signs_stand_apart_outside_of_quotes() {
        let mended_is = |text: &str, wanted: &str| assert_eq!(mended(text), wanted);
        mended_is("--a", "- -a");
        mended_is("---+a", "- - - +a");
        mended_is("a - -b", "a - -b");
        mended_is("'--' || --a", "'--' || - -a");
        mended_is("\"--\" + \"a\"\"--\"", "\"--\" + \"a\"\"--\"");
        mended_is("'it''s --' || --a", "'it''s --' || - -a");
        mended_is("E'\\'--' || --a", "E'\\'--' || - -a");
        mended_is("e'\\\\' || --a", "e'\\\\' || - -a");
        mended_is("ONE'\\' || --a", "ONE'\\' || - -a");
        mended_is("$$--$$ || --a", "$$--$$ || - -a");
        mended_is("$x$ --$$ $x$ || --a", "$x$ --$$ $x$ || - -a");
        mended_is("$1 || --a", "$1 || - -a");
        mended_is("$1 || $2 || --a", "$1 || $2 || - -a");
        mended_is("a$b || --c$b", "a$b || - -c$b");
        mended_is("'--", "'--");
        mended_is("\"", "\"");
        mended_is("$x$--", "$x$- -");
    }

    #[test]
    fn exclude_comes_back() {
        let over = |window: &str| format!("SELECT sum(a) OVER ({window}) FROM t WINDOW w AS (ORDER BY b)");
        for (window, wanted) in [
            ("ORDER BY a ROWS 1 PRECEDING EXCLUDE CURRENT ROW", "(ORDER BY a ROWS 1 PRECEDING EXCLUDE CURRENT ROW)"),
            ("w ROWS BETWEEN 1 PRECEDING AND CURRENT ROW EXCLUDE TIES", "(\"w\" ROWS BETWEEN 1 PRECEDING AND CURRENT ROW EXCLUDE TIES)"),
            ("PARTITION BY (a) GROUPS 1 PRECEDING EXCLUDE GROUP", "(PARTITION BY (a) GROUPS 1 PRECEDING EXCLUDE GROUP)"),
            ("ROWS 1 PRECEDING EXCLUDE NO OTHERS", "(ROWS 1 PRECEDING)"),
        ] {
            let query = parse_query(&over(window)).unwrap();
            let text = printed_query(&query).unwrap();
            assert!(text.replace("( ", "(").contains(wanted), "{text}");
        }
    }

    /// What the files of `tests/slt` select, as if they were views.
    #[test]
    fn queries_are_read_as_they_were_printed() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/slt");
        let (mut count, mut wrong) = (0, Vec::new());
        for file in std::fs::read_dir(folder).unwrap() {
            let text = std::fs::read_to_string(file.unwrap().path()).unwrap().replace("\r\n", "\n");
            for block in text.split("\n\n") {
                let mut lines = block.lines().skip_while(|line| !line.starts_with("query") && !line.starts_with("statement ok"));
                lines.next();
                let statement: Vec<&str> = lines.take_while(|line| *line != "----").collect();
                let Ok(parsed) = parse(&statement.join("\n")) else { continue };
                for own in parsed {
                    let Syntax::Sql(node) = own.syntax else { continue };
                    let query = match *node {
                        Statement::Query(query) => query,
                        Statement::CreateView(view) => view.query,
                        _ => continue,
                    };
                    // What changes rows is no view.
                    if own.text.contains(" INTO ") {
                        continue;
                    }
                    count += 1;
                    if !printed_query(&query).is_ok_and(|text| parse_query(&text).unwrap() == query) {
                        wrong.push(format!("{}\n{}", own.text, mended(&query.to_string())));
                    }
                }
            }
        }
        assert!(count > 500, "{count}");
        assert!(wrong.is_empty(), "{}\n{}", wrong.len(), wrong.join("\n\n"));
    }

    #[test]
    fn expressions_are_read_as_they_were_printed() {
        let mut wrong = Vec::new();
        for text in EXPRESSIONS {
            let expr = parse_expression(text).unwrap();
            if !printed(&expr).is_ok_and(|text| parse_expression(&text).unwrap() == expr) {
                wrong.push(format!("{text}\n{}", mended(&expr.to_string())));
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
    }

    const EXPRESSIONS: &[&str] = &[
        "- -x",
        "- - -x",
        "+ -x",
        "- + - x",
        "a - - b",
        "a - (- b)",
        "-(-(-9223372036854775808))",
        "- -1::int",
        "(- -1)::int",
        "a*- -b",
        "- -a ^ - -b",
        "NOT NOT a",
        "NOT (a AND NOT b) OR c",
        "a IS DISTINCT FROM b AND c",
        "(a IS NOT DISTINCT FROM b) = c",
        "a IS NOT TRUE",
        "a IS UNKNOWN",
        "a NOTNULL",
        "a ISNULL",
        "a BETWEEN 1 AND 2 AND b NOT BETWEEN - -1 AND 3",
        "a NOT LIKE 'x\\%' ESCAPE '\\'",
        "a LIKE b ESCAPE ''",
        "a ILIKE 'x'",
        "a ~~ 'x' AND a !~~ 'y' AND a ~~* 'z' AND a !~~* 'q'",
        "a ^@ 'x'",
        "a SIMILAR TO 'x' ESCAPE '#'",
        "a IN (1, 2) OR (a, b) NOT IN ((1, 2), (3, 4))",
        "a = ANY (SELECT 1) OR a <> ALL (SELECT 2) OR a = SOME (SELECT 3)",
        "EXISTS (SELECT 1) AND NOT EXISTS (SELECT 2)",
        "CASE a WHEN 1 THEN - -1 ELSE 2 END",
        "CASE WHEN a THEN b WHEN c THEN d END",
        "CAST(a AS NUMERIC(10, 2))",
        "a::varchar(3)::text",
        "a::timestamp(3) with time zone",
        "CAST(a AS double precision)",
        "CAST(a AS character varying(7))",
        "a::interval day to second",
        "EXTRACT(year FROM a)",
        "EXTRACT('year' FROM a)",
        "SUBSTRING(a FROM 1 FOR 2)",
        "SUBSTRING(a, 1, 2)",
        "SUBSTRING(a FROM 2)",
        "SUBSTR(a, 1)",
        "TRIM(a)",
        "TRIM(BOTH 'x' FROM a)",
        "TRIM(TRAILING 'x' FROM a)",
        "TRIM(a, 'x')",
        "POSITION('a' IN b)",
        "OVERLAY(a PLACING 'b' FROM 1 FOR 2)",
        "a AT TIME ZONE 'UTC'",
        "a COLLATE \"C\"",
        "CEIL(a) + FLOOR(b)",
        "INTERVAL '1 day'",
        "INTERVAL '1' DAY",
        "INTERVAL '1 2' DAY TO HOUR",
        "INTERVAL(2) '1.234'",
        "INTERVAL '1' SECOND(2)",
        "DATE '2024-01-01' + 1",
        "TIMESTAMP '2024-01-01 00:00:00'",
        "TIMESTAMP WITH TIME ZONE '2024-01-01 00:00:00+00'",
        "TIME '10:00'",
        "'it''s'",
        "''''",
        "''''''",
        "E'a\\'b\\n\\\\'",
        "E'\\t\\x41'",
        "'a\\b'",
        "'a\\''b'",
        "U&'d\\0061t\\+000061'",
        "$$a'b--$$",
        "$x$a$$b$x$",
        "N'abc'",
        "X'1F'",
        "B'101'",
        "'a'\n'b'",
        "(a, b) < (1, 2) AND ROW(a, b) = (SELECT 1, 2)",
        "a BETWEEN SYMMETRIC 1 AND 2 AND NOT b NOT BETWEEN SYMMETRIC c + 1 AND d OR e",
        "1.5e10 + .5 + 5.",
        "1_000",
        "\"A b\" || \"c\"\"\"",
        "t.a + s.t.a + \"T\".\"B\"",
        "count(*) FILTER (WHERE a > - -1)",
        "count(DISTINCT a)",
        "string_agg(a, ',' ORDER BY b DESC NULLS LAST)",
        "sum(a) OVER (PARTITION BY b ORDER BY c DESC ROWS BETWEEN UNBOUNDED PRECEDING AND 1 FOLLOWING)",
        "rank() OVER w",
        "percentile_cont(0.5) WITHIN GROUP (ORDER BY a)",
        "coalesce(a, - -b, NULL)",
        "make_interval(days => 1)",
        "greatest(a, b) || least(c, d)",
        "current_date + current_timestamp",
        "localtimestamp",
        "a % b # c & d | e << 1 >> 2",
        "a ^ b ^ c",
        "(a).b",
        "ROW(1, 2) = ROW(3, 4)",
        "(1, 2) = (3, 4)",
        "(SELECT 1)",
        "ARRAY[1, 2]",
        "a[1]",
        "a -> 'b' ->> 'c'",
        "a <-> b",
        "TRUE AND FALSE OR NULL",
        "nextval('a')",
        "nextval('\"A b\"'::regclass)",
    ];
}
