//! Makers, revisions, and what ends by itself.

use std::time::Duration;

use super::*;
use crate::clock::Timestamp;
use crate::refusal::Code;

fn switches() -> (Switches, Clock) {
    let clock = Clock::manual(Timestamp(1_000_000_000));
    (Switches::new(clock.clone()), clock)
}

fn to(state: SwitchState) -> Switch {
    Switch { state, reason: String::new(), since: 0, until: None }
}

fn until(state: SwitchState, until: u64) -> Switch {
    Switch { until: Some(until), ..to(state) }
}

#[test]
fn nothing_is_permitted_until_the_switches_are_known() {
    let (switches, _) = switches();
    let route = switches.of("a");
    assert_eq!(route.permits_paying().unwrap_err().code, Code::StoreUnavailable);
    switches.are_known();
    assert!(route.permits_paying().is_ok());
}

#[test]
fn the_higher_revision_is_in_force_in_whatever_order_they_are_heard() {
    let (switches, _) = switches();
    let route = switches.of("a");
    switches.heard("a", to(SwitchState::Off), 6);
    switches.heard("a", to(SwitchState::On), 5);
    assert_eq!(route.state(), SwitchState::Off);
    switches.heard("a", to(SwitchState::On), 7);
    assert_eq!(route.state(), SwitchState::On);
    switches.set("a", ADMIN, to(SwitchState::Off));
    switches.heard("a", to(SwitchState::On), 6);
    assert_eq!(route.state(), SwitchState::Off, "turned off here without the store, and nothing newer is known");
    switches.heard("a", to(SwitchState::Cached), 8);
    assert_eq!(route.state(), SwitchState::Cached);
}

#[test]
fn revisions_are_of_one_maker() {
    let (switches, _) = switches();
    let route = switches.of("a");
    switches.heard("a", to(SwitchState::Off), 9);
    switches.heard("a#budget", to(SwitchState::Cached), 3);
    switches.heard("a", to(SwitchState::On), 10);
    assert_eq!(route.state(), SwitchState::Cached);
    switches.heard("a#budget", to(SwitchState::On), 4);
    assert_eq!(route.state(), SwitchState::On);
}

#[test]
fn the_strictest_stop_counts_and_each_maker_ends_its_own() {
    let (switches, _) = switches();
    let route = switches.of("a");
    switches.set("a", ADMIN, to(SwitchState::Cached));
    switches.set("a", "google-budget", to(SwitchState::Off));
    assert_eq!((route.state(), switches.of("b").state()), (SwitchState::Off, SwitchState::On));
    switches.set("a", ADMIN, to(SwitchState::On));
    assert_eq!(route.state(), SwitchState::Off);
    switches.set("all", BUDGET, to(SwitchState::Cached));
    switches.set("a", "google-budget", to(SwitchState::On));
    assert_eq!((route.state(), switches.of("b").state()), (SwitchState::Cached, SwitchState::Cached));
    let standing = switches.standing("a");
    assert_eq!(standing, [Stop { of: "all".into(), maker: BUDGET.into(), switch: to(SwitchState::Cached) }]);
    switches.set("all", BUDGET, to(SwitchState::On));
    assert_eq!(route.state(), SwitchState::On);
}

#[test]
fn a_stop_ends_when_it_says_and_shows_what_is_below_it() {
    let (switches, clock) = switches();
    let route = switches.of("a");
    switches.set("a", ADMIN, to(SwitchState::Cached));
    switches.set("a", BUDGET, until(SwitchState::Off, 1_060));
    switches.set("a", PROVIDER_BUDGET, until(SwitchState::Cached, 1_030));
    clock.advance(Duration::from_secs(59));
    assert_eq!((route.state(), switches.standing("a").len()), (SwitchState::Off, 2));
    clock.advance(Duration::from_secs(1));
    assert_eq!((route.state(), switches.standing("a").len()), (SwitchState::Cached, 1));
    clock.advance(Duration::from_secs(1_000_000));
    assert_eq!(route.state(), SwitchState::Cached, "an admin's stop ends by an admin alone");
}

#[test]
fn what_an_admin_has_ended_stays_ended_for_its_period() {
    let (switches, _) = switches();
    let route = switches.of("a");
    assert!(switches.set_longer("a", BUDGET, until(SwitchState::Off, 1_060)));
    assert!(!switches.set_longer("a", BUDGET, until(SwitchState::Off, 1_060)), "it is known");
    switches.set("a", BUDGET, until(SwitchState::On, 1_060));
    assert!(!switches.set_longer("a", BUDGET, until(SwitchState::Off, 1_060)));
    assert_eq!(route.state(), SwitchState::On);
    assert!(switches.set_longer("a", BUDGET, until(SwitchState::Off, 2_000)), "another period");
    assert_eq!(route.state(), SwitchState::Off);
}

#[test]
fn the_end_of_time_is_no_end() {
    let (switches, clock) = switches();
    switches.set("a", BUDGET, until(SwitchState::Off, u64::MAX));
    clock.advance(Duration::from_secs(1 << 40));
    assert_eq!(switches.of("a").state(), SwitchState::Off);
}
