//! Services that are killed in mid-call: every task ends as it does without kills, event for event.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context as _;
use autoact_testkit::files::Assets;
use autoact_testkit::poll::poll_until;
use autoact_testkit::{NatsServer, Program, Running, ports};
use autoact_wire::client::connect_lazy;
use autoact_wire::v1::trajectory_event::Body;
use autoact_wire::v1::{self, TrajectoryEvent};
use nix::sys::signal::Signal;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;

use crate::clients::{TASK_LIMIT, gateway, watch};

/// How long a service may take to start; the machine may be busy.
const START_LIMIT: Duration = Duration::from_secs(60);
const SERVICES: [&str; 4] = ["gateway", "plan-agent", "tool-agent", "reflect-agent"];
/// Kills of each service while its tasks run.
const KILLS: usize = 3;
/// Temperatures at which every question is asked.
const TEMPERATURES: [f32; 2] = [0.0, 0.7];

/// The services as processes of their own, each of which can be killed and started again.
struct Fleet {
    dir: tempfile::TempDir,
    base_port: u16,
    running: BTreeMap<&'static str, Running>,
    _nats: NatsServer,
}

impl Fleet {
    async fn start() -> anyhow::Result<Fleet> {
        let dir = tempfile::tempdir()?;
        let assets = Assets::bundled(dir.path())?;
        let offsets: Vec<u16> = (0..4).flat_map(|index| [index, 100 + index]).collect();
        let base_port = ports::free_block(&offsets)?;
        let nats = NatsServer::start().await?;
        let path = |path: PathBuf| format!("{:?}", path.display().to_string());
        let mut config = format!("[common]\nnats.url = \"{}\"\n", nats.url());
        for (name, index) in SERVICES.into_iter().zip(0..) {
            let (port, metrics) = (base_port + index, base_port + 100 + index);
            config += &format!("\n[{name}]\nlisten = \"127.0.0.1:{port}\"\nmetrics_listen = \"127.0.0.1:{metrics}\"\n");
            match name.strip_suffix("-agent") {
                None => {
                    config += "memory = \"\"\nbus.lease = \"2s\"\n";
                    for (role, index) in [("plan", 1), ("tool", 2), ("reflect", 3)] {
                        config += &format!("agents.{role} = \"http://127.0.0.1:{}\"\n", base_port + index);
                    }
                }
                Some(role) => {
                    config += &format!("model = {}\nadapter = {}\n", path(assets.model.clone()), path(assets.adapters.join(role)));
                }
            }
            if name == "tool-agent" {
                config += &format!("tools = {}\ncorpus = {}\n", path(assets.tools.clone()), path(assets.corpus.clone()));
            }
        }
        std::fs::write(dir.path().join("config.toml"), config)?;
        let mut fleet = Fleet { dir, base_port, running: BTreeMap::new(), _nats: nats };
        for name in SERVICES {
            fleet.launch(name)?;
        }
        for name in SERVICES {
            fleet.ready(name).await?;
        }
        Ok(fleet)
    }

    fn launch(&mut self, name: &'static str) -> anyhow::Result<()> {
        let config = self.dir.path().join("config.toml").display().to_string();
        let program = Program::new(name)?.args(["--config", &config]);
        self.running.insert(name, program.start()?);
        Ok(())
    }

    fn address(&self, name: &str) -> String {
        let index = SERVICES.iter().position(|service| *service == name).unwrap_or_default();
        format!("http://127.0.0.1:{}", self.base_port + u16::try_from(index).unwrap_or_default())
    }

    async fn ready(&self, name: &str) -> anyhow::Result<()> {
        let address = self.address(name);
        poll_until(START_LIMIT, name, async || {
            let channel = connect_lazy(&address).ok()?;
            let health = HealthClient::new(channel).check(HealthCheckRequest::default()).await.ok()?;
            (health.into_inner().status() == ServingStatus::Serving).then_some(())
        })
        .await
    }

    /// Ends a service without a word, and starts it again.
    async fn kill(&mut self, name: &'static str) -> anyhow::Result<()> {
        let killed = self.running.remove(name).context("it runs")?;
        killed.signal(Signal::SIGKILL);
        killed.output(START_LIMIT).await?;
        self.launch(name)?;
        self.ready(name).await
    }
}

fn questions() -> anyhow::Result<Vec<String>> {
    let path = autoact_testkit::files::root().join("corpora/atlas/questions/dev.jsonl");
    let text = std::fs::read_to_string(&path)?;
    let lines: Vec<&str> = text.lines().collect();
    let text = |line: &&str| {
        let row: serde_json::Value = serde_json::from_str(line)?;
        Ok(row["text"].as_str().context("a question has a text")?.to_owned())
    };
    lines.iter().step_by(lines.len() / 8).map(text).collect()
}

/// What a task was asked, and everything that was said in it, without who ran it and when.
fn said(events: &[TrajectoryEvent]) -> Vec<Body> {
    let body = |event: &TrajectoryEvent| event.body.clone();
    events.iter().filter_map(body).filter(|body| !matches!(body, Body::Submitted(_) | Body::Started(_) | Body::Released(_))).collect()
}

/// Asks every question at every temperature, all at once; what was said, by question and temperature.
async fn ask_all(address: String, round: String) -> anyhow::Result<BTreeMap<(String, String), Vec<Body>>> {
    let mut asked = Vec::new();
    for (number, question) in questions()?.into_iter().enumerate() {
        for temperature in TEMPERATURES {
            let mut client = gateway(&address)?;
            let task = v1::SubmitTaskRequest {
                task_id: format!("{round}-{number}-{}", (temperature * 10.0) as u32),
                question: question.clone(),
                sampling: Some(v1::SamplingParams { temperature, seed: 11, ..v1::SamplingParams::default() }),
                ..v1::SubmitTaskRequest::default()
            };
            let question = question.clone();
            asked.push(tokio::spawn(async move {
                let events = tokio::time::timeout(TASK_LIMIT, async {
                    // a gateway that was killed is asked again: the same id is the same task
                    let mut seen: Vec<TrajectoryEvent> = Vec::new();
                    let mut ticks = tokio::time::interval(Duration::from_millis(50));
                    loop {
                        ticks.tick().await;
                        let submitted = client.submit_task(task.clone()).await;
                        if submitted.is_ok() {
                            let after = seen.last().map_or(0, |event| event.sequence);
                            seen.extend(watch(&mut client, &task.task_id, after).await.unwrap_or_default());
                            if matches!(seen.last().and_then(|event| event.body.as_ref()), Some(Body::Finished(_))) {
                                return seen;
                            }
                        }
                    }
                });
                anyhow::Ok(((question, temperature.to_string()), said(&events.await.context("the task ends")?)))
            }));
        }
    }
    let mut all = BTreeMap::new();
    for asked in asked {
        let (question, said) = asked.await??;
        all.insert(question, said);
    }
    Ok(all)
}

#[tokio::test(flavor = "multi_thread")]
async fn tasks_under_kills_are_the_tasks_without_kills() -> anyhow::Result<()> {
    let mut fleet = Fleet::start().await?;
    let address = fleet.address("gateway");
    let expected = ask_all(address.clone(), "quiet".to_owned()).await?;
    for victim in SERVICES {
        let asked = tokio::spawn(ask_all(address.clone(), format!("kill-{victim}")));
        for _ in 0..KILLS {
            fleet.kill(victim).await?;
        }
        let seen = asked.await??;
        assert_eq!(seen.len(), expected.len());
        for (question, said) in &expected {
            assert_eq!(&seen[question], said, "{question:?} while {victim} is killed");
        }
    }
    Ok(())
}
