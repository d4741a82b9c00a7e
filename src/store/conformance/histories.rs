//! Any history of money, played to a store and to the model of one: whatever was reserved, given up, settled late or twice, and
//! however the process ended, both say the same after every step, and no cap is passed.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::super::OpId;
use super::super::money::{Cap, Days, Reservation, Row, Settlement, Spent};
use super::World;
use super::model::{Kind, Model};
use crate::clock::Timestamp;

/// Caps of one window, and their limits.
const CAPS: [(&str, u64); 3] = [("all", 100), ("geocode", 50), ("caller", 20)];
/// Ids that are tried in one span of weeks: few, so that they meet again.
const IDS: u128 = 12;

#[derive(Clone, Debug)]
pub enum Step {
    Reserve(Ask),
    /// The caller heard nothing and has given it up; what it had sent comes before that, or after (`late`).
    TimedOut {
        ask: Ask,
        late: bool,
    },
    /// Of an attempt reserved so many spans ago.
    Settle {
        id: u128,
        ago: u128,
        cost: Cost,
    },
    Crash,
    /// Another day: other counters.
    NextWindow,
    /// Long enough for settled rows to leave the ledger. Their ids are used no more.
    Weeks,
}

#[derive(Clone, Debug)]
pub struct Ask {
    id: u128,
    /// By index, and maybe more than once.
    caps: Vec<usize>,
    price: u64,
}

/// What an attempt turns out to cost.
#[derive(Clone, Copy, Debug)]
pub enum Cost {
    /// Hundredths of its price.
    Part(u64),
    /// More than its price.
    Beyond(u64),
    Nothing,
    Unknown,
}

#[derive(Clone, Debug)]
pub struct History {
    steps: Vec<Step>,
    /// No provider charges more than its price.
    honest: bool,
}

pub fn any_history(most: usize) -> impl Strategy<Value = History> {
    let steps = prop::collection::vec(any_step(), 1..most);
    (steps, any::<bool>()).prop_map(|(steps, honest)| History { steps, honest })
}

fn any_step() -> impl Strategy<Value = Step> {
    let ask =
        || (0..IDS, prop::collection::vec(0..CAPS.len(), 0..4), 0..25_u64).prop_map(|(id, caps, price)| Ask { id, caps, price });
    let cost = prop_oneof![
        4 => (0..=100_u64).prop_map(Cost::Part),
        1 => (1..30_u64).prop_map(Cost::Beyond),
        2 => Just(Cost::Nothing),
        2 => Just(Cost::Unknown),
    ];
    let settle = (0..IDS, prop_oneof![4 => Just(0), 1 => 1..4_u128], cost);
    prop_oneof![
        10 => ask().prop_map(Step::Reserve),
        2 => (ask(), any::<bool>()).prop_map(|(ask, late)| Step::TimedOut { ask, late }),
        10 => settle.prop_map(|(id, ago, cost)| Step::Settle { id, ago, cost }),
        1 => Just(Step::Crash),
        1 => Just(Step::NextWindow),
        1 => Just(Step::Weeks),
    ]
}

/// Plays a history. `crash` kills the process and opens what it leaves behind, if it leaves anything.
pub fn play(world: World, history: &History, crash: impl Fn(World) -> Result<World, World>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    runtime.block_on(async {
        let mut player = Player { world, model: Model::default(), honest: history.honest, window: 0, span: 0 };
        for step in &history.steps {
            player = player.step(step, &crash).await;
            player.compare(step).await;
        }
    });
}

struct Player {
    world: World,
    model: Model,
    honest: bool,
    window: u32,
    span: u128,
}

impl Player {
    async fn step(mut self, step: &Step, crash: impl Fn(World) -> Result<World, World>) -> Self {
        match step {
            Step::Reserve(ask) => self.reserve(ask).await,
            Step::TimedOut { ask, late: true } => {
                self.settle(self.id(ask.id), Settlement::NotBilled).await;
                self.reserve(ask).await;
            }
            Step::TimedOut { ask, late: false } => {
                self.reserve(ask).await;
                self.settle(self.id(ask.id), Settlement::NotBilled).await;
            }
            Step::Settle { id, ago, cost } => self.settle_some(*id, *ago, *cost).await,
            Step::Crash => match crash(self.world) {
                Ok(world) => {
                    self.model.crash();
                    self.world = world;
                }
                Err(world) => self.world = world,
            },
            Step::NextWindow => self.window += 1,
            Step::Weeks => {
                self.span += 1;
                self.world.clock.advance(std::time::Duration::from_hours(36 * 24));
            }
        }
        self
    }

    fn id(&self, id: u128) -> u128 {
        self.span * IDS + id
    }

    async fn reserve(&mut self, ask: &Ask) {
        let all = caps(self.window);
        let caps: Vec<Cap> = ask.caps.iter().map(|index| all[*index].clone()).collect();
        let (id, amount, row) = (self.id(ask.id), ask.price, row(self.window, ask.id));
        let expected = self.model.reserve(id, &caps, amount, row.clone());
        let reservation = Reservation { id: OpId(id), caps: &caps, amount, row };
        assert_eq!(self.world.store.reserve(reservation).await, Ok(expected));
    }

    async fn settle_some(&mut self, id: u128, ago: u128, cost: Cost) {
        let id = self.span.saturating_sub(ago) * IDS + id;
        let price = self.model.unsettled(id);
        // What was settled weeks ago is known to nobody.
        if ago == 0 || price.is_some() {
            self.settle(id, settlement(cost, price.unwrap_or(0), self.honest)).await;
        }
    }

    async fn settle(&mut self, id: u128, settlement: Settlement) {
        let outcome = format!("outcome {}", id % 2);
        let expected = self.model.settle(id, settlement, &outcome);
        assert_eq!(self.world.store.settle(OpId(id), settlement, &outcome).await, Ok(expected));
    }

    async fn compare(&self, after: &Step) {
        let caps: Vec<Cap> = (0..=self.window).flat_map(caps).collect();
        let used = self.world.store.used(&caps).await.unwrap();
        for (cap, used) in caps.iter().zip(used) {
            assert_eq!(used, self.model.used(&cap.name), "{} after {after:?}", cap.name);
            assert!(used <= cap.most || self.model.overrun(&cap.name), "{} is passed after {after:?}", cap.name);
        }
        let all = Days { from: String::new(), to: "~".to_owned() };
        let spent = self.world.store.spent(&all).await.unwrap();
        let kinds = spent.len();
        let spent: BTreeMap<Kind, (u64, u64)> = spent.into_iter().map(flat).collect();
        assert_eq!((kinds, spent), (self.model.spent().len(), self.model.spent()), "after {after:?}");
    }
}

fn caps(window: u32) -> [Cap; CAPS.len()] {
    CAPS.map(|(name, most)| Cap { name: format!("{name}|{window}"), most, ends: Timestamp(u64::MAX) })
}

fn row(window: u32, id: u128) -> Row {
    Row {
        day: format!("2027-01-{window:02}"),
        route: format!("route {}", id % 2),
        provider: "opencage".to_owned(),
        caller: id << 96,
        caller_name: id.is_multiple_of(3).then(|| "till".to_owned()),
        currency: if id == 1 { "EUR" } else { "USD" }.to_owned(),
    }
}

fn settlement(cost: Cost, price: u64, honest: bool) -> Settlement {
    match cost {
        Cost::Part(part) => Settlement::Billed(price * part / 100),
        Cost::Beyond(_) if honest => Settlement::Billed(price),
        Cost::Beyond(more) => Settlement::Billed(price + more),
        Cost::Nothing => Settlement::NotBilled,
        Cost::Unknown => Settlement::Unknown,
    }
}

fn flat(line: Spent) -> (Kind, (u64, u64)) {
    let Spent { day, route, provider, caller, state, outcome, currency, calls, micros } = line;
    ([day, route, provider, caller, state, outcome, currency], (calls, micros))
}
