//! The names a route knows in a query or form, and whose they are: one list, made with the route, so that a request looks up
//! each name it has once instead of asking every field for it.

use crate::question::field::Place;
use crate::route::Route;

/// Whose a parameter is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Owner {
    /// A field of the question, by its place among them.
    Field(usize),
    /// No field: it is pinned, ignored, or the caller's key.
    Other,
}

/// Every known name of a query or form with its owner. Short enough that a look at each is quicker than a hash.
pub(super) struct Names {
    known: Vec<(String, Owner)>,
    /// Whose the others are.
    rest: Option<Owner>,
}

impl Names {
    /// Of the query; `consumed` hold the caller's key.
    pub(super) fn query(route: &Route, consumed: Vec<String>) -> Self {
        let others = route.ignored.query.iter().cloned().chain(consumed);
        Self::new(route, others, |place| if let Place::Query(names) = place { names } else { &[] })
    }

    /// Of a form body.
    pub(super) fn form(route: &Route) -> Self {
        let others = route.ignored.form.iter().cloned();
        let known = Self::new(route, others, |place| if let Place::Form(names) = place { names } else { &[] });
        Self { rest: route.rest().map(Owner::Field), ..known }
    }

    fn new(route: &Route, others: impl Iterator<Item = String>, of: fn(&Place) -> &[String]) -> Self {
        let named = |place, owner: Owner| of(place).iter().map(move |name| (name.clone(), owner));
        // Fields first: the first who claims a name has it, and no two fields share one.
        let fields = route.fields.iter().enumerate().flat_map(|(index, field)| named(&field.place, Owner::Field(index)));
        let pinned = route.pinned.iter().flat_map(|pinned| named(&pinned.place, Owner::Other));
        let known = fields.chain(pinned).chain(others.map(|name| (name, Owner::Other))).collect();
        Self { known, rest: None }
    }

    /// Nobody's, if the route does not know the name.
    pub(super) fn owner(&self, name: &str) -> Option<Owner> {
        self.known.iter().find(|(known, _)| known == name).map(|(_, owner)| *owner).or(self.rest)
    }
}
