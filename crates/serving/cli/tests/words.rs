//! `autoact ask` on a terminal, against a gateway that says what a test tells it: the agents' words
//! are there before their event is, and nothing is left of what was withdrawn.
#![allow(clippy::unwrap_used)] // tests

mod screen;

use std::fs::File;
use std::io::Read as _;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use autoact_wire::testing::{self, GatewayStub, Responses};
use autoact_wire::v1::{self, trajectory_event::Body};
use nix::pty::{Winsize, openpty};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use screen::Screen;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio_stream::StreamExt as _;
use tokio_stream::wrappers::{TcpListenerStream, UnboundedReceiverStream};
use tonic::{Request, Response, Status};

const LIMIT: Duration = Duration::from_secs(20);
const COLUMNS: u16 = 40;
const LINES: u16 = 10;

/// A gateway with one task, whose stream a test fills.
struct Scripted {
    messages: Mutex<Option<UnboundedReceiver<v1::AskResponse>>>,
}

#[tonic::async_trait]
impl GatewayStub for Scripted {
    async fn ask(&self, request: Request<v1::AskRequest>) -> Result<Response<Responses<v1::AskResponse>>, Status> {
        let deltas = request.into_inner().deltas;
        let messages = self.messages.lock().unwrap().take().unwrap();
        let asked_for = move |message: &v1::AskResponse| deltas || message.delta.is_none();
        Ok(Response::new(Box::pin(UnboundedReceiverStream::new(messages).filter(asked_for).map(Ok))))
    }

    async fn cancel_task(&self, _: Request<v1::CancelTaskRequest>) -> Result<Response<v1::CancelTaskResponse>, Status> {
        Ok(Response::new(v1::CancelTaskResponse::default()))
    }
}

/// Starts the gateway; what is sent comes to whoever asks.
async fn gateway() -> (String, UnboundedSender<v1::AskResponse>) {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let (sender, messages) = unbounded_channel();
    let service = testing::gateway(Scripted { messages: Mutex::new(Some(messages)) });
    tokio::spawn(tonic::transport::Server::builder().add_service(service).serve_with_incoming(TcpListenerStream::new(listener)));
    (address, sender)
}

fn event(sequence: u64, call_id: &str, body: Body) -> v1::AskResponse {
    let event =
        v1::TrajectoryEvent { sequence, index: sequence, call_id: call_id.into(), body: Some(body), ..v1::TrajectoryEvent::default() };
    v1::AskResponse { event: Some(event), ..v1::AskResponse::default() }
}

fn words(call_id: &str, attempt: u32, offset: u32, text: &str) -> v1::AskResponse {
    let delta = v1::TaskDelta { call_id: call_id.into(), epoch: 1, attempt, offset, text: text.into() };
    v1::AskResponse { delta: Some(delta), ..v1::AskResponse::default() }
}

fn submitted() -> v1::AskResponse {
    event(1, "", Body::Submitted(v1::Submitted { question: "Where does it flow?".into(), ..v1::Submitted::default() }))
}

fn autoact(gateway: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_autoact"));
    command.args(["--gateway", gateway, "ask", "Where does it flow?"]).args(arguments);
    command.env("TERM", "xterm").env("NO_COLOR", "1").stdin(Stdio::null()).stderr(Stdio::null());
    command
}

/// `autoact` whose standard output is a terminal.
struct Terminal {
    child: Child,
    screen: Arc<Mutex<Screen>>,
}

impl Terminal {
    fn start(mut command: Command) -> Terminal {
        let size = Winsize { ws_row: LINES, ws_col: COLUMNS, ws_xpixel: 0, ws_ypixel: 0 };
        let pair = openpty(Some(&size), None).unwrap();
        let child = command.stdout(Stdio::from(pair.slave)).spawn().unwrap();
        // the command holds the terminal's end: with it, reading ends once the process has
        drop(command);
        let screen = Arc::new(Mutex::new(Screen::new(LINES.into(), COLUMNS.into())));
        let (shown, mut master) = (Arc::clone(&screen), File::from(pair.master));
        std::thread::spawn(move || {
            let mut unread = Vec::new();
            let mut buffer = [0; 4096];
            while let Ok(count @ 1..) = master.read(&mut buffer) {
                unread.extend_from_slice(&buffer[..count]);
                // a character or a code may come in two pieces
                let whole = match std::str::from_utf8(&unread) {
                    Ok(text) => text.rfind('\u{1b}').filter(|at| !text[*at..].contains(char::is_alphabetic)).unwrap_or(text.len()),
                    Err(error) => error.valid_up_to(),
                };
                let rest = unread.split_off(whole);
                shown.lock().unwrap().write(&String::from_utf8(std::mem::replace(&mut unread, rest)).unwrap());
            }
        });
        Terminal { child, screen }
    }

    /// Waits until the terminal shows these rows, without spaces at their ends.
    async fn shows(&self, rows: &[&str]) {
        let deadline = Instant::now() + LIMIT;
        loop {
            let shown: Vec<String> = self.screen.lock().unwrap().rows().iter().map(|row| row.trim_end().to_owned()).collect();
            if shown == rows {
                return;
            }
            assert!(Instant::now() < deadline, "{shown:?}");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[tokio::test]
async fn words_are_on_the_terminal_before_their_event() {
    let (address, gateway) = gateway().await;
    let terminal = Terminal::start(autoact(&address, &[]));
    let question = "question       Where does it flow?";
    gateway.send(submitted()).unwrap();
    terminal.shows(&[question, ""]).await;
    // longer than a row, and with characters of two columns
    gateway.send(words("plan-1-0", 1, 0, " I need the page about 日本")).unwrap();
    terminal.shows(&[question, "thought 1      I need the page about 日", "本"]).await;
    gateway.send(words("plan-1-0", 1, 29, ", and its rivers.")).unwrap();
    terminal.shows(&[question, "thought 1      I need the page about 日", "本, and its rivers."]).await;
    // the call is repeated: its words are withdrawn
    gateway.send(words("plan-1-0", 2, 0, " I need a map.")).unwrap();
    terminal.shows(&[question, "thought 1      I need a map."]).await;
    let thought = v1::Thought { thought: "I need a map.".into(), tool: "Retrieve".into() };
    gateway.send(event(2, "plan-1-0", Body::Thought(thought))).unwrap();
    let thought = "thought 1      I need a map.";
    terminal.shows(&[question, thought, ""]).await;
    // words that come behind their event are late
    gateway.send(words("plan-1-0", 2, 14, " Late.")).unwrap();
    gateway.send(words("tool-1-0", 1, 0, " Loi")).unwrap();
    terminal.shows(&[question, thought, "action 1       Retrieve[Loi"]).await;
}

#[tokio::test]
async fn an_interrupted_command_leaves_a_clean_terminal() {
    let (address, gateway) = gateway().await;
    let mut terminal = Terminal::start(autoact(&address, &[]));
    gateway.send(submitted()).unwrap();
    gateway.send(words("plan-1-0", 1, 0, " I need more rows than one for this thought.")).unwrap();
    let question = "question       Where does it flow?";
    terminal.shows(&[question, "thought 1      I need more rows than on", "e for this thought."]).await;
    kill(Pid::from_raw(terminal.child.id().try_into().unwrap()), Signal::SIGINT).unwrap();
    terminal.shows(&[question, ""]).await;
    assert_eq!(terminal.child.wait().unwrap().code(), Some(130));
}

#[tokio::test]
async fn programs_get_words_only_if_they_ask() {
    for (arguments, expected) in [
        (&["--json"][..], &["submitted", "thought", "finished"][..]),
        (&["--json", "--deltas"], &["submitted", "delta", "thought", "finished"]),
    ] {
        let (address, gateway) = gateway().await;
        gateway.send(submitted()).unwrap();
        gateway.send(words("plan-1-0", 1, 0, " I need it.")).unwrap();
        gateway.send(event(2, "plan-1-0", Body::Thought(v1::Thought::default()))).unwrap();
        let finished = v1::Finished { approved: true, ..v1::Finished::default() };
        gateway.send(event(3, "", Body::Finished(finished))).unwrap();
        let mut command = autoact(&address, arguments);
        let output = tokio::task::spawn_blocking(move || command.output().unwrap());
        let output = tokio::time::timeout(LIMIT, output).await.unwrap().unwrap();
        let lines = String::from_utf8(output.stdout).unwrap();
        let events = lines.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap()["event"].clone());
        assert_eq!(events.collect::<Vec<_>>(), expected);
    }
}

#[tokio::test]
async fn what_is_no_terminal_gets_whole_lines() {
    let (address, gateway) = gateway().await;
    gateway.send(submitted()).unwrap();
    gateway.send(words("plan-1-0", 1, 0, " I need it.")).unwrap();
    gateway.send(event(2, "", Body::Finished(v1::Finished::default()))).unwrap();
    let mut command = autoact(&address, &[]);
    let output = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("question ") && !text.contains("I need it") && !text.contains('\u{1b}'), "{text}");
}

#[tokio::test]
async fn the_exit_code_says_how_a_task_ended() {
    let finished = |approved, reason: v1::FinishReason, detail: &str| v1::Finished {
        approved,
        reason: reason as i32,
        detail: detail.into(),
        ..v1::Finished::default()
    };
    for (finished, code, line) in [
        (finished(true, v1::FinishReason::Approved, ""), 0, "answer "),
        (finished(false, v1::FinishReason::MaxSteps, "bound on steps: 1"), 3, "answer "),
        (finished(false, v1::FinishReason::NoAnswer, "the mascot of Lima"), 4, "not found      the mascot of Lima"),
    ] {
        let (address, gateway) = gateway().await;
        gateway.send(submitted()).unwrap();
        gateway.send(event(2, "", Body::Finished(finished))).unwrap();
        let mut command = autoact(&address, &[]);
        let output = tokio::task::spawn_blocking(move || command.output().unwrap());
        let output = tokio::time::timeout(LIMIT, output).await.unwrap().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        assert_eq!(output.status.code(), Some(code), "{text}");
        assert!(text.lines().any(|shown| shown.starts_with(line)), "{text}");
    }
}
