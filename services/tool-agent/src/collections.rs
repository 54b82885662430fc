//! The collections that tasks name: the memory service keeps them.

use std::time::Duration;

use autoact_telemetry::propagate::TraceInterceptor;
use autoact_tools::{CollectionError, Collections, Opened, Page, Place, PlacedPage, Scope};
use autoact_wire::client::{AddressError, Connector};
use autoact_wire::limited;
use autoact_wire::memory_v1::documents_client::DocumentsClient;
use autoact_wire::memory_v1::{OpenSegmentRequest, SearchSegmentsRequest, Segment};
use tokio::runtime::Handle;
use tonic::service::interceptor::InterceptedService;
use tonic::transport::Channel;
use tonic::{Code, Request, Status};

/// A search takes milliseconds; one that takes longer than this is not waited for.
const CALL_LIMIT: Duration = Duration::from_secs(10);
/// How often a call is made where nobody listens, and the pause after each: a service that restarts
/// is back soon.
const ATTEMPTS: u32 = 4;
const PAUSE: Duration = Duration::from_millis(250);

type Client = DocumentsClient<InterceptedService<Channel, TraceInterceptor>>;

/// The memory service's collections. Tools run on blocking threads, which wait for its answers.
pub(crate) struct RemoteCollections {
    client: Client,
    address: String,
    runtime: Handle,
}

impl RemoteCollections {
    /// Connects on first use. Called on a runtime, which makes the calls.
    pub(crate) fn new(connector: &Connector, address: &str) -> Result<RemoteCollections, AddressError> {
        let client = limited!(DocumentsClient::with_interceptor(connector.connect_lazy(address)?, TraceInterceptor));
        Ok(RemoteCollections { client, address: address.to_owned(), runtime: Handle::current() })
    }

    fn call<T, F>(&self, call: impl Fn(Client) -> F) -> Result<T, CollectionError>
    where
        F: Future<Output = Result<T, Status>>,
    {
        let repeated = async {
            let mut attempt = 1;
            loop {
                match call(self.client.clone()).await {
                    Err(status) if status.code() == Code::Unavailable && attempt < ATTEMPTS => {
                        tokio::time::sleep(PAUSE * attempt).await;
                        attempt += 1;
                    }
                    answer => return answer,
                }
            }
        };
        let limited = async { tokio::time::timeout(CALL_LIMIT, repeated).await };
        match self.runtime.block_on(limited) {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(status)) if matches!(status.code(), Code::NotFound | Code::InvalidArgument | Code::FailedPrecondition) => {
                Err(CollectionError::Refused(status.message().to_owned()))
            }
            Ok(Err(status)) => {
                tracing::warn!(address = self.address, %status, "the memory service did not answer");
                Err(CollectionError::Away(format!("the memory service at {}: {}", self.address, status.message())))
            }
            Err(_) => Err(CollectionError::Away(format!("no answer from the memory service at {}", self.address))),
        }
    }
}

impl Collections for RemoteCollections {
    fn search(&self, scope: Scope<'_>, query: &str, limit: usize) -> Result<Vec<PlacedPage>, CollectionError> {
        if query.trim().is_empty() {
            return Ok(Vec::new());
        }
        let request = SearchSegmentsRequest {
            tenant: scope.tenant.to_owned(),
            collections: scope.collections.to_vec(),
            query: query.to_owned(),
            limit: u32::try_from(limit).unwrap_or(u32::MAX),
            ..SearchSegmentsRequest::default()
        };
        let found = self.call(|mut client| {
            let request = Request::new(request.clone());
            async move { Ok(client.search_segments(request).await?.into_inner()) }
        })?;
        Ok(found.segments.into_iter().filter_map(|found| found.segment).map(placed).collect())
    }

    fn open(&self, scope: Scope<'_>, name: &str, similar: usize) -> Result<Opened, CollectionError> {
        let request = OpenSegmentRequest {
            tenant: scope.tenant.to_owned(),
            collections: scope.collections.to_vec(),
            name: name.to_owned(),
            similar: u32::try_from(similar).unwrap_or(u32::MAX),
        };
        let opened = self.call(|mut client| {
            let request = Request::new(request.clone());
            async move { Ok(client.open_segment(request).await?.into_inner()) }
        })?;
        Ok(match opened.segment {
            Some(segment) => {
                let also = opened.also.into_iter().map(|segment| placed(segment).place).collect();
                Opened::Page { page: placed(segment), by_title: opened.by_title, also }
            }
            None => Opened::Unknown { similar: opened.similar },
        })
    }
}

fn placed(segment: Segment) -> PlacedPage {
    let Segment { collection, path, title, text, heading, page, start } = segment;
    let heading = (!heading.is_empty()).then_some(heading);
    PlacedPage { page: Page { title, text }, place: Place { collection, file: path, heading, page, start } }
}
