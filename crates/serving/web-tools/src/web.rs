//! The way of one tool to the network: its bounds, its redirects, its repetitions.

use std::time::Duration;

use autoact_http_client::retry::retry_after;
use autoact_http_tools::{HttpClient, HttpFailure, RedirectRefusal, Seen, StatusClass, Visit, Visited};
use autoact_tools::ToolError;
use serde_json::Value;
use tokio::sync::Semaphore;
use url::Url;

use crate::robots::Robots;

/// How often a page is asked for again whose server says when.
const PAGE_RETRIES: u32 = 2;
/// How often a service is asked again that failed.
const SERVICE_RETRIES: u32 = 4;
/// The first wait before a service is asked again; each further one is twice as long.
const FIRST_WAIT: Duration = Duration::from_millis(100);
/// How long a call waits for others of its tool to end.
const WAIT_FOR_PLACE: Duration = Duration::from_secs(5);

/// The way of one tool to the network.
pub(crate) struct Web {
    pub(crate) client: HttpClient,
    visit: Visit,
    redirects: u8,
    places: Semaphore,
    concurrency: usize,
    /// `None`: the sites' rules are not asked for.
    robots: Option<Robots>,
}

/// A page that was read.
pub(crate) struct Found {
    /// Where it is, after all redirects.
    pub(crate) url: Url,
    pub(crate) seen: Seen,
}

impl Web {
    pub(crate) fn new(client: HttpClient, visit: Visit, redirects: u8, concurrency: usize) -> Web {
        Web { client, visit, redirects, places: Semaphore::new(concurrency), concurrency, robots: None }
    }

    /// The same way that keeps to the sites' robots.txt.
    pub(crate) fn with_robots(self) -> Web {
        Web { robots: Some(Robots::default()), ..self }
    }

    /// Whether requests to this URL may be made, as far as it says.
    pub(crate) fn check(&self, url: &Url) -> Result<(), HttpFailure> {
        self.visit.check(url)
    }

    /// Where requests may go, for messages.
    pub(crate) fn allowed(&self) -> String {
        let rules = self.visit.hosts.iter().map(ToString::to_string).map(|rule| match rule.strip_prefix("*:") {
            Some(port) => format!("all public hosts at port {port}"),
            None if rule == "*" => "all public hosts at ports 80 and 443".to_owned(),
            None => format!("`{rule}`"),
        });
        rules.collect::<Vec<_>>().join(", ")
    }

    /// A page, where robots.txt allows it. Redirects are followed, and each place is checked like
    /// the first.
    pub(crate) async fn page(&self, url: Url) -> Result<Found, ToolError> {
        let _place = self.place().await?;
        let mut retries = 0;
        loop {
            let found = self.follow(url.clone()).await?;
            let Some(failure) = found.seen.failure() else { return Ok(found) };
            let busy = matches!(found.seen.status, 429 | 503);
            match retry_after(&found.seen.headers).filter(|_| busy && retries < PAGE_RETRIES) {
                // the deadline of the call ends it
                Some(wait) => tokio::time::sleep(wait).await,
                None => return Err(failure.into()),
            }
            retries += 1;
        }
    }

    /// The JSON that a service answers with. It is asked again while it fails, up to five times in
    /// all.
    pub(crate) async fn json(&self, url: &Url) -> Result<Value, ToolError> {
        let _place = self.place().await?;
        let mut wait = FIRST_WAIT;
        let mut retries = 0;
        let found = loop {
            let (failure, told) = match self.follow_plain(url.clone()).await {
                Ok(found) => match found.seen.failure() {
                    None => break found,
                    Some(failure) => (failure, retry_after(&found.seen.headers)),
                },
                Err(failure) => (failure, None),
            };
            if retries == SERVICE_RETRIES || !passes(&failure) {
                return Err(failure.into());
            }
            tokio::time::sleep(told.unwrap_or(wait)).await;
            wait *= 2;
            retries += 1;
        };
        serde_json::from_slice(&found.seen.body).map_err(|error| {
            let host = found.url.host_str().unwrap_or_default();
            let message = format!("`{host}` did not answer with JSON ({error}); its URL in the tool's entry may be that of a page");
            ToolError::Failed { status: "no result".to_owned(), message }
        })
    }

    async fn place(&self) -> Result<tokio::sync::SemaphorePermit<'_>, ToolError> {
        match tokio::time::timeout(WAIT_FOR_PLACE, self.places.acquire()).await {
            Ok(Ok(place)) => Ok(place),
            _ => Err(HttpFailure::Busy { limit: self.concurrency }.into()),
        }
    }

    async fn follow(&self, mut url: Url) -> Result<Found, ToolError> {
        for _ in 0..=self.redirects {
            if let Some(robots) = &self.robots {
                robots.check(&self.client, &self.visit, &url).await?;
            }
            match self.visit.get(&self.client, &url).await? {
                Visited::Seen(seen) => return Ok(Found { url, seen }),
                Visited::Moved(to) => url = to,
            }
        }
        Err(self.too_many(&url).into())
    }

    async fn follow_plain(&self, mut url: Url) -> Result<Found, HttpFailure> {
        for _ in 0..=self.redirects {
            match self.visit.get(&self.client, &url).await? {
                Visited::Seen(seen) => return Ok(Found { url, seen }),
                Visited::Moved(to) => url = to,
            }
        }
        Err(self.too_many(&url))
    }

    fn too_many(&self, url: &Url) -> HttpFailure {
        HttpFailure::Redirect { host: url.host_str().unwrap_or_default().to_owned(), reason: RedirectRefusal::TooMany(self.redirects) }
    }
}

/// Whether the failure of a service may be over when it is asked again.
fn passes(failure: &HttpFailure) -> bool {
    match failure {
        HttpFailure::Unreachable { .. } | HttpFailure::Broken { .. } => true,
        HttpFailure::Status { class, .. } => matches!(class, StatusClass::Server | StatusClass::RateLimited),
        _ => false,
    }
}
