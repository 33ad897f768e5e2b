//! The estimator: what each method and page size would give.
