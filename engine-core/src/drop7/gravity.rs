//! Discs that fall: the one step of a wave that wants special instructions.
//!
//! [`Shifts`] runs everywhere, [`Bmi2`] where the processor can gather and scatter bits. Both give the
//! same planes, which a property test compares.

/// How discs fall into the gaps below them.
pub(crate) trait Gravity: Copy {
    /// The `planes` with only the cells of `keep`, every column packed to its bottom, and the cells
    /// that are then occupied.
    fn fall(self, planes: [u64; 4], keep: u64) -> ([u64; 4], u64);
}

/// Gravity by shifts: one step per disc that has popped.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shifts;

impl Gravity for Shifts {
    #[inline(always)]
    fn fall(self, planes: [u64; 4], keep: u64) -> ([u64; 4], u64) {
        let [mut a, mut b, mut c, mut d] = planes;
        let mut gaps = (a | b | c | d) & !keep;
        while gaps != 0 {
            // From the top, so that the gaps still to come are not moved.
            let at = gaps.ilog2();
            let gap = 1_u64 << at;
            gaps ^= gap;
            let above = (0xff << (at & !7)) & !(gap - 1);
            let shift = |plane: u64| (plane & !above) | ((plane & above & !gap) >> 1);
            (a, b, c, d) = (shift(a), shift(b), shift(c), shift(d));
        }
        ([a, b, c, d], a | b | c | d)
    }
}

#[cfg(target_arch = "x86_64")]
pub(crate) use bmi2::Bmi2;

#[cfg(target_arch = "x86_64")]
mod bmi2 {
    #![expect(unsafe_code, reason = "the caller of a generic body cannot promise instructions")]

    use std::arch::x86_64::{
        __m128i, _mm_add_epi8, _mm_and_si128, _mm_cvtsi64_si128, _mm_cvtsi128_si64, _mm_set1_epi8,
        _mm_setr_epi8, _mm_shuffle_epi8, _mm_srli_epi16, _pdep_u64, _pext_u64,
    };

    use super::Gravity;

    /// Gravity by gathering the bits that stay and scattering them to the bottom. A value exists only
    /// where the processor has the instructions.
    #[derive(Debug, Clone, Copy)]
    pub(crate) struct Bmi2(());

    impl Bmi2 {
        /// Can be called only where the instructions may be used: that is the proof.
        #[target_feature(enable = "avx2,bmi2")]
        #[inline]
        pub(crate) fn here() -> Self {
            Self(())
        }
    }

    impl Gravity for Bmi2 {
        #[inline(always)]
        fn fall(self, planes: [u64; 4], keep: u64) -> ([u64; 4], u64) {
            // SAFETY: `self` was made by `here`, so the processor has AVX2 and BMI2.
            unsafe { fall(planes, keep) }
        }
    }

    #[target_feature(enable = "avx2,bmi2")]
    #[inline]
    fn fall(planes: [u64; 4], keep: u64) -> ([u64; 4], u64) {
        let packed = packed(keep);
        (planes.map(|plane| _pdep_u64(_pext_u64(plane, keep), packed)), packed)
    }

    /// As many bits in every byte as `cells` has there, from the lowest up.
    #[target_feature(enable = "avx2,bmi2")]
    #[inline]
    fn packed(cells: u64) -> u64 {
        let low_half: __m128i = _mm_set1_epi8(0x0f);
        let counts = _mm_setr_epi8(0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4);
        let runs = _mm_setr_epi8(0, 1, 3, 7, 15, 31, 63, 127, 0, 0, 0, 0, 0, 0, 0, 0);
        let cells = _mm_cvtsi64_si128(cells.cast_signed());
        let low = _mm_shuffle_epi8(counts, _mm_and_si128(cells, low_half));
        let high = _mm_and_si128(_mm_srli_epi16::<4>(cells), low_half);
        let count = _mm_add_epi8(low, _mm_shuffle_epi8(counts, high));
        _mm_cvtsi128_si64(_mm_shuffle_epi8(runs, count)).cast_unsigned()
    }
}
