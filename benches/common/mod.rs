//! What the benches share: the servers they start, the load they put on them, and how both are measured.

pub mod cores;
pub mod cpu;
pub mod load;
pub mod nginx;
pub mod peer;
pub mod round;
pub mod settings;
pub mod spread;
pub mod syscalls;
pub mod tollgate;
pub mod upstream;
