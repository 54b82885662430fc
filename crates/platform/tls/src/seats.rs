//! Who is connected to a port, and who goes when there is no place left. A connection without a
//! call goes before one that has made any, and the one that was idle longest before others; whoever
//! has a call in progress stays. So silent connections take places from each other alone.

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio_util::sync::CancellationToken;

/// The bounds of a port's connections.
#[derive(Debug, Clone, Copy)]
pub struct SeatBounds {
    /// Of all addresses.
    pub most: usize,
    /// Of one address.
    pub per_address: Option<usize>,
    /// How long a connection may be open without a call.
    pub first_call: Duration,
}

/// Why there is no place for a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refused {
    /// All connections have calls in progress.
    Full,
    /// Its address has as many connections as it may have.
    Address,
}

impl Refused {
    fn name(self) -> &'static str {
        match self {
            Refused::Full => "full",
            Refused::Address => "address",
        }
    }
}

/// The connections of one port; cheap to clone.
#[derive(Debug, Clone)]
pub struct Seats {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    port: &'static str,
    bounds: SeatBounds,
    table: Mutex<Table>,
}

impl Shared {
    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn count(&self, reason: &'static str) {
        metrics::counter!("autoact_connections_refused_total", "port" => self.port, "reason" => reason).increment(1);
    }

    fn gauge(&self) -> metrics::Gauge {
        metrics::gauge!("autoact_connections", "port" => self.port)
    }
}

/// When an idle connection goes: those without a call first, then by how long they have been idle.
type Turn = (bool, u64);

/// The state, without time and sockets.
#[derive(Debug, Default)]
struct Table {
    /// Of connections and of turns.
    next: u64,
    open: HashMap<u64, Entry>,
    idle: BTreeMap<Turn, u64>,
    addresses: HashMap<IpAddr, usize>,
}

#[derive(Debug)]
struct Entry {
    address: IpAddr,
    called: bool,
    calls: usize,
    /// Its place among the idle, unless it has calls.
    turn: Option<Turn>,
    close: CancellationToken,
}

impl Table {
    /// A place for one more: the connection's number, and whether another one had to go for it.
    fn take(&mut self, address: IpAddr, bounds: &SeatBounds, close: CancellationToken) -> Result<(u64, bool), Refused> {
        let before = self.addresses.get(&address).copied().unwrap_or(0);
        if bounds.per_address.is_some_and(|most| before >= most) {
            return Err(Refused::Address);
        }
        let mut crowded_out = false;
        if self.open.len() >= bounds.most {
            let (_, oldest) = self.idle.first_key_value().ok_or(Refused::Full)?;
            if let Some(entry) = self.remove(*oldest) {
                entry.close.cancel();
                crowded_out = true;
            }
        }
        self.next += 1;
        let (id, turn) = (self.next, (false, self.next));
        self.open.insert(id, Entry { address, called: false, calls: 0, turn: Some(turn), close });
        self.idle.insert(turn, id);
        *self.addresses.entry(address).or_default() += 1;
        Ok((id, crowded_out))
    }

    fn remove(&mut self, id: u64) -> Option<Entry> {
        let entry = self.open.remove(&id)?;
        if let Some(turn) = entry.turn {
            self.idle.remove(&turn);
        }
        if let Some(count) = self.addresses.get_mut(&entry.address) {
            *count -= 1;
            if *count == 0 {
                self.addresses.remove(&entry.address);
            }
        }
        Some(entry)
    }

    fn begin(&mut self, id: u64) {
        let Some(entry) = self.open.get_mut(&id) else { return };
        entry.called = true;
        entry.calls += 1;
        if let Some(turn) = entry.turn.take() {
            self.idle.remove(&turn);
        }
    }

    fn end(&mut self, id: u64) {
        let Some(entry) = self.open.get_mut(&id) else { return };
        entry.calls -= 1;
        if entry.calls == 0 {
            self.next += 1;
            let turn = (true, self.next);
            entry.turn = Some(turn);
            self.idle.insert(turn, id);
        }
    }
}

impl Seats {
    /// For the connections of `port`, which is what metrics call it.
    pub fn new(port: &'static str, bounds: SeatBounds) -> Seats {
        Seats { shared: Arc::new(Shared { port, bounds, table: Mutex::default() }) }
    }

    /// A place for a connection from `address`; where there is none left, that of an idle one.
    ///
    /// # Errors
    /// Nobody can go for it.
    pub fn take(&self, address: IpAddr) -> Result<Seat, Refused> {
        let close = CancellationToken::new();
        let taken = self.shared.table().take(address, &self.shared.bounds, close.clone());
        let (id, crowded_out) = taken.inspect_err(|refused| self.shared.count(refused.name()))?;
        if crowded_out {
            self.shared.count("crowded_out");
        }
        self.shared.gauge().increment(1.0);
        Ok(Seat { shared: Arc::clone(&self.shared), id, close })
    }

    /// The bounds.
    pub fn bounds(&self) -> SeatBounds {
        self.shared.bounds
    }

    /// Connections that have a place.
    pub fn taken(&self) -> usize {
        self.shared.table().open.len()
    }
}

/// A connection's place, given back when dropped.
#[derive(Debug)]
pub struct Seat {
    shared: Arc<Shared>,
    id: u64,
    close: CancellationToken,
}

impl Seat {
    /// Cancelled when the connection has to go.
    pub fn close(&self) -> CancellationToken {
        self.close.clone()
    }

    /// For those who serve its calls.
    pub fn calls(&self) -> Calls {
        Calls { shared: Arc::clone(&self.shared), id: self.id }
    }

    /// Gives the place up if there was no call on the connection yet: whether that is so.
    pub(crate) fn give_up_if_silent(&self) -> bool {
        let mut table = self.shared.table();
        let silent = table.open.get(&self.id).is_none_or(|entry| !entry.called);
        if silent && table.remove(self.id).is_some() {
            drop(table);
            self.shared.count("silent");
        }
        silent
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.shared.table().remove(self.id);
        self.shared.gauge().decrement(1.0);
    }
}

/// Counts the calls of one connection: while it has any, it stays.
#[derive(Debug, Clone)]
pub struct Calls {
    shared: Arc<Shared>,
    id: u64,
}

impl Calls {
    /// A call, until the result is dropped.
    pub fn begin(&self) -> InCall {
        self.shared.table().begin(self.id);
        InCall { calls: self.clone() }
    }
}

/// A call in progress.
#[derive(Debug)]
pub struct InCall {
    calls: Calls,
}

impl Drop for InCall {
    fn drop(&mut self) {
        self.calls.shared.table().end(self.calls.id);
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    fn seats(most: usize, per_address: Option<usize>) -> Seats {
        Seats::new("test", SeatBounds { most, per_address, first_call: Duration::from_secs(1) })
    }

    fn address(last: u8) -> IpAddr {
        Ipv4Addr::new(10, 0, 0, last).into()
    }

    #[test]
    fn silent_connections_take_places_from_each_other_alone() {
        let seats = seats(3, None);
        let busy = seats.take(address(1)).unwrap();
        let call = busy.calls().begin();
        let idle = seats.take(address(1)).unwrap();
        drop(idle.calls().begin());
        let mut silent = seats.take(address(2)).unwrap();
        for _ in 0..100 {
            let next = seats.take(address(2)).unwrap();
            assert!(silent.close().is_cancelled());
            silent = next;
        }
        assert!(!idle.close().is_cancelled() && !busy.close().is_cancelled());
        assert_eq!(seats.taken(), 3);
        drop((silent, call));
        assert_eq!(seats.taken(), 2);
    }

    #[test]
    fn the_longest_idle_goes_and_those_with_calls_stay() {
        let seats = seats(2, None);
        let (first, second) = (seats.take(address(1)).unwrap(), seats.take(address(1)).unwrap());
        drop(second.calls().begin());
        drop(first.calls().begin());
        let third = seats.take(address(1)).unwrap();
        assert!(second.close().is_cancelled() && !first.close().is_cancelled());
        let calls = (first.calls().begin(), third.calls().begin());
        assert_eq!(seats.take(address(1)).err(), Some(Refused::Full));
        drop(calls.0);
        assert!(seats.take(address(1)).is_ok());
        // a call of a connection that is gone changes nothing
        drop(first);
        drop(calls.1);
    }

    #[test]
    fn one_address_has_its_own_bound() {
        let seats = seats(8, Some(2));
        let two = (seats.take(address(1)).unwrap(), seats.take(address(1)).unwrap());
        assert_eq!(seats.take(address(1)).err(), Some(Refused::Address));
        let other = seats.take(address(2)).unwrap();
        drop(two);
        assert!(seats.take(address(1)).is_ok());
        drop(other);
        assert!(seats.shared.table().addresses.is_empty() && seats.shared.table().idle.is_empty());
    }

    #[test]
    fn only_what_never_called_is_silent() {
        let seats = seats(2, None);
        let (silent, called) = (seats.take(address(1)).unwrap(), seats.take(address(1)).unwrap());
        drop(called.calls().begin());
        assert!(silent.give_up_if_silent() && !called.give_up_if_silent());
        assert_eq!(seats.taken(), 1);
    }
}
