//! What every backend must do. [`conformance!`](crate::store::conformance::conformance) makes one test of each law for one
//! backend; a new backend passes them all or is not one.

use std::any::Any;
use std::sync::Arc;

use super::lease::Leases;
use super::{Coordination, Records};
use crate::clock::Clock;

pub(super) mod answers;
pub(super) mod buckets;
pub(super) mod guesses;
pub(super) mod routes;

/// When the tests begin, in microseconds: late enough to look back from.
pub(super) const START: u64 = 1_800_000_000_000_000;

/// All roles at once.
pub(super) trait Store: Coordination + Records + Leases {}
impl<T: Coordination + Records + Leases> Store for T {}

/// An empty store, and the clock it runs on.
pub(super) struct World {
    pub store: Arc<dyn Store>,
    pub clock: Clock,
    /// What it lives in: a directory, a server.
    pub _home: Box<dyn Any + Send + Sync>,
}

/// Makes the tests: `conformance!(function that returns a World)`.
macro_rules! conformance {
    ($world:path) => {
        $crate::store::conformance::conformance!($world, answers: [
            an_answer_comes_back_byte_for_byte,
            an_answer_is_gone_the_moment_it_expires,
            a_later_answer_is_never_replaced_by_an_earlier_one,
            an_answer_from_the_future_does_not_stay,
            a_forgotten_answer_is_gone_alone,
        ]);
        $crate::store::conformance::conformance!($world, routes: [
            a_generation_rises_once_for_each_operation,
            generations_raised_at_once_are_all_counted,
            a_switch_stays_as_it_was_last_set,
        ]);
        $crate::store::conformance::conformance!($world, guesses: [
            x_03_parallel_guesses_stay_within_the_allowance,
            full_is_too_fast_and_only_misses_lock,
            a_guess_in_flight_expires,
            a_guess_and_its_settlement_count_once,
            attempts_during_a_lock_do_not_extend_it,
            locks_double_up_to_the_maximum_and_end_on_time,
            a_success_clears_nothing,
            several_subjects_are_admitted_together_or_not_at_all,
            an_admin_clears_one_subject,
        ]);
        $crate::store::conformance::conformance!($world, buckets: [
            l_03_a_poller_gets_what_accrues,
            l_04_refused_is_free_at_any_cost,
            l_05_waiting_as_told_passes,
            l_06_a_refusal_takes_nothing_from_the_others,
            looking_takes_nothing,
            capacity_follows_the_numbers_without_adding,
            many_at_once_never_get_more_than_there_is,
            crossing_orders_neither_deadlock_nor_overdraw,
            a_shorter_pause_never_cuts_a_longer_one,
        ]);
    };
    ($world:path, $subject:ident: [$($law:ident),* $(,)?]) => {
        $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $law() {
                $crate::store::conformance::$subject::$law($world()).await;
            }
        )*
    };
}
pub(super) use conformance;
