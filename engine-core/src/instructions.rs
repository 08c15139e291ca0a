//! Which instructions the hot loops run on. One binary holds every compilation of them; the choice is
//! made when the program starts, by what the processor has.
//!
//! Promised: every set gives the same bits. A loop is written once; `per_instruction_set!` compiles
//! it several times with other instructions allowed, and no set allows fused multiply-add. The
//! environment variable [`VARIABLE`] forces a set, which is how tests reach all of them.
//! Refused: a set the processor lacks. No value of it can be made.

use std::fmt;
use std::sync::OnceLock;

/// The environment variable that forces a set by name.
pub const VARIABLE: &str = "HELDOUT_INSTRUCTIONS";

/// A set of instructions this processor has.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct InstructionSet(Kind);

/// All sets, the plainest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    Portable,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    #[cfg(target_arch = "x86_64")]
    Avx512,
}

impl Kind {
    #[cfg(target_arch = "x86_64")]
    const ALL: &[Self] = &[Self::Portable, Self::Avx2, Self::Avx512];
    #[cfg(not(target_arch = "x86_64"))]
    const ALL: &[Self] = &[Self::Portable];

    /// Keep in step with the features named in [`per_instruction_set!`].
    fn is_there(self) -> bool {
        match self {
            Self::Portable => true,
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => {
                is_x86_feature_detected!("avx2")
                    && is_x86_feature_detected!("bmi1")
                    && is_x86_feature_detected!("bmi2")
                    && is_x86_feature_detected!("lzcnt")
                    && is_x86_feature_detected!("popcnt")
            }
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 => {
                Self::Avx2.is_there()
                    && is_x86_feature_detected!("avx512f")
                    && is_x86_feature_detected!("avx512bw")
                    && is_x86_feature_detected!("avx512cd")
                    && is_x86_feature_detected!("avx512dq")
                    && is_x86_feature_detected!("avx512vl")
            }
        }
    }
}

/// A forced set that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{VARIABLE} is {found:?}; this processor can run {}", list(InstructionSet::available()))]
pub struct InstructionSetError {
    /// The value of the variable.
    pub found: String,
}

fn list(sets: impl Iterator<Item = InstructionSet>) -> String {
    sets.map(InstructionSet::name).collect::<Vec<_>>().join(", ")
}

impl InstructionSet {
    /// The set every processor has.
    pub const PORTABLE: Self = Self(Kind::Portable);

    /// The sets of this processor, the plainest first.
    pub fn available() -> impl Iterator<Item = Self> {
        Kind::ALL.iter().filter(|kind| kind.is_there()).map(|&kind| Self(kind))
    }

    /// The set in use: the forced one, else the last of [`InstructionSet::available`].
    ///
    /// A forced set that is unknown or not there is ignored here; a program refuses it at its start
    /// by asking [`InstructionSet::forced`].
    #[inline]
    pub fn active() -> Self {
        static ACTIVE: OnceLock<InstructionSet> = OnceLock::new();
        *ACTIVE.get_or_init(|| {
            let best = || Self::available().last().unwrap_or(Self::PORTABLE);
            Self::forced().ok().flatten().unwrap_or_else(best)
        })
    }

    /// The set that [`VARIABLE`] asks for; `None` when it is not set or empty.
    ///
    /// # Errors
    /// When the value names no set of this processor.
    pub fn forced() -> Result<Option<Self>, InstructionSetError> {
        let Some(found) = std::env::var_os(VARIABLE).filter(|value| !value.is_empty()) else {
            return Ok(None);
        };
        let set = Self::available().find(|set| *set.name() == *found);
        set.map(Some)
            .ok_or_else(|| InstructionSetError { found: found.to_string_lossy().into_owned() })
    }

    /// The name used in [`VARIABLE`] and in reports.
    pub const fn name(self) -> &'static str {
        match self.0 {
            Kind::Portable => "portable",
            #[cfg(target_arch = "x86_64")]
            Kind::Avx2 => "avx2",
            #[cfg(target_arch = "x86_64")]
            Kind::Avx512 => "avx512",
        }
    }

    /// For [`per_instruction_set!`].
    #[inline]
    pub(crate) const fn kind(self) -> Kind {
        self.0
    }
}

impl fmt::Debug for InstructionSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Compiles one function for every instruction set. `fn name(set, arguments)` runs `body(arguments)`
/// with the instructions of `set`; `body` and what it calls must be `#[inline(always)]` to benefit.
/// Type parameters are written in square brackets. When two expressions follow the body, it gets one of
/// them as its first argument: the first on the portable set, the second on all others, where it is
/// evaluated under their instructions.
///
/// ```ignore
/// per_instruction_set! {
///     /// Adds.
///     pub(crate) fn sum_on[T: Copy + Sum<T>](values: &[T]) -> T = sum;
/// }
/// ```
macro_rules! per_instruction_set {
    ($(#[$attribute:meta])* $visibility:vis fn $name:ident
        $([$($generics:tt)*])? ($($argument:ident: $type:ty),* $(,)?) $(-> $result:ty)? = $body:path $(, $plain:expr, $special:expr)?;
    ) => {
        $(#[$attribute])*
        #[allow(unsafe_code, clippy::too_many_arguments, reason = "see the safety comments")]
        #[inline]
        $visibility fn $name $(<$($generics)*>)? (
            set: $crate::instructions::InstructionSet, $($argument: $type),*
        ) $(-> $result)? {
            use $crate::instructions::Kind;

            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
            fn avx2 $(<$($generics)*>)? ($($argument: $type),*) $(-> $result)? {
                $body($($special,)? $($argument),*)
            }

            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
            #[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl")]
            fn avx512 $(<$($generics)*>)? ($($argument: $type),*) $(-> $result)? {
                $body($($special,)? $($argument),*)
            }

            match set.kind() {
                Kind::Portable => $body($($plain,)? $($argument),*),
                // SAFETY: a value of this kind exists only when the processor has its features.
                #[cfg(target_arch = "x86_64")]
                Kind::Avx2 => unsafe { avx2($($argument),*) },
                // SAFETY: as above.
                #[cfg(target_arch = "x86_64")]
                Kind::Avx512 => unsafe { avx512($($argument),*) },
            }
        }
    };
}

pub(crate) use per_instruction_set;

#[cfg(test)]
mod tests {
    use super::*;

    #[inline(always)]
    fn ones(words: &[u64]) -> u32 {
        words.iter().map(|word| word.count_ones()).sum()
    }

    per_instruction_set! {
        fn ones_on(words: &[u64]) -> u32 = ones;
    }

    #[test]
    fn every_set_computes_the_same() {
        let words: Vec<u64> =
            (0..100).map(|n: u64| n.wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect();
        for set in InstructionSet::available() {
            assert_eq!(ones_on(set, &words), ones(&words), "{set:?}");
        }
    }

    #[test]
    fn the_plainest_set_is_always_there_and_a_forced_one_is_used() {
        assert_eq!(InstructionSet::available().next(), Some(InstructionSet::PORTABLE));
        if let Some(forced) = InstructionSet::forced().expect("a set of this processor") {
            assert_eq!(InstructionSet::active(), forced);
        }
    }
}
