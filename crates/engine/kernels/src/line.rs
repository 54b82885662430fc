//! Cache lines, in which the rows of inputs lie.

use crate::Format;

/// One cache line, aligned as such, of whatever 32 bits: inputs of products are kept in these.
#[derive(Debug, Clone, Copy, Default)]
#[repr(C, align(64))]
pub(crate) struct Line(pub(crate) [u32; 16]);

/// Lines that a row of inputs takes.
pub(crate) fn row_lines(format: Format, cols: usize) -> usize {
    match format {
        Format::F32 => cols.div_ceil(16),
        Format::Bf16 => cols.div_ceil(32),
        Format::Q8_0 => 3 * cols.div_ceil(64),
    }
}
