//! GROUP BY: keys, and sets of keys of ROLLUP, CUBE and GROUPING SETS.
//!
//! All keys of all sets are keys of the groups. In a group of a set that lacks a key it is NULL; GROUPING tells such a NULL from others.

use super::aggregates::{AGGREGATES, Keys, Noted, Place};
use super::select::output_place;
use super::{Binder, Output, WINDOWS};
use crate::expression::{Expr, Typed};
use crate::parse::At;
use crate::{SqlError, SqlResult};
use pagefold_types::{DataType, Value};
use sqlparser::ast::{self, FunctionArg, FunctionArgExpr, FunctionArguments, GroupByExpr, Spanned};

/// Number of the relation of a query's calls of GROUPING.
pub(crate) const GROUPINGS: usize = usize::MAX - 3;
/// Sets of one GROUP BY.
const SETS_MAX: usize = 4096;
/// Elements of one CUBE.
const CUBE_MAX: usize = 12;
/// Arguments of GROUPING: each is a bit of an INTEGER.
const GROUPING_MAX: usize = 31;

/// Groups of a query.
#[derive(Debug)]
pub(crate) struct Groups {
    pub(crate) keys: Vec<Expr>,
    /// None: one, of all keys.
    pub(crate) sets: Vec<GroupingSet>,
    pub(crate) aggregates: Vec<Noted>,
    pub(crate) having: Vec<Expr>,
}

/// One set of keys.
#[derive(Debug)]
pub(crate) struct GroupingSet {
    /// By number of the key: is it in the set?
    pub(crate) members: Vec<bool>,
    /// Values of the calls of GROUPING.
    pub(crate) calls: Vec<Value>,
}

/// What stands in GROUP BY.
#[derive(Debug, Default)]
pub(crate) struct Grouping {
    pub(crate) keys: Vec<(Expr, DataType)>,
    /// Places in the SELECT list that keys name, with the numbers of these.
    pub(crate) places: Vec<(usize, usize)>,
    /// Sets of keys, by number. There is one at least, if there is a GROUP BY.
    pub(crate) sets: Vec<Vec<usize>>,
}

impl Binder<'_> {
    pub(super) fn group_keys(&mut self, group_by: &GroupByExpr, outputs: &[Output], projection: &[Expr]) -> SqlResult<Option<Grouping>> {
        let exprs = match group_by {
            GroupByExpr::Expressions(exprs, modifiers) if modifiers.is_empty() => exprs,
            GroupByExpr::Expressions(..) => {
                return Err(SqlError::unsupported("WITH ROLLUP, CUBE and TOTALS").with_hint("Write GROUP BY ROLLUP (...)."));
            }
            GroupByExpr::All(_) => return Err(SqlError::unsupported("GROUP BY ALL")),
        };
        if exprs.is_empty() {
            return Ok(None);
        }
        let mut grouping = Grouping::default();
        // What stands once in GROUP BY is bound once, in however many sets it is.
        let mut bound: Vec<(&ast::Expr, usize)> = Vec::new();
        for set in all_sets(exprs)? {
            let mut own = Vec::with_capacity(set.len());
            for expr in set {
                if let Some((_, at)) = bound.iter().find(|(known, _)| std::ptr::eq(*known, expr)) {
                    own.push(*at);
                    continue;
                }
                let (key, place) = self.group_key(expr, outputs, projection)?;
                // Constants that are the same may come of expressions that are not.
                let is_constant = matches!(key.0, Expr::Literal(_));
                let known = grouping.keys.iter().position(|(known, _)| !is_constant && *known == key.0);
                let at = known.unwrap_or_else(|| {
                    grouping.keys.push(key);
                    grouping.keys.len() - 1
                });
                grouping.places.extend(place.map(|place| (place, at)));
                bound.push((expr, at));
                own.push(at);
            }
            grouping.sets.push(own);
        }
        Ok(Some(grouping))
    }

    /// A key, and the place in the SELECT list that it names.
    fn group_key(&mut self, expr: &ast::Expr, outputs: &[Output], projection: &[Expr]) -> SqlResult<((Expr, DataType), Option<usize>)> {
        let place = match expr {
            // A column goes before what comes out by its name.
            ast::Expr::Identifier(name) => match self.without_aggregates("GROUP BY", |binder| binder.find_column(None, name)) {
                Ok(typed) => Err(typed),
                Err(error) => Ok(output_place(expr, outputs)?.ok_or(error)?),
            },
            ast::Expr::Value(_) => match output_place(expr, outputs)? {
                Some(place) => Ok(place),
                None => return Err(SqlError::syntax("non-integer constant in GROUP BY").at_span(expr.span())),
            },
            _ => Err(self.without_aggregates("GROUP BY", |binder| binder.expression(expr))?),
        };
        Ok(match place {
            Ok(place) => {
                let key = projection[place].clone();
                if key.any(|part| matches!(part, Expr::Column { relation: AGGREGATES | GROUPINGS, .. })) {
                    return Err(SqlError::new("42803", "aggregate functions are not allowed in GROUP BY").at_span(expr.span()));
                }
                if key.any(|part| matches!(part, Expr::Column { relation: WINDOWS, .. })) {
                    return Err(SqlError::new("42P20", "window functions are not allowed in GROUP BY").at_span(expr.span()));
                }
                ((key, outputs[place].data_type), Some(place))
            }
            Err(typed) => (self.settled(typed)?, None),
        })
    }

    /// GROUPING: which of these keys a group has none of, the last as the lowest bit.
    pub(super) fn grouping(&mut self, arguments: &[FunctionArg]) -> SqlResult<Typed> {
        if let Place::In(place) = self.scope().aggregates {
            return Err(SqlError::new("42803", format!("grouping operations are not allowed in {place}")));
        }
        if arguments.is_empty() || arguments.len() > GROUPING_MAX {
            return Err(SqlError::new("54023", format!("GROUPING must have 1 to {GROUPING_MAX} arguments")));
        }
        let mut keys = Vec::with_capacity(arguments.len());
        for argument in arguments {
            let FunctionArg::Unnamed(FunctionArgExpr::Expr(argument)) = argument else {
                return Err(SqlError::syntax(format!("GROUPING({argument})")));
            };
            let typed = self.without_aggregates("the arguments of GROUPING", |binder| binder.expression(argument))?;
            keys.push(self.settled(typed)?.0);
        }
        let calls = &mut self.scope().groupings;
        let column = calls.iter().position(|call| *call == keys).unwrap_or_else(|| {
            calls.push(keys);
            calls.len() - 1
        });
        Ok(Typed::of(Expr::Column { relation: GROUPINGS, column }, DataType::Integer))
    }
}

/// The sets of keys, with what calls of GROUPING are in them; none where groups are those of all keys, and nobody asks.
pub(super) fn grouping_sets(sets: Vec<Vec<usize>>, keys: &Keys, calls: Vec<Vec<Expr>>) -> SqlResult<Vec<GroupingSet>> {
    if sets.len() < 2 && calls.is_empty() {
        return Ok(Vec::new());
    }
    let place = |argument: &Expr| {
        let error = || SqlError::new("42803", "arguments to GROUPING must be grouping expressions of the associated query level");
        keys.keys.iter().position(|(key, _)| key == argument).ok_or_else(error)
    };
    let calls: Vec<Vec<usize>> = calls.iter().map(|call| call.iter().map(place).collect()).collect::<SqlResult<_>>()?;
    let of_set = |set: Vec<usize>| {
        let members: Vec<bool> = (0..keys.keys.len()).map(|key| set.contains(&key) || key >= keys.written).collect();
        let bits = |call: &Vec<usize>| Value::Int(call.iter().fold(0, |bits, key| bits << 1 | i64::from(!members[*key])));
        GroupingSet { calls: calls.iter().map(bits).collect(), members }
    };
    Ok(sets.into_iter().map(of_set).collect())
}

type Set<'e> = Vec<&'e ast::Expr>;

/// All sets: each of one item with each of the others.
fn all_sets(items: &[ast::Expr]) -> SqlResult<Vec<Set<'_>>> {
    let mut all: Vec<Set<'_>> = vec![Vec::new()];
    for item in items {
        let own = sets_of(item)?;
        if all.len() * own.len() > SETS_MAX {
            return Err(too_many());
        }
        all = all.iter().flat_map(|before| own.iter().map(move |set| [before.as_slice(), set].concat())).collect();
    }
    Ok(all)
}

fn too_many() -> SqlError {
    SqlError::new("54001", format!("too many grouping sets present (maximum {SETS_MAX})"))
}

/// The sets of one item.
fn sets_of(item: &ast::Expr) -> SqlResult<Vec<Set<'_>>> {
    Ok(match item {
        ast::Expr::Tuple(exprs) => vec![exprs.iter().collect()],
        ast::Expr::GroupingSets(list) => {
            let mut all = Vec::new();
            for set in list {
                match set.as_slice() {
                    [one] => all.extend(sets_of(one)?),
                    exprs => all.push(exprs.iter().collect()),
                }
                if all.len() > SETS_MAX {
                    return Err(too_many());
                }
            }
            all
        }
        // They are read as calls.
        ast::Expr::Function(call) => match called(call) {
            Some((name, groups)) if name == "rollup" => rollup(groups),
            Some((name, groups)) if name == "cube" => cube(groups)?,
            _ => vec![vec![item]],
        },
        _ => vec![vec![item]],
    })
}

/// ROLLUP or CUBE, which are read as calls.
fn called(call: &ast::Function) -> Option<(String, Vec<Set<'_>>)> {
    let name = call.name.to_string().to_lowercase();
    let FunctionArguments::List(list) = &call.args else { return None };
    if name != "rollup" && name != "cube" {
        return None;
    }
    fn group(argument: &FunctionArg) -> Option<Set<'_>> {
        match argument {
            FunctionArg::Unnamed(FunctionArgExpr::Expr(ast::Expr::Tuple(exprs))) => Some(exprs.iter().collect()),
            FunctionArg::Unnamed(FunctionArgExpr::Expr(ast::Expr::Nested(expr))) => Some(vec![&**expr]),
            FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => Some(vec![expr]),
            _ => None,
        }
    }
    Some((name, list.args.iter().map(group).collect::<Option<_>>()?))
}

/// All, all but the last, and so on to none.
fn rollup(groups: Vec<Set<'_>>) -> Vec<Set<'_>> {
    (0..=groups.len()).rev().map(|count| groups[..count].concat()).collect()
}

/// Each subset, those with the first group before those without it.
fn cube(groups: Vec<Set<'_>>) -> SqlResult<Vec<Set<'_>>> {
    if groups.len() > CUBE_MAX {
        return Err(SqlError::new("54011", format!("CUBE is limited to {CUBE_MAX} elements")));
    }
    let subset = |number: usize| {
        let is_in = |at: &usize| number >> (groups.len() - 1 - at) & 1 == 1;
        (0..groups.len()).filter(is_in).flat_map(|at| groups[at].iter().copied()).collect()
    };
    Ok((0..1 << groups.len()).rev().map(subset).collect())
}
