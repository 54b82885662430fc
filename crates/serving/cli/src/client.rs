//! Connections to the group, with errors that say what is wrong and what to do.

use std::fmt;

use autoact_client::{Listener, what_listens};
use autoact_wire::agents_v1::tool_agent_client::ToolAgentClient;
use autoact_wire::client::{AddressError, Authorized};
use autoact_wire::memory_v1::documents_client::DocumentsClient;
use autoact_wire::memory_v1::memory_client::MemoryClient;
use autoact_wire::status;
use autoact_wire::v1::gateway_client::GatewayClient;
use tonic::transport::{Channel, Uri};
use tonic::{Code, Status};

use crate::connector::{self, Route};
use crate::exit;
use crate::identity;
use crate::text::plain_line;

pub(crate) type Gateway = GatewayClient<Authorized>;
pub(crate) type Memory = MemoryClient<Authorized>;
pub(crate) type ToolAgent = ToolAgentClient<Channel>;
pub(crate) type Documents = DocumentsClient<Authorized>;

/// A client of the gateway; connects on first use.
pub(crate) fn gateway(address: &str) -> anyhow::Result<Gateway> {
    Ok(autoact_wire::limited!(GatewayClient::with_interceptor(channel(address, Service::Gateway)?, identity::bearer()?)))
}

/// A client of the memory service.
pub(crate) fn memory(address: &str) -> anyhow::Result<Memory> {
    Ok(autoact_wire::limited!(MemoryClient::with_interceptor(channel(address, Service::Memory)?, identity::bearer()?)))
}

/// A client of the memory service's documents.
pub(crate) fn documents(address: &str) -> anyhow::Result<Documents> {
    Ok(autoact_wire::limited!(DocumentsClient::with_interceptor(channel(address, Service::Memory)?, identity::bearer()?)))
}

/// A client of tool-agent.
pub(crate) fn tool_agent(address: &str) -> anyhow::Result<ToolAgent> {
    Ok(autoact_wire::limited!(ToolAgentClient::new(channel(address, Service::ToolAgent)?)))
}

/// How the service at `address` is called.
pub(crate) fn route(address: &str, service: Service) -> anyhow::Result<Route> {
    Ok(connector::route(address, !matches!(service, Service::Gateway | Service::Compared))?)
}

fn channel(address: &str, service: Service) -> anyhow::Result<Channel> {
    checked(address, service)?;
    let Route { address, connector } = route(address, service)?;
    connector.connect_lazy(&address).map_err(|error| match error {
        AddressError::NoTls { .. } => BadAddress(format!(
            "`{address}` asks for TLS, and there is no certificate to call it with; fix: `--tls-ca`, `--tls-cert` and `--tls-key`, the state \
             directory of the group in `AUTOACT_STATE_DIR`, or an address such as `http://127.0.0.1:{}`",
            service.port()
        ))
        .into(),
        other => anyhow::Error::from(other),
    })
}

/// Says early, and in the user's words, what is no address.
fn checked(address: &str, service: Service) -> Result<(), BadAddress> {
    let bad = |why: &str| BadAddress(format!("`{address}` {why}; expected something like `http://127.0.0.1:{}`", service.port()));
    let uri = if address.contains("://") { address.to_owned() } else { format!("http://{address}") };
    let uri: Uri = uri.parse().map_err(|_| bad("is not an address"))?;
    match uri.scheme_str() {
        _ if uri.host().is_none_or(str::is_empty) => Err(bad("names no host")),
        Some("http" | "https") => Ok(()),
        _ => Err(bad("is not an `http://` or `https://` address")),
    }
}

/// An address that cannot be one.
#[derive(Debug)]
pub(crate) struct BadAddress(String);

impl fmt::Display for BadAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for BadAddress {}

/// Whom a call was meant for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Service {
    Gateway,
    /// A gateway that `autoact load compare` is given: it takes no `--gateway`.
    Compared,
    Memory,
    ToolAgent,
}

impl Service {
    fn name(self) -> &'static str {
        match self {
            Service::Gateway | Service::Compared => "gateway",
            Service::Memory => "memory service",
            Service::ToolAgent => "tool-agent",
        }
    }

    /// How its address is named.
    fn named(self) -> &'static str {
        match self {
            Service::Gateway => "with `--gateway`",
            Service::Compared => "as `A` or `B`",
            Service::Memory => "with `--memory`",
            Service::ToolAgent => "with `--tool-agent`",
        }
    }

    /// Where it listens unless told otherwise.
    fn port(self) -> u16 {
        match self {
            Service::Gateway | Service::Compared => 7400,
            Service::Memory => 7404,
            Service::ToolAgent => 7402,
        }
    }
}

/// A call that failed, in words for a person.
#[derive(Debug)]
pub(crate) struct Failure {
    message: String,
    code: u8,
}

impl Failure {
    pub(crate) fn exit_code(&self) -> u8 {
        self.code
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Failure {}

/// What a status means for a person. Where no service answered, the address is looked at first.
pub(crate) async fn explain(status: Status, service: Service, address: &str) -> anyhow::Error {
    let failure = if is_answer(&status) {
        answered(&status, service, address)
    } else {
        let tls = route(address, service).is_ok_and(|route| route.address.starts_with("https://"));
        unanswered(&status, &what_listens(address).await, service, address, tls)
    };
    failure.into()
}

/// Whether a service of ours said this, rather than the transport.
fn is_answer(status: &Status) -> bool {
    let transport = [Code::Unavailable, Code::Unknown, Code::Internal, Code::Cancelled, Code::Unimplemented];
    status::reason(status).is_some() || !transport.contains(&status.code())
}

fn answered(status: &Status, service: Service, address: &str) -> Failure {
    let said = plain_line(status.message());
    let again = match status::retry_after(status) {
        Some(delay) => format!("; try again in {:.1} s", delay.as_secs_f64()),
        None => String::new(),
    };
    let name = service.name();
    match status.code() {
        Code::Unavailable => {
            let message = format!("the {name} at {address} is there but cannot serve now: {said}{again}");
            Failure { message, code: exit::UNAVAILABLE }
        }
        Code::ResourceExhausted => Failure { message: format!("the {name} is full: {said}{again}"), code: exit::FAILED },
        Code::InvalidArgument => Failure { message: said, code: exit::USAGE },
        _ => Failure { message: format!("{said}{again}"), code: exit::FAILED },
    }
}

/// `tls`: the call was made with TLS.
fn unanswered(status: &Status, found: &Listener, service: Service, address: &str, tls: bool) -> Failure {
    let (name, named, port) = (service.name(), service.named(), service.port());
    let elsewhere = format!("fix: name the {name}'s address {named}; it listens on port {port} unless told otherwise");
    let start = format!("fix: start the group with `autoact up`, or name another address {named}");
    let message = match found {
        Listener::NoAddress => format!("`{address}` is not an address; {elsewhere}"),
        Listener::Nobody => format!("the {name} cannot be reached: nothing listens at {address}; {start}"),
        Listener::UnknownHost(why) => format!("the {name} cannot be reached: the host of {address} is not known ({why}); {elsewhere}"),
        Listener::NoAnswer => format!("the {name} cannot be reached: no answer from {address}; fix: check the address and what is between"),
        Listener::Unreachable(why) => format!("the {name} cannot be reached at {address}: {why}; {elsewhere}"),
        Listener::Http1 => format!("{address} speaks HTTP/1 and not gRPC, as metrics ports do; {elsewhere}"),
        Listener::Tls if !tls => format!(
            "{address} expects TLS; fix: name it `https://…`, with the certificate of `--tls-ca`, `--tls-cert` and `--tls-key`, or of the group \
             whose state directory `AUTOACT_STATE_DIR` names"
        ),
        Listener::Tls if status.code() == Code::Unimplemented => {
            format!("{address} is not the {name}, or one of another version: it does not know this call; {elsewhere}")
        }
        Listener::Tls => {
            let why = plain_line(&root(status));
            format!(
                "the {name} cannot be reached: the TLS connection to {address} failed ({why}); fix: check the certificates with `autoact certs show`"
            )
        }
        Listener::Http2 if tls => format!("{address} speaks plain text and not TLS; fix: name it `http://…`"),
        Listener::Nats => format!("{address} is a nats-server and not the {name}; {elsewhere}"),
        Listener::Unknown => format!("what listens at {address} does not speak gRPC; {elsewhere}"),
        // the transport's words for an answer without a status of gRPC
        Listener::Http2 if status.code() == Code::Unimplemented && status.message().contains("HTTP status") => {
            format!("{address} answers with HTTP and not gRPC, as metrics ports do; {elsewhere}")
        }
        Listener::Http2 if status.code() == Code::Unimplemented => {
            format!("{address} is not the {name}, or one of another version: it does not know this call; {elsewhere}")
        }
        Listener::Http2 => {
            let said = plain_line(status.message());
            format!("the call to the {name} at {address} broke off ({said}); it is there again: try again")
        }
    };
    Failure { message, code: exit::UNAVAILABLE }
}

/// The innermost cause of a call that the transport ended.
fn root(status: &Status) -> String {
    let mut cause: &dyn std::error::Error = status;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_checked_before_anything_is_sent() {
        for good in ["127.0.0.1:7400", "http://127.0.0.1:7400", "localhost:1", "http://[::1]:7400/"] {
            assert!(host_of(good).is_ok(), "{good}");
        }
        for (bad, why) in [
            ("", "not an address"),
            ("http://", "not an address"),
            ("a b:1", "not an address"),
            ("https://localhost:7400", "TLS"),
            ("nats://localhost:4222", "not an `http://` or `https://` address"),
            (":7400", "`:7400`"),
        ] {
            let error = host_of(bad).unwrap_err().to_string();
            assert!(error.contains(why) && error.contains("http://127.0.0.1:7400"), "{bad}: {error}");
        }
    }

    fn host_of(address: &str) -> anyhow::Result<()> {
        // a channel needs a runtime
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let _inside = runtime.enter();
        channel(address, Service::Gateway).map(drop)
    }

    #[test]
    fn what_listens_decides_what_is_said() {
        let broken = Status::unknown("h2 protocol error");
        let said = |found| unanswered(&broken, &found, Service::Gateway, "http://127.0.0.1:7500", false);
        for (found, words) in [
            (Listener::Nobody, ["nothing listens", "autoact up"]),
            (Listener::UnknownHost("no such name".to_owned()), ["no such name", "--gateway"]),
            (Listener::Http1, ["HTTP/1", "metrics"]),
            (Listener::Tls, ["TLS", "https://"]),
            (Listener::Nats, ["nats-server", "7400"]),
            (Listener::Unknown, ["does not speak gRPC", "7400"]),
            (Listener::Http2, ["broke off", "h2 protocol error"]),
        ] {
            let failure = said(found.clone());
            assert!(words.iter().all(|word| failure.message.contains(word)), "{failure}");
            assert_eq!(failure.code, exit::UNAVAILABLE);
            // the advice to start a group is for where there is none
            assert_eq!(failure.message.contains("autoact up"), found == Listener::Nobody, "{failure}");
            // and nobody is sent to a flag that the command does not have
            let compared = unanswered(&broken, &found, Service::Compared, "http://127.0.0.1:7500", false);
            assert!(!compared.message.contains("--gateway"), "{compared}");
        }
    }

    #[test]
    fn what_a_service_says_is_passed_on() {
        let bus = Status::unavailable("the bus does not answer");
        let failure = answered(&bus, Service::Gateway, "http://g");
        assert!(failure.message.contains("the bus does not answer") && !failure.message.contains("autoact up"), "{failure}");
        assert_eq!(failure.code, exit::UNAVAILABLE);
        assert_eq!(answered(&Status::invalid_argument("`question` is empty"), Service::Gateway, "g").code, exit::USAGE);
        assert_eq!(answered(&Status::not_found("there is no task `x`"), Service::Gateway, "g").message, "there is no task `x`");
    }
}
