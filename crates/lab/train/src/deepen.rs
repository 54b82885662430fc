//! A deeper model with the function of a shallower one, to go on training from (Net2Net's identity
//! layers; Chen et al., 2016).

use crate::error::{Result, TrainError};
use crate::model_config::ModelConfig;
use crate::weights::Weights;

/// The matrices through which a layer writes to the residual stream.
const OUTPUTS: [&str; 2] = ["self_attn.o_proj.weight", "mlp.down_proj.weight"];

impl Weights {
    /// The weights with as many layers as `to`, which may have more than `from`, the shape of these.
    /// The new layers are spread evenly. Each is a copy of the layer before it whose output matrices
    /// are zero, so that the logits stay the same to the bit and training begins with its inputs.
    ///
    /// # Errors
    /// If the shapes differ in anything but the number of layers, or `to` has fewer.
    pub fn deepened(self, from: &ModelConfig, to: &ModelConfig) -> Result<Weights> {
        let (old, new) = (from.num_hidden_layers, to.num_hidden_layers);
        if (ModelConfig { num_hidden_layers: new, ..from.clone() }) != *to || new < old {
            return Err(TrainError::Config(format!(
                "weights of the shape {from:?} cannot become those of {to:?}; only layers can be added"
            )));
        }
        if new == old {
            return Ok(self);
        }
        let added = new - old;
        let doubled: Vec<usize> = (0..added).map(|j| (2 * j + 1) * old / (2 * added)).collect();
        // for each new layer: its source, and whether it is an added one
        let mut sources = Vec::with_capacity(new);
        for layer in 0..old {
            sources.push((layer, false));
            sources.extend(doubled.iter().filter(|at| **at == layer).map(|at| (*at, true)));
        }
        let mut out = Weights::init(to, 0)?;
        let (specs, data) = out.split();
        for spec in specs {
            let (name, is_added) = match spec.name.strip_prefix("model.layers.").and_then(|rest| rest.split_once('.')) {
                None => (spec.name.clone(), false),
                Some((layer, rest)) => {
                    let at: usize = layer.parse().map_err(|_| TrainError::Config(format!("no layer `{layer}`")))?;
                    let (source, is_added) = sources[at];
                    (format!("model.layers.{source}.{rest}"), is_added)
                }
            };
            let target = &mut data[spec.range()];
            if is_added && OUTPUTS.iter().any(|output| name.ends_with(output)) {
                target.fill(0.0);
            } else {
                target.copy_from_slice(self.tensor(&name).ok_or_else(|| TrainError::Config(format!("no tensor `{name}`")))?);
            }
        }
        Ok(out)
    }
}
