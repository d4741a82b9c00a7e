//! What every backend must do. [`conformance!`](crate::store::conformance::conformance) makes one test of each law for one
//! backend; a new backend passes them all or is not one.

use std::any::Any;
use std::sync::Arc;

use super::lease::Leases;
use super::money::Money;
use super::write::Writes;
use super::{Coordination, Records};
use crate::clock::Clock;

pub(super) mod answers;
pub(super) mod buckets;
pub(super) mod guesses;
pub(super) mod histories;
pub(super) mod intentions;
pub(super) mod leases;
mod model;
pub(super) mod money;
pub(super) mod reports;
pub(super) mod routes;
pub(super) mod settlements;
pub(super) mod shared;
pub(super) mod unknowns;
pub(super) mod writes;

/// When the tests begin, in microseconds: late enough to look back from.
pub(super) const START: u64 = 1_800_000_000_000_000;

/// All roles at once.
pub(super) trait Store: Coordination + Records + Leases + Money + Writes {}
impl<T: Coordination + Records + Leases + Money + Writes> Store for T {}

/// An empty store, and the clock it runs on.
pub(super) struct World {
    pub store: Arc<dyn Store>,
    pub clock: Clock,
    /// What it lives in: a directory, a server.
    pub home: Box<dyn Any + Send + Sync>,
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
        $crate::store::conformance::conformance!($world, leases: [
            a_fresh_answer_is_found_and_a_stale_one_is_not,
            whoever_does_not_look_finds_nothing,
            an_answer_from_the_future_is_not_found,
            landing_keeps_the_answer_and_frees_the_lease,
            landing_never_replaces_a_later_answer,
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
            a_guess_that_meets_a_lock_is_in_flight_like_any_other,
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
        $crate::store::conformance::conformance!($world, money: [
            what_does_not_fit_every_cap_is_in_none,
            s_03_nothing_is_lost_to_fractions,
            reserving_again_reserves_once,
            a_cap_named_twice_counts_twice_or_not_at_all,
            a_lower_cap_holds_at_once,
            numbers_a_double_cannot_hold_are_refused,
            s_01_many_at_once_never_pass_a_cap,
        ]);
        $crate::store::conformance::conformance!($world, settlements: [
            an_attempt_goes_from_open_to_its_end_and_stays,
            what_is_unknown_stays_spent_until_it_is_known,
            the_real_cost_replaces_the_price,
            a_cost_above_the_price_is_recorded_in_full,
            s_02_a_late_settlement_belongs_to_where_it_was_reserved,
            what_is_settled_before_it_comes_is_refused,
            a_window_long_over_is_refused,
            many_settlements_at_once_count_once,
        ]);
        $crate::store::conformance::conformance!($world, reports: [
            the_ledger_sums_by_day_and_kind,
            days_are_taken_from_the_first_to_the_last,
            what_was_saved_is_credited_once,
            a_mark_is_first_once_until_it_lapses,
        ]);
        $crate::store::conformance::conformance!($world, writes: [
            claiming_twice_claims_once_and_another_is_told_how_long,
            another_question_is_refused_wherever_the_first_stands,
            a_claim_lapses_when_its_lease_ends,
            a_lease_is_renewed_by_its_owner,
            looking_changes_nothing,
            intentions_do_not_touch_each_other,
            many_at_once_are_one_owner,
            nothing_is_sent_when_half_of_the_lease_is_spent,
            what_was_being_sent_is_unknown_and_never_free,
            what_was_done_is_replayed_byte_for_byte_until_it_expires,
            what_had_no_effect_is_free_again,
            an_owner_may_say_that_nobody_knows,
            a_late_owner_still_says_what_came_of_it,
        ]);
        $crate::store::conformance::conformance!($world, unknowns: [
            what_is_unknown_is_sent_again_by_one_at_a_time,
            what_was_sent_too_long_ago_is_not_sent_again,
            what_was_sent_too_often_is_not_sent_again,
            a_settling_that_is_repeated_settles_once,
            who_takes_over_does_not_speak_for_the_one_before,
            who_sends_again_says_what_an_admin_is_told,
            nothing_is_settled_while_its_owner_may_be_at_it,
            only_what_is_unknown_is_settled,
            settled_as_not_sent_it_is_free_for_another_turn,
            settled_as_sent_it_is_replayed,
            what_is_unresolved_is_listed_oldest_first,
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

/// The tests for a store that instances share: `shared_conformance!(function that returns a Shared)`.
macro_rules! shared_conformance {
    ($shared:path) => {
        $crate::store::conformance::conformance!($shared, shared: [
            a_lease_is_for_one_flight_which_may_enter_twice,
            only_its_own_lease_is_renewed,
            a_lease_ends_on_time,
            f_05_a_late_leader_neither_frees_nor_overwrites,
            who_waits_gets_what_was_kept_fresh_or_not,
            who_waits_is_left_a_word_and_newcomers_are_not,
            after_nothing_exactly_one_of_those_who_wait_flies,
            who_waits_through_two_flights_hears_of_the_second,
            answers_for_one_asker_let_everyone_fly,
            what_was_purged_during_the_flight_is_not_kept,
            a_landing_is_told_when_somebody_waits_for_it,
            what_one_instance_changes_the_other_hears,
        ]);
    };
}
pub(super) use shared_conformance;
