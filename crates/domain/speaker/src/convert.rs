//! Between the domain's values and the model's.

use autoact_model::{Generated, Grammar, Odds, Sampling as ModelSampling, Scores};
use autoact_prompt::Form;
use autoact_trajectory::{Role, Sampling, Usage, Verdict};

/// The domain's decoding settings as the model takes them: zero means off.
pub fn model_sampling(sampling: Sampling) -> ModelSampling {
    let Sampling { temperature, top_k, top_p, seed } = sampling;
    ModelSampling {
        temperature,
        top_k: usize::try_from(top_k).ok().filter(|k| *k > 0),
        top_p: Some(top_p).filter(|p| *p > 0.0 && *p < 1.0),
        seed,
    }
}

/// A reply's form as the model is held to it.
pub fn grammar(form: Form) -> Grammar {
    match form {
        Form::Regex(regex) => Grammar::Regex(regex),
        Form::Arguments(schema) => Grammar::JsonLine(schema.value().clone()),
    }
}

/// What is scored of a role's reply: Plan-Agent's and Reflect-Agent's thoughts, Tool-Agent's whole
/// input, and of Reflect-Agent the two verdicts against each other.
pub fn scores(role: Role) -> Scores {
    let until = |label: &str| Some(label.to_owned());
    match role {
        Role::Plan => Scores { until: until("\nAction:"), odds: None },
        Role::Tool => Scores::default(),
        Role::Reflect => {
            let word = |verdict: Verdict| format!(" {}", verdict.as_str());
            let odds = Odds { after: "\nVerdict:".to_owned(), this: word(Verdict::Right), other: word(Verdict::Wrong) };
            Scores { until: until("\nVerdict:"), odds: Some(odds) }
        }
    }
}

/// What a completion cost. `total` is the caller's to measure.
pub fn usage(generated: &Generated) -> Usage {
    let count = |tokens: usize| u32::try_from(tokens).unwrap_or(u32::MAX);
    let (adapter, adapter_digest) =
        generated.adapter.as_ref().map(|adapter| (adapter.name.clone(), adapter.digest.clone())).unwrap_or_default();
    let scored = generated.scores.as_deref().filter(|scored| !scored.tokens.is_empty());
    Usage {
        queue: generated.queue,
        prefill: generated.prefill,
        decode: generated.decode,
        prompt_tokens: count(generated.prompt_tokens),
        cached_prompt_tokens: count(generated.cached_prompt_tokens),
        completion_tokens: count(generated.completion_tokens),
        model: generated.model.clone(),
        adapter,
        adapter_digest,
        log_prob: scored.map(|scored| scored.log_prob()),
        scored_tokens: count(scored.map_or(0, |scored| scored.tokens.len())),
        ..Usage::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zero_and_one_mean_off() {
        let with = |top_k, top_p| model_sampling(Sampling { temperature: 0.5, top_k, top_p, seed: 7 });
        assert_eq!(with(0, 0.0), ModelSampling::with_temperature(0.5, 7));
        assert_eq!(with(0, 1.0), ModelSampling::with_temperature(0.5, 7));
        let narrow = with(3, 0.9);
        assert_eq!((narrow.top_k, narrow.top_p), (Some(3), Some(0.9)));
        assert_eq!(model_sampling(Sampling::default()), ModelSampling::greedy());
    }
}
