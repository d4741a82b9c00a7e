//! What the book may forget, and when.

use super::*;
use crate::store::money::Row;

const DAY: Duration = Duration::from_hours(24);
const START: Timestamp = Timestamp(1_800_000_000_000_000);

fn book(attempts: usize, counters: usize, sums: usize) -> Book {
    Book::new(Bounds { attempts, counters, sums, ..Bounds::default() })
}

fn cap(name: &str) -> Cap {
    Cap { name: name.to_owned(), most: 1_000, ends: START.after(DAY) }
}

/// Reserves ten in `caps`, on a day of the same number as the id.
fn reserve(book: &mut Book, id: u128, caps: &[Cap], now: Timestamp) -> Result<Reserved, StoreError> {
    let word = |word: &str| word.to_owned();
    let (day, caller_name) = (format!("{id:010}"), Some(word("till")));
    let row = Row { day, route: word("geo"), provider: word("p"), caller: 0, caller_name, currency: word("USD") };
    book.reserve(Reservation { id: OpId(id), caps, amount: 10, row }, now)
}

fn settle(book: &mut Book, id: u128, by: Settlement, now: Timestamp) -> Result<bool, StoreError> {
    book.settle(OpId(id), by, "answered", now)
}

/// Calls and micros of all that is in the ledger.
fn total(book: &Book) -> (u64, u64) {
    let all = book.spending.report(&Days { from: String::new(), to: "~".to_owned() }).unwrap();
    (all.iter().map(|line| line.calls).sum(), all.iter().map(|line| line.micros).sum())
}

#[test]
fn beyond_the_bound_what_was_settled_first_is_only_summed() {
    let (mut book, all) = (book(3, 10, 100), [cap("all")]);
    for id in 0..10 {
        assert!(matches!(reserve(&mut book, id, &all, START), Ok(Reserved::Yes(_))), "{id}");
        assert_eq!(settle(&mut book, id, Settlement::Billed(10), START), Ok(true));
    }
    assert_eq!((book.records.len(), book.settled.len()), (3, 3));
    assert_eq!((total(&book), book.counters.used(&all)), ((10, 100), vec![100]));
    assert_eq!(reserve(&mut book, 9, &all, START), Ok(Reserved::Yes(vec![100])), "the last are known by their ids");
}

#[test]
fn what_is_to_be_settled_is_never_forgotten() {
    let (mut book, all) = (book(2, 10, 100), [cap("all")]);
    reserve(&mut book, 1, &all, START).unwrap();
    reserve(&mut book, 2, &all, START).unwrap();
    settle(&mut book, 2, Settlement::Unknown, START).unwrap();
    let later = START.after(DAY * 40);
    assert!(reserve(&mut book, 3, &[], later).is_err());
    assert!(settle(&mut book, 4, Settlement::NotBilled, later).is_err(), "nor is there room to remember a stranger");
    assert_eq!((total(&book), book.counters.used(&all)), ((2, 20), vec![20]));
    assert_eq!(settle(&mut book, 2, Settlement::NotBilled, later), Ok(true));
    assert!(reserve(&mut book, 3, &[], later).is_ok());
    assert_eq!(settle(&mut book, 1, Settlement::Billed(7), later), Ok(true));
    assert_eq!((total(&book), book.counters.used(&all)), ((3, 17), vec![7]));
}

#[test]
fn rows_and_tombstones_go_when_they_are_old() {
    let mut book = book(100, 10, 100);
    reserve(&mut book, 1, &[], START).unwrap();
    settle(&mut book, 1, Settlement::Billed(10), START).unwrap();
    settle(&mut book, 2, Settlement::NotBilled, START).unwrap();
    reserve(&mut book, 3, &[], START.after(DAY * 2)).unwrap();
    assert_eq!(reserve(&mut book, 2, &[], START.after(DAY * 2)), Ok(Reserved::TooLate));
    reserve(&mut book, 4, &[], START.after(DAY * 3)).unwrap();
    assert_eq!((book.records.len(), book.given_up.len(), book.settled.len()), (3, 0, 1));
    reserve(&mut book, 5, &[], START.after(DAY * 36)).unwrap();
    assert_eq!((book.records.len(), book.settled.len(), total(&book)), (3, 0, (4, 40)));
}

#[test]
fn counters_make_room_long_after_their_window_and_never_before() {
    let mut book = book(100, 2, 100);
    reserve(&mut book, 1, &[cap("a"), cap("b")], START).unwrap();
    assert!(reserve(&mut book, 2, &[cap("a"), cap("c")], START).is_err());
    assert_eq!(book.counters.used(&[cap("a"), cap("c")]), [10, 0], "all or none");
    let late = |name| Cap { ends: Timestamp(u64::MAX), ..cap(name) };
    reserve(&mut book, 3, &[late("b")], START).unwrap();
    let later = START.after(DAY * 41);
    reserve(&mut book, 4, &[late("c")], later).unwrap();
    assert_eq!(book.counters.used(&[cap("a"), cap("b"), cap("c")]), [0, 20, 10], "b was prolonged");
}

#[test]
fn an_attempt_does_not_move_a_later_counter_of_the_same_name() {
    let mut book = book(100, 10, 100);
    reserve(&mut book, 1, &[cap("a")], START).unwrap();
    let later = START.after(DAY * 41);
    let again = [Cap { ends: later.after(DAY), ..cap("a") }];
    reserve(&mut book, 2, &[Cap { ends: later, ..cap("b") }], later).unwrap();
    assert_eq!(book.counters.used(&again), [0], "forgotten");
    reserve(&mut book, 3, &again, later).unwrap();
    assert_eq!(settle(&mut book, 1, Settlement::NotBilled, later), Ok(true));
    assert_eq!(book.counters.used(&again), [10]);
}

#[test]
fn beyond_the_bound_the_oldest_days_leave_the_report() {
    let mut book = book(100, 10, 3);
    for id in 1..=5 {
        reserve(&mut book, id, &[], START).unwrap();
    }
    let days = |book: &Book| {
        let all = book.spending.report(&Days { from: String::new(), to: "~".to_owned() }).unwrap();
        all.into_iter().map(|line| line.day.trim_start_matches('0').to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(days(&book), ["3", "4", "5"]);
    assert_eq!(settle(&mut book, 4, Settlement::Billed(10), START), Ok(true));
    assert_eq!(settle(&mut book, 1, Settlement::Billed(10), START), Ok(true));
    assert_eq!(days(&book), ["3", "4", "5"]);
    assert_eq!(total(&book), (3, 30));
}
