//! Aggregates of two variables: correlation, covariance, and the line of least squares, `y` by `x`, as PostgreSQL computes them.
//!
//! The two values of a row come as one, 16 bytes, so that they are filtered, put out of several, and taken in as any other value is. A row in which one is NULL does not count.
//!
//! Sums of squares and products are those of differences from the mean, as Youngs and Cramer keep them: as exact as sums are.

use super::datum::Datum;
use super::function::pair;
use super::{Expr, aggregate::AggregateKind};
use crate::{SqlError, SqlResult};
use pagefold_types::{DataType, Value};

/// What is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Regression {
    Correlation,
    CovariancePopulation,
    CovarianceSample,
    MeanX,
    MeanY,
    Count,
    Intercept,
    Determination,
    Slope,
    SquaresX,
    Products,
    SquaresY,
}

impl Regression {
    /// By the name of the aggregate.
    pub(super) fn named(name: &str) -> Option<Regression> {
        Some(match name {
            "corr" => Regression::Correlation,
            "covar_pop" => Regression::CovariancePopulation,
            "covar_samp" => Regression::CovarianceSample,
            "regr_avgx" => Regression::MeanX,
            "regr_avgy" => Regression::MeanY,
            "regr_count" => Regression::Count,
            "regr_intercept" => Regression::Intercept,
            "regr_r2" => Regression::Determination,
            "regr_slope" => Regression::Slope,
            "regr_sxx" => Regression::SquaresX,
            "regr_sxy" => Regression::Products,
            "regr_syy" => Regression::SquaresY,
            _ => return None,
        })
    }

    pub(super) fn data_type(self) -> DataType {
        if self == Regression::Count { DataType::BigInt } else { DataType::Double }
    }

    /// The kind, and the argument that has both values, which are doubles.
    pub(super) fn of(self, y: Expr, x: Expr) -> (AggregateKind, Expr) {
        (AggregateKind::Regression(self), pair(y, x))
    }
}

/// Two values as one.
pub(super) fn packed<'a>(y: f64, x: f64) -> Datum<'a> {
    // Both zeros are one value, for DISTINCT.
    let bytes = [(y + 0.0).to_le_bytes(), (x + 0.0).to_le_bytes()].concat();
    Datum::Own(Value::Bytes(bytes))
}

/// What has been taken in.
#[derive(Debug, Default)]
pub(super) struct Pairs {
    count: i64,
    sum_x: f64,
    sum_y: f64,
    squares_x: f64,
    squares_y: f64,
    products: f64,
}

impl Pairs {
    /// Takes two values in that were made one.
    pub(super) fn add(&mut self, pair: &[u8]) -> SqlResult<()> {
        let halves = pair.split_at_checked(8).and_then(|(y, x)| Some((y.try_into().ok()?, x.try_into().ok()?)));
        let Some((y, x)) = halves else { return Err(SqlError::new("XX000", "a pair of numbers that is none")) };
        let (y, x) = (f64::from_le_bytes(y), f64::from_le_bytes(x));
        self.count += 1;
        self.sum_x += x;
        self.sum_y += y;
        if self.count > 1 {
            let count = self.count as f64;
            let (from_x, from_y) = (x * count - self.sum_x, y * count - self.sum_y);
            let scale = 1.0 / (count * (count - 1.0));
            self.squares_x += from_x * from_x * scale;
            self.squares_y += from_y * from_y * scale;
            self.products += from_x * from_y * scale;
            return Ok(());
        }
        // Nothing is known of how far others are from one that is not finite.
        if !x.is_finite() {
            (self.squares_x, self.products) = (f64::NAN, f64::NAN);
        }
        if !y.is_finite() {
            (self.squares_y, self.products) = (f64::NAN, f64::NAN);
        }
        Ok(())
    }

    pub(super) fn value(&self, of: Regression) -> Value {
        if of == Regression::Count {
            return Value::Int(self.count);
        }
        let (count, flat_x, flat_y) = (self.count as f64, self.squares_x == 0.0, self.squares_y == 0.0);
        let slope = || self.products / self.squares_x;
        let value = match of {
            _ if self.count == 0 => None,
            Regression::Correlation => (!flat_x && !flat_y).then(|| self.products / (self.squares_x * self.squares_y).sqrt()),
            Regression::CovariancePopulation => Some(self.products / count),
            Regression::CovarianceSample => (self.count > 1).then(|| self.products / (count - 1.0)),
            Regression::MeanX => Some(self.sum_x / count),
            Regression::MeanY => Some(self.sum_y / count),
            Regression::Intercept => (!flat_x).then(|| (self.sum_y - self.sum_x * slope()) / count),
            // A line without a slope says all of values that are the same.
            Regression::Determination if flat_y => (!flat_x).then_some(1.0),
            Regression::Determination => (!flat_x).then(|| (self.products * self.products) / (self.squares_x * self.squares_y)),
            Regression::Slope => (!flat_x).then(slope),
            Regression::SquaresX => Some(self.squares_x),
            Regression::Products => Some(self.products),
            Regression::SquaresY => Some(self.squares_y),
            Regression::Count => None,
        };
        value.map_or(Value::Null, Value::Double)
    }
}
