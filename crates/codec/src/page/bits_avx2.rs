//! Unpacking on processors with AVX2: eight numbers of up to 25 bits at a time (after Lemire, Boytsov 2015, for numbers that lie one behind the other).
//!
//! Of eight numbers of w bits four lie in the first 16 bytes, and four in the 16 bytes from byte w / 2 on. A shuffle brings the four bytes that hold a number into
//! its 32 bits, which are then shifted and masked.
//!
//! Other processors, and wider numbers, are served by the portable code, which must give the same.
#![cfg_attr(
    target_arch = "x86_64",
    expect(unsafe_code, reason = "code for AVX2 and its loads of 16 bytes: see `figures` in tests/lineitem.rs")
)]

use super::bits::{BLOCK, SLACK};

/// Numbers up to so wide lie in four bytes from any bit on.
#[cfg(target_arch = "x86_64")]
const WIDTH_MAX: usize = 25;

/// Unpacks, if this processor and this module can; else false. `packed` has [`SLACK`] bytes more than the 64 numbers.
#[cfg(target_arch = "x86_64")]
#[inline]
pub(super) fn unpack_64(packed: &[u8], width: u32, out: &mut [u64; BLOCK]) -> bool {
    let can = width as usize <= WIDTH_MAX && std::arch::is_x86_feature_detected!("avx2");
    if can {
        // SAFETY: the processor has AVX2.
        unsafe { x86::unpack_64(packed, width as usize, out) };
    }
    can
}

/// Not on this processor.
#[cfg(not(target_arch = "x86_64"))]
pub(super) fn unpack_64(_: &[u8], _: u32, _: &mut [u64; BLOCK]) -> bool {
    false
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::{BLOCK, SLACK, WIDTH_MAX};
    use std::arch::x86_64::{
        _mm_loadu_si128, _mm256_and_si256, _mm256_castsi256_si128, _mm256_cvtepu32_epi64, _mm256_extracti128_si256, _mm256_loadu_si256,
        _mm256_set_m128i, _mm256_set1_epi32, _mm256_shuffle_epi8, _mm256_srlv_epi32, _mm256_storeu_si256,
    };

    /// For numbers of one width: which byte of its 16 each byte of the eight is, and by how much each of the eight is shifted.
    #[derive(Clone, Copy)]
    struct Plan {
        bytes: [u8; 32],
        shifts: [u32; 8],
    }

    const PLANS: [Plan; WIDTH_MAX + 1] = {
        let mut plans = [Plan { bytes: [0; 32], shifts: [0; 8] }; WIDTH_MAX + 1];
        let mut width = 0;
        while width <= WIDTH_MAX {
            let mut number = 0;
            while number < 8 {
                // The second four are taken from 16 bytes that start at byte width / 2.
                let first = number * width - (number / 4) * (width / 2) * 8;
                plans[width].shifts[number] = (first % 8) as u32;
                let mut byte = 0;
                while byte < 4 {
                    plans[width].bytes[4 * number + byte] = (first / 8 + byte) as u8;
                    assert!(first / 8 + byte < 16);
                    byte += 1;
                }
                number += 1;
            }
            width += 1;
        }
        plans
    };

    /// # Panics
    /// When `packed` is shorter than 64 numbers and [`SLACK`], or numbers are wider than [`WIDTH_MAX`].
    #[target_feature(enable = "avx2")]
    pub(super) fn unpack_64(packed: &[u8], width: usize, out: &mut [u64; BLOCK]) {
        const { assert!(SLACK >= 16) };
        assert!(packed.len() >= 8 * width + SLACK);
        let plan = &PLANS[width];
        // SAFETY: arrays of 32 bytes.
        let (bytes, shifts) = unsafe { (_mm256_loadu_si256(plan.bytes.as_ptr().cast()), _mm256_loadu_si256(plan.shifts.as_ptr().cast())) };
        let mask = _mm256_set1_epi32((1 << width) - 1);
        for (group, numbers) in out.as_chunks_mut::<8>().0.iter_mut().enumerate() {
            // SAFETY: group is at most 7, so the last byte loaded is at most number 7 * width + width / 2 + 15, which is below 8 * width + SLACK.
            let (low, high) = unsafe {
                let at = packed.as_ptr().add(group * width);
                (_mm_loadu_si128(at.cast()), _mm_loadu_si128(at.add(width / 2).cast()))
            };
            let shuffled = _mm256_shuffle_epi8(_mm256_set_m128i(high, low), bytes);
            let eight = _mm256_and_si256(_mm256_srlv_epi32(shuffled, shifts), mask);
            let low = _mm256_cvtepu32_epi64(_mm256_castsi256_si128(eight));
            let high = _mm256_cvtepu32_epi64(_mm256_extracti128_si256::<1>(eight));
            // SAFETY: eight numbers of 8 bytes are two times 32 bytes.
            unsafe {
                _mm256_storeu_si256(numbers.as_mut_ptr().cast(), low);
                _mm256_storeu_si256(numbers.as_mut_ptr().add(4).cast(), high);
            }
        }
    }
}
