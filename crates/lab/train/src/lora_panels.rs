//! The adapters' factors, packed for products. Adapters that read the same input form a *site*:
//! their `A` are one factor, and they share the input's dropout mask.

use crate::element::Element;
use crate::lora::{Linear, LoraWeights};
use crate::panels::Panels;

/// An input that adapters read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Site {
    /// The first norm: queries, keys and values.
    Attention,
    /// The attention output.
    Output,
    /// The second norm: gate and up.
    Mlp,
    /// The activation.
    Down,
}

impl Site {
    pub(crate) const ALL: [Self; 4] = [Self::Attention, Self::Output, Self::Mlp, Self::Down];

    fn linears(self) -> &'static [Linear] {
        match self {
            Self::Attention => &[Linear::Q, Linear::K, Linear::V],
            Self::Output => &[Linear::O],
            Self::Mlp => &[Linear::Gate, Linear::Up],
            Self::Down => &[Linear::Down],
        }
    }
}

/// One adapter of a site.
#[derive(Debug)]
pub(crate) struct Member {
    pub(crate) linear: Linear,
    /// Offsets of `A` and `B` in the flat vector.
    pub(crate) a: usize,
    pub(crate) b: usize,
    pub(crate) outputs: usize,
    /// Its first column of the site's hidden values.
    pub(crate) at: usize,
    /// `B^T`, `[r, outputs]`.
    pub(crate) up: Panels,
    /// `B`, `[outputs, r]`.
    pub(crate) up_back: Panels,
}

/// The adapters of a site.
#[derive(Debug)]
pub(crate) struct SitePanels {
    pub(crate) inputs: usize,
    /// Hidden values of all members, each padded to whole words.
    pub(crate) width: usize,
    /// `A^T` of all members, `[inputs, width]`.
    pub(crate) down: Panels,
    /// `A` of all members, `[width, inputs]`.
    pub(crate) down_back: Panels,
    pub(crate) members: Vec<Member>,
}

impl SitePanels {
    pub(crate) fn member(&self, linear: Linear) -> Option<&Member> {
        self.members.iter().find(|member| member.linear == linear)
    }
}

/// All sites of a model, by layer.
#[derive(Debug)]
pub(crate) struct LoraPanels {
    sites: Vec<[Option<SitePanels>; 4]>,
}

/// The rank, padded to whole words.
pub(crate) fn padded_rank<E: Element>(r: usize) -> usize {
    r.next_multiple_of(E::PER_WORD)
}

impl LoraPanels {
    /// Packs the adapters as they are now.
    pub(crate) fn pack<E: Element>(weights: &LoraWeights) -> Self {
        let site = |layer: usize, site: Site| pack_site::<E>(weights, layer, site);
        Self { sites: (0..weights.adapters.len()).map(|layer| Site::ALL.map(|at| site(layer, at))).collect() }
    }

    pub(crate) fn site(&self, layer: usize, site: Site) -> Option<&SitePanels> {
        self.sites[layer][site as usize].as_ref()
    }
}

fn pack_site<E: Element>(weights: &LoraWeights, layer: usize, site: Site) -> Option<SitePanels> {
    let (r, padded) = (weights.config.r, padded_rank::<E>(weights.config.r));
    let found: Vec<_> = site.linears().iter().filter_map(|l| Some((*l, weights.adapters[layer][*l as usize].as_ref()?))).collect();
    let inputs = found.first()?.1.inputs;
    let width = found.len() * padded;
    let mut a = vec![0.0f32; width * inputs];
    let members = found.into_iter().enumerate().map(|(i, (linear, ad))| {
        let at = i * padded;
        a[at * inputs..][..r * inputs].copy_from_slice(&weights.data[ad.a..ad.a + r * inputs]);
        let b = &weights.data[ad.b..ad.b + ad.outputs * r];
        let (up, up_back) = (Panels::of_transposed::<f32, E>(b, r, ad.outputs, r), Panels::of_rows::<f32, E>(b, r, ad.outputs, r));
        Member { linear, a: ad.a, b: ad.b, outputs: ad.outputs, at, up, up_back }
    });
    let members = members.collect();
    let down = Panels::of_transposed::<f32, E>(&a, inputs, width, inputs);
    let down_back = Panels::of_rows::<f32, E>(&a, inputs, width, inputs);
    Some(SitePanels { inputs, width, down, down_back, members })
}
