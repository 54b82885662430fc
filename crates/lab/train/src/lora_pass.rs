//! The adapters' part of the forward and backward pass, for a block of rows.
//!
//! `y = x W^T + h B^T` with the hidden values `h = (alpha / r) dropout(x) A^T`. The second term is a
//! further segment of the base's product. Backward: `dh = (alpha / r) dy B`, `dB += dy^T h`,
//! `dA += dh^T dropout(x)` and `dx += dropout'(dh A)`.

use std::ops::Range;

use autoact_base::random::mix;

use crate::aligned::Aligned;
use crate::element::{Element, depth};
use crate::lora::{Linear, LoraConfig, LoraWeights};
use crate::lora_panels::{LoraPanels, Site, SitePanels, padded_rank};
use crate::model_config::ModelConfig;
use crate::product::{Segment, Target, product};
use crate::simd;
use crate::vecmath::Mask;

/// The adapters during one micro-batch.
#[derive(Clone, Copy)]
pub(crate) struct LoraPass<'a> {
    config: &'a LoraConfig,
    panels: &'a LoraPanels,
    /// Seed of this micro-batch's dropout masks; `None` for no dropout (evaluation).
    key: Option<u64>,
}

/// Buffers of one worker for the adapters.
pub(crate) struct LoraScratch<E> {
    /// Hidden values of every site, `[layer][site][T, width]`.
    hidden: Vec<E>,
    /// Elements of `hidden` for one site.
    stride: usize,
    /// Gradient of a block's hidden values.
    dhidden: Vec<E>,
    /// `dropout(x)` of a block.
    masked: Vec<E>,
    /// Interleaved factors of weight gradients: the input, the gradient of the output, the hidden
    /// values and their gradient.
    x_words: Aligned<u32>,
    dy_words: Aligned<u32>,
    h_words: Aligned<u32>,
    dh_words: Aligned<u32>,
    /// Number of rows at the beginning on which adapters do not act (activated LoRA). No block has
    /// rows of both kinds.
    base: usize,
}

impl<E: Element> LoraScratch<E> {
    /// Buffers for micro-batches of `tokens` in blocks of `block`.
    pub(crate) fn new(model: &ModelConfig, lora: Option<&LoraConfig>, tokens: usize, block: usize) -> Self {
        let widest = lora.map_or(0, |lora| 3 * padded_rank::<E>(lora.r));
        let (tokens, block) = if lora.is_some() { (tokens, block) } else { (0, 0) };
        let inputs = Linear::ALL.map(|l| l.dims(model).0).into_iter().max().unwrap_or(0);
        let outputs = model.qkv_width().max(2 * model.intermediate_size).max(model.hidden_size);
        let words = |width: usize| Aligned::new(depth::<E>(block) * width);
        let stride = tokens * widest;
        let masked = if lora.is_some_and(|l| l.dropout > 0.0) { block * inputs } else { 0 };
        Self {
            hidden: vec![E::default(); stride * Site::ALL.len() * model.num_hidden_layers],
            stride,
            dhidden: vec![E::default(); block * widest],
            masked: vec![E::default(); masked],
            x_words: words(inputs),
            dy_words: words(outputs),
            h_words: words(widest),
            dh_words: words(widest),
            base: 0,
        }
    }

    /// Of the rows to come, the first `base` have no adapter.
    pub(crate) fn begin(&mut self, base: usize) {
        self.base = base;
    }

    fn hidden_at(&self, layer: usize, site: Site, rows: &Range<usize>, width: usize) -> Range<usize> {
        let at = (layer * Site::ALL.len() + site as usize) * self.stride;
        at + rows.start * width..at + rows.end * width
    }
}

/// The hidden values of a block, for the products of its site.
#[derive(Clone, Copy)]
pub(crate) struct Hidden<'a, E> {
    site: &'a SitePanels,
    values: &'a [E],
}

impl<'a, E: Element> Hidden<'a, E> {
    /// The adapter's term of a linear layer's output; `None` if it has no adapter.
    pub(crate) fn output(&self, linear: Linear) -> Option<Segment<'a, E>> {
        let member = self.site.member(linear)?;
        Some(Segment::rows(&self.values[member.at..], self.site.width, &member.up))
    }
}

impl<'a> LoraPass<'a> {
    pub(crate) fn new(weights: &'a LoraWeights, panels: &'a LoraPanels, key: Option<u64>) -> Self {
        let key = key.filter(|_| weights.config.dropout > 0.0);
        Self { config: &weights.config, panels, key }
    }

    fn scale(&self) -> f32 {
        (self.config.alpha / self.config.r as f64) as f32
    }

    /// The dropout mask of a site's input in the block that begins at token `first`; `None` for no
    /// dropout.
    fn mask(&self, layer: usize, site: Site, first: usize) -> Option<Mask> {
        let p = self.config.dropout;
        let id = (layer * Site::ALL.len() + site as usize) as u64;
        let key = mix(self.key? ^ mix(id + 1) ^ mix(first as u64)) as u32;
        Some(Mask { key, threshold: (p * 4_294_967_296.0) as u32, scale: (1.0 / (1.0 - p)) as f32 })
    }

    /// The hidden values of the tokens `rows`, whose inputs are `x` `[rows, inputs]`; `None` if the
    /// site has no adapters, or they do not act on these tokens.
    pub(crate) fn forward<'s, E: Element>(
        &self,
        layer: usize,
        site: Site,
        rows: &Range<usize>,
        x: &[E],
        w: &'s mut LoraScratch<E>,
    ) -> Option<Hidden<'s, E>>
    where
        'a: 's,
    {
        let panels = self.panels.site(layer, site).filter(|_| rows.start >= w.base)?;
        let (inputs, width) = (panels.inputs, panels.width);
        let at = w.hidden_at(layer, site, rows, width);
        let x = match self.mask(layer, site, rows.start) {
            Some(mask) => {
                let masked = &mut w.masked[..x.len()];
                simd::dropout(x, masked, mask);
                &*masked
            }
            None => x,
        };
        let values = &mut w.hidden[at];
        let target = Target::Round { out: values, ld: width };
        product(rows.len(), width, self.scale(), &[Segment::rows(x, inputs, &panels.down)], target);
        Some(Hidden { site: panels, values })
    }

    /// First half of the backward pass of a site. From `dy` `[rows, ld]`, in which the outputs of
    /// the site's linear layers follow one another from `at(linear)` on, it adds to the gradients of
    /// `B` in `grad` and computes the gradient of the hidden values, for the other two functions.
    #[allow(clippy::too_many_arguments)]
    pub(crate) fn backward_hidden<E: Element>(
        &self,
        layer: usize,
        site: Site,
        rows: &Range<usize>,
        dy: &[E],
        ld: usize,
        at: impl Fn(Linear) -> usize,
        grad: &mut [f32],
        w: &mut LoraScratch<E>,
    ) {
        let Some(panels) = self.panels.site(layer, site) else { return };
        let (r, width, tokens) = (self.config.r, panels.width, rows.len());
        let hidden = w.hidden_at(layer, site, rows, width);
        simd::interleave(&w.hidden[hidden], width, tokens, width, &mut w.h_words);
        simd::interleave(dy, ld, tokens, ld, &mut w.dy_words);
        for member in &panels.members {
            let from = at(member.linear);
            let outer = Segment::<E>::outer(&w.dy_words[from..], ld, &w.h_words[member.at..], width, tokens);
            product(member.outputs, r, 1.0, &[outer], Target::Add { out: &mut grad[member.b..], ld: r });
            let target = Target::Round { out: &mut w.dhidden[member.at..], ld: width };
            // the padding of the rank is computed too: it is zero
            let padded = padded_rank::<E>(r);
            product(tokens, padded, self.scale(), &[Segment::rows(&dy[from..], ld, &member.up_back)], target);
        }
    }

    /// The adapters' gradient of a site's input, before the base's: without dropout a further
    /// segment for its product. With dropout it is written to `dx` `[rows, inputs]`, to which the
    /// base's product has to be added.
    pub(crate) fn input_gradient<'s, E: Element>(
        &self,
        layer: usize,
        site: Site,
        rows: &Range<usize>,
        dx: &mut [f32],
        w: &'s LoraScratch<E>,
    ) -> InputGradient<'s, E>
    where
        'a: 's,
    {
        let Some(panels) = self.panels.site(layer, site) else { return InputGradient::None };
        let segment = Segment::rows(&w.dhidden, panels.width, &panels.down_back);
        let Some(mask) = self.mask(layer, site, rows.start) else { return InputGradient::Segment(segment) };
        let dx = &mut dx[..rows.len() * panels.inputs];
        product(rows.len(), panels.inputs, 1.0, &[segment], Target::Store { out: dx, ld: panels.inputs });
        simd::mask_in_place(dx, mask);
        InputGradient::Written
    }

    /// Last part of the backward pass of a site: adds to the gradients of `A`. `x` `[rows, inputs]`
    /// is the input of the forward pass.
    pub(crate) fn backward_down<E: Element>(
        &self,
        layer: usize,
        site: Site,
        rows: &Range<usize>,
        x: &[E],
        grad: &mut [f32],
        w: &mut LoraScratch<E>,
    ) {
        let Some(panels) = self.panels.site(layer, site) else { return };
        let (r, inputs, width, tokens) = (self.config.r, panels.inputs, panels.width, rows.len());
        let x = match self.mask(layer, site, rows.start) {
            Some(mask) => {
                let masked = &mut w.masked[..x.len()];
                simd::dropout(x, masked, mask);
                &*masked
            }
            None => x,
        };
        simd::interleave(x, inputs, tokens, inputs, &mut w.x_words);
        simd::interleave(&w.dhidden, width, tokens, width, &mut w.dh_words);
        for member in &panels.members {
            let outer = Segment::<E>::outer(&w.dh_words[member.at..], width, &w.x_words, inputs, tokens);
            product(r, inputs, 1.0, &[outer], Target::Add { out: &mut grad[member.a..], ld: inputs });
        }
    }
}

/// See [`LoraPass::input_gradient`].
pub(crate) enum InputGradient<'a, E> {
    None,
    Segment(Segment<'a, E>),
    Written,
}
