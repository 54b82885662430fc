//! What mutual TLS and tokens cost: the same tasks on two groups, one with both and one with neither,
//! in turn. Every task has to end as it should; what it costs is printed.

use anyhow::Context as _;
use autoact_access::{NewToken, Principal, Role};
use autoact_testkit::{Cluster, ClusterOptions, NatsServer};
use autoact_wire::client::{Authorized, Bearer};
use autoact_wire::v1::gateway_client::GatewayClient;
use autoact_wire::v1::trajectory_event::Body;
use autoact_wire::v1::{self};
use tokio::time::Instant;

use crate::load::questions;
use crate::student::interval;
use crate::{lasts, long};

/// Tasks in flight: they keep the agents busy.
const AT_ONCE: usize = 8;
/// What security should leave of the throughput.
const AIM: f64 = 0.97;

/// A group, and its client.
struct Side {
    _cluster: Cluster,
    _tokens: tempfile::TempDir,
    client: GatewayClient<Authorized>,
}

async fn side(secured: bool) -> anyhow::Result<Side> {
    let tokens = tempfile::tempdir()?;
    let file = tokens.path().join("tokens.toml");
    let (mut bearer, mut settings) = (Bearer::default(), Vec::new());
    if secured {
        let principal = Principal { name: "ann".to_owned(), tenant: "ops".parse()?, roles: [Role::Ask].into() };
        let NewToken { token, entry } = NewToken::make(&principal, None).map_err(anyhow::Error::msg)?;
        std::fs::write(&file, entry)?;
        (bearer, settings) = (Bearer::new(&token)?, vec![("gateway", format!("access.tokens = {:?}", file.display().to_string()))]);
    }
    let options = ClusterOptions { tls: secured, memory: true, settings, ..ClusterOptions::default() };
    let cluster = Cluster::start(vec![NatsServer::start().await?], options, |assets, _| Ok(assets.tools.clone())).await?;
    let channel = cluster.connector()?.connect_lazy(&cluster.address("gateway"))?;
    let client = autoact_wire::limited!(GatewayClient::with_interceptor(channel, bearer));
    Ok(Side { _cluster: cluster, _tokens: tokens, client })
}

impl Side {
    /// Runs the tasks of a block, several at a time, and says how many a second there were.
    async fn rate(&self, questions: &[String], block: usize, tasks: usize) -> anyhow::Result<f64> {
        let began = Instant::now();
        let work = (0..AT_ONCE).map(async |worker| {
            for number in (worker..tasks).step_by(AT_ONCE) {
                let mut client = self.client.clone();
                // the same questions on both sides; new ones in every block
                let question = questions[(block * tasks + number) % questions.len()].clone();
                let task = v1::SubmitTaskRequest { question, ..v1::SubmitTaskRequest::default() };
                let mut stream = client.ask(v1::AskRequest { task: Some(task), ..v1::AskRequest::default() }).await?.into_inner();
                let mut last = None;
                while let Some(message) = stream.message().await? {
                    last = message.event.or(last);
                }
                let ended = last.and_then(|event| event.body).context("a task has a last event")?;
                anyhow::ensure!(matches!(ended, Body::Finished(_)), "a task ended with {ended:?}");
            }
            anyhow::Ok(())
        });
        futures::future::try_join_all(work).await?;
        Ok(tasks as f64 / began.elapsed().as_secs_f64())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_tls_and_tokens_cost_of_the_throughput() -> anyhow::Result<()> {
    let (until, questions) = (Instant::now() + lasts(1, 240), questions()?);
    // each group has so many a block
    let tasks = if long() { 3 * AT_ONCE } else { AT_ONCE };
    let (plain, secured) = (side(false).await?, side(true).await?);
    let mut ratios = Vec::new();
    for block in 0.. {
        // who is first changes
        let (before, after) = if block % 2 == 0 { (&plain, &secured) } else { (&secured, &plain) };
        let (before, after) = (before.rate(&questions, block, tasks).await?, after.rate(&questions, block, tasks).await?);
        // the first block fills the caches of both
        if block > 0 {
            ratios.push(if block % 2 == 0 { after / before } else { before / after });
        }
        if block > 0 && Instant::now() > until {
            break;
        }
    }
    let (mean, half) = interval(&ratios);
    let half = half.map_or("?".to_owned(), |half| format!("{:.1}%", half * 100.0));
    println!(
        "throughput with mutual TLS and tokens: {:.1}% ± {half} of that without, aim {:.0}% ({} pairs of {tasks} tasks, {AT_ONCE} at once)",
        mean * 100.0,
        AIM * 100.0,
        ratios.len()
    );
    Ok(())
}
