//! From the names in the settings to addresses.

use std::net::SocketAddr;
use std::time::Duration;

use async_trait::async_trait;
use autoact_wire::client::Target;

use crate::set::Address;

/// How long one lookup may take.
const LIMIT: Duration = Duration::from_secs(5);

/// Says which addresses a host has.
#[async_trait]
pub trait Resolver: Send + Sync {
    /// All addresses of `host`, each with `port`.
    ///
    /// # Errors
    /// There is no such host, or nobody could be asked.
    async fn resolve(&self, host: &str, port: u16) -> std::io::Result<Vec<SocketAddr>>;
}

/// The operating system's resolver: `/etc/hosts`, then DNS.
#[derive(Debug, Clone, Copy)]
pub struct SystemResolver;

#[async_trait]
impl Resolver for SystemResolver {
    async fn resolve(&self, host: &str, port: u16) -> std::io::Result<Vec<SocketAddr>> {
        Ok(tokio::net::lookup_host((host, port)).await?.collect())
    }
}

/// What is known of each target.
#[derive(Debug)]
pub(crate) struct Known {
    /// The last addresses of each, and why there are no newer ones.
    targets: Vec<(Vec<SocketAddr>, Option<String>)>,
}

impl Known {
    /// Numbers are known at once, names are not.
    pub(crate) fn new(targets: &[Target]) -> Known {
        Known { targets: targets.iter().map(|target| (target.socket().into_iter().collect(), None)).collect() }
    }

    /// Takes up what a lookup brought. A name that has no addresses now keeps those it had: a
    /// resolver that fails must not take a service away that works. Why it has none, if that is
    /// news.
    pub(crate) fn learn(&mut self, target: usize, found: Result<Vec<SocketAddr>, String>) -> Option<&str> {
        let (addresses, error) = self.targets.get_mut(target)?;
        let known = error.is_some();
        match found {
            Ok(found) if found.is_empty() => *error = Some("it has no addresses".to_owned()),
            Ok(mut found) => {
                // the same order every time: a resolver may rotate them
                found.sort_unstable();
                (*addresses, *error) = (found, None);
            }
            Err(why) => *error = Some(why),
        }
        error.as_deref().filter(|_| !known)
    }

    /// Why a target has no addresses.
    pub(crate) fn error(&self) -> Option<(usize, &str)> {
        self.targets.iter().enumerate().find_map(|(index, (_, error))| Some((index, error.as_deref()?)))
    }

    /// All addresses, each once. Where a name has both kinds, those of IPv6 are the reserve: most
    /// likely they lead to the same machines.
    pub(crate) fn addresses(&self) -> Vec<Address> {
        let mut all: Vec<Address> = Vec::new();
        for (target, (addresses, _)) in self.targets.iter().enumerate() {
            let both = addresses.iter().any(SocketAddr::is_ipv4);
            for socket in addresses {
                if all.iter().all(|known| known.socket != *socket) {
                    all.push(Address { target, socket: *socket, reserve: both && socket.is_ipv6() });
                }
            }
        }
        all
    }
}

/// Asks for one target, within bounds.
pub(crate) async fn look_up(resolver: &dyn Resolver, target: &Target) -> Result<Vec<SocketAddr>, String> {
    match tokio::time::timeout(LIMIT, resolver.resolve(target.host(), target.port())).await {
        Ok(found) => found.map_err(|error| error.to_string()),
        Err(_) => Err(format!("the resolver did not answer within {LIMIT:?}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn targets(text: &str) -> Vec<Target> {
        autoact_wire::client::targets(text).unwrap()
    }

    fn sockets(known: &Known) -> Vec<(String, bool)> {
        known.addresses().iter().map(|address| (address.socket.to_string(), address.reserve)).collect()
    }

    #[test]
    fn names_keep_what_they_had_and_nothing_is_there_twice() {
        let mut known = Known::new(&targets("plan:7401, http://10.0.0.1:7401,[::1]:7401"));
        let literals = vec![("10.0.0.1:7401".to_owned(), false), ("[::1]:7401".to_owned(), false)];
        assert_eq!(sockets(&known), literals);
        known.learn(0, Ok(vec!["10.0.0.2:7401".parse().unwrap(), "10.0.0.1:7401".parse().unwrap()]));
        let all = [vec![("10.0.0.1:7401".to_owned(), false), ("10.0.0.2:7401".to_owned(), false)], literals[1..].to_vec()].concat();
        assert_eq!(sockets(&known), all);
        for nothing in [Ok(Vec::new()), Err("no such host".to_owned())] {
            known.learn(0, nothing);
            assert_eq!(sockets(&known), all);
            assert_eq!(known.error().map(|(target, _)| target), Some(0));
        }
    }

    #[test]
    fn of_both_kinds_one_is_the_reserve() {
        let mut known = Known::new(&targets("localhost:7401"));
        known.learn(0, Ok(vec!["[::1]:7401".parse().unwrap(), "127.0.0.1:7401".parse().unwrap()]));
        assert_eq!(sockets(&known), [("127.0.0.1:7401".to_owned(), false), ("[::1]:7401".to_owned(), true)]);
        known.learn(0, Ok(vec!["[::1]:7401".parse().unwrap()]));
        assert_eq!(sockets(&known), [("[::1]:7401".to_owned(), false)], "nothing else is there");
    }
}
