//! The factors and offsets that normalise images.

use crate::abi::MAX_CHANNELS;
use crate::error::{Error, Result, counted};

/// A normalisation of bytes by channel: `(scale * x - mean) / deviation`.
///
/// It is one multiply-add in single precision, `fma(x, factor, offset)` with `factor = scale /
/// deviation` and `offset = -mean / deviation`, which are computed in double precision and rounded
/// to single. A result in half precision is rounded once more. So a CPU that does the same
/// ([`apply`](Self::apply)) gets the same bits; a chain of divisions, each rounded, differs in the
/// last digits.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Normalization {
    channels: usize,
    factors: [f32; MAX_CHANNELS],
    offsets: [f32; MAX_CHANNELS],
}

impl Normalization {
    /// Makes a normalisation with a mean and a deviation for each of 1 to 4 channels. If bytes
    /// stand for 0 to 1, as for torchvision's `ToTensor` and `Normalize`, the scale is `1.0 /
    /// 255.0`.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if the numbers of means and deviations differ or are not 1 to 4, or a
    /// factor or an offset is not finite, as for a deviation of 0.
    ///
    /// ```
    /// # #[cfg(feature = "interp")] {
    /// use warpstride::device::{Backend, Device};
    /// use warpstride::ops::{Normalization, normalize};
    ///
    /// let device = Device::open(Backend::Soft)?;
    /// // One image of 1 x 2 pixels.
    /// let images = device.upload(&[0_u8, 64, 128, 192, 254, 255])?;
    /// let around = Normalization::new(1.0, &[128.0; 3], &[2.0; 3])?;
    /// let planes = normalize::<f32>(images.view(&[1, 1, 2, 3])?, &around)?;
    /// assert_eq!(planes.to_vec()?, [-64.0, 32.0, -32.0, 63.0, 0.0, 63.5]);
    /// # }
    /// # Ok::<(), warpstride::Error>(())
    /// ```
    pub fn new(scale: f64, mean: &[f64], deviation: &[f64]) -> Result<Self> {
        let channels = mean.len();
        if channels != deviation.len() || !(1..=MAX_CHANNELS).contains(&channels) {
            return Err(Error::argument(format!(
                "{channels} and {} were given; give one of each for 1 to {MAX_CHANNELS} channels",
                counted(deviation.len(), "deviation"),
                channels = counted(channels, "mean")
            )));
        }
        let mut result = Self { channels, factors: [0.0; MAX_CHANNELS], offsets: [0.0; MAX_CHANNELS] };
        for channel in 0..channels {
            let (mean, deviation) = (mean[channel], deviation[channel]);
            let (factor, offset) = ((scale / deviation) as f32, (-mean / deviation) as f32);
            if !factor.is_finite() || !offset.is_finite() {
                return Err(Error::argument(format!(
                    "a scale of {scale}, mean of {mean} and deviation of {deviation} in channel {channel} give no finite \
                         numbers; the deviation must not be 0"
                )));
            }
            result.factors[channel] = factor;
            result.offsets[channel] = offset;
        }
        Ok(result)
    }

    /// Returns the number of channels.
    pub fn channels(&self) -> usize {
        self.channels
    }

    /// Normalises a byte of a channel, with the same bits as in planes of `f32`; `None` beyond the
    /// last channel.
    pub fn apply(&self, channel: usize, byte: u8) -> Option<f32> {
        let known = channel < self.channels;
        known.then(|| f32::from(byte).mul_add(self.factors[channel], self.offsets[channel]))
    }

    /// Returns the bits of the factors and of the offsets, as the kernel takes them.
    pub(super) fn bits(&self) -> [[u32; MAX_CHANNELS]; 2] {
        [self.factors, self.offsets].map(|values| values.map(f32::to_bits))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_near_the_exact_ones_and_a_chain_of_divisions() {
        let [mean, deviation] = [[0.485, 0.456, 0.406], [0.229, 0.224, 0.225]];
        let by = Normalization::new(1.0 / 255.0, &mean, &deviation).unwrap();
        for (channel, byte) in (0..3).flat_map(|channel| (0..=255).map(move |byte| (channel, byte))) {
            let (value, [mean, deviation]) = (by.apply(channel, byte).unwrap(), [mean[channel], deviation[channel]]);
            let exact = (f64::from(byte) / 255.0 - mean) / deviation;
            // Factor, offset and sum are rounded once each, to 2^-24 of themselves; none exceeds 5.
            approx::assert_abs_diff_eq!(f64::from(value), exact, epsilon = 3.0 * 5.0 / f64::from(1 << 24));
            let chain = (f32::from(byte) / 255.0 - mean as f32) / deviation as f32;
            approx::assert_abs_diff_eq!(value, chain, epsilon = 1e-6);
        }
    }
}
