//! Every interleaving of every pair of some short transactions, at each level.
//!
//! * `programs`: the transactions, and their orders
//! * `stepper`: runs two of them step by step on threads of their own; one that waits is passed over until it goes on
//! * `model`: what snapshots of a statement or of a transaction give, exactly
//! * `runs`: at READ COMMITTED and REPEATABLE READ the results are the model's; at SERIALIZABLE they are those of one after the other

mod model;
mod programs;
mod runs;
mod stepper;
