//! Random statements on tables `t`, `u` and `v` of the columns `id`, `a`, `b`, `c` and `d`, all numbers but `c`: queries with joins, groups, subqueries and set operations, and changes of rows.
//!
//! Numbers are small, nothing is divided but by constants, NULLs are ordered explicitly: so that other databases mean the same by them.

#![allow(dead_code, unreachable_pub, reason = "each test uses some of it")]

use std::fmt::Write;

/// xorshift64*
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    pub fn below(&mut self, end: u64) -> u64 {
        (self.next() >> 11) % end
    }

    pub fn one<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[usize::try_from(self.below(of.len() as u64)).unwrap()]
    }

    pub fn percent(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }
}

const COLUMNS: [&str; 3] = ["a", "b", "d"];

/// Relations whose columns can be named.
#[derive(Clone)]
pub struct Names(pub Vec<String>);

pub struct Maker<'r> {
    pub random: &'r mut Random,
    pub aliases: u32,
    /// The table that a statement changes: subqueries do not read it, as those of SQLite see rows that it has changed already.
    pub changed: &'static str,
    /// So often were keys changed.
    pub keys: u32,
}

impl Maker<'_> {
    fn number_column(&mut self, names: &Names) -> String {
        let at = usize::try_from(self.random.below(names.0.len() as u64)).unwrap();
        format!("{}.{}", names.0[at], self.random.one(&COLUMNS))
    }

    fn text_column(&mut self, names: &Names) -> String {
        let at = usize::try_from(self.random.below(names.0.len() as u64)).unwrap();
        format!("{}.c", names.0[at])
    }

    fn number(&mut self, names: &Names, depth: u32) -> String {
        match self.random.below(if depth == 0 { 3 } else { 10 }) {
            0 => (self.random.below(12)).to_string(),
            1 | 2 => self.number_column(names),
            3 => format!("({} + {})", self.number(names, depth - 1), self.number(names, depth - 1)),
            4 => format!("({} - {})", self.number(names, depth - 1), self.number(names, depth - 1)),
            5 => format!("({} * {})", self.number(names, depth - 1), self.random.below(4)),
            6 => format!("({} / {})", self.number(names, depth - 1), self.random.below(4) + 1),
            7 => format!("coalesce({}, {})", self.number(names, depth - 1), self.number(names, depth - 1)),
            8 => format!(
                "CASE WHEN {} THEN {} ELSE {} END",
                self.condition(names, depth - 1),
                self.number(names, depth - 1),
                self.number(names, depth - 1)
            ),
            _ => format!("length({})", self.text_column(names)),
        }
    }

    fn condition(&mut self, names: &Names, depth: u32) -> String {
        let sign = self.random.one(&["=", "<>", "<", "<=", ">", ">="]);
        match self.random.below(if depth == 0 { 6 } else { 13 }) {
            0 | 1 => format!("{} {sign} {}", self.number_column(names), self.random.below(12)),
            2 => format!("{} {sign} {}", self.number(names, depth.min(1)), self.number(names, depth.min(1))),
            3 => format!("{} {} NULL", self.number_column(names), self.random.one(&["IS", "IS NOT"])),
            4 => format!("{} {sign} '{}'", self.text_column(names), self.random.one(&["x", "xy", "y1", "", "z"])),
            5 => format!("{} BETWEEN {} AND {}", self.number_column(names), self.random.below(6), self.random.below(12)),
            6 => format!("({} AND {})", self.condition(names, depth - 1), self.condition(names, depth - 1)),
            7 => format!("({} OR {})", self.condition(names, depth - 1), self.condition(names, depth - 1)),
            8 => format!("NOT ({})", self.condition(names, depth - 1)),
            9 => {
                let not = if self.random.percent(30) { "NOT " } else { "" };
                let values: Vec<String> = (0..=self.random.below(4)).map(|_| self.random.below(12).to_string()).collect();
                let null = if self.random.percent(10) { ", NULL" } else { "" };
                format!("{} {not}IN ({}{null})", self.number_column(names), values.join(", "))
            }
            10 => {
                let not = if self.random.percent(30) { "NOT " } else { "" };
                format!("{} {not}LIKE '{}'", self.text_column(names), self.random.one(&["x%", "%1", "_y%", "%", "x", "%z%"]))
            }
            11 => {
                let not = if self.random.percent(40) { "NOT " } else { "" };
                let (table, alias) = self.table();
                let mut within = names.clone();
                within.0.push(alias.clone());
                let own = Names(vec![alias.clone()]);
                let condition = if self.random.percent(60) { self.condition(&within, depth - 1) } else { self.condition(&own, depth - 1) };
                match self.random.below(3) {
                    0 => format!("{not}EXISTS (SELECT 1 FROM {table} {alias} WHERE {condition})"),
                    _ => format!(
                        "{} {not}IN (SELECT {} FROM {table} {alias} WHERE {condition})",
                        self.number_column(names),
                        self.number_column(&own)
                    ),
                }
            }
            _ => {
                let (table, alias) = self.table();
                let mut within = names.clone();
                within.0.push(alias.clone());
                let own = Names(vec![alias.clone()]);
                let condition = self.condition(&within, 0);
                let aggregate = self.random.one(&["min", "max", "sum", "count"]);
                format!(
                    "{} {sign} (SELECT {aggregate}({}) FROM {table} {alias} WHERE {condition})",
                    self.number_column(names),
                    self.number_column(&own)
                )
            }
        }
    }

    fn table(&mut self) -> (&'static str, String) {
        self.aliases += 1;
        let tables: Vec<&'static str> = ["t", "u", "v"].into_iter().filter(|table| *table != self.changed).collect();
        let at = usize::try_from(self.random.below(tables.len() as u64)).unwrap();
        (tables[at], format!("r{}", self.aliases))
    }

    /// A table, or a query in its place with the same columns but `id`.
    fn relation(&mut self) -> (String, String) {
        let (table, own) = self.table();
        if !self.random.percent(30) {
            return (table.to_owned(), own);
        }
        let names = Names(vec![own.clone()]);
        let (condition, number) = (self.condition(&names, 2), self.number(&names, 1));
        let rows = format!("FROM {table} {own} WHERE {condition}");
        let query = match self.random.below(7) {
            0 => format!("SELECT {number} AS a, b, c, d {rows}"),
            1 => format!("SELECT DISTINCT a, b, c, {number} AS d {rows}"),
            2 => format!("SELECT a, min(b) AS b, c, count(*) AS d {rows} GROUP BY a, c"),
            3 => format!("SELECT max(a) AS a, 3 AS b, min(c) AS c, count(*) AS d {rows}"),
            4 => {
                let (other, _) = self.table();
                let operation = self.random.one(&["UNION", "UNION ALL", "EXCEPT", "INTERSECT"]);
                format!("SELECT a, b, c, d {rows} {operation} SELECT d, b, c, a FROM {other} WHERE b < 8")
            }
            5 => {
                let (other, alias) = self.table();
                let with = Names(vec![own.clone(), alias.clone()]);
                let behind = self.condition(&with, 1);
                format!(
                    "SELECT {own}.a, {alias}.b, {alias}.c, {own}.d FROM {table} {own} LEFT JOIN {other} {alias} ON {own}.a = {alias}.b AND {condition} WHERE {behind}"
                )
            }
            _ => format!("SELECT a, b, c, d {rows} ORDER BY id LIMIT {}", self.random.below(20)),
        };
        (format!("({query})"), format!("q{own}"))
    }

    fn from(&mut self) -> (String, Names) {
        let (table, alias) = self.relation();
        let (mut text, mut names) = (format!("{table} {alias}"), Names(vec![alias]));
        for _ in 0..self.random.below(3) {
            let (table, alias) = self.relation();
            let mut with = names.clone();
            with.0.push(alias.clone());
            let equal = format!("{} = {alias}.{}", self.number_column(&names), self.random.one(&COLUMNS));
            let on = if self.random.percent(40) { format!("{equal} AND {}", self.condition(&with, 1)) } else { equal };
            match self.random.below(4) {
                0 => write!(text, " LEFT JOIN {table} {alias} ON {on}").unwrap(),
                1 => write!(text, " JOIN {table} {alias} ON {}", self.condition(&with, 1)).unwrap(),
                _ => write!(text, " JOIN {table} {alias} ON {on}").unwrap(),
            }
            names = with;
        }
        (text, names)
    }

    fn query(&mut self, columns: u64) -> String {
        let (from, names) = self.from();
        let filter = if self.random.percent(70) { format!(" WHERE {}", self.condition(&names, 2)) } else { String::new() };
        if self.random.percent(30) {
            let keys: Vec<String> = (1..columns).map(|_| self.number_column(&names)).collect();
            let aggregates = ["count(*)", "sum(A)", "min(A)", "max(A)", "count(A)", "count(DISTINCT A)", "sum(DISTINCT A)"];
            let aggregate = self.random.one(&aggregates).replace('A', &self.number(&names, 1));
            let mut list = keys.clone();
            list.push(aggregate.clone());
            let group = if keys.is_empty() { String::new() } else { format!(" GROUP BY {}", keys.join(", ")) };
            let having = if self.random.percent(30) && !keys.is_empty() {
                format!(" HAVING {aggregate} > {}", self.random.below(5))
            } else {
                String::new()
            };
            return format!("SELECT {} FROM {from}{filter}{group}{having}", list.join(", "));
        }
        let distinct = if self.random.percent(20) { "DISTINCT " } else { "" };
        let list: Vec<String> = (0..columns).map(|_| self.number(&names, 2)).collect();
        format!("SELECT {distinct}{} FROM {from}{filter}", list.join(", "))
    }

    pub fn whole_query(&mut self) -> (String, bool) {
        let columns = self.random.below(3) + 1;
        let mut query = self.query(columns);
        if self.random.percent(15) {
            let operation = self.random.one(&["UNION", "UNION ALL", "EXCEPT", "INTERSECT"]);
            let other = self.query(columns);
            query = format!("{query} {operation} {other}");
        }
        if self.random.percent(40) {
            let order: Vec<String> = (1..=columns)
                .map(
                    |column| {
                        if self.random.percent(50) { format!("{column} ASC NULLS LAST") } else { format!("{column} DESC NULLS FIRST") }
                    },
                )
                .collect();
            write!(query, " ORDER BY {}", order.join(", ")).unwrap();
            if self.random.percent(50) {
                write!(query, " LIMIT {}", self.random.below(10)).unwrap();
                if self.random.percent(40) {
                    write!(query, " OFFSET {}", self.random.below(5)).unwrap();
                }
            }
            return (query, true);
        }
        (query, false)
    }

    pub fn change(&mut self) -> String {
        let (table, _) = self.table();
        self.changed = table;
        let names = Names(vec![table.to_owned()]);
        if self.random.percent(10) && self.keys < 13 {
            // Keys that no row has had, however often it was changed: rows of a table that is divided go to other parts.
            self.keys += 1;
            return format!("UPDATE {table} SET id = id + {} WHERE {}", 100_000 << self.keys, self.condition(&names, 2));
        }
        match self.random.below(4) {
            0 => format!("DELETE FROM {table} WHERE {} AND {}", self.condition(&names, 2), self.condition(&names, 1)),
            1 | 2 => {
                // `id` stays, as it tells rows apart.
                let assignments: Vec<String> = COLUMNS.iter().filter(|_| self.random.percent(50)).map(|c| (*c).to_owned()).collect();
                let assignments: Vec<String> =
                    assignments.into_iter().map(|column| format!("{column} = ({}) % 50", self.number(&names, 2))).collect();
                if assignments.is_empty() {
                    return format!("UPDATE {table} SET c = c || 'q' WHERE {}", self.condition(&names, 2));
                }
                format!("UPDATE {table} SET {} WHERE {}", assignments.join(", "), self.condition(&names, 2))
            }
            _ => {
                let source = self.random.one(&["t", "u", "v"]);
                let own = Names(vec!["s".into()]);
                let (number, condition) = (self.number(&own, 1), self.condition(&own, 1));
                format!(
                    "INSERT INTO {table} (id, a, b, c, d) SELECT s.id + (SELECT coalesce(max(id), 0) FROM {table}), ({number}) % 50, s.b, s.c, s.d FROM {source} s WHERE {condition} AND s.id <= 20"
                )
            }
        }
    }
}
