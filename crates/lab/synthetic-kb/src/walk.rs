//! The steps of a gold trajectory, one after the other: facts are read, numbers computed, and what is
//! not there is looked for.

use autoact_base::random::Rng;
use autoact_trajectory::{Action, Step, Trajectory, Turn};

use crate::base::{EntityId, Fact};
use crate::difference::relations;
use crate::mistake::Mistake;
use crate::question::{Question, QuestionPlan, Read, Why};
use crate::schema::RelationRef;
use crate::solve::{CALCULATE, Environment, LOOKUP, NO_PAGE, NO_SENTENCE, RETRIEVE, SEARCH, SolveError, Solver, as_written, digits, shows};
use crate::text::say;

/// A truth as the calculator writes it.
fn truth(holds: bool) -> &'static str {
    if holds { "true" } else { "false" }
}

impl Solver<'_> {
    /// An empty trajectory of the question, to be walked.
    pub(crate) fn begin<'s, 'b>(&'s self, question: &Question, env: &'b mut dyn Environment) -> Walk<'s, 'b> {
        let trajectory = Trajectory { question: question.text.clone(), tools: self.tools.to_vec(), ..Trajectory::default() };
        Walk { solver: self, env, trajectory, thought: String::new(), written: Vec::new(), mistake: None }
    }
}

/// A trajectory that is being made.
pub(crate) struct Walk<'a, 'b> {
    pub(crate) solver: &'a Solver<'a>,
    pub(crate) env: &'b mut dyn Environment,
    pub(crate) trajectory: Trajectory,
    /// The beginning of the next step's thought.
    pub(crate) thought: String,
    /// Titles and values, and how the question writes them.
    pub(crate) written: Vec<(String, String)>,
    /// What is to be done wrongly.
    pub(crate) mistake: Option<Mistake>,
}

impl<'a> Walk<'a, '_> {
    pub(crate) fn answer(&mut self, question: &Question, chain: &[RelationRef]) -> Result<String, SolveError> {
        let style = self.solver.style;
        match &question.plan {
            QuestionPlan::Follow { start } => {
                let fact = self.follow(start, chain)?;
                self.think(style.answer, &[("v", &fact.text)]);
                Ok(fact.text.clone())
            }
            QuestionPlan::IsValue { start, claim } => {
                let fact = self.follow(start, chain)?;
                let said = as_written(&self.written, claim).to_owned();
                self.think(style.claim, &[("v", &said)]);
                let same = fact.text == *claim;
                // a surname or an alias is no other value
                let other = !same || said.to_lowercase() == fact.text.to_lowercase();
                self.same(&fact.text, if other { &said } else { &fact.text }, same)
            }
            QuestionPlan::IsSame { a, b } => {
                let first = self.follow(a, chain)?;
                let second = self.follow(b, chain)?;
                self.same(&first.text, &second.text, first.text == second.text)
            }
            QuestionPlan::IsMore { a, b, more } => {
                let holds = self.compare(a, b, *more, chain)?;
                let answer = if holds { "yes" } else { "no" };
                self.think(style.so, &[("v", answer)]);
                Ok(answer.to_owned())
            }
            QuestionPlan::Compare { a, b, more } => {
                let answer = if self.compare(a, b, *more, chain)? { a } else { b };
                self.think(style.so, &[("v", answer)]);
                Ok(answer.clone())
            }
            QuestionPlan::Difference { .. } => self.difference(question, chain),
            QuestionPlan::Inverse { value } => self.inverse(&question.answer, value, chain),
            QuestionPlan::Calculate { expression } => self.arithmetic(expression, &question.answer),
            QuestionPlan::Missing { .. } | QuestionPlan::NoQuestion { .. } => Err(SolveError::Unknown(question.text.clone())),
        }
    }

    /// The observation of the first such action, if it was done.
    pub(crate) fn seen(&self, tool: &str, params: &str) -> Option<String> {
        let done = |step: &Step| step.tool == tool && step.params.as_deref() == Some(params);
        self.trajectory.steps().find(|step| done(step)).and_then(|step| step.observation.clone())
    }

    /// Computes an expression, whose result is the answer.
    fn arithmetic(&mut self, expression: &str, answer: &str) -> Result<String, SolveError> {
        let style = self.solver.style;
        let observation = match self.seen(CALCULATE, expression) {
            Some(observation) => observation,
            None => {
                self.go_wrong("")?;
                self.think(style.compute, &[("a", expression)]);
                self.act(CALCULATE, expression)
            }
        };
        let truth = |text: &str| match text {
            "yes" => "true".to_owned(),
            "no" => "false".to_owned(),
            other => other.to_owned(),
        };
        if observation != truth(answer) {
            let (action, expected) = (expression.to_owned(), truth(answer));
            return Err(SolveError::Miscalculated { action, observation, expected });
        }
        self.think(style.so, &[("v", answer)]);
        Ok(answer.to_owned())
    }

    /// Reads the facts that lead to a missing one, and sees that it is missing. It is an error if
    /// the tools show what should not be there.
    pub(crate) fn seek_in_vain(&mut self, why: Why, read: &[Read], name: &str, noun: &str, searches: bool) -> Result<(), SolveError> {
        let (base, style) = (self.solver.base, self.solver.style);
        let written = as_written(&self.written, name).to_owned();
        let titled = base.find(name).is_some();
        let asked = [("r", noun), ("e", written.as_str()), ("w", written.as_str())];
        // a page says its title
        let slots = if titled { [("r", noun), ("e", name), ("w", name)] } else { asked };
        let odd = || SolveError::Unknown(format!("{noun} of {name}"));
        for Read { title, path } in read {
            let entity = base.find(title).ok_or_else(|| SolveError::Unknown(title.clone()))?;
            let link = base.schema().relation_at(path).ok_or_else(|| SolveError::Unknown(path.clone()))?;
            self.obtain(entity, link)?;
        }
        let opened = self.seen(RETRIEVE, name).filter(|found| !titled || !found.starts_with(NO_PAGE));
        let found = match opened.or_else(|| self.seen(RETRIEVE, &written)) {
            Some(found) => found,
            None => {
                let wrong = self.go_wrong(name)?;
                let asked = [("r", wrong.as_deref().unwrap_or(noun)), asked[1]];
                self.think(style.need, &asked);
                let found = if titled && written != name {
                    self.retrieve_written(&written, name, &[asked[0], ("e", name)])?
                } else {
                    self.act(RETRIEVE, &written)
                };
                self.look_in_vain(wrong, name)?;
                found
            }
        };
        if found.starts_with(NO_PAGE) {
            if titled {
                return Err(odd());
            }
            self.think(style.unknown, &slots);
            let query = format!("{written} {noun}");
            // pages that tell of a name without a page would be worth a look
            let action = Action { tool: SEARCH.to_owned(), params: query.clone() };
            if searches
                && self.seen(SEARCH, &query).is_none()
                && !crate::text::contains_words(&self.env.run(&action, &self.trajectory).replace(&query, ""), &written)
            {
                self.think(style.need, &slots);
                self.act(SEARCH, &query);
                self.think(style.vain, &slots);
            }
        } else {
            if why == Why::Entity || !titled {
                return Err(odd());
            }
            let looked = self.trajectory.steps().filter(|step| step.tool == LOOKUP && step.params.as_deref() == Some(noun));
            let nothing = format!("{NO_SENTENCE} {name} contains");
            if !looked.filter_map(|step| step.observation.as_ref()).any(|seen| seen.contains(&nothing)) {
                self.think(style.hidden, &slots);
                self.think(style.need, &slots);
                if self.open().as_deref().is_none_or(|open| open != name && open != written) {
                    self.act(RETRIEVE, name);
                    self.think(style.hidden, &slots);
                }
                let seen = self.act(LOOKUP, noun);
                if !seen.starts_with(&nothing) {
                    return Err(odd());
                }
            }
        }
        self.think(style.lacking, &slots);
        Ok(())
    }

    /// Sees that no entity has a value.
    pub(crate) fn seek_owner_in_vain(&mut self, kind: &str, noun: &str, value: &str) -> Result<(), SolveError> {
        let style = self.solver.style;
        let value = as_written(&self.written, value).to_owned();
        let value = value.as_str();
        let slots = [("t", kind), ("r", noun), ("v", value)];
        let query = format!("{noun} {value}");
        let shown = match self.seen(SEARCH, &query) {
            Some(shown) => shown,
            None => {
                self.go_wrong(value)?;
                self.think(style.seek, &slots);
                self.act(SEARCH, &query)
            }
        };
        if crate::text::contains_words(&shown.replace(&query, ""), value) {
            return Err(SolveError::Unknown(value.to_owned()));
        }
        self.think(style.vain, &slots);
        self.think(style.unowned, &slots);
        Ok(())
    }

    /// The title of the page that was opened last.
    fn open(&self) -> Option<String> {
        let opened = |step: &Step| step.tool == RETRIEVE && !step.observation.as_deref().unwrap_or(NO_PAGE).starts_with(NO_PAGE);
        self.trajectory.steps().rev().find(|step| opened(step)).and_then(|step| step.params.clone())
    }

    /// Compares two texts, which are values that are the `same` or not; the answer is yes or no.
    fn same(&mut self, a: &str, b: &str, same: bool) -> Result<String, SolveError> {
        let style = self.solver.style;
        if let Some(alike) = style.alike {
            self.calculate(format!("{a} = {b}"), truth(same), alike, &[("a", a), ("b", b)])?;
        }
        self.think(if same { style.same } else { style.different }, &[]);
        Ok(if same { "yes" } else { "no" }.to_owned())
    }

    /// Runs a calculation unless the history already has it. It is an error if the result is not the
    /// expected one.
    fn calculate(&mut self, action: String, expected: &str, why: &str, slots: &[(&str, &str)]) -> Result<(), SolveError> {
        let done = |step: &Step| (step.tool == CALCULATE && step.params.as_ref() == Some(&action)).then(|| step.observation.clone());
        let earlier = self.trajectory.steps().find_map(done).flatten();
        let observation = match earlier {
            Some(observation) => {
                self.thought.clear();
                observation
            }
            None => {
                self.think(why, slots);
                self.act(CALCULATE, &action)
            }
        };
        let told = observation.to_lowercase();
        if told.contains(expected) { Ok(()) } else { Err(SolveError::Miscalculated { action, observation, expected: expected.to_owned() }) }
    }

    /// Reads two numbers and takes one from the other, on the calculator, with their units.
    fn difference(&mut self, question: &Question, chain: &[RelationRef]) -> Result<String, SolveError> {
        let base = self.solver.base;
        let style = self.solver.style;
        let unknown = || SolveError::Unknown(question.text.clone());
        let QuestionPlan::Difference { a, b, minus, .. } = &question.plan else { return Err(unknown()) };
        let gap = base.gap(question).ok_or_else(unknown)?;
        self.follow(a, chain)?;
        let second = relations(base.schema(), minus).ok_or_else(unknown)?;
        self.follow(b, if second.is_empty() { chain } else { &second })?;
        let [from, take] = gap.terms().map(|fact| fact.text.as_str());
        let slots = [("a", from), ("b", take), ("v", gap.answer.as_str())];
        self.calculate(format!("{from} - {take}"), &gap.answer, style.minus, &slots)?;
        self.think(style.gap, &slots);
        self.think(style.so, &[("v", &gap.answer)]);
        Ok(gap.answer)
    }

    /// Adds a sentence to the next thought.
    pub(crate) fn think(&mut self, template: &str, values: &[(&str, &str)]) {
        if !self.thought.is_empty() {
            self.thought.push(' ');
        }
        self.thought.push_str(&say(template, values));
    }

    /// Runs a tool with the thought so far and returns the observation.
    pub(crate) fn act(&mut self, tool: &str, params: &str) -> String {
        let step = Step { thought: std::mem::take(&mut self.thought), tool: tool.to_owned(), ..Step::default() };
        self.trajectory.turns.push(Turn::Step(step));
        let observation = self.env.run(&Action { tool: tool.to_owned(), params: params.to_owned() }, &self.trajectory);
        if let Some(Turn::Step(step)) = self.trajectory.turns.last_mut() {
            step.params = Some(params.to_owned());
            step.observation = Some(observation.clone());
        }
        observation
    }

    pub(crate) fn follow(&mut self, start: &str, chain: &[RelationRef]) -> Result<&'a Fact, SolveError> {
        let base = self.solver.base;
        let mut at = base.find(start).ok_or_else(|| SolveError::Unknown(start.to_owned()))?;
        let mut last = None;
        let before = self.thought.len();
        for (index, link) in chain.iter().enumerate() {
            if index > 0 && self.shown(at, *link) {
                // continuing after a rejection: of the facts already shown, only the last one is
                // repeated
                self.thought.truncate(before);
            }
            let fact = self.obtain(at, *link)?;
            last = Some(fact);
            if index + 1 < chain.len() {
                at = fact.target.ok_or_else(|| SolveError::Unknown(fact.text.clone()))?;
            }
        }
        last.ok_or_else(|| SolveError::Unknown("chain".to_owned()))
    }

    /// Whether the history shows a fact.
    pub(crate) fn shown(&self, entity: EntityId, link: RelationRef) -> bool {
        let base = self.solver.base;
        let title = &base.entities()[entity].title;
        base.sentence(entity, link.relation).is_some_and(|sentence| shows(&self.trajectory, title, sentence, &self.written))
    }

    /// Reads one fact, with tools unless the history already shows it. The next thought begins with
    /// it.
    pub(crate) fn obtain(&mut self, entity: EntityId, link: RelationRef) -> Result<&'a Fact, SolveError> {
        let base = self.solver.base;
        let style = self.solver.style;
        let title = &base.entities()[entity].title;
        let relation = base.schema().relation(link);
        let unseen = || SolveError::Unseen { relation: relation.name.clone(), title: title.clone() };
        let fact = base.fact(entity, link.relation).ok_or_else(unseen)?;
        let sentence = base.sentence(entity, link.relation).ok_or_else(unseen)?;
        let slots = [("r", relation.noun.as_str()), ("e", title.as_str()), ("v", fact.text.as_str())];
        if !shows(&self.trajectory, title, sentence, &self.written) {
            let wrong = self.go_wrong(title)?;
            if wrong.is_some() || !shows(&self.trajectory, title, sentence, &self.written) {
                self.read(title, &relation.noun, sentence, wrong)?;
            }
        }
        self.think(style.found, &slots);
        Ok(fact)
    }

    /// Opens the page, at first for the relation `wrong` if there is one, and looks for the sentence
    /// if it is not among the first.
    fn read(&mut self, title: &str, noun: &str, sentence: &str, wrong: Option<String>) -> Result<(), SolveError> {
        let style = self.solver.style;
        let needed = [("r", wrong.as_deref().unwrap_or(noun)), ("e", title)];
        self.think(style.need, &needed);
        let tried = |written: &str| self.trajectory.steps().any(|step| step.params.as_deref() == Some(written));
        let written = self.written.iter().find(|(start, written)| start == title && !tried(written)).map(|(_, written)| written.clone());
        let mut observation = match written {
            Some(written) => self.retrieve_written(&written, title, &needed)?,
            None => self.act(RETRIEVE, title),
        };
        self.look_in_vain(wrong, title)?;
        if !observation.contains(sentence) {
            let slots = [("r", noun), ("e", title)];
            self.think(style.hidden, &slots);
            self.think(style.need, &slots);
            observation = self.act(LOOKUP, noun);
        }
        if observation.contains(sentence) { Ok(()) } else { Err(SolveError::Unseen { relation: noun.to_owned(), title: title.to_owned() }) }
    }

    /// Retrieves the name as the question spells it. If there is no such page, retrieves the
    /// similar title that the observation suggests.
    fn retrieve_written(&mut self, written: &str, title: &str, slots: &[(&str, &str)]) -> Result<String, SolveError> {
        // the thought can only use the name in the question
        self.thought = self.thought.replace(title, written);
        let observation = self.act(RETRIEVE, written);
        if observation.starts_with("No page") {
            if !observation.contains(title) {
                return Err(SolveError::Unknown(written.to_owned()));
            }
            let style = self.solver.style;
            self.think(style.closest, &[("w", written), ("e", title)]);
            self.think(style.need, slots);
            return Ok(self.act(RETRIEVE, title));
        }
        // another page that happens to have this name, or a page that does not say its title
        if observation.contains(title) { Ok(observation) } else { Err(SolveError::Unknown(written.to_owned())) }
    }

    /// Whether `a` has the larger (or smaller) value, computed by the calculator.
    fn compare(&mut self, a: &str, b: &str, more: bool, chain: &[RelationRef]) -> Result<bool, SolveError> {
        let style = self.solver.style;
        let first = self.follow(a, chain)?;
        let second = self.follow(b, chain)?;
        let (x, y) = (digits(first), digits(second));
        let (op, sign) = if more { ("more", ">") } else { ("less", "<") };
        let slots = [("a", x), ("b", y), ("op", op), ("sign", sign)];
        let holds = if more { first.number > second.number } else { first.number < second.number };
        self.calculate(format!("{x} {sign} {y}"), truth(holds), style.whether, &slots)?;
        self.think(if holds { style.holds } else { style.fails }, &slots);
        Ok(holds)
    }

    fn inverse(&mut self, answer: &str, value: &str, chain: &[RelationRef]) -> Result<String, SolveError> {
        let base = self.solver.base;
        let style = self.solver.style;
        let link = *chain.first().ok_or_else(|| SolveError::Unknown("chain".to_owned()))?;
        let entity = base.find(answer).ok_or_else(|| SolveError::Unknown(answer.to_owned()))?;
        let relation = base.schema().relation(link);
        let noun = base.schema().types[link.kind].noun.as_str();
        let sentence = base.sentence(entity, link.relation).unwrap_or_default();
        let unseen = || SolveError::Unseen { relation: relation.name.clone(), title: answer.to_owned() };
        if !shows(&self.trajectory, answer, sentence, &self.written) {
            let asked = as_written(&self.written, value).to_owned();
            self.go_wrong(value)?;
            self.think(style.seek, &[("t", noun), ("r", &relation.noun), ("v", &asked)]);
            let observation = self.act(SEARCH, &format!("{} {asked}", relation.noun));
            if !observation.contains(answer) {
                return Err(unseen());
            }
            if !shows(&self.trajectory, answer, sentence, &self.written) {
                self.think(style.check, &[("e", answer)]);
            }
        }
        let fact = self.obtain(entity, link)?;
        // the answer is the page: the fact just found is what the question has
        self.think(style.so, &[("v", answer)]);
        if fact.text == value { Ok(answer.to_owned()) } else { Err(unseen()) }
    }

    /// A wrong first action: a search for a page whose title is known, or a Lookup with no page
    /// open.
    pub(crate) fn detour(&mut self, question: &Question, chain: &[RelationRef], rng: &mut Rng) -> Result<(), SolveError> {
        let (QuestionPlan::Follow { start } | QuestionPlan::IsValue { start, .. }) = &question.plan else { return Ok(()) };
        let Some(link) = chain.first().filter(|_| self.written.is_empty()) else { return Ok(()) };
        let style = self.solver.style;
        let noun = &self.solver.base.schema().relation(*link).noun;
        self.think(style.need, &[("r", noun), ("e", start)]);
        if rng.chance(0.6) {
            self.act(SEARCH, &format!("{start} {noun}"));
        } else {
            self.act(LOOKUP, noun);
        }
        let found = self.solver.base.find(start).is_some_and(|entity| self.shown(entity, *link));
        if !found {
            self.think(style.mistake, &[]);
        }
        Ok(())
    }
}
