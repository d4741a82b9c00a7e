//! Several instances on one Redis: one paid call per question, one allowance per caller, one word for all.

mod coalescing;
mod leases;
mod limits;
mod news;
mod trouble;
