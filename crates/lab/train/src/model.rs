//! The forward and backward pass of a whole model over one micro-batch.
//!
//! Attention takes a document at a time. What lies between two attentions takes a block of tokens
//! at a time, so that its intermediate results stay in the cache. After the last attention, only
//! tokens with loss are computed.

use std::ops::Range;

use crate::attention::{self, Forwarded};
use crate::element::Element;
use crate::layout::Layout;
use crate::lora::Linear;
use crate::lora_panels::Site;
use crate::lora_pass::{InputGradient, LoraPass};
use crate::model_config::ModelConfig;
use crate::packed::PackedWeights;
use crate::packing::{MicroBatch, Sequence};
use crate::panels::Panels;
use crate::product::{Segment, Target, product};
use crate::rope::RopeTable;
use crate::simd;
use crate::timing::Phase;
use crate::workspace::{WeightGradients, Workspace, block};

/// A model's parameters and settings, borrowed and shared between the workers.
#[derive(Clone, Copy)]
pub(crate) struct Net<'a> {
    pub(crate) config: &'a ModelConfig,
    pub(crate) layout: &'a Layout,
    pub(crate) weights: &'a [f32],
    pub(crate) packed: &'a PackedWeights,
    pub(crate) rope: &'a RopeTable,
    pub(crate) lora: Option<LoraPass<'a>>,
}

/// The vector to which the gradients of a micro-batch are added.
pub(crate) enum Gradient<'g> {
    /// None: only the loss is computed.
    None,
    /// A vector with the layout of the model's weights.
    Full(&'g mut [f32]),
    /// A vector with the layout of the adapters.
    Lora(&'g mut [f32]),
}

impl Gradient<'_> {
    fn full(&mut self, at: usize) -> Option<&mut [f32]> {
        match self {
            Self::Full(g) => Some(&mut g[at..]),
            _ => None,
        }
    }
}

/// `rows` of a matrix with rows of `width` elements.
fn of(rows: &Range<usize>, width: usize) -> Range<usize> {
    rows.start * width..rows.end * width
}

/// The blocks of these rows.
fn blocks<E: Element>(rows: Range<usize>) -> impl Iterator<Item = Range<usize>> {
    let block = block::<E>();
    rows.clone().step_by(block).map(move |first| first..(first + block).min(rows.end))
}

/// Row `i` of `to` becomes the row `rows[i]` of `from`; rows have `width` elements.
fn gather<T: Copy>(to: &mut [T], from: &[T], width: usize, rows: &[u32]) {
    for (to, row) in to.chunks_exact_mut(width).zip(rows) {
        to.copy_from_slice(&from[*row as usize * width..][..width]);
    }
}

/// Moves row `i` to row `rows[i]`, in place; the others become zero. `rows` ascends, so that from
/// the last one on no row is overwritten before it is moved.
fn scatter<T: Copy + Default>(x: &mut [T], width: usize, rows: &[u32]) {
    let mut end = x.len();
    for (i, row) in rows.iter().enumerate().rev() {
        let at = *row as usize * width;
        x.copy_within(i * width..(i + 1) * width, at);
        x[at + width..end].fill(T::default());
        end = at;
    }
    x[..end].fill(T::default());
}

/// `dW[n, k] += dy[rows, n]^T x[rows, k]`; the rows of `dy` are `dy_ld` elements apart.
fn weight_gradient<E: Element>(
    dw: &mut [f32],
    dy: &[E],
    dy_ld: usize,
    x: &[E],
    (rows, n, k): (usize, usize, usize),
    w: &mut WeightGradients,
) {
    simd::interleave(dy, dy_ld, rows, n, &mut w.dy);
    simd::interleave(x, k, rows, k, &mut w.x);
    product(n, k, 1.0, &[Segment::<E>::outer(&w.dy, n, &w.x, k, rows)], Target::Add { out: dw, ld: k });
}

/// `dx[rows, n] = dy[rows, k] W[k, n]` and the adapters' part, which may have been written to `dx`.
fn input_gradient<E: Element>(dx: &mut [f32], n: usize, base: Segment<'_, E>, lora: InputGradient<'_, E>, rows: usize) {
    match lora {
        InputGradient::None => product(rows, n, 1.0, &[base], Target::Store { out: dx, ld: n }),
        InputGradient::Segment(lora) => product(rows, n, 1.0, &[base, lora], Target::Store { out: dx, ld: n }),
        InputGradient::Written => product(rows, n, 1.0, &[base], Target::Add { out: dx, ld: n }),
    }
}

/// The same, rounded; the adapters' part may have been written to `sum`.
fn rounded_gradient<E: Element>(dx: &mut [E], n: usize, base: Segment<'_, E>, lora: InputGradient<'_, E>, sum: &[f32], rows: usize) {
    match lora {
        InputGradient::None => product(rows, n, 1.0, &[base], Target::Round { out: dx, ld: n }),
        InputGradient::Segment(lora) => product(rows, n, 1.0, &[base, lora], Target::Round { out: dx, ld: n }),
        InputGradient::Written => product(rows, n, 1.0, &[base], Target::RoundSum { out: dx, ld: n, addend: sum }),
    }
}

impl<'a> Net<'a> {
    /// Computes one micro-batch. Returns the sum of its targets' losses in nats, and adds `scale`
    /// times the gradient of that sum to `grad`.
    pub(crate) fn run<E: Element>(&self, w: &mut Workspace<E>, batch: &MicroBatch, scale: f32, mut grad: Gradient<'_>) -> f64 {
        w.watch.start();
        let c = self.config.hidden_size;
        let tokens = batch.tokens.len();
        let first = w.layers.first_mut().map_or(&mut w.last, |l| &mut l.x);
        for (row, token) in first.chunks_exact_mut(c).zip(&batch.tokens) {
            let at = self.layout.embed + *token as usize * c;
            row.copy_from_slice(&self.weights[at..at + c]);
        }
        w.watch.lap(Phase::Elementwise);
        let adapted = batch.base..tokens;
        let unread = self.recall(w, batch);
        for layer in 0..self.config.num_hidden_layers {
            w.lora.begin(batch.base);
            for rows in unread.iter().cloned().chain([adapted.clone()]).flat_map(blocks::<E>) {
                self.queries_keys_values(w, layer, batch, &rows);
            }
            // of the base's rows, the last layer needs only the keys and values
            let base = if self.is_last(layer) { &[][..] } else { &unread };
            self.attention(w, layer, batch, base);
            if self.is_last(layer) {
                let a = &w.layers[layer];
                gather(&mut w.loss_x, &a.x, c, &batch.loss_rows);
                gather(&mut w.loss_att, &a.att, self.config.q_width(), &batch.loss_rows);
            }
            let after = self.rows_after_attention(layer, batch);
            w.lora.begin(after.start);
            for rows in base.iter().cloned().chain([after]).flat_map(blocks::<E>) {
                self.after_attention(w, layer, &rows);
            }
        }
        self.remember(w, batch, &unread);
        let loss = self.head(w, batch, scale, &mut grad);
        if matches!(grad, Gradient::None) {
            return loss;
        }
        for layer in (0..self.config.num_hidden_layers).rev() {
            // the rows of the base have no gradient
            for rows in blocks::<E>(self.rows_after_attention(layer, batch)) {
                self.after_attention_backward(w, layer, &rows, &mut grad);
            }
            if self.is_last(layer) {
                scatter(&mut w.dx[..tokens * c], c, &batch.loss_rows);
                let q = self.config.q_width();
                scatter(&mut w.datt[..tokens * q], q, &batch.loss_rows);
            }
            self.attention_backward(w, layer, batch);
            for rows in blocks::<E>(adapted.clone()) {
                self.queries_keys_values_backward(w, layer, &rows, &mut grad);
            }
        }
        if let Some(g) = grad.full(self.layout.embed) {
            for (row, token) in w.dx[..tokens * c].chunks_exact(c).zip(&batch.tokens) {
                let at = *token as usize * c;
                simd::add_into(&mut g[at..at + c], row);
            }
        }
        w.watch.lap(Phase::Elementwise);
        loss
    }

    fn is_last(&self, layer: usize) -> bool {
        layer + 1 == self.config.num_hidden_layers
    }

    /// The rows of a layer after its attention on which adapters act. In the last layer they are the
    /// rows with loss.
    fn rows_after_attention(&self, layer: usize, batch: &MicroBatch) -> Range<usize> {
        if self.is_last(layer) { 0..batch.loss_rows.len() } else { batch.base..batch.tokens.len() }
    }

    /// Copies the keys and values of histories that the base has read before to their rows. Returns
    /// the other rows of the base, those of adjacent histories in one range.
    fn recall<E: Element>(&self, w: &mut Workspace<E>, batch: &MicroBatch) -> Vec<Range<usize>> {
        let (q, qkv) = (self.config.q_width(), self.config.qkv_width());
        let mut unread: Vec<Range<usize>> = Vec::new();
        for Sequence { rows, .. } in batch.histories() {
            let Some(kept) = w.histories.find(&batch.tokens[rows.clone()]) else {
                match unread.last_mut() {
                    Some(last) if last.end == rows.start => last.end = rows.end,
                    _ => unread.push(rows.clone()),
                }
                continue;
            };
            let mut kept = kept.chunks_exact(qkv - q);
            for layer in &mut w.layers {
                for (row, kept) in layer.qkv[of(rows, qkv)].chunks_exact_mut(qkv).zip(&mut kept) {
                    row[q..].copy_from_slice(kept);
                }
            }
        }
        w.watch.lap(Phase::Elementwise);
        unread
    }

    /// Keeps the keys and values of the histories in these rows.
    fn remember<E: Element>(&self, w: &mut Workspace<E>, batch: &MicroBatch, read: &[Range<usize>]) {
        let (q, qkv) = (self.config.q_width(), self.config.qkv_width());
        let is_read = |rows: &Range<usize>| read.iter().any(|range| range.contains(&rows.start));
        for Sequence { rows, .. } in batch.histories().iter().filter(|sequence| is_read(&sequence.rows)) {
            let len = w.layers.len() * rows.len() * (qkv - q);
            w.histories.keep(&batch.tokens[rows.clone()], len, |to| {
                for row in w.layers.iter().flat_map(|layer| layer.qkv[of(rows, qkv)].chunks_exact(qkv)) {
                    to.extend_from_slice(&row[q..]);
                }
            });
        }
        w.watch.lap(Phase::Elementwise);
    }

    fn shape(&self) -> attention::Shape {
        attention::Shape { heads: self.config.num_attention_heads, kv_heads: self.config.num_key_value_heads, dim: self.config.head_dim }
    }

    /// Offset of a linear layer's outputs in a row of its site's outputs.
    fn offset(&self, linear: Linear) -> usize {
        let (q, kv) = (self.config.q_width(), self.config.kv_width());
        match linear {
            Linear::K => q,
            Linear::V => q + kv,
            Linear::Up => self.config.intermediate_size,
            Linear::Q | Linear::O | Linear::Gate | Linear::Down => 0,
        }
    }

    fn weight(&self, at: usize, len: usize) -> &'a [f32] {
        &self.weights[at..at + len]
    }

    fn panels(&self, layer: usize, linear: Linear) -> &'a Panels {
        self.packed.layers[layer].forward(linear)
    }

    /// The first norm, the projections and the rotation.
    fn queries_keys_values<E: Element>(&self, w: &mut Workspace<E>, index: usize, batch: &MicroBatch, rows: &Range<usize>) {
        let m = self.config;
        let (c, qkv, tokens) = (m.hidden_size, m.qkv_width(), rows.len());
        let a = &mut w.layers[index];
        let norm = self.weight(self.layout.layers[index].norm1, c);
        let xn = &mut a.xn[of(rows, c)];
        simd::norm_forward(&a.x[of(rows, c)], norm, m.rms_norm_eps as f32, xn, &mut a.rstd1[rows.clone()]);
        w.watch.lap(Phase::Elementwise);
        let hidden = self.lora.and_then(|lora| lora.forward(index, Site::Attention, rows, xn, &mut w.lora));
        w.watch.lap(Phase::Lora);
        for linear in [Linear::Q, Linear::K, Linear::V] {
            let terms = [
                Segment::rows(xn, c, self.panels(index, linear)),
                hidden.and_then(|hidden| hidden.output(linear)).unwrap_or_else(Segment::none),
            ];
            let target = Target::Store { out: &mut w.wide[self.offset(linear)..], ld: qkv };
            product(tokens, linear.dims(m).1, 1.0, &terms, target);
        }
        w.watch.lap(Phase::ForwardGemm);
        let turned = m.q_width() + m.kv_width();
        let (cos, sin) = (&self.rope.cos, &self.rope.sin);
        let wide = &w.wide[..tokens * qkv];
        simd::rotate(wide, qkv, turned, m.head_dim, &batch.positions[rows.clone()], cos, sin, &mut a.qkv[of(rows, qkv)], qkv);
        w.watch.lap(Phase::Elementwise);
    }

    /// Of the sequences on which adapters act, and those in these rows of the base.
    fn attention<E: Element>(&self, w: &mut Workspace<E>, index: usize, batch: &MicroBatch, base: &[Range<usize>]) {
        let (q, qkv, heads) = (self.config.q_width(), self.config.qkv_width(), self.config.num_attention_heads);
        let a = &mut w.layers[index];
        let wanted = |start: usize| start >= batch.base || base.iter().any(|rows| rows.contains(&start));
        for Sequence { rows, context } in batch.sequences.iter().filter(|sequence| wanted(sequence.rows.start)) {
            let (input, out, lse) = (&a.qkv[of(rows, qkv)], &mut a.att[of(rows, q)], &mut a.lse[of(rows, heads)]);
            attention::forward(self.shape(), &a.qkv[of(context, qkv)], input, out, lse, &mut w.attention);
        }
        w.watch.lap(Phase::AttentionForward);
    }

    /// The output projection and the SwiGLU layer.
    fn after_attention<E: Element>(&self, w: &mut Workspace<E>, index: usize, rows: &Range<usize>) {
        let m = self.config;
        let (c, q, inner, tokens) = (m.hidden_size, m.q_width(), m.intermediate_size, rows.len());
        let (before, after) = w.layers.split_at_mut(index + 1);
        let Some(a) = before.last_mut() else { return };
        let (x, att) = if self.is_last(index) { (&w.loss_x, &w.loss_att) } else { (&a.x, &a.att) };
        let (x, att) = (&x[of(rows, c)], &att[of(rows, q)]);
        let (x2, hn) = (&mut a.x2[of(rows, c)], &mut a.hn[of(rows, c)]);
        let (gate_up, act) = (&mut a.gate_up[of(rows, 2 * inner)], &mut w.act[..tokens * inner]);
        let out = &mut after.first_mut().map_or(&mut w.last, |l| &mut l.x)[of(rows, c)];

        let hidden = self.lora.and_then(|lora| lora.forward(index, Site::Output, rows, att, &mut w.lora));
        w.watch.lap(Phase::Lora);
        let lora = hidden.and_then(|hidden| hidden.output(Linear::O)).unwrap_or_else(Segment::none);
        let terms = [Segment::rows(att, q, self.panels(index, Linear::O)), lora];
        product(tokens, c, 1.0, &terms, Target::Sum { out: x2, ld: c, addend: x });
        w.watch.lap(Phase::ForwardGemm);
        let norm = self.weight(self.layout.layers[index].norm2, c);
        simd::norm_forward(x2, norm, m.rms_norm_eps as f32, hn, &mut a.rstd2[rows.clone()]);
        w.watch.lap(Phase::Elementwise);
        let hidden = self.lora.and_then(|lora| lora.forward(index, Site::Mlp, rows, hn, &mut w.lora));
        w.watch.lap(Phase::Lora);
        for linear in [Linear::Gate, Linear::Up] {
            let lora = hidden.and_then(|hidden| hidden.output(linear)).unwrap_or_else(Segment::none);
            let terms = [Segment::rows(hn, c, self.panels(index, linear)), lora];
            let target = Target::Round { out: &mut gate_up[self.offset(linear)..], ld: 2 * inner };
            product(tokens, inner, 1.0, &terms, target);
        }
        w.watch.lap(Phase::ForwardGemm);
        simd::swiglu(gate_up, act, inner);
        w.watch.lap(Phase::Elementwise);
        let hidden = self.lora.and_then(|lora| lora.forward(index, Site::Down, rows, act, &mut w.lora));
        w.watch.lap(Phase::Lora);
        let lora = hidden.and_then(|hidden| hidden.output(Linear::Down)).unwrap_or_else(Segment::none);
        let terms = [Segment::rows(act, inner, self.panels(index, Linear::Down)), lora];
        product(tokens, c, 1.0, &terms, Target::Sum { out, ld: c, addend: x2 });
        w.watch.lap(Phase::ForwardGemm);
    }

    /// The final norm, the output head and the loss, computed only for tokens whose next token is a
    /// target. Leaves the gradient of their outputs of the last layer in `dx`, one after the other.
    fn head<E: Element>(&self, w: &mut Workspace<E>, batch: &MicroBatch, scale: f32, grad: &mut Gradient<'_>) -> f64 {
        let (c, vocab) = (self.config.hidden_size, self.config.vocab_size);
        let rows = batch.loss_rows.len();
        let x = &w.last[..rows * c];
        let (n, d, rstd) = (&mut w.head_n[..rows * c], &mut w.head_d[..rows * c], &mut w.head_rstd[..rows]);
        let norm = self.weight(self.layout.norm, c);
        simd::norm_forward(x, norm, self.config.rms_norm_eps as f32, n, rstd);
        let wanted = !matches!(grad, Gradient::None);
        let padded = vocab.next_multiple_of(E::PER_WORD);
        let mut loss = 0.0;
        for first in (0..rows).step_by(w.logit_rows) {
            let part = first..(first + w.logit_rows).min(rows);
            let count = part.len();
            let (logits, n) = (&mut w.logits[..count * vocab], &n[of(&part, c)]);
            let dlogits = if wanted { &mut w.dlogits[..count * padded] } else { &mut [] };
            let target = Target::Store { out: logits, ld: vocab };
            product(count, vocab, 1.0, &[Segment::rows(n, c, &self.packed.head)], target);
            loss += simd::cross_entropy(logits, vocab, &batch.targets[part.clone()], scale, dlogits, padded);
            if wanted {
                let target = Target::Store { out: &mut d[of(&part, c)], ld: c };
                product(count, c, 1.0, &[Segment::rows(dlogits, padded, &self.packed.head_back)], target);
                if let Some(g) = grad.full(self.layout.head) {
                    weight_gradient(g, dlogits, padded, n, (count, vocab, c), &mut w.gradients);
                }
            }
        }
        if wanted {
            let dx = &mut w.dx[..rows * c];
            dx.fill(0.0);
            let dw = grad.full(self.layout.norm).map_or(&mut [][..], |g| &mut g[..c]);
            simd::norm_backward(d, x, norm, rstd, dx, dw);
        }
        w.watch.lap(Phase::Loss);
        loss
    }

    /// Replaces the gradient of the layer's output in `dx` `[T, C]` by that of the residual stream
    /// after attention, and computes the gradient of the attention output.
    fn after_attention_backward<E: Element>(&self, w: &mut Workspace<E>, index: usize, rows: &Range<usize>, grad: &mut Gradient<'_>) {
        let m = self.config;
        let off = &self.layout.layers[index];
        let packed = &self.packed.layers[index];
        let (c, q, inner, tokens) = (m.hidden_size, m.q_width(), m.intermediate_size, rows.len());
        let a = &mut w.layers[index];
        let att = &if self.is_last(index) { &w.loss_att } else { &a.att }[of(rows, q)];
        let (x2, hn) = (&a.x2[of(rows, c)], &a.hn[of(rows, c)]);
        let (gate_up, act) = (&mut a.gate_up[of(rows, 2 * inner)], &mut w.act[..tokens * inner]);
        let (dx, dxr) = (&mut w.dx[of(rows, c)], &mut w.dx_rounded[..tokens * c]);
        let dn = &mut w.dn[..tokens * c];
        let lora = self.lora.as_ref();
        let at = |linear| self.offset(linear);

        // x_out = x2 + down(swiglu(gate_up(norm(x2))))
        simd::round(dx, dxr);
        w.watch.lap(Phase::Elementwise);
        if let (Some(lora), Gradient::Lora(g)) = (lora, &mut *grad) {
            lora.backward_hidden(index, Site::Down, rows, dxr, c, at, g, &mut w.lora);
        }
        let part = lora.map_or(InputGradient::None, |lora| lora.input_gradient(index, Site::Down, rows, &mut w.wide, &w.lora));
        w.watch.lap(Phase::Lora);
        rounded_gradient(act, inner, Segment::rows(dxr, c, &packed.down_back), part, &w.wide, tokens);
        w.watch.lap(Phase::BackwardGemm);
        simd::swiglu_backward(gate_up, act, inner);
        w.watch.lap(Phase::Elementwise);
        if let (Some(lora), Gradient::Lora(g)) = (lora, &mut *grad) {
            lora.backward_down(index, Site::Down, rows, act, g, &mut w.lora);
            lora.backward_hidden(index, Site::Mlp, rows, gate_up, 2 * inner, at, g, &mut w.lora);
        }
        let part = lora.map_or(InputGradient::None, |lora| lora.input_gradient(index, Site::Mlp, rows, dn, &w.lora));
        w.watch.lap(Phase::Lora);
        input_gradient(dn, c, Segment::rows(gate_up, 2 * inner, &packed.gate_up_back), part, tokens);
        if let Some(g) = grad.full(off.down) {
            weight_gradient(g, dxr, c, act, (tokens, c, inner), &mut w.gradients);
        }
        if let Some(g) = grad.full(off.gate_up) {
            weight_gradient(g, gate_up, 2 * inner, hn, (tokens, 2 * inner, c), &mut w.gradients);
        }
        w.watch.lap(Phase::BackwardGemm);
        if let (Some(lora), Gradient::Lora(g)) = (lora, &mut *grad) {
            lora.backward_down(index, Site::Mlp, rows, hn, g, &mut w.lora);
            w.watch.lap(Phase::Lora);
        }
        let dw = grad.full(off.norm2).map_or(&mut [][..], |g| &mut g[..c]);
        simd::norm_backward(dn, x2, self.weight(off.norm2, c), &a.rstd2[rows.clone()], dx, dw);

        // x2 = x + o(attention)
        simd::round(dx, dxr);
        w.watch.lap(Phase::Elementwise);
        if let (Some(lora), Gradient::Lora(g)) = (lora, &mut *grad) {
            lora.backward_hidden(index, Site::Output, rows, dxr, c, at, g, &mut w.lora);
            lora.backward_down(index, Site::Output, rows, att, g, &mut w.lora);
        }
        let part = lora.map_or(InputGradient::None, |lora| lora.input_gradient(index, Site::Output, rows, &mut w.wide, &w.lora));
        w.watch.lap(Phase::Lora);
        rounded_gradient(&mut w.datt[of(rows, q)], q, Segment::rows(dxr, c, &packed.o_back), part, &w.wide, tokens);
        if let Some(g) = grad.full(off.o) {
            weight_gradient(g, dxr, c, att, (tokens, c, q), &mut w.gradients);
        }
        w.watch.lap(Phase::BackwardGemm);
    }

    fn attention_backward<E: Element>(&self, w: &mut Workspace<E>, index: usize, batch: &MicroBatch) {
        let (q, qkv, heads) = (self.config.q_width(), self.config.qkv_width(), self.config.num_attention_heads);
        let a = &w.layers[index];
        for Sequence { rows, context } in batch.sequences.iter().filter(|sequence| sequence.rows.start >= batch.base) {
            let (inputs, outs, lses) = (of(rows, qkv), of(rows, q), of(rows, heads));
            let forwarded =
                Forwarded { context: &a.qkv[of(context, qkv)], qkv: &a.qkv[inputs.clone()], out: &a.att[outs.clone()], lse: &a.lse[lses] };
            let (grad, out) = (&w.datt[outs], &mut w.dqkv[inputs]);
            attention::backward(self.shape(), forwarded, grad, out, self.rope, &batch.positions[rows.clone()], &mut w.attention);
        }
        w.watch.lap(Phase::AttentionBackward);
    }

    /// Replaces the gradient of the residual stream after attention in `dx` `[T, C]` by that of the
    /// layer's input. Nothing below the first layer of a frozen model needs it.
    fn queries_keys_values_backward<E: Element>(&self, w: &mut Workspace<E>, index: usize, rows: &Range<usize>, grad: &mut Gradient<'_>) {
        let m = self.config;
        let off = &self.layout.layers[index];
        let (c, qkv, tokens) = (m.hidden_size, m.qkv_width(), rows.len());
        let a = &w.layers[index];
        let (xn, dqkv, dn) = (&a.xn[of(rows, c)], &w.dqkv[of(rows, qkv)], &mut w.dn[..tokens * c]);
        let lora = self.lora.as_ref();
        if let (Some(lora), Gradient::Lora(g)) = (lora, &mut *grad) {
            lora.backward_hidden(index, Site::Attention, rows, dqkv, qkv, |linear| self.offset(linear), g, &mut w.lora);
            lora.backward_down(index, Site::Attention, rows, xn, g, &mut w.lora);
            w.watch.lap(Phase::Lora);
            if index == 0 {
                return;
            }
        }
        let part = lora.map_or(InputGradient::None, |lora| lora.input_gradient(index, Site::Attention, rows, dn, &w.lora));
        w.watch.lap(Phase::Lora);
        input_gradient(dn, c, Segment::rows(dqkv, qkv, &self.packed.layers[index].qkv_back), part, tokens);
        if let Some(g) = grad.full(off.qkv) {
            weight_gradient(g, dqkv, qkv, xn, (tokens, qkv, c), &mut w.gradients);
        }
        w.watch.lap(Phase::BackwardGemm);
        let dw = grad.full(off.norm1).map_or(&mut [][..], |g| &mut g[..c]);
        simd::norm_backward(dn, &a.x[of(rows, c)], self.weight(off.norm1, c), &a.rstd1[rows.clone()], &mut w.dx[of(rows, c)], dw);
        w.watch.lap(Phase::Elementwise);
    }
}
