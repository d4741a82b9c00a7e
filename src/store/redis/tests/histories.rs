//! Any history of money, with deaths of the instance and of the server in it.

use proptest::prelude::*;

use super::super::super::conformance::histories::{any_history, play};
use super::super::money::watch::sweep;
use super::mortal::Mortal;
use super::*;

/// A server that keeps what it is told, and the instance that uses it.
struct Home {
    mortal: Mortal,
    server: Server,
}

pub fn at_home(server: Server, clock: Clock) -> World {
    let mortal = Mortal::start(Time::Caller, options(&server), &clock);
    World { store: Arc::clone(&mortal.store) as _, clock, home: Box::new(Home { mortal, server }) }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 8, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn any_history_of_money_is_counted_as_it_was(history in any_history(40)) {
        play(at_home(Server::durable(), Clock::manual(Timestamp(START))), &history, |world| Ok(killed(world)));
    }
}

/// Kills instance and server; others take their place.
pub fn reborn(world: World) -> World {
    let World { store, clock, home } = world;
    let Ok(home) = home.downcast::<Home>() else { panic!("it is at home there") };
    let Home { mortal, mut server } = *home;
    drop((mortal, store));
    server.restart();
    at_home(server, clock)
}

/// The same; they see after a while what was left open.
fn killed(world: World) -> World {
    let world = reborn(world);
    world.clock.advance(Duration::from_secs(10));
    let mortal = &world.home.downcast_ref::<Home>().unwrap().mortal;
    let store = Arc::clone(&mortal.store);
    let sweeping = mortal.run(async move {
        store.epoch.look(&store.link).await.unwrap();
        sweep(&store.link, &store.epoch, &store.instance).await
    });
    sweeping.unwrap();
    world
}
