//! The person at the terminal, who is asked what a task asks.

use std::io::{self, BufRead as _, IsTerminal as _};

use autoact_wire::v1;
use tokio::sync::mpsc;

use crate::client::Gateway;
use crate::control;
use crate::out;

/// Whoever may answer here. Lines are read only while something is asked.
#[derive(Default)]
pub(crate) struct Person {
    asked: Option<v1::InputRequested>,
    lines: Option<mpsc::Receiver<String>>,
}

impl Person {
    /// Asks the person, if there is one at a terminal; otherwise says how to answer.
    pub(crate) fn ask(&mut self, task_id: &str, asked: &v1::InputRequested, show_lines: bool) {
        if !(show_lines && io::stdin().is_terminal() && out::is_live()) {
            out::note(control::how_to_answer(task_id, asked));
            return;
        }
        if let Some(lines) = &mut self.lines {
            // typed before anything was asked
            while lines.try_recv().is_ok() {}
        } else {
            self.lines = Some(read_lines());
        }
        out::prompt(control::what_to_type(asked));
        self.asked = Some(asked.clone());
    }

    /// Somebody has answered, or nobody needs to any more.
    pub(crate) fn settled(&mut self) {
        self.asked = None;
    }

    /// The next line that the person types, while something is asked.
    pub(crate) async fn line(&mut self) -> String {
        if let (Some(lines), Some(_)) = (&mut self.lines, &self.asked)
            && let Some(line) = lines.recv().await
        {
            return line;
        }
        // the terminal is gone, or nothing is asked
        std::future::pending().await
    }

    /// Passes on what was typed; asks again where it says nothing, or is refused.
    pub(crate) async fn said(&mut self, client: &mut Gateway, task_id: &str, line: &str) {
        let Some(asked) = &self.asked else { return };
        let Some(input) = control::typed(asked, line) else {
            out::prompt(control::what_to_type(asked));
            return;
        };
        let request = v1::GiveInputRequest { task_id: task_id.to_owned(), step: asked.step, input: Some(input) };
        match client.give_input(request).await {
            Ok(_) => self.settled(),
            Err(status) => {
                out::note(status.message());
                out::prompt(control::what_to_type(asked));
            }
        }
    }
}

/// The lines of standard input, read beside everything else: a read cannot be interrupted, and ends
/// with the process.
fn read_lines() -> mpsc::Receiver<String> {
    let (sender, lines) = mpsc::channel(1);
    std::thread::spawn(move || {
        for line in io::stdin().lock().lines().map_while(Result::ok) {
            if sender.blocking_send(line).is_err() {
                return;
            }
        }
    });
    lines
}
