//! Wordings of thoughts. The base model is trained on all of them, the adapters on
//! [`ThoughtStyle::ADAPTER`].
//!
//! Slots: `{r}` a relation's noun, `{e}` a title, `{v}` a value, `{w}` the question's spelling,
//! `{t}` a type's noun, `{a}` and `{b}` two numbers, `{op}` and `{sign}` their comparison.

/// One set of wordings of thoughts: short and regular, with names copied exactly.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ThoughtStyle {
    /// Its name.
    pub name: &'static str,
    /// The fact that is needed next.
    pub need: &'static str,
    /// The fact that an observation shows.
    pub found: &'static str,
    /// The fact just found is the answer.
    pub answer: &'static str,
    /// The visible part of a page lacks the relation. It has the words of `found` up to the value,
    /// so that the model decides at the place where the value would stand.
    pub hidden: &'static str,
    /// No page has the name in the question, and another title is meant.
    pub closest: &'static str,
    /// Announces a comparison of two numbers.
    pub whether: &'static str,
    /// The comparison is true.
    pub holds: &'static str,
    /// The comparison is false.
    pub fails: &'static str,
    /// Announces a subtraction of two numbers.
    pub minus: &'static str,
    /// The result `{v}` of the subtraction.
    pub gap: &'static str,
    /// The answer that follows from a calculation.
    pub so: &'static str,
    /// The value that the question claims.
    pub claim: &'static str,
    /// Announces a comparison of two texts with the calculator. `None`: they are compared without a
    /// tool.
    pub alike: Option<&'static str>,
    /// Equal values.
    pub same: &'static str,
    /// Different values.
    pub different: &'static str,
    /// The entity that an inverse question asks for.
    pub seek: &'static str,
    /// The search result to check next.
    pub check: &'static str,
    /// The tool just used was the wrong one.
    pub mistake: &'static str,
    /// Reflection: the fact that the question asks for, and its value.
    pub asked: &'static str,
    /// Reflection: the answer is this value.
    pub agrees: &'static str,
    /// Reflection: the answer is another value.
    pub disagrees: &'static str,
    /// Reflection: only an intermediate fact was found.
    pub early: &'static str,
    /// Reflection: the entity that an inverse question asks for.
    pub sought: &'static str,
    /// Reflection: the answer that follows from a comparison.
    pub must: &'static str,
}

impl ThoughtStyle {
    /// The style of the adapters: the canonical one plus equality checks with the calculator, which
    /// no style of the base has. A small model copies two names of several tokens into a comparison
    /// more reliably than it compares them itself.
    pub const ADAPTER: ThoughtStyle =
        ThoughtStyle { name: "adapter", alike: Some("I need to know whether {a} and {b} are the same."), ..ThoughtStyle::CANONICAL };

    /// The first of the base model's styles.
    pub const CANONICAL: ThoughtStyle = ThoughtStyle {
        name: "canonical",
        need: "I need the {r} of {e}.",
        found: "The {r} of {e} is {v}.",
        answer: "That is the answer.",
        hidden: "The {r} of {e} is not shown yet.",
        closest: "There is no page {w}, but there is {e}.",
        whether: "I need to know whether {a} is {op} than {b}.",
        holds: "It is true that {a} is {op} than {b}.",
        fails: "It is false that {a} is {op} than {b}.",
        minus: "I need to know what {a} minus {b} is.",
        gap: "The difference of {a} and {b} is {v}.",
        so: "The answer is {v}.",
        claim: "The question says {v}.",
        alike: None,
        same: "They are the same.",
        different: "They are different.",
        seek: "I need the {t} with the {r} {v}.",
        check: "It may be {e}.",
        mistake: "That did not help.",
        asked: "The question asks for the {r} of {e}. It is {v}.",
        agrees: "The answer is {v}, which is right.",
        disagrees: "The answer is {v}, which is not it.",
        early: "The question asks for the {r} of {e}, but that was not found.",
        sought: "The question asks for the {t} with the {r} {v}. It is {e}.",
        must: "It should be {v}.",
    };

    /// Every style, the canonical one first.
    pub const ALL: [ThoughtStyle; 6] = [
        ThoughtStyle::CANONICAL,
        ThoughtStyle {
            name: "stepwise",
            need: "First find the {r} of {e}.",
            found: "{e} has the {r} {v}.",
            answer: "So the answer is {v}.",
            hidden: "{e} has the {r} further down the page.",
            closest: "{w} is not a title; {e} is meant.",
            whether: "Now check whether {a} is {op} than {b}.",
            holds: "Yes, {a} is {op} than {b}.",
            fails: "No, {a} is not {op} than {b}.",
            minus: "Now take {b} from {a}.",
            gap: "{a} less {b} gives {v}.",
            so: "So the answer is {v}.",
            claim: "Asked was {v}.",
            alike: None,
            same: "Both agree.",
            different: "They do not agree.",
            seek: "Find the {t} that has the {r} {v}.",
            check: "{e} could be it.",
            mistake: "This was the wrong tool.",
            asked: "Asked for: the {r} of {e}. Read: {v}.",
            agrees: "{v} was answered, so it is correct.",
            disagrees: "{v} was answered, so it is not correct.",
            early: "Asked for: the {r} of {e}. That was never read.",
            sought: "Asked for: the {t} that has the {r} {v}. Read: {e}.",
            must: "The right one is {v}.",
        },
        ThoughtStyle {
            name: "questions",
            need: "What is the {r} of {e}?",
            found: "The page says that the {r} of {e} is {v}.",
            answer: "This answers the question.",
            hidden: "The page says that the {r} of {e} is further down.",
            closest: "Nothing is called {w}. The name must be {e}.",
            whether: "Is {a} {op} than {b}?",
            holds: "{a} is {op} than {b}.",
            fails: "{a} is not {op} than {b}.",
            minus: "What is {a} minus {b}?",
            gap: "{a} minus {b} is {v}.",
            so: "That makes it {v}.",
            claim: "I was asked about {v}.",
            alike: None,
            same: "That is the same.",
            different: "That is not the same.",
            seek: "Which {t} has the {r} {v}?",
            check: "Is it {e}?",
            mistake: "That led nowhere.",
            asked: "What is the {r} of {e}? The page says {v}.",
            agrees: "The group says {v}. This is right.",
            disagrees: "The group says {v}. This is wrong.",
            early: "What is the {r} of {e}? The group did not find it.",
            sought: "Which {t} has the {r} {v}? The page says {e}.",
            must: "So it must be {v}.",
        },
        ThoughtStyle {
            name: "possessive",
            need: "Let me look for {e}'s {r}.",
            found: "{e}'s {r} is {v}.",
            answer: "I can answer {v}.",
            hidden: "{e}'s {r} is not here, so I look further.",
            closest: "I find no {w}, so I take {e}.",
            whether: "Let me see if {a} is {op} than {b}.",
            holds: "I see that {a} is {op} than {b}.",
            fails: "I see that {a} is not {op} than {b}.",
            minus: "Let me take {b} from {a}.",
            gap: "I see that {b} from {a} leaves {v}.",
            so: "I can answer {v}.",
            claim: "The question has {v}.",
            alike: None,
            same: "These match.",
            different: "These do not match.",
            seek: "Let me look for the {t} whose {r} is {v}.",
            check: "Let me check {e}.",
            mistake: "Let me try another way.",
            asked: "I look for {e}'s {r}, and it is {v}.",
            agrees: "They answered {v}, and I agree.",
            disagrees: "They answered {v}, and I do not agree.",
            early: "I look for {e}'s {r}, and nobody has found it.",
            sought: "I look for the {t} whose {r} is {v}, and it is {e}.",
            must: "I would say {v}.",
        },
        ThoughtStyle {
            name: "terse",
            need: "Need: {r} of {e}.",
            found: "{r} of {e}: {v}.",
            answer: "Done.",
            hidden: "{r} of {e}: not shown.",
            closest: "{w} unknown, take {e}.",
            whether: "Compare: {a} {sign} {b}.",
            holds: "{a} {sign} {b} holds.",
            fails: "{a} {sign} {b} fails.",
            minus: "Compute: {a} - {b}.",
            gap: "{a} - {b} = {v}.",
            so: "Answer: {v}.",
            claim: "Claimed: {v}.",
            alike: None,
            same: "Equal.",
            different: "Not equal.",
            seek: "Need: {t} with {r} {v}.",
            check: "Candidate: {e}.",
            mistake: "No use.",
            asked: "Asked: {r} of {e}. Known: {v}.",
            agrees: "Answer: {v}. Same.",
            disagrees: "Answer: {v}. Not the same.",
            early: "Asked: {r} of {e}. Not known.",
            sought: "Asked: {t} with {r} {v}. Known: {e}.",
            must: "Expected: {v}.",
        },
        ThoughtStyle {
            name: "careful",
            need: "To go on I have to know the {r} of {e}.",
            found: "Now I know that the {r} of {e} is {v}.",
            answer: "Nothing more is needed.",
            hidden: "Now I know that the {r} of {e} is not in the beginning.",
            closest: "No page is called {w}. I go on with {e}.",
            whether: "I have to find out if {a} is {op} than {b}.",
            holds: "Indeed {a} is {op} than {b}.",
            fails: "In fact {a} is not {op} than {b}.",
            minus: "I have to find out what {a} less {b} comes to.",
            gap: "{a} less {b} comes to {v}.",
            so: "Therefore it is {v}.",
            claim: "According to the question it would be {v}.",
            alike: None,
            same: "That fits.",
            different: "That does not fit.",
            seek: "I have to find a {t} having {v} as its {r}.",
            check: "{e} looks promising.",
            mistake: "I chose the wrong tool there.",
            asked: "To be found was the {r} of {e}, which is {v}.",
            agrees: "Given was {v}. That is well.",
            disagrees: "Given was {v}. That is a mistake.",
            early: "To be found was the {r} of {e}, and that is still open.",
            sought: "To be found was a {t} having {v} as its {r}, which is {e}.",
            must: "That makes {v} the one.",
        },
    ];
}
