//! A second gateway beside a group's own.

use anyhow::Context as _;
use autoact_testkit::program::{Output, Running};
use autoact_testkit::{Group, Program, poll_until, ports, processes};
use autoact_wire::v1;
use nix::sys::signal::Signal;

use crate::clients::{QUICK, gateway};
use crate::observability::page;

/// A second gateway of a group, which can be stopped without the group.
pub(crate) struct Second {
    program: Program,
    pub(crate) address: String,
    metrics: String,
}

impl Second {
    pub(crate) fn of(group: &Group) -> anyhow::Result<Second> {
        Second::at(group, "gateway", ports::free_block(&[0, 1])?)
    }

    /// The program `name` in place of this release's gateway, at the same address.
    pub(crate) fn in_place_of(&self, group: &Group, name: &str) -> anyhow::Result<Second> {
        let port = self.address.rsplit(':').next().and_then(|port| port.parse().ok());
        Second::at(group, name, port.context("an address has a port")?)
    }

    fn at(group: &Group, name: &str, port: u16) -> anyhow::Result<Second> {
        let (listen, metrics) = (format!("127.0.0.1:{port}"), format!("127.0.0.1:{}", port + 1));
        let agents = [("agents.plan", "plan-agent"), ("agents.tool", "tool-agent"), ("agents.reflect", "reflect-agent")];
        let agents = agents.into_iter().flat_map(|(key, name)| ["--set".to_owned(), format!("{key}={}", group.grpc(name))]);
        let program = Program::new(name)?
            .args(["--listen", &listen, "--metrics-listen", &metrics])
            .args(group.nats_args("gateway"))
            // what it runs passes to the group's own gateway at once
            .args(["--set", "drain=100ms", "--set", "bus.allow_unsynced=true"])
            .args(agents)
            // the agents let in who has a gateway's certificate; its own door is plain, as the first one's
            .args(group.tls_args("gateway"))
            .args(["--set", "tls.insecure=true"]);
        Ok(Second { program, address: format!("http://{listen}"), metrics })
    }

    pub(crate) async fn start(&self) -> anyhow::Result<Running> {
        let running = self.program.start()?;
        let mut client = gateway(&self.address)?;
        let ready = poll_until(QUICK, "the second gateway", async || {
            client.list_tasks(v1::ListTasksRequest { page_size: 1, ..v1::ListTasksRequest::default() }).await.ok().map(drop)
        });
        ready.await.with_context(|| format!("{} does not serve", self.address))?;
        Ok(running)
    }

    /// An `autoact` that asks it.
    pub(crate) fn autoact(&self, args: &[&str]) -> anyhow::Result<Program> {
        Ok(Program::new("autoact")?.args(["--gateway", &self.address]).args(args.iter().copied()))
    }

    /// The value of a counter; 0 before it has been counted.
    pub(crate) async fn counted(&self, name: &str) -> anyhow::Result<f64> {
        counted(&self.metrics, name).await
    }

    /// Waits until so many tasks are there that have begun.
    pub(crate) async fn wait_for_tasks(&self, count: usize) -> anyhow::Result<()> {
        let mut client = gateway(&self.address)?;
        poll_until(QUICK, "the tasks to begin", async || {
            let request = v1::ListTasksRequest { page_size: 100, ..v1::ListTasksRequest::default() };
            let tasks = client.list_tasks(request).await.ok()?.into_inner().tasks;
            let running = tasks.iter().filter(|task| task.state() == v1::TaskState::Running).count();
            (running >= count).then_some(())
        })
        .await
    }
}

/// While it stands, Plan-Agent does not answer: tasks stay where they are.
pub(crate) struct Held(i32);

impl Held {
    pub(crate) fn plan_agent(group: &Group) -> anyhow::Result<Held> {
        let agent = group.processes().into_iter().find(|process| process.name == "plan-agent").context("plan-agent runs")?;
        processes::signal(agent.pid, Signal::SIGSTOP);
        Ok(Held(agent.pid))
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        processes::signal(self.0, Signal::SIGCONT);
    }
}

pub(crate) async fn stop(running: Running, signal: Signal) -> anyhow::Result<Output> {
    processes::signal(running.pid().context("it runs")?, signal);
    running.output(QUICK).await
}

/// The sum of a counter's series on a metrics page; 0 before it has been counted.
pub(crate) async fn counted(address: &str, name: &str) -> anyhow::Result<f64> {
    let metrics = page(address, "/metrics").await?;
    let series = metrics.lines().filter(|line| line.starts_with(name) && !line.starts_with('#'));
    Ok(series.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).sum())
}
