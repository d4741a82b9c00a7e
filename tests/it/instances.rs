//! Several instances on one Redis: one paid call per question, one allowance per caller, one word for all.

mod coalescing;
mod costs;
mod leases;
mod limits;
mod money;
mod news;
mod trouble;
mod unheard;
