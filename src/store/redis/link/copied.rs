//! Waiting until a copy of the store has what was written.

use redis::aio::MultiplexedConnection;

use super::super::fault::{Fault, failed, out_of_step};
use super::Link;

impl Link {
    /// Waits until a copy has all that was written so far: replication is one ordered stream, so this covers what other connections
    /// have written before, too. No longer than half of a call's time: for the rest of it one can still say that there is none.
    ///
    /// `WAIT` keeps all that is asked on this connection after it waiting, and bears no mark. The echo behind it does.
    pub(super) async fn await_copy(&self, connection: &mut MultiplexedConnection) -> Result<(), Fault> {
        let nonce = self.mark();
        // None would be for ever.
        let patience = (self.timeout / 2).as_millis().max(1);
        let mut pipe = redis::pipe();
        pipe.cmd("WAIT").arg(1).arg(patience.to_string()).cmd("ECHO").arg(&nonce);
        let (copies, echo): (u64, String) = pipe.query_async(connection).await.map_err(|error| Fault::of(&error))?;
        if echo != nonce {
            return Err(Fault::Link(out_of_step()));
        }
        if copies == 0 {
            return Err(Fault::Call(failed("no copy of it has what was written: a failover would forget it")));
        }
        Ok(())
    }
}
