//! Trigonometric and hyperbolic functions, of radians and of degrees.
//!
//! Those of degrees give what can be written where it can be (`sind(30)` is 0.5): an angle is brought into the first 90 degrees, of which 30, 45 and 60 are looked up, as PostgreSQL does it.

use super::{Function, double};
use crate::expression::datum::Datum;
use crate::{SqlError, SqlResult};
use pagefold_types::ValueRef;

type Args<'x, 'a> = &'x mut [Datum<'a>];

fn from_double<'a>(value: f64) -> SqlResult<Datum<'a>> {
    Ok(Datum::Ref(ValueRef::Double(value)))
}

fn out_of_range() -> SqlError {
    SqlError::new("22003", "input is out of range")
}

/// Angles are finite.
fn finite(value: f64) -> SqlResult<f64> {
    if value.is_infinite() { Err(out_of_range()) } else { Ok(value) }
}

fn any(value: f64) -> SqlResult<f64> {
    Ok(value)
}

/// Sines and cosines are at most 1.
fn within_one(value: f64) -> SqlResult<f64> {
    if value.abs() > 1.0 { Err(out_of_range()) } else { Ok(value) }
}

/// A function of one argument, which is checked first.
macro_rules! of_one {
    ($($(#[$doc:meta])* $name:ident: $check:path => $apply:expr;)*) => {
        $($(#[$doc])* pub(super) fn $name<'a>(_: &Function, arguments: Args<'_, 'a>) -> SqlResult<Datum<'a>> {
            from_double($apply($check(double(arguments, 0))?))
        })*
    };
}

of_one! {
    sin: finite => f64::sin;
    cos: finite => f64::cos;
    tan: finite => f64::tan;
    cot: finite => |x: f64| 1.0 / x.tan();
    asin: within_one => f64::asin;
    acos: within_one => f64::acos;
    atan: any => f64::atan;
    sinh: any => f64::sinh;
    cosh: any => f64::cosh;
    tanh: any => f64::tanh;
    asinh: any => f64::asinh;
    acosh: at_least_one => f64::acosh;
    atanh: within_one => f64::atanh;
    sind: finite => sine;
    cosd: finite => cosine;
    tand: finite => |x| sine(x) / cosine(x);
    cotd: finite => |x| cosine(x) / sine(x);
    asind: within_one => |x: f64| arc(x, f64::asin, &[(0.0, 0.0), (0.5, 30.0), (1.0, 90.0), (-0.5, -30.0), (-1.0, -90.0)]);
    acosd: within_one => |x: f64| arc(x, f64::acos, &[(1.0, 0.0), (0.5, 60.0), (0.0, 90.0), (-0.5, 120.0), (-1.0, 180.0)]);
    atand: any => |x: f64| arc(x, f64::atan, &[(0.0, 0.0), (1.0, 45.0), (-1.0, -45.0), (f64::INFINITY, 90.0), (f64::NEG_INFINITY, -90.0)]);
}

/// Hyperbolic cosines are at least 1.
fn at_least_one(value: f64) -> SqlResult<f64> {
    if value < 1.0 { Err(out_of_range()) } else { Ok(value) }
}

pub(super) fn atan2<'a>(_: &Function, arguments: Args<'_, 'a>) -> SqlResult<Datum<'a>> {
    from_double(double(arguments, 0).atan2(double(arguments, 1)))
}

pub(super) fn atan2d<'a>(_: &Function, arguments: Args<'_, 'a>) -> SqlResult<Datum<'a>> {
    let (y, x) = (double(arguments, 0), double(arguments, 1));
    from_double(y.atan2(x).to_degrees())
}

/// The degrees of an arc, exact where they are whole.
fn arc(value: f64, of: fn(f64) -> f64, exact: &[(f64, f64)]) -> f64 {
    exact.iter().find(|(known, _)| *known == value).map_or_else(|| of(value).to_degrees(), |(_, degrees)| *degrees)
}

/// The sine of degrees from 0 to 90.
fn sine_of_first(degrees: f64) -> f64 {
    match degrees {
        30.0 => 0.5,
        90.0 => 1.0,
        degrees if degrees > 60.0 => (90.0 - degrees).to_radians().cos(),
        degrees => degrees.to_radians().sin(),
    }
}

fn sine(degrees: f64) -> f64 {
    let (sign, angle) = if degrees < 0.0 { (-1.0, -degrees) } else { (1.0, degrees) };
    let angle = angle % 360.0;
    match angle {
        angle if angle > 270.0 => -sign * sine_of_first(360.0 - angle),
        angle if angle > 180.0 => -sign * sine_of_first(angle - 180.0),
        angle if angle > 90.0 => sign * sine_of_first(180.0 - angle),
        angle => sign * sine_of_first(angle),
    }
}

fn cosine(degrees: f64) -> f64 {
    // 60 degrees of the one are 30 of the other.
    let angle = degrees.abs() % 360.0;
    match angle {
        angle if angle > 270.0 => sine_of_first(90.0 - (360.0 - angle)),
        angle if angle > 180.0 => -sine_of_first(90.0 - (angle - 180.0)),
        angle if angle > 90.0 => -sine_of_first(90.0 - (180.0 - angle)),
        angle => sine_of_first(90.0 - angle),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_angles_are_exact() {
        let sines: Vec<f64> = (0..=12).map(|n| sine(f64::from(n) * 30.0)).collect();
        assert_eq!(
            [sines[0], sines[1], sines[3], sines[5], sines[6], sines[7], sines[9], sines[11], sines[12]],
            [0.0, 0.5, 1.0, 0.5, 0.0, -0.5, -1.0, -0.5, 0.0]
        );
        assert_eq!(
            [cosine(0.0), cosine(60.0), cosine(90.0), cosine(120.0), cosine(180.0), cosine(-300.0)],
            [1.0, 0.5, 0.0, -0.5, -1.0, 0.5]
        );
        for degrees in (-720..720).map(|n| f64::from(n) * 1.25) {
            assert!((sine(degrees) - degrees.to_radians().sin()).abs() < 1e-12, "{degrees}");
            assert!((cosine(degrees) - degrees.to_radians().cos()).abs() < 1e-12, "{degrees}");
        }
    }
}
