//! A document's text as a value: JSON or YAML, within bounds.
//!
//! The number of values and their bytes are counted while they are read, so an alias that stands
//! for a thousand others costs an error and no memory.

use std::cell::Cell;
use std::fmt;

use serde::de::{Deserialize, DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

use super::error::ImportError;

/// The longest document.
pub(crate) const MAX_BYTES: usize = 32 << 20;
/// Values of a document.
const MAX_VALUES: usize = 3_000_000;
/// Bytes of all names and texts, those of aliases counted each time.
const MAX_TEXT: usize = 3 * MAX_BYTES;
/// Brackets within brackets: YAML's scanner looks at all open ones for each token.
const MAX_OPEN: usize = 256;
/// Line breaks, commas and colons: each can be a value to YAML's parser, which keeps them all.
const MAX_MARKS: usize = 8_000_000;
/// How deep values may be nested.
const MAX_DEPTH: usize = 100;

/// Reads a document.
pub(crate) fn parse(bytes: &[u8]) -> Result<Value, ImportError> {
    if bytes.len() > MAX_BYTES {
        return Err(ImportError::TooLarge { bytes: bytes.len() });
    }
    let text = std::str::from_utf8(bytes).map_err(|_| ImportError::NotText)?;
    let text = text.trim_start_matches('\u{feff}');
    let json = text.trim_start().starts_with('{').then(|| json(text));
    let value = match json {
        Some(Ok(value)) => value,
        // YAML takes what people write into JSON, such as a comma after the last member
        Some(Err(error @ ImportError::Syntax { .. })) => yaml(text).map_err(|_| error)?,
        Some(Err(error)) => return Err(error),
        None => yaml(text)?,
    };
    if value.is_object() { Ok(value) } else { Err(ImportError::NotADocument) }
}

fn json(text: &str) -> Result<Value, ImportError> {
    let count = Count::default();
    let mut json = serde_json::Deserializer::from_str(text);
    let value = Seed { count: &count, depth: 0 }.deserialize(&mut json).map_err(|error| count.refused(&error))?;
    json.end().map_err(|error| count.refused(&error))?;
    Ok(value)
}

fn yaml(text: &str) -> Result<Value, ImportError> {
    check_yaml(text)?;
    let count = Count::default();
    let yaml = serde_norway::Deserializer::from_str(text);
    Seed { count: &count, depth: 0 }.deserialize(yaml).map_err(|error| count.refused(&error))
}

/// What YAML's scanner would spend too much time on.
fn check_yaml(text: &str) -> Result<(), ImportError> {
    let (mut open, mut marks) = (0_usize, 0_usize);
    for byte in text.bytes() {
        match byte {
            b'[' | b'{' => open += 1,
            b']' | b'}' => open = open.saturating_sub(1),
            b'\n' | b',' | b':' => marks += 1,
            _ => {}
        }
        if open > MAX_OPEN {
            return Err(ImportError::TooDeep);
        }
    }
    if marks > MAX_MARKS {
        return Err(ImportError::TooManyValues);
    }
    match text.lines().any(|line| line.starts_with("%TAG")) {
        true => Err(ImportError::Syntax { reason: "YAML with `%TAG` directives".to_owned() }),
        false => Ok(()),
    }
}

#[derive(Default)]
struct Count {
    values: Cell<usize>,
    text: Cell<usize>,
    too_deep: Cell<bool>,
}

impl Count {
    fn add(&self, text: usize) -> Result<(), &'static str> {
        self.values.set(self.values.get() + 1);
        self.text.set(self.text.get() + text);
        if self.exceeded() { Err("too many values") } else { Ok(()) }
    }

    fn exceeded(&self) -> bool {
        self.values.get() > MAX_VALUES || self.text.get() > MAX_TEXT
    }

    fn refused(&self, error: &dyn fmt::Display) -> ImportError {
        let reason = autoact_base::lines::one_line(&error.to_string());
        if self.exceeded() || reason.contains("repetition limit") {
            return ImportError::TooManyValues;
        }
        if self.too_deep.get() || reason.contains("recursion limit") {
            return ImportError::TooDeep;
        }
        ImportError::Syntax { reason: autoact_trajectory::cut(reason, 300).0 }
    }
}

#[derive(Clone, Copy)]
struct Seed<'a> {
    count: &'a Count,
    depth: usize,
}

impl<'a> Seed<'a> {
    fn below<E: serde::de::Error>(self) -> Result<Seed<'a>, E> {
        if self.depth >= MAX_DEPTH {
            self.count.too_deep.set(true);
            return Err(E::custom("nested too deeply"));
        }
        Ok(Seed { depth: self.depth + 1, ..self })
    }

    fn counted<E: serde::de::Error>(self, value: Value, text: usize) -> Result<Value, E> {
        self.count.add(text).map_err(E::custom)?;
        Ok(value)
    }
}

impl<'de> DeserializeSeed<'de> for Seed<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Seed<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value of JSON")
    }

    fn visit_unit<E: serde::de::Error>(self) -> Result<Value, E> {
        self.counted(Value::Null, 0)
    }

    fn visit_none<E: serde::de::Error>(self) -> Result<Value, E> {
        self.counted(Value::Null, 0)
    }

    fn visit_bool<E: serde::de::Error>(self, value: bool) -> Result<Value, E> {
        self.counted(value.into(), 0)
    }

    fn visit_i64<E: serde::de::Error>(self, value: i64) -> Result<Value, E> {
        self.counted(value.into(), 0)
    }

    fn visit_u64<E: serde::de::Error>(self, value: u64) -> Result<Value, E> {
        self.counted(value.into(), 0)
    }

    fn visit_i128<E: serde::de::Error>(self, value: i128) -> Result<Value, E> {
        self.visit_f64(value as f64)
    }

    fn visit_u128<E: serde::de::Error>(self, value: u128) -> Result<Value, E> {
        self.visit_f64(value as f64)
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Value, E> {
        self.counted(Number::from_f64(value).map_or(Value::Null, Value::Number), 0)
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Value, E> {
        self.counted(text.into(), text.len())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let below = self.below()?;
        self.count.add(0).map_err(A::Error::custom)?;
        let mut all = Vec::new();
        while let Some(item) = items.next_element_seed(below)? {
            all.push(item);
        }
        Ok(Value::Array(all))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Value, A::Error> {
        let below = self.below()?;
        self.count.add(0).map_err(A::Error::custom)?;
        let mut all = Map::new();
        while let Some(Name(name)) = fields.next_key()? {
            self.count.add(name.len()).map_err(A::Error::custom)?;
            let value = fields.next_value_seed(below)?;
            all.insert(name, value);
        }
        Ok(Value::Object(all))
    }
}

/// A name; YAML's may be numbers, such as `200`.
struct Name(String);

impl<'de> Deserialize<'de> for Name {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Name, D::Error> {
        struct Text;
        impl Visitor<'_> for Text {
            type Value = Name;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a name")
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Name, E> {
                Ok(Name(text.to_owned()))
            }

            fn visit_i64<E: serde::de::Error>(self, value: i64) -> Result<Name, E> {
                Ok(Name(value.to_string()))
            }

            fn visit_u64<E: serde::de::Error>(self, value: u64) -> Result<Name, E> {
                Ok(Name(value.to_string()))
            }

            fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Name, E> {
                Ok(Name(value.to_string()))
            }

            fn visit_bool<E: serde::de::Error>(self, value: bool) -> Result<Name, E> {
                Ok(Name(value.to_string()))
            }

            fn visit_unit<E: serde::de::Error>(self) -> Result<Name, E> {
                Ok(Name("null".to_owned()))
            }
        }
        deserializer.deserialize_any(Text)
    }
}
