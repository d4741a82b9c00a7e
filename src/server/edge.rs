//! The HTTP edge: limits and drain.
