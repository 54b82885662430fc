//! Cache lines, which hold the rows of inputs.

use crate::Format;

/// An aligned cache line of 16 words of 32 bits. The words' content depends on the format.
#[derive(Debug, Clone, Copy, Default)]
#[repr(C, align(64))]
pub(crate) struct Line(pub(crate) [u32; 16]);

/// Number of cache lines of an input row.
pub(crate) fn row_lines(format: Format, cols: usize) -> usize {
    match format {
        Format::F32 => cols.div_ceil(16),
        Format::Bf16 => cols.div_ceil(32),
        Format::Q8_0 => 3 * cols.div_ceil(64),
    }
}
