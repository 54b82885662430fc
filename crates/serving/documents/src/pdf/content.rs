//! The operators of a page: which text is shown where.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use std::time::Instant;

use lopdf::content::{Content, Operation};
use lopdf::{Dictionary, Document, Object, ObjectId};

use super::font::Font;
use super::layout::Run;
use super::{failure, number};
use crate::error::ReadError;
use crate::limits::Limits;

/// Forms within forms: more is a circle.
const MAX_FORMS: usize = 8;

/// Saved graphics states within each other: more is a trap.
const MAX_STATES: usize = 512;

/// Strings that one page shows; a dense page has ten thousand. The rest of the page is left out.
const MAX_RUNS: usize = 500_000;

/// The clock is looked at once in so many operators.
const CLOCK_EVERY: usize = 1024;

/// a, b, c, d, e, f of a transformation, as in the standard.
#[derive(Debug, Clone, Copy)]
struct Matrix([f32; 6]);

impl Matrix {
    const IDENTITY: Matrix = Matrix([1.0, 0.0, 0.0, 1.0, 0.0, 0.0]);

    fn of(operands: &[Object]) -> Option<Matrix> {
        let mut matrix = [0.0; 6];
        for (at, value) in matrix.iter_mut().enumerate() {
            *value = number(operands.get(at)?)?;
        }
        Some(Matrix(matrix))
    }

    /// This transformation, then the other one.
    fn then(self, other: Matrix) -> Matrix {
        let ([a, b, c, d, e, f], [g, h, i, j, k, l]) = (self.0, other.0);
        Matrix([a * g + b * i, a * h + b * j, c * g + d * i, c * h + d * j, e * g + f * i + k, e * h + f * j + l])
    }

    /// A move, then this transformation.
    fn moved(self, x: f32, y: f32) -> Matrix {
        Matrix([1.0, 0.0, 0.0, 1.0, x, y]).then(self)
    }
}

#[derive(Clone)]
struct State<'a> {
    transform: Matrix,
    font: Option<Rc<RefCell<Font<'a>>>>,
    size: f32,
    char_space: f32,
    word_space: f32,
    scale: f32,
    leading: f32,
    rise: f32,
}

/// Reads the pages of one document.
pub(super) struct Reader<'a> {
    document: &'a Document,
    limits: &'a Limits,
    deadline: Instant,
    /// Decompressed bytes that are left.
    budget: usize,
    operators: usize,
    fonts: HashMap<*const Dictionary, Rc<RefCell<Font<'a>>>>,
}

/// Where names are looked up: dictionaries of resources, the nearest first.
type Resources<'a> = Vec<&'a Dictionary>;

impl<'a> Reader<'a> {
    pub(super) fn new(document: &'a Document, limits: &'a Limits, deadline: Instant) -> Reader<'a> {
        Reader { document, limits, deadline, budget: limits.decompressed_bytes, operators: 0, fonts: HashMap::new() }
    }

    pub(super) fn check_time(&self) -> Result<(), ReadError> {
        if Instant::now() > self.deadline { Err(ReadError::Time { limit: self.limits.time }) } else { Ok(()) }
    }

    /// The text of a page, in the order in which it is drawn.
    pub(super) fn page(&mut self, page: ObjectId) -> Result<Vec<Run>, ReadError> {
        let Ok((inline, ids)) = self.document.get_page_resources(page) else {
            return Ok(Vec::new());
        };
        let referred = ids.into_iter().filter_map(|id| self.document.get_dictionary(id).ok());
        let resources: Resources<'a> = inline.into_iter().chain(referred).collect();
        let content = self.document.get_page_content_with_limit(page, self.budget).map_err(|error| failure(&error, self.limits))?;
        self.budget = self.budget.saturating_sub(content.len());
        let mut runs = Vec::new();
        self.run(&content, &resources, Matrix::IDENTITY, 0, &mut runs)?;
        Ok(runs)
    }

    fn run(
        &mut self,
        content: &[u8],
        resources: &Resources<'a>,
        transform: Matrix,
        depth: usize,
        runs: &mut Vec<Run>,
    ) -> Result<(), ReadError> {
        let state = State { transform, font: None, size: 0.0, char_space: 0.0, word_space: 0.0, scale: 1.0, leading: 0.0, rise: 0.0 };
        let mut page = Page { state, saved: Vec::new(), text: Matrix::IDENTITY, line: Matrix::IDENTITY, artifacts: Vec::new(), runs };
        for operation in Content::decode_iter(content) {
            let Ok(operation) = operation else { break };
            if page.runs.len() >= MAX_RUNS {
                break;
            }
            self.operators += 1;
            if self.operators.is_multiple_of(CLOCK_EVERY) {
                self.check_time()?;
            }
            match operation.operator.as_str() {
                "Tf" => {
                    page.state.size = operation.operands.get(1).and_then(number).unwrap_or_default();
                    page.state.font = self.font(resources, operation.operands.first())?;
                }
                "Do" if depth < MAX_FORMS => {
                    let transform = page.state.transform;
                    self.form(resources, operation.operands.first(), transform, depth, page.runs)?;
                }
                _ => page.apply(&operation),
            }
        }
        Ok(())
    }

    /// A resource by its category and name.
    fn resource(&self, resources: &Resources<'a>, category: &[u8], name: Option<&Object>) -> Option<&'a Object> {
        let name = name?.as_name().ok()?;
        let find = |resources: &&'a Dictionary| {
            let category = resources.get_deref(category, self.document).ok()?.as_dict().ok()?;
            category.get_deref(name, self.document).ok()
        };
        resources.iter().find_map(find)
    }

    fn font(&mut self, resources: &Resources<'a>, name: Option<&Object>) -> Result<Option<Rc<RefCell<Font<'a>>>>, ReadError> {
        let Some(font) = self.resource(resources, b"Font", name).and_then(|font| font.as_dict().ok()) else {
            return Ok(None);
        };
        if let Some(known) = self.fonts.get(&std::ptr::from_ref(font)) {
            return Ok(Some(known.clone()));
        }
        let read = Rc::new(RefCell::new(Font::new(self.document, font, self.limits)?));
        self.fonts.insert(std::ptr::from_ref(font), read.clone());
        Ok(Some(read))
    }

    fn form(
        &mut self,
        resources: &Resources<'a>,
        name: Option<&Object>,
        transform: Matrix,
        depth: usize,
        runs: &mut Vec<Run>,
    ) -> Result<(), ReadError> {
        let Some(form) = self.resource(resources, b"XObject", name).and_then(|object| object.as_stream().ok()) else {
            return Ok(());
        };
        if form.dict.get(b"Subtype").and_then(Object::as_name).ok() != Some(b"Form") {
            return Ok(());
        }
        let content = match form.get_plain_content_with_limit(self.budget) {
            Ok(content) => content,
            Err(error) => match failure(&error, self.limits) {
                bomb @ ReadError::Decompressed { .. } => return Err(bomb),
                _ => return Ok(()), // a broken form costs its own text
            },
        };
        self.budget = self.budget.saturating_sub(content.len());
        let matrix = form.dict.get_deref(b"Matrix", self.document).and_then(Object::as_array).ok().and_then(|matrix| Matrix::of(matrix));
        let own = form.dict.get_deref(b"Resources", self.document).and_then(Object::as_dict).ok();
        let resources: Resources<'a> = own.into_iter().chain(resources.iter().copied()).take(MAX_FORMS).collect();
        self.run(&content, &resources, matrix.unwrap_or(Matrix::IDENTITY).then(transform), depth + 1, runs)
    }
}

/// The state of one content stream.
struct Page<'a, 'r> {
    state: State<'a>,
    saved: Vec<State<'a>>,
    text: Matrix,
    line: Matrix,
    /// The open marked contents: whether they are artifacts, such as page numbers.
    artifacts: Vec<bool>,
    runs: &'r mut Vec<Run>,
}

impl Page<'_, '_> {
    fn apply(&mut self, operation: &Operation) {
        let operands = operation.operands.as_slice();
        let value = |at: usize| operands.get(at).and_then(number).unwrap_or_default();
        match operation.operator.as_str() {
            "q" if self.saved.len() < MAX_STATES => self.saved.push(self.state.clone()),
            "Q" => self.state = self.saved.pop().unwrap_or_else(|| self.state.clone()),
            "cm" => self.state.transform = Matrix::of(operands).unwrap_or(Matrix::IDENTITY).then(self.state.transform),
            "BT" => self.start_line(Matrix::IDENTITY),
            "Tc" => self.state.char_space = value(0),
            "Tw" => self.state.word_space = value(0),
            "Tz" => self.state.scale = value(0) / 100.0,
            "TL" => self.state.leading = value(0),
            "Ts" => self.state.rise = value(0),
            "Td" => self.start_line(self.line.moved(value(0), value(1))),
            "TD" => {
                self.state.leading = -value(1);
                self.start_line(self.line.moved(value(0), value(1)));
            }
            "Tm" => {
                if let Some(matrix) = Matrix::of(operands) {
                    self.start_line(matrix);
                }
            }
            "T*" => self.next_line(),
            "Tj" => self.show(operands.first()),
            "'" => {
                self.next_line();
                self.show(operands.first());
            }
            "\"" => {
                (self.state.word_space, self.state.char_space) = (value(0), value(1));
                self.next_line();
                self.show(operands.get(2));
            }
            "TJ" => {
                for element in operands.first().and_then(|array| array.as_array().ok()).map(Vec::as_slice).unwrap_or_default() {
                    match number(element) {
                        Some(back) => self.advance(-back / 1000.0 * self.state.size),
                        None => self.show(Some(element)),
                    }
                }
            }
            "BMC" | "BDC" => self.artifacts.push(operands.first().and_then(|tag| tag.as_name().ok()) == Some(b"Artifact")),
            "EMC" => {
                self.artifacts.pop();
            }
            _ => {}
        }
    }

    fn start_line(&mut self, matrix: Matrix) {
        self.line = matrix;
        self.text = matrix;
    }

    fn next_line(&mut self) {
        self.start_line(self.line.moved(0.0, -self.state.leading));
    }

    /// Moves on along the line, in units of text space before scaling.
    fn advance(&mut self, distance: f32) {
        self.text = self.text.moved(distance * self.state.scale, 0.0);
    }

    fn show(&mut self, string: Option<&Object>) {
        let (Some(Object::String(bytes, _)), Some(font)) = (string, self.state.font.clone()) else {
            return;
        };
        let start = self.place();
        let mut text = String::new();
        let mut font = font.borrow_mut();
        for shown in font.shown(bytes) {
            text.push_str(&shown.text);
            let word_space = if shown.is_space { self.state.word_space } else { 0.0 };
            self.advance(shown.width * self.state.size + self.state.char_space + word_space);
        }
        let end = self.place();
        if let Some(run) = Run::new(start, end, text, font.bold).filter(|_| !self.artifacts.contains(&true)) {
            self.runs.push(run);
        }
    }

    /// Where the next glyph stands: the point, the direction of the line, and the size.
    fn place(&self) -> Place {
        let Matrix([a, b, c, d, x, y]) = self.text.moved(0.0, self.state.rise).then(self.state.transform);
        Place { x, y, along: (a, b), size: self.state.size.abs() * c.hypot(d) }
    }
}

/// A point of a line of text on the page.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    pub(super) x: f32,
    pub(super) y: f32,
    pub(super) along: (f32, f32),
    pub(super) size: f32,
}
