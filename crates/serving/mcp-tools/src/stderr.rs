//! What a server's program writes to its standard error: for the log, bounded, without secrets.

use autoact_base::lines::one_line;
use autoact_http_tools::Hidden;
use autoact_trajectory::cut;
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::sync::watch;

/// The beginning of a line that is kept.
const LINE: usize = 400;
/// Lines of one run of a program that are logged.
const LINES: usize = 1000;

/// Reads to the end: a program whose pipe is full would stop. The last line goes to `last`, for the
/// error when the program ends.
pub(crate) async fn log(server: String, mut stderr: impl AsyncRead + Unpin, hidden: Hidden, last: watch::Sender<String>) {
    // twice the kept bytes, so that a secret which is cut off is still found
    let (mut line, mut chunk, mut count) = (Vec::new(), vec![0; 4096], 0_usize);
    while let Ok(read @ 1..) = stderr.read(&mut chunk).await {
        for byte in &chunk[..read] {
            match byte {
                b'\n' => {
                    count = count.saturating_add(1);
                    told(&server, &mut line, count, &hidden, &last);
                }
                byte if line.len() < 2 * LINE => line.push(*byte),
                _ => {}
            }
        }
    }
    told(&server, &mut line, count, &hidden, &last);
}

fn told(server: &str, line: &mut Vec<u8>, count: usize, hidden: &Hidden, last: &watch::Sender<String>) {
    let text = hidden.clean(one_line(&String::from_utf8_lossy(line)));
    line.clear();
    let text = cut(text, LINE).0;
    if text.is_empty() {
        return;
    }
    let _ = last.send(text.clone());
    if count <= LINES {
        tracing::debug!(server, line = text, "an MCP server wrote to its standard error");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_last_line_is_kept_without_secrets() {
        let (mut hidden, (tell, last)) = (Hidden::default(), watch::channel(String::new()));
        hidden.add("tops3cret");
        let text = format!("first\n{}\nthe key tops3cret\u{7} is wrong\n\n", "x".repeat(100_000));
        log("s".to_owned(), text.as_bytes(), hidden, tell).await;
        assert_eq!(*last.borrow(), "the key *** is wrong");
    }
}
