//! Stops that a budget makes.
