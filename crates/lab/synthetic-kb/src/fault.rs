//! The ways in which a trajectory is made wrong, and how often each is drawn.

/// How a trajectory was made wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Fault {
    /// All facts were read, but the answer is another value of the last page.
    OtherValue,
    /// The answer is an intermediate value of the chain, or was given after one side of a
    /// comparison.
    EarlyStop,
    /// A relation other than the one asked for was followed, with real observations.
    WrongRelation,
    /// The page of another entity was read, with real observations.
    WrongEntity,
    /// The other entity of a comparison, or the opposite of yes or no.
    Flipped,
    /// The numbers were compared with the opposite sign, taken from each other in the wrong order,
    /// or calculated with another one, with a real observation.
    WrongSign,
    /// The answer is another page of the search results.
    OtherPage,
    /// The answer is a value of the right kind that no observation shows.
    Unsupported,
    /// The answer is of another kind than the question asks for.
    WrongType,
    /// The question has no answer, and one was given.
    Answered,
    /// The question has an answer, and it was given up.
    GaveUp,
    /// The same action again and again, then a guess.
    Loop,
    /// The answer is no word.
    Gibberish,
}

impl Fault {
    /// Every kind.
    pub const ALL: [Fault; 13] = [
        Fault::OtherValue,
        Fault::EarlyStop,
        Fault::WrongRelation,
        Fault::WrongEntity,
        Fault::Flipped,
        Fault::WrongSign,
        Fault::OtherPage,
        Fault::Unsupported,
        Fault::WrongType,
        Fault::Answered,
        Fault::GaveUp,
        Fault::Loop,
        Fault::Gibberish,
    ];

    /// Its name in reports.
    pub fn as_str(self) -> &'static str {
        match self {
            Fault::OtherValue => "other_value",
            Fault::EarlyStop => "early_stop",
            Fault::WrongRelation => "wrong_relation",
            Fault::WrongEntity => "wrong_entity",
            Fault::Flipped => "flipped",
            Fault::WrongSign => "wrong_sign",
            Fault::OtherPage => "other_page",
            Fault::Unsupported => "unsupported",
            Fault::WrongType => "wrong_type",
            Fault::Answered => "answered",
            Fault::GaveUp => "gave_up",
            Fault::Loop => "loop",
            Fault::Gibberish => "gibberish",
        }
    }

    /// What a person would call it. Reports of a judge's recall are by these.
    pub fn family(self) -> &'static str {
        match self {
            Fault::OtherValue | Fault::WrongRelation => "wrong relation",
            Fault::WrongEntity | Fault::OtherPage => "wrong entity",
            Fault::Flipped | Fault::WrongSign => "wrong side",
            Fault::Unsupported => "not supported",
            Fault::WrongType => "wrong type",
            Fault::Answered => "not answerable",
            Fault::GaveUp => "given up",
            Fault::Loop => "loop",
            Fault::Gibberish => "gibberish",
            Fault::EarlyStop => "stopped early",
        }
    }

    /// How often it is tried first. A fault that fits few questions is preferred where it does, so
    /// that each kind is about as frequent as the others.
    pub(crate) fn weight(self) -> f64 {
        match self {
            Fault::OtherPage => 12.0,
            Fault::Answered => 3.0,
            Fault::WrongSign | Fault::Flipped => 3.0,
            Fault::EarlyStop => 1.8,
            Fault::Unsupported => 1.3,
            Fault::OtherValue | Fault::WrongRelation | Fault::WrongEntity => 1.1,
            Fault::WrongType | Fault::GaveUp | Fault::Loop | Fault::Gibberish => 0.75,
        }
    }
}
