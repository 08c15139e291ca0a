//! A quick number for logs: two tables with different fingerprints differ. It is no identity; files
//! are known by their SHA-256.

use super::Weights;

const BASIS: u64 = 0xcbf2_9ce4_8422_2325;
const PRIME: u64 = 0x0000_0100_0000_01b3;

/// FNV-1a over the bits of every weight, one 32-bit word at a time.
pub fn fingerprint<W: Weights + ?Sized>(weights: &W) -> u64 {
    let entries = weights.layout().entries();
    let mut block = vec![0.0; 64 * 1024];
    let mut hash = BASIS;
    let mut first = 0;
    while first < entries {
        let count = block.len().min((entries - first) as usize);
        weights.copy_weights(first, &mut block[..count]);
        for weight in &block[..count] {
            hash = (hash ^ u64::from(weight.to_bits())).wrapping_mul(PRIME);
        }
        first += count as u64;
    }
    hash
}
