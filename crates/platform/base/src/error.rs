//! Errors as one line of text.

use std::error::Error;
use std::fmt::Display;

/// The error and its causes, joined by `: `. A cause whose text is there already is left out.
pub fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let said = cause.to_string();
        if !text.contains(&said) {
            text.push_str(": ");
            text.push_str(&said);
        }
        next = cause.source();
    }
    text
}

/// What a reader of TOML or JSON says of a mistake, in one line: it may write several, with the place
/// marked.
pub fn line(mistake: &impl Display) -> String {
    mistake.to_string().trim().replace('\n', " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug)]
    struct Nested(&'static str, Option<Box<Nested>>);

    impl std::fmt::Display for Nested {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str(self.0)
        }
    }

    impl Error for Nested {
        fn source(&self) -> Option<&(dyn Error + 'static)> {
            self.1.as_deref().map(|cause| cause as &(dyn Error + 'static))
        }
    }

    fn nested(texts: &[&'static str]) -> Nested {
        Nested(texts[0], texts.get(1).map(|_| Box::new(nested(&texts[1..]))))
    }

    #[test]
    fn causes_follow_the_error() {
        assert_eq!(chain(&nested(&["cannot start"])), "cannot start");
        assert_eq!(chain(&nested(&["cannot start", "no model", "no such file"])), "cannot start: no model: no such file");
    }

    #[test]
    fn a_mistake_is_one_line() {
        assert_eq!(line(&"unknown field `nmae`\nin `run`\n"), "unknown field `nmae` in `run`");
    }

    #[test]
    fn a_cause_is_not_said_twice() {
        let repeats = nested(&["cannot read `x`: no such file", "no such file", "os error 2"]);
        assert_eq!(chain(&repeats), "cannot read `x`: no such file: os error 2");
    }
}
