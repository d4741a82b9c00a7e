//! Process memory.
