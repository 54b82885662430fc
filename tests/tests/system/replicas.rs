//! `autoact up --replicas 2`: two gateways and two of each agent share the tasks, and prompts are
//! found in the caches as with one.

use anyhow::Context as _;
use autoact_testkit::{Group, GroupOptions};
use futures::StreamExt as _;

use crate::clients::{QUESTION, ask, finished, gateway, task};
use crate::observability::page;

/// Questions that are asked of each group, half of them at each gateway.
const TASKS: usize = 16;
/// How many at a time.
const AT_ONCE: usize = 4;

#[tokio::test(flavor = "multi_thread")]
async fn two_replicas_share_the_tasks_and_cached_prompts_stay_cached() -> anyhow::Result<()> {
    let one = {
        let group = Group::start().await?;
        ask_all(&[group.gateway()]).await?;
        cached(&[group.metrics("plan-agent")]).await?
    };
    let group =
        Group::start_with(GroupOptions { args: ["--replicas", "2"].map(str::to_owned).to_vec(), ..GroupOptions::default() }).await?;
    ask_all(&[group.gateway(), group.second_grpc("gateway")]).await?;
    for agent in ["plan-agent", "tool-agent", "reflect-agent"] {
        for metrics in [group.metrics(agent), group.second_metrics(agent)] {
            let calls = sum(&page(&metrics, "/metrics").await?, "autoact_model_calls_total", &[]);
            assert!(calls > 0.0, "{agent} at {metrics} had no calls");
        }
    }
    let shown = page(&group.metrics("gateway"), "/metrics").await?;
    for replica in ["0", "1"] {
        let labels = [("agent", "plan-agent"), ("replica", replica)];
        assert!(sum(&shown, "autoact_replica_calls_total", &labels) > 0.0, "{shown}");
    }
    assert_eq!(sum(&shown, "autoact_replicas", &[("agent", "plan-agent"), ("state", "closed")]), 2.0);

    let two = cached(&[group.metrics("plan-agent"), group.second_metrics("plan-agent")]).await?;
    println!("cached prompt tokens: {:.1}% with one replica, {:.1}% with two", 100.0 * one, 100.0 * two);
    // what random weights say is another length every time
    if group.assets().trained {
        assert!(two >= 0.9 * one, "{two} with two replicas, {one} with one");
    }
    Ok(())
}

async fn ask_all(gateways: &[String]) -> anyhow::Result<()> {
    let mut asked = futures::stream::iter(0..TASKS)
        .map(|number| async move {
            let mut client = gateway(&gateways[number % gateways.len()])?;
            finished(&ask(&mut client, task(QUESTION)).await?).map(|_| ())
        })
        .buffer_unordered(AT_ONCE);
    while let Some(answer) = asked.next().await {
        answer?;
    }
    Ok(())
}

/// The share of prompt tokens that were found in the caches of these agents.
async fn cached(metrics: &[String]) -> anyhow::Result<f64> {
    let (mut found, mut all) = (0.0, 0.0);
    for address in metrics {
        let shown = page(address, "/metrics").await?;
        let tokens = |kind| sum(&shown, "autoact_model_tokens_total", &[("kind", kind)]);
        found += tokens("cached");
        all += tokens("cached") + tokens("prompt");
    }
    (all > 0.0).then(|| found / all).context("no prompt tokens were counted")
}

/// The sum of a metric's series that have these labels.
fn sum(shown: &str, metric: &str, labels: &[(&str, &str)]) -> f64 {
    let series = shown.lines().filter(|line| line.strip_prefix(metric).is_some_and(|rest| rest.starts_with(['{', ' '])));
    let wanted = series.filter(|line| labels.iter().all(|(name, value)| line.contains(&format!("{name}=\"{value}\""))));
    wanted.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).sum()
}
