//! Arithmetic: a Pratt parser that computes while it reads.
//!
//! `comparison = sum [(> | < | >= | <= | = | !=) sum]`; then + -, then * / %, then unary -, then ^
//! (right to left), then numbers, parentheses and the functions `min max abs sqrt round`. A number
//! may have a unit, `8849 m`. Units are compared, not converted.

use std::cmp::Ordering;
use std::fmt;

/// A longer expression is refused.
const LONGEST: usize = 2000;
/// How deep parentheses, signs and powers may nest: far above any real expression, far below the
/// stack.
const DEEPEST: usize = 64;
/// Digits a result is rounded to, so that 0.1 + 0.2 is 0.3.
const DIGITS: usize = 15;

/// What an expression is worth.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Value<'a> {
    /// A finite number.
    Number(Quantity<'a>),
    /// The outcome of a comparison.
    Truth(bool),
}

/// A number and its unit as written; `""` is none.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Quantity<'a> {
    number: f64,
    unit: &'a str,
}

impl fmt::Display for Value<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Truth(truth) => write!(f, "{truth}"),
            Value::Number(quantity) => write!(f, "{quantity}"),
        }
    }
}

impl fmt::Display for Quantity<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let number = rounded(self.number);
        let size = number.abs();
        if size >= 1e15 || (size > 0.0 && size < 1e-6) { write!(f, "{number:e}") } else { write!(f, "{number}") }?;
        if self.unit.is_empty() { Ok(()) } else { write!(f, " {}", self.unit) }
    }
}

/// Why an expression has no value. The message names the expression.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("cannot calculate `{expression}`: {cause}")]
pub struct CalcError {
    expression: String,
    cause: String,
}

/// Computes an expression.
pub fn calculate(expression: &str) -> Result<Value<'_>, CalcError> {
    let error = |cause| CalcError { expression: crate::text::quoted(expression), cause };
    if expression.len() > LONGEST {
        return Err(error(format!("it is longer than {LONGEST} bytes")));
    }
    let mut parser = Parser { rest: expression, peeked: None, depth: 0, in_list: false };
    let value = parser.expression(0).and_then(|value| match parser.next()? {
        Token::End => Ok(value),
        token => Err(format!("expected an operator, found {token}")),
    });
    value.map_err(error)
}

#[derive(Debug, Clone, PartialEq)]
enum Token<'a> {
    Number(f64),
    Name(&'a str),
    Operator(&'static str),
    Open,
    Close,
    Comma,
    Other(char),
    End,
}

impl fmt::Display for Token<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Token::Number(number) => write!(f, "`{number}`"),
            Token::Name(name) => write!(f, "`{}`", crate::text::quoted(name)),
            Token::Operator(operator) => write!(f, "`{operator}`"),
            Token::Open => write!(f, "`(`"),
            Token::Close => write!(f, "`)`"),
            Token::Comma => write!(f, "`,`"),
            Token::Other(c) => write!(f, "`{c}`"),
            Token::End => write!(f, "the end"),
        }
    }
}

/// Operators as written and as meant; longer ones first.
const OPERATORS: [(&str, &str); 21] = [
    (">=", ">="),
    ("<=", "<="),
    ("!=", "!="),
    ("==", "="),
    ("≥", ">="),
    ("≤", "<="),
    ("≠", "!="),
    ("=", "="),
    (">", ">"),
    ("<", "<"),
    ("+", "+"),
    ("-", "-"),
    ("−", "-"),
    ("–", "-"),
    ("*", "*"),
    ("×", "*"),
    ("·", "*"),
    ("/", "/"),
    ("÷", "/"),
    ("%", "%"),
    ("^", "^"),
];

/// How tightly an operator binds: (to its left, to its right).
fn binding(operator: &str) -> (u8, u8) {
    match operator {
        "+" | "-" => (3, 4),
        "*" | "/" | "%" => (5, 6),
        "^" => (10, 9),
        _ => (1, 2), // comparisons
    }
}

/// The sign binds tighter than `*` and looser than `^`: -2^2 is -4.
const SIGN: u8 = 7;

struct Parser<'a> {
    rest: &'a str,
    peeked: Option<Token<'a>>,
    depth: usize,
    /// Whether we are in a list of several arguments: there, a comma separates; elsewhere `1,234` is a
    /// number.
    in_list: bool,
}

impl<'a> Parser<'a> {
    fn next(&mut self) -> Result<Token<'a>, String> {
        match self.peeked.take() {
            Some(token) => Ok(token),
            None => self.lex(),
        }
    }

    fn peek(&mut self) -> Result<&Token<'a>, String> {
        if self.peeked.is_none() {
            self.peeked = Some(self.lex()?);
        }
        Ok(self.peeked.as_ref().unwrap_or(&Token::End))
    }

    fn lex(&mut self) -> Result<Token<'a>, String> {
        self.rest = self.rest.trim_start();
        let Some(first) = self.rest.chars().next() else { return Ok(Token::End) };
        for (written, meant) in OPERATORS {
            if let Some(rest) = self.rest.strip_prefix(written) {
                self.rest = rest;
                return Ok(Token::Operator(meant));
            }
        }
        if first.is_ascii_digit() || first == '.' {
            return self.number().map(Token::Number);
        }
        // `6x7`, `2 x (3 + 4)`: no unit and no function is called so
        if let Some(rest) = self.rest.strip_prefix('x').map(str::trim_start)
            && rest.starts_with(|c: char| c.is_ascii_digit() || c == '(')
        {
            self.rest = rest;
            return Ok(Token::Operator("*"));
        }
        if first.is_alphabetic() {
            let end = self.rest.find(|c: char| !c.is_alphanumeric()).unwrap_or(self.rest.len());
            let (name, rest) = self.rest.split_at(end);
            self.rest = rest;
            return Ok(Token::Name(name));
        }
        self.rest = &self.rest[first.len_utf8()..];
        Ok(match first {
            '(' => Token::Open,
            ')' => Token::Close,
            ',' => Token::Comma,
            other => Token::Other(other),
        })
    }

    fn number(&mut self) -> Result<f64, String> {
        let bytes = self.rest.as_bytes();
        let digits = |from: usize| bytes[from..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        let mut end = digits(0);
        if !self.in_list && (1..=3).contains(&end) {
            // thousands: 1,234,567
            while bytes.get(end) == Some(&b',') && digits(end + 1) == 3 {
                end += 4;
            }
        }
        if bytes.get(end) == Some(&b'.') {
            end += 1 + digits(end + 1);
        }
        if matches!(bytes.get(end), Some(b'e' | b'E')) {
            let sign = usize::from(matches!(bytes.get(end + 1), Some(b'+' | b'-')));
            let exponent = digits((end + 1 + sign).min(bytes.len()));
            if exponent > 0 {
                end += 1 + sign + exponent;
            }
        }
        let (written, rest) = self.rest.split_at(end);
        self.rest = rest;
        let number: f64 = written.replace(',', "").parse().map_err(|_| format!("`{written}` is not a number"))?;
        finite(number)
    }

    fn expression(&mut self, least: u8) -> Result<Value<'a>, String> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err(format!("it nests deeper than {DEEPEST}"));
        }
        let mut left = self.operand()?;
        while let Token::Operator(operator) = self.peek()? {
            let operator = *operator;
            let (to_left, to_right) = binding(operator);
            if to_left < least {
                break;
            }
            self.next()?;
            let right = self.expression(to_right)?;
            left = apply(operator, quantity(left)?, quantity(right)?)?;
        }
        self.depth -= 1;
        Ok(left)
    }

    fn operand(&mut self) -> Result<Value<'a>, String> {
        match self.next()? {
            Token::Number(number) => Ok(Value::Number(Quantity { number, unit: self.unit()? })),
            Token::Operator("-") => {
                let Quantity { number, unit } = quantity(self.expression(SIGN)?)?;
                Ok(Value::Number(Quantity { number: -number, unit }))
            }
            Token::Operator("+") => Ok(Value::Number(quantity(self.expression(SIGN)?)?)),
            Token::Open => {
                let in_list = std::mem::take(&mut self.in_list);
                let value = self.expression(0)?;
                self.close()?;
                self.in_list = in_list;
                Ok(value)
            }
            Token::Name(name) => self.function(name),
            Token::End => Err("expected a number at the end".to_owned()),
            token => Err(format!("expected a number, found {token}")),
        }
    }

    /// The unit after a number: a word, perhaps with a raised figure (`km²`).
    fn unit(&mut self) -> Result<&'a str, String> {
        match *self.peek()? {
            Token::Name(name) => {
                self.next()?;
                Ok(name)
            }
            _ => Ok(""),
        }
    }

    /// The list is lexed as arguments up to its closing bracket, which is consumed before the old
    /// state returns.
    fn function(&mut self, name: &str) -> Result<Value<'a>, String> {
        let known = name.to_lowercase();
        if !matches!(known.as_str(), "min" | "max" | "abs" | "sqrt" | "round") {
            let name = crate::text::quoted(name);
            return Err(format!("`{name}` is neither a number nor one of the functions abs, max, min, round, sqrt"));
        }
        match self.next()? {
            Token::Open => {}
            token => return Err(format!("expected `(` after `{known}`, found {token}")),
        }
        // with one argument a comma separates nothing: abs(1,006 - 777)
        let several = matches!(known.as_str(), "min" | "max" | "round");
        let outer = std::mem::replace(&mut self.in_list, several);
        let mut arguments = vec![quantity(self.expression(0)?)?];
        while *self.peek()? == Token::Comma {
            self.next()?;
            arguments.push(quantity(self.expression(0)?)?);
        }
        self.close()?;
        self.in_list = outer;
        call(&known, &arguments)
    }

    fn close(&mut self) -> Result<(), String> {
        match self.next()? {
            Token::Close => Ok(()),
            Token::End => Err("expected `)` at the end".to_owned()),
            token => Err(format!("expected `)`, found {token}")),
        }
    }
}

fn quantity(value: Value<'_>) -> Result<Quantity<'_>, String> {
    match value {
        Value::Number(quantity) => Ok(quantity),
        Value::Truth(truth) => Err(format!("a comparison is `{truth}`, which is not a number")),
    }
}

fn finite(number: f64) -> Result<f64, String> {
    if number.is_nan() {
        Err("the result is not a real number".to_owned())
    } else if number.is_infinite() {
        Err("the result is too large".to_owned())
    } else {
        Ok(number)
    }
}

/// The unit of both, which must be the same.
fn common<'a>(what: &str, left: Quantity<'a>, right: Quantity<'a>) -> Result<&'a str, String> {
    if left.unit == right.unit { Ok(left.unit) } else { Err(format!("{what} takes numbers of one unit, found `{left}` and `{right}`")) }
}

/// The unit of the result.
fn unit_of<'a>(operator: &str, left: Quantity<'a>, right: Quantity<'a>) -> Result<&'a str, String> {
    match (operator, left.unit, right.unit) {
        (_, "", "") | ("*" | "/", _, "") => Ok(left.unit),
        ("*", "", unit) => Ok(unit),
        ("/", one, other) if one == other => Ok(""),
        ("*" | "/" | "^", ..) => Err(format!("`{operator}` has no unit for `{left}` and `{right}`")),
        _ => common(&format!("`{operator}`"), left, right),
    }
}

fn apply<'a>(operator: &str, left: Quantity<'a>, right: Quantity<'a>) -> Result<Value<'a>, String> {
    let unit = unit_of(operator, left, right)?;
    let (left, right) = (left.number, right.number);
    if matches!(operator, "/" | "%") && right == 0.0 {
        return Err("division by zero".to_owned());
    }
    let order = if rounded(left) == rounded(right) { Ordering::Equal } else { left.total_cmp(&right) };
    let result = match operator {
        "+" => left + right,
        "-" => left - right,
        "*" => left * right,
        "/" => left / right,
        "%" => left % right,
        "^" if left == 0.0 && right < 0.0 => return Err("division by zero".to_owned()),
        "^" => left.powf(right),
        ">" => return Ok(Value::Truth(order.is_gt())),
        "<" => return Ok(Value::Truth(order.is_lt())),
        ">=" => return Ok(Value::Truth(order.is_ge())),
        "<=" => return Ok(Value::Truth(order.is_le())),
        "!=" => return Ok(Value::Truth(order.is_ne())),
        _ => return Ok(Value::Truth(order.is_eq())),
    };
    Ok(Value::Number(Quantity { number: finite(result)?, unit }))
}

fn call<'a>(name: &str, arguments: &[Quantity<'a>]) -> Result<Value<'a>, String> {
    let plain = |number: f64| Quantity { number, unit: "" };
    let unit = match (name, arguments) {
        // the places have no unit
        ("round", [x, places]) if places.unit.is_empty() => x.unit,
        ("sqrt", [x]) if !x.unit.is_empty() => return Err(format!("`sqrt` has no unit for `{x}`")),
        (_, []) => "",
        (_, [first, rest @ ..]) => rest.iter().try_fold(first.unit, |_, other| common(&format!("`{name}`"), *first, *other))?,
    };
    let numbers: Vec<f64> = arguments.iter().map(|argument| argument.number).collect();
    let result = match (name, numbers.as_slice()) {
        ("min", all) => all.iter().copied().fold(f64::INFINITY, f64::min),
        ("max", all) => all.iter().copied().fold(f64::NEG_INFINITY, f64::max),
        ("abs", [x]) => x.abs(),
        ("sqrt", [x]) if *x < 0.0 => return Err(format!("`sqrt` of the negative number {}", plain(*x))),
        ("sqrt", [x]) => x.sqrt(),
        ("round", [x]) => x.round(),
        ("round", [x, places]) if places.fract() == 0.0 && (0.0..=15.0).contains(places) => {
            let scale = 10_f64.powf(*places);
            // a number that large has no digits after the point
            let scaled = x * scale;
            if scaled.is_finite() { scaled.round() / scale } else { *x }
        }
        ("round", [_, _]) => return Err("`round` takes 0 to 15 places".to_owned()),
        ("round", _) => return Err(format!("`round` takes a number and optionally places, found {} arguments", arguments.len())),
        _ => return Err(format!("`{name}` takes one argument, found {}", arguments.len())),
    };
    Ok(Value::Number(Quantity { number: finite(result)?, unit }))
}

/// To [`DIGITS`] significant digits, and without a negative zero.
fn rounded(number: f64) -> f64 {
    let digits = DIGITS - 1;
    format!("{number:.digits$e}").parse::<f64>().map_or(number, |number| number + 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn told(expression: &str) -> String {
        match calculate(expression) {
            Ok(value) => value.to_string(),
            Err(error) => error.cause,
        }
    }

    #[test]
    fn arithmetic() {
        for (expression, expected) in [
            ("1 + 2 * 3", "7"),
            ("(1 + 2) * 3", "9"),
            ("10 - 4 - 3", "3"),
            ("2^3^2", "512"),
            ("-2^2", "-4"),
            ("2^-1", "0.5"),
            ("-3 * -2", "6"),
            ("--1", "1"),
            ("7 % 4", "3"),
            ("0.1 + 0.2", "0.3"),
            ("10 / 4", "2.5"),
            ("1 / 3", "0.333333333333333"),
            ("6 / 3", "2"),
            ("0 * -1", "0"),
            (".5 + 1.", "1.5"),
            ("1e3 + 1", "1001"),
            ("2 × 3 − 1 ÷ 2", "5.5"),
            ("2 · 3 – 8 ÷ 2", "2"),
            ("6x7", "42"),
            ("2 x (3 + 4)", "14"),
            ("(4+6)x12", "120"),
            ("5 km x 3", "15 km"),
            ("1,234,567 + 1", "1234568"),
            ("1e20 * 10", "1e21"),
            ("1e-9", "1e-9"),
        ] {
            assert_eq!(told(expression), expected, "{expression}");
        }
    }

    #[test]
    fn functions() {
        for (expression, expected) in [
            ("min(3, 1, 2)", "1"),
            ("max(100,200)", "200"),
            ("max((1,000), 20)", "1000"),
            ("abs(-3.5)", "3.5"),
            ("sqrt(16)", "4"),
            ("round(2.5)", "3"),
            ("round(3.14159, 2)", "3.14"),
            ("Max(1, sqrt(min(9, 16)))", "3"),
            ("max(1, 2) + 1,000", "1002"),
            ("abs(1,006 - 2,000)", "994"),
            ("max(abs(1,006 - 6), 20)", "1000"),
        ] {
            assert_eq!(told(expression), expected, "{expression}");
        }
    }

    #[test]
    fn comparisons() {
        for (expression, expected) in [
            ("1 > 2", "false"),
            ("1 + 1 >= 2", "true"),
            ("0.1 + 0.2 = 0.3", "true"),
            ("0.1 + 0.2 <= 0.3", "true"),
            ("0.1 + 0.2 > 0.3", "false"),
            ("1 != 2", "true"),
            ("1 == 1", "true"),
            ("(3 < 4)", "true"),
            ("67,400,000 > 83,000,000", "false"),
            ("-0 = 0", "true"),
        ] {
            assert_eq!(told(expression), expected, "{expression}");
        }
    }

    #[test]
    fn units_are_kept() {
        for (expression, expected) in [
            ("8849 m - 8611 m", "238 m"),
            ("643801km² - 505990 km²", "137811 km²"),
            ("-3 km + 5 km", "2 km"),
            ("3 * 5 km", "15 km"),
            ("10 km / 4", "2.5 km"),
            ("10 km / 4 km", "2.5"),
            ("828 m > 632 m", "true"),
            ("max(3 days, 4 days)", "4 days"),
            ("round(2.56 m, 1)", "2.6 m"),
            ("abs(-3 km)", "3 km"),
            ("5 km", "5 km"),
            ("5 km - 3", "`-` takes numbers of one unit, found `5 km` and `3`"),
            ("5 km > 3 m", "`>` takes numbers of one unit, found `5 km` and `3 m`"),
            ("5 km * 3 km", "`*` has no unit for `5 km` and `3 km`"),
            ("5 / 3 km", "`/` has no unit for `5` and `3 km`"),
            ("5 km ^ 2", "`^` has no unit for `5 km` and `2`"),
            ("min(1 km, 2 m)", "`min` takes numbers of one unit, found `1 km` and `2 m`"),
            ("sqrt(4 m)", "`sqrt` has no unit for `4 m`"),
            ("5 km km", "expected an operator, found `km`"),
        ] {
            assert_eq!(told(expression), expected, "{expression}");
        }
    }

    #[test]
    fn mistakes_are_told() {
        for (expression, expected) in [
            ("1 +", "expected a number at the end"),
            ("", "expected a number at the end"),
            ("1 2", "expected an operator, found `2`"),
            ("(1", "expected `)` at the end"),
            ("1)", "expected an operator, found `)`"),
            ("* 2", "expected a number, found `*`"),
            ("5 (km)", "expected an operator, found `(`"),
            ("1 / 0", "division by zero"),
            ("1 % 0", "division by zero"),
            ("0 ^ -1", "division by zero"),
            ("1e308 * 10", "the result is too large"),
            ("1e999", "the result is too large"),
            ("(-8) ^ 0.5", "the result is not a real number"),
            ("sqrt(-1)", "`sqrt` of the negative number -1"),
            ("sqrt(1, 2)", "`sqrt` takes one argument, found 2"),
            ("sqrt 4", "expected `(` after `sqrt`, found `4`"),
            ("1 < 2 < 3", "a comparison is `true`, which is not a number"),
            ("1 # 2", "expected an operator, found `#`"),
            (".", "`.` is not a number"),
        ] {
            assert_eq!(told(expression), expected, "{expression}");
        }
        assert_eq!(calculate("1 +").unwrap_err().to_string(), "cannot calculate `1 +`: expected a number at the end");
        assert!(told("France + 1").contains("`France` is neither"));
        assert!(told(&"(".repeat(1000)).contains("nests deeper"));
        assert!(told(&"-".repeat(1000)).contains("nests deeper"));
        assert!(told(&"1^".repeat(900)).contains("nests deeper"));
        assert!(told(&"1+".repeat(1100)).contains("longer than"));
        assert_eq!(told(&format!("{}1", "1+".repeat(900))), "901");
    }

    proptest! {
        #[test]
        fn nothing_panics(expression in any::<String>()) {
            let _ = calculate(&expression).map(|value| value.to_string());
        }

        #[test]
        fn nothing_panics_on_what_looks_like_arithmetic(expression in "([0-9]{1,4}|[-+*/%^(),.<>=! e]|min|max|round|sqrt){0,40}") {
            if let Ok(Value::Number(quantity)) = calculate(&expression) {
                prop_assert!(quantity.number.is_finite());
            }
        }

        #[test]
        fn sums_agree_with_rust(a in -1_000_000_i64..1_000_000, b in -1_000_000_i64..1_000_000, c in 1_i64..1000) {
            let expected = (a + b * c).to_string();
            prop_assert_eq!(calculate(&format!("{a} + {b} * {c}")).unwrap().to_string(), expected);
        }
    }
}
