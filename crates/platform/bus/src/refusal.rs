//! What the server does not let us do. It tells so beside the connection's traffic: a request that
//! it refuses has no answer, and would look like a server that is away.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_nats::{ClientError, Event, ServerError};
use tokio::sync::watch;

use crate::error::BusError;

/// Something that the server refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// To publish to a subject.
    Publish(String),
    /// To listen to a subject.
    Subscribe(String),
    /// The login, of a connection that is made in the background.
    Login,
    /// TLS, likewise.
    Tls,
}

/// What the server refused over one connection; clones share it.
#[derive(Debug, Clone)]
pub(crate) struct Refusals {
    /// Who we are, for messages.
    name: Arc<str>,
    url: Arc<str>,
    /// How many there were, and the last one.
    last: Arc<watch::Sender<(u64, Option<Refusal>)>>,
    /// The connection was there once.
    connected: Arc<AtomicBool>,
}

impl Refusals {
    pub(crate) fn new(name: &str, url: &str) -> Refusals {
        Refusals { name: name.into(), url: url.into(), last: Arc::new(watch::Sender::new((0, None))), connected: Arc::default() }
    }

    /// Takes note of an event of the connection. A login or a certificate that was good may be
    /// replaced at this moment, here or there: until then the connection is down.
    pub(crate) fn hear(&self, event: &Event) {
        if matches!(event, Event::Connected) {
            self.connected.store(true, Ordering::Relaxed);
        }
        let refusal = match event {
            Event::ServerError(ServerError::Other(text)) => of_permissions(text),
            Event::ServerError(ServerError::AuthorizationViolation) => Some(Refusal::Login),
            Event::ClientError(ClientError::Other(text)) => of_connecting(text),
            _ => None,
        };
        let Some(refusal) = refusal else { return };
        tracing::warn!(name = %self.name, url = %self.url, "NATS refuses {}", what(&refusal));
        if matches!(refusal, Refusal::Login | Refusal::Tls) && self.connected.load(Ordering::Relaxed) {
            return;
        }
        self.last.send_modify(|(count, last)| {
            *count += 1;
            *last = Some(refusal);
        });
    }

    /// How many there were.
    pub(crate) fn count(&self) -> u64 {
        self.last.borrow().0
    }

    /// An error if something was refused since there were `count`.
    pub(crate) fn since(&self, count: u64) -> Result<(), BusError> {
        let last = self.last.borrow();
        match &*last {
            (now, Some(refusal)) if *now > count => Err(self.error(refusal)),
            _ => Ok(()),
        }
    }

    /// Does something, and ends it when the server refuses anything meanwhile: for what is done
    /// alone on a connection.
    pub(crate) async fn guard<T>(&self, work: impl Future<Output = Result<T, BusError>>) -> Result<T, BusError> {
        let mut heard = self.last.subscribe();
        let refused = async {
            // the sender is ours, and lives
            let _ = heard.changed().await;
        };
        let count = self.count();
        tokio::select! {
            biased;
            done = work => done.or_else(|error| self.since(count).and(Err(error))),
            () = refused => Err(self.since(count).err().unwrap_or_else(|| BusError::unavailable("answer", "something was refused"))),
        }
    }

    /// Waits until the server refuses to let us publish to this subject.
    pub(crate) async fn of_publishing(&self, subject: &str) -> BusError {
        let mut heard = self.last.subscribe();
        loop {
            if heard.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
            let last = heard.borrow_and_update().1.clone();
            if let Some(refusal) = last.filter(|refusal| matches!(refusal, Refusal::Publish(refused) if refused == subject)) {
                return self.error(&refusal);
            }
        }
    }

    /// Waits until anything was refused, ever.
    pub(crate) async fn any(&self) -> BusError {
        let mut heard = self.last.subscribe();
        let last = match heard.wait_for(|(_, last)| last.is_some()).await {
            Ok(last) => last.1.clone(),
            // the sender is ours, and lives
            Err(_) => None,
        };
        match last {
            Some(refusal) => self.error(&refusal),
            None => std::future::pending().await,
        }
    }

    fn error(&self, refusal: &Refusal) -> BusError {
        let (name, url) = (self.name.to_string(), self.url.to_string());
        match refusal {
            Refusal::Publish(subject) => BusError::Forbidden { name, what: "publish to", subject: subject.clone() },
            Refusal::Subscribe(subject) => BusError::Forbidden { name, what: "listen to", subject: subject.clone() },
            Refusal::Login => BusError::Login { url, source: "authorization violation".into() },
            Refusal::Tls => BusError::Untrusted { url, source: "the handshake failed".into() },
        }
    }
}

fn what(refusal: &Refusal) -> String {
    match refusal {
        Refusal::Publish(subject) => format!("to let us publish to `{subject}`"),
        Refusal::Subscribe(subject) => format!("to let us listen to `{subject}`"),
        Refusal::Login => "the login".to_owned(),
        Refusal::Tls => "the connection: the TLS handshake failed".to_owned(),
    }
}

/// What nats-server writes: `Permissions Violation for Publish to "a.b"`, `… for Publish with Reply
/// of "c" to "a.b"`, `… for Subscription to "a.b"` and `… using queue "q"`.
fn of_permissions(text: &str) -> Option<Refusal> {
    let rest = text.get(..26).filter(|start| start.eq_ignore_ascii_case("permissions violation for ")).and(text.get(26..))?;
    let publish = rest.get(..7).is_some_and(|verb| verb.eq_ignore_ascii_case("publish"));
    let (_, subject) = if publish { rest.rsplit_once(" to \"")? } else { rest.split_once(" to \"")? };
    let subject = subject.split('"').next()?.to_owned();
    Some(if publish { Refusal::Publish(subject) } else { Refusal::Subscribe(subject) })
}

/// What a connection that is made in the background says of a failed attempt.
fn of_connecting(text: &str) -> Option<Refusal> {
    let text = text.to_ascii_lowercase();
    if text.contains("authorization violation") || text.contains("authentication error") {
        Some(Refusal::Login)
    } else if text.contains("tls") {
        Some(Refusal::Tls)
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_server_writes_is_understood() {
        let publish = |subject: &str| Some(Refusal::Publish(subject.to_owned()));
        assert_eq!(of_permissions("Permissions Violation for Publish to \"a.b\""), publish("a.b"));
        assert_eq!(of_permissions("Permissions Violation for Publish with Reply of \"c to \" to \"a.b\""), publish("a.b"));
        assert_eq!(
            of_permissions("permissions violation for Subscription to \"x.>\" using queue \"q\""),
            Some(Refusal::Subscribe("x.>".into()))
        );
        for other in ["", "Permissions Violation", "maximum connections exceeded", "Permissions Violation for Publish to nowhere", "ü"] {
            assert_eq!(of_permissions(other), None, "{other}");
        }
    }

    #[tokio::test]
    async fn a_refusal_ends_what_is_done_meanwhile_and_not_what_is_done_later() {
        let refusals = Refusals::new("tool-agent", "nats://a:1");
        let event = Event::ServerError(ServerError::Other("Permissions Violation for Publish to \"a.b\"".into()));
        let hearing = async {
            refusals.hear(&event);
            std::future::pending::<Result<(), BusError>>().await
        };
        let error = refusals.guard(hearing).await.unwrap_err();
        assert!(matches!(&error, BusError::Forbidden { name, what: "publish to", subject } if name == "tool-agent" && subject == "a.b"));
        assert!(refusals.since(0).is_err() && refusals.since(1).is_ok());
        refusals.guard(async { Ok(()) }).await.unwrap();
    }

    #[test]
    fn a_login_that_was_good_may_be_good_again() {
        let refusals = Refusals::new("gateway", "nats://a:1");
        let refused = Event::ServerError(ServerError::AuthorizationViolation);
        refusals.hear(&refused);
        assert!(matches!(refusals.since(0), Err(BusError::Login { .. })));
        refusals.hear(&Event::Connected);
        refusals.hear(&refused);
        assert!(refusals.since(1).is_ok());
    }
}
