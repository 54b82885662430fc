//! The forward and backward pass of a whole model over one micro-batch.

use crate::attention;
use crate::config::Precision;
use crate::layout::Layout;
use crate::lora::Linear;
use crate::lora_pass::LoraPass;
use crate::model_config::ModelConfig;
use crate::packing::MicroBatch;
use crate::rope::RopeTable;
use crate::simd::{self, Mat, gemm};
use crate::timing::Phase;
use crate::workspace::{LayerActs, Workspace};

/// A model's parameters and settings, borrowed and shared between the workers.
#[derive(Clone, Copy)]
pub(crate) struct Net<'a> {
    pub(crate) config: &'a ModelConfig,
    pub(crate) layout: &'a Layout,
    pub(crate) weights: &'a [f32],
    pub(crate) rope: &'a RopeTable,
    pub(crate) precision: Precision,
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

impl Net<'_> {
    /// `dst[T, n] (+)= x[T, k] W[n, k]^T`.
    fn project(&self, dst: &mut [f32], x: &[f32], w: &[f32], n: usize, k: usize, accumulate: bool) {
        let tokens = x.len() / k;
        gemm(self.precision, (tokens, n, k), dst, n, Mat::rows(x, k), Mat::rows(w, k).t(), 1.0, accumulate);
    }

    /// `dx[T, k] = dy[T, n] W[n, k]`.
    fn project_back(&self, dx: &mut [f32], dy: &[f32], w: &[f32], n: usize, k: usize) {
        let tokens = dy.len() / n;
        gemm(self.precision, (tokens, k, n), dx, k, Mat::rows(dy, n), Mat::rows(w, k), 1.0, false);
    }

    /// `dW[n, k] += dy[T, n]^T x[T, k]`.
    fn weight_gradient(&self, dw: &mut [f32], dy: &[f32], x: &[f32], n: usize, k: usize) {
        let tokens = dy.len() / n;
        gemm(self.precision, (n, k, tokens), dw, k, Mat::rows(dy, n).t(), Mat::rows(x, k), 1.0, true);
    }

    /// Computes one micro-batch. Returns the sum of its targets' losses in nats, and adds `scale`
    /// times the gradient of that sum to `grad`.
    pub(crate) fn run(&self, w: &mut Workspace, batch: &MicroBatch, scale: f32, mut grad: Gradient<'_>) -> f64 {
        w.lora.begin(&batch.base_rows);
        w.watch.start();
        let c = self.config.hidden_size;
        let tokens = batch.tokens.len();
        let first = w.layers.first_mut().map_or(&mut w.last, |l| &mut l.x);
        for (row, token) in first.chunks_exact_mut(c).zip(&batch.tokens) {
            let at = self.layout.embed + *token as usize * c;
            row.copy_from_slice(&self.weights[at..at + c]);
        }
        w.watch.lap(Phase::Elementwise);
        for layer in 0..self.config.num_hidden_layers {
            self.layer_forward(w, layer, batch);
        }
        let loss = self.head(w, batch, scale, &mut grad);
        if matches!(grad, Gradient::None) {
            return loss;
        }
        for layer in (0..self.config.num_hidden_layers).rev() {
            self.layer_backward(w, layer, batch, &mut grad);
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

    fn shape(&self) -> attention::Shape {
        attention::Shape {
            heads: self.config.num_attention_heads,
            kv_heads: self.config.num_key_value_heads,
            dim: self.config.head_dim,
            precision: self.precision,
        }
    }

    /// The query, key and value projections with their offsets in a packed row.
    fn qkv_parts(&self) -> [(Linear, usize); 3] {
        let (q, kv) = (self.config.q_width(), self.config.kv_width());
        [(Linear::Q, 0), (Linear::K, q), (Linear::V, q + kv)]
    }

    fn weight(&self, at: usize, len: usize) -> &[f32] {
        &self.weights[at..at + len]
    }

    fn layer_forward(&self, w: &mut Workspace, index: usize, batch: &MicroBatch) {
        let m = self.config;
        let off = &self.layout.layers[index];
        let (c, q, qkv, inner) = (m.hidden_size, m.q_width(), m.qkv_width(), m.intermediate_size);
        let t = batch.tokens.len();
        let (before, after) = w.layers.split_at_mut(index + 1);
        let Some(a) = before.last_mut() else { return };
        let LayerActs { x, xn, rstd1, qkv: packed, att, lse, x2, hn, rstd2, gate_up } = a;
        let (x, xn, x2, hn) = (&x[..t * c], &mut xn[..t * c], &mut x2[..t * c], &mut hn[..t * c]);
        let (packed, att) = (&mut packed[..t * qkv], &mut att[..t * q]);
        let (gate_up, act) = (&mut gate_up[..t * 2 * inner], &mut w.act[..t * inner]);
        let out = after.first_mut().map_or(&mut w.last, |l| &mut l.x);
        let out = &mut out[..t * c];

        let eps = m.rms_norm_eps as f32;
        simd::norm_forward(x, self.weight(off.norm1, c), eps, xn, &mut rstd1[..t]);
        w.watch.lap(Phase::Elementwise);
        self.project(packed, xn, self.weight(off.qkv, qkv * c), qkv, c, false);
        w.watch.lap(Phase::ForwardGemm);
        if let Some(lora) = &self.lora {
            for (linear, at) in self.qkv_parts() {
                lora.forward(index, linear, xn, &mut packed[at..], qkv, &mut w.lora);
            }
            w.watch.lap(Phase::Lora);
        }
        let heads = m.num_attention_heads + m.num_key_value_heads;
        let (cos, sin) = (&self.rope.cos, &self.rope.sin);
        simd::rotate(packed, qkv, heads, m.head_dim, &batch.positions, cos, sin);
        w.watch.lap(Phase::Elementwise);
        for (start, len) in &batch.docs {
            let rows = &packed[start * qkv..(start + len) * qkv];
            let o = &mut att[start * q..(start + len) * q];
            let h = m.num_attention_heads;
            let lse = &mut lse[start * h..(start + len) * h];
            attention::forward(self.shape(), rows, o, lse, &mut w.attention);
        }
        w.watch.lap(Phase::AttentionForward);
        x2.copy_from_slice(x);
        self.project(x2, att, self.weight(off.o, c * q), c, q, true);
        w.watch.lap(Phase::ForwardGemm);
        if let Some(lora) = &self.lora {
            lora.forward(index, Linear::O, att, x2, c, &mut w.lora);
            w.watch.lap(Phase::Lora);
        }
        simd::norm_forward(x2, self.weight(off.norm2, c), eps, hn, &mut rstd2[..t]);
        w.watch.lap(Phase::Elementwise);
        let wgu = self.weight(off.gate_up, 2 * inner * c);
        self.project(gate_up, hn, wgu, 2 * inner, c, false);
        w.watch.lap(Phase::ForwardGemm);
        if let Some(lora) = &self.lora {
            lora.forward(index, Linear::Gate, hn, gate_up, 2 * inner, &mut w.lora);
            lora.forward(index, Linear::Up, hn, &mut gate_up[inner..], 2 * inner, &mut w.lora);
            w.watch.lap(Phase::Lora);
        }
        simd::swiglu(gate_up, act, inner);
        out.copy_from_slice(x2);
        w.watch.lap(Phase::Elementwise);
        self.project(out, act, self.weight(off.down, c * inner), c, inner, true);
        w.watch.lap(Phase::ForwardGemm);
        if let Some(lora) = &self.lora {
            lora.forward(index, Linear::Down, act, out, c, &mut w.lora);
            w.watch.lap(Phase::Lora);
        }
    }

    /// The final norm, the output head and the loss, computed only for tokens whose next token is a
    /// target. Leaves the gradient of the last layer's output `[T, C]` in `dx`.
    fn head(&self, w: &mut Workspace, batch: &MicroBatch, scale: f32, grad: &mut Gradient<'_>) -> f64 {
        let (c, vocab) = (self.config.hidden_size, self.config.vocab_size);
        let rows = batch.loss_rows.len();
        let x = &mut w.head_x[..rows * c];
        for (row, from) in x.chunks_exact_mut(c).zip(&batch.loss_rows) {
            let at = *from as usize * c;
            row.copy_from_slice(&w.last[at..at + c]);
        }
        let (n, d, rstd) = (&mut w.head_n[..rows * c], &mut w.head_d[..rows * c], &mut w.head_rstd[..rows]);
        let norm = self.weight(self.layout.norm, c);
        simd::norm_forward(x, norm, self.config.rms_norm_eps as f32, n, rstd);
        let head = self.weight(self.layout.head, vocab * c);
        let wanted = !matches!(grad, Gradient::None);
        let mut loss = 0.0;
        for first in (0..rows).step_by(w.logit_rows) {
            let last = (first + w.logit_rows).min(rows);
            let logits = &mut w.logits[..(last - first) * vocab];
            let part = first * c..last * c;
            self.project(logits, &n[part.clone()], head, vocab, c, false);
            loss += simd::cross_entropy(logits, vocab, &batch.targets[first..last], scale);
            if wanted {
                self.project_back(&mut d[part.clone()], logits, head, vocab, c);
                if let Some(g) = grad.full(self.layout.head) {
                    self.weight_gradient(g, logits, &n[part], vocab, c);
                }
            }
        }
        if wanted {
            let dx = &mut w.dx[..batch.tokens.len() * c];
            dx.fill(0.0);
            // `n` is not needed any more, so it holds the gradient through the norm
            n.fill(0.0);
            let dw = grad.full(self.layout.norm).map_or(&mut [][..], |g| &mut g[..c]);
            simd::norm_backward(d, x, norm, rstd, n, dw);
            for (row, to) in n.chunks_exact(c).zip(&batch.loss_rows) {
                let at = *to as usize * c;
                dx[at..at + c].copy_from_slice(row);
            }
        }
        w.watch.lap(Phase::Loss);
        loss
    }

    /// Replaces the gradient of the layer's output in `dx` `[T, C]` by that of its input.
    fn layer_backward(&self, w: &mut Workspace, index: usize, batch: &MicroBatch, grad: &mut Gradient<'_>) {
        let m = self.config;
        let off = &self.layout.layers[index];
        let (c, q, qkv, inner) = (m.hidden_size, m.q_width(), m.qkv_width(), m.intermediate_size);
        let t = batch.tokens.len();
        let a = &mut w.layers[index];
        let (x, xn, x2, hn) = (&a.x[..t * c], &a.xn[..t * c], &a.x2[..t * c], &a.hn[..t * c]);
        let (gate_up, act) = (&mut a.gate_up[..t * 2 * inner], &mut w.act[..t * inner]);
        let (packed, att) = (&a.qkv[..t * qkv], &a.att[..t * q]);
        let (dx, dn) = (&mut w.dx[..t * c], &mut w.dn[..t * c]);
        let (datt, dqkv) = (&mut w.datt[..t * q], &mut w.dqkv[..t * qkv]);

        // second half: x_out = x2 + down(swiglu(gate_up(norm(x2))))
        self.project_back(act, dx, self.weight(off.down, c * inner), c, inner);
        w.watch.lap(Phase::BackwardGemm);
        if let (Some(lora), Gradient::Lora(g)) = (&self.lora, &mut *grad) {
            lora.backward_input(index, Linear::Down, dx, c, act, g, &mut w.lora);
            w.watch.lap(Phase::Lora);
        }
        simd::swiglu_backward(gate_up, act, inner);
        w.watch.lap(Phase::Elementwise);
        if let (Some(lora), Gradient::Lora(g)) = (&self.lora, &mut *grad) {
            lora.backward_weight(index, Linear::Down, act, g, &mut w.lora);
            w.watch.lap(Phase::Lora);
        }
        if let Some(g) = grad.full(off.down) {
            self.weight_gradient(g, dx, act, c, inner);
        }
        if let Some(g) = grad.full(off.gate_up) {
            self.weight_gradient(g, gate_up, hn, 2 * inner, c);
        }
        self.project_back(dn, gate_up, self.weight(off.gate_up, 2 * inner * c), 2 * inner, c);
        w.watch.lap(Phase::BackwardGemm);
        if let (Some(lora), Gradient::Lora(g)) = (&self.lora, &mut *grad) {
            for (linear, at) in [(Linear::Gate, 0), (Linear::Up, inner)] {
                let dy = &gate_up[at..];
                lora.backward_input(index, linear, dy, 2 * inner, dn, g, &mut w.lora);
                lora.backward_weight(index, linear, hn, g, &mut w.lora);
            }
            w.watch.lap(Phase::Lora);
        }
        let dw = grad.full(off.norm2).map_or(&mut [][..], |g| &mut g[..c]);
        simd::norm_backward(dn, x2, self.weight(off.norm2, c), &a.rstd2[..t], dx, dw);
        w.watch.lap(Phase::Elementwise);

        // first half: x2 = x + o(attention(qkv(norm(x))))
        self.project_back(datt, dx, self.weight(off.o, c * q), c, q);
        if let Some(g) = grad.full(off.o) {
            self.weight_gradient(g, dx, att, c, q);
        }
        w.watch.lap(Phase::BackwardGemm);
        if let (Some(lora), Gradient::Lora(g)) = (&self.lora, &mut *grad) {
            lora.backward_input(index, Linear::O, dx, c, datt, g, &mut w.lora);
            lora.backward_weight(index, Linear::O, att, g, &mut w.lora);
            w.watch.lap(Phase::Lora);
        }
        for (start, len) in &batch.docs {
            let rows = start * qkv..(start + len) * qkv;
            let cols = start * q..(start + len) * q;
            let h = m.num_attention_heads;
            let lse = &a.lse[start * h..(start + len) * h];
            let (o, grad) = (&att[cols.clone()], &datt[cols]);
            let (input, out) = (&packed[rows.clone()], &mut dqkv[rows]);
            attention::backward(self.shape(), input, o, lse, grad, out, &mut w.attention);
        }
        w.watch.lap(Phase::AttentionBackward);
        let heads = m.num_attention_heads + m.num_key_value_heads;
        let (cos, sin) = (&self.rope.cos, &self.rope.neg_sin);
        simd::rotate(dqkv, qkv, heads, m.head_dim, &batch.positions, cos, sin);
        w.watch.lap(Phase::Elementwise);
        if let Some(g) = grad.full(off.qkv) {
            self.weight_gradient(g, dqkv, xn, qkv, c);
        }
        self.project_back(dn, dqkv, self.weight(off.qkv, qkv * c), qkv, c);
        w.watch.lap(Phase::BackwardGemm);
        if let (Some(lora), Gradient::Lora(g)) = (&self.lora, &mut *grad) {
            for (linear, at) in self.qkv_parts() {
                lora.backward_input(index, linear, &dqkv[at..], qkv, dn, g, &mut w.lora);
                lora.backward_weight(index, linear, xn, g, &mut w.lora);
            }
            w.watch.lap(Phase::Lora);
        }
        let dw = grad.full(off.norm1).map_or(&mut [][..], |g| &mut g[..c]);
        simd::norm_backward(dn, x, self.weight(off.norm1, c), &a.rstd1[..t], dx, dw);
        w.watch.lap(Phase::Elementwise);
    }
}
