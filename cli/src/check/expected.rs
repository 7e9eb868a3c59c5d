//! The elements that a result should have, and those that differ from them.

use anyhow::Result;
use serde_json::{Value as Json, json};
use warpstride::element::DType;
use warpstride::error::counted;
use warpstride::interp::expect::Verdict;

use super::super::args::{Argument, Value};
use super::super::output::Output;
use super::super::run_ptx::buffer::Buffer;
use super::super::{by_width, number, reference, refuse, require, zeroed};
use super::arithmetic;
use super::file::{Elements, Wanted};
use super::oracle::Formula;

/// The contents that the buffer of an argument should have after the launch.
pub(super) struct Expected {
    argument: usize,
    dtype: DType,
    /// The elements, one behind the other.
    bytes: Vec<u8>,
    /// The array's shape, where the oracle or the file gives it one.
    shape: Option<Vec<usize>>,
    tolerance: Option<f64>,
    /// The expectation as the table shows it.
    text: String,
}

/// A buffer as it is before the launch.
struct Source {
    dtype: DType,
    bytes: Vec<u8>,
}

impl Source {
    fn len(&self) -> usize {
        self.bytes.len() / self.dtype.width()
    }
}

impl Expected {
    /// Computes or reads the elements. `buffers` are those of the arguments.
    pub(super) fn of(
        wanted: &Wanted,
        arguments: &[Argument],
        buffers: &[Option<Buffer>],
        output: &Output,
    ) -> Result<Self> {
        let Wanted { argument, elements, tolerance } = wanted;
        let Some(buffer) = buffers.get(*argument) else {
            let count = counted(buffers.len(), "argument");
            refuse!(InvalidArgument, "arg = {argument}: the launch has {count}, counted from 0; name another one")
        };
        let Some(Buffer { dtype, bytes, .. }) = buffer else {
            let number = &arguments[*argument];
            refuse!(InvalidArgument, "arg = {argument}: {number} is a number and stays as it is; name a buffer")
        };
        require!(
            tolerance.is_none() || number::is_float(number::part(*dtype)),
            InvalidArgument,
            "tolerance is for floats, and argument {argument} has elements of {dtype}; leave it out"
        );
        let target = Target { arguments, argument: *argument, dtype: *dtype, bytes: *bytes };
        let (bytes, shape, name) = match elements {
            Elements::Computed(oracle) => {
                let computed = target.computed(&oracle.formula);
                let computed = computed.map_err(|error| error.context(format!("the oracle `{oracle}`")))?;
                (computed, oracle.formula.shape(), oracle.to_string())
            }
            Elements::Read(file) => {
                let (read, shape) = target.read(file, output)?;
                (read, Some(shape), file.to_string().replacen("npy:", "", 1))
            }
        };
        let within = tolerance.map_or(String::new(), |tolerance| format!(" within {tolerance:?}"));
        let text = format!("argument {argument} is {name}{within}");
        Ok(Self { argument: *argument, dtype: *dtype, bytes, shape, tolerance: *tolerance, text })
    }

    /// Holds what was found to it: a row of the table, and a member of the document.
    pub(super) fn judge(&self, found: &[u8]) -> (Verdict, Json) {
        let width = self.dtype.width();
        let pairs = || found.chunks_exact(width).zip(self.bytes.chunks_exact(width)).enumerate();
        let elements = self.bytes.len() / width;
        let mut differing = pairs().filter(|(_, (found, wanted))| !self.is_equal(found, wanted));
        let text = |element: &[u8]| number::text(self.dtype, element);
        let first = differing.next().map(|(index, (found, wanted))| (index, [text(found), text(wanted)]));
        let differ = first.as_ref().map_or(0, |_| 1 + differing.count());
        let [found, wanted] = first.as_ref().map_or([String::new(), String::new()], |(index, texts)| {
            [0, 1].map(|side| format!("; {} = {}", place(*index, self.shape.as_deref()), texts[side]))
        });
        let verdict = Verdict {
            expectation: self.text.clone(),
            found: format!("{} equal{found}", elements - differ),
            wanted: format!("{elements} equal{wanted}"),
            of_ideal: None,
            held: differ == 0,
        };
        let first = first.map(|(index, [found, wanted])| json!({ "index": index, "found": found, "wanted": wanted }));
        let (arg, tolerance) = (self.argument, self.tolerance);
        (verdict, json!({ "arg": arg, "elements": elements, "differ": differ, "first": first, "tolerance": tolerance }))
    }

    /// As `numpy.testing.assert_allclose` has it: NaN equals NaN, and 0 equals -0.
    fn is_equal(&self, found: &[u8], wanted: &[u8]) -> bool {
        let part = number::part(self.dtype);
        if found == wanted {
            return true;
        }
        number::is_float(part)
            && found.chunks_exact(part.width()).zip(wanted.chunks_exact(part.width())).all(|(found, wanted)| {
                let [found, wanted] = [found, wanted].map(|bytes| number::float(part, bytes));
                let error = (found - wanted).abs();
                let allowed = self.tolerance.unwrap_or(0.0) * wanted.abs().max(1.0);
                found == wanted || (found.is_nan() && wanted.is_nan()) || (error.is_finite() && error <= allowed)
            })
    }
}

/// The place of an element, by its row and its column in a matrix.
fn place(index: usize, shape: Option<&[usize]>) -> String {
    match shape {
        Some([_, columns]) => format!("row {}, column {}", index / columns, index % columns),
        Some(shape @ [_, _, ..]) => {
            let mut rest = index;
            let mut at: Vec<String> = Vec::new();
            for extent in shape.iter().rev() {
                at.push((rest % extent).to_string());
                rest /= extent;
            }
            at.reverse();
            format!("[{}]", at.join(", "))
        }
        _ => format!("[{index}]"),
    }
}

/// The argument whose elements are computed.
struct Target<'a> {
    arguments: &'a [Argument],
    argument: usize,
    dtype: DType,
    bytes: usize,
}

impl Target<'_> {
    /// The elements of a file, and the shape of its array.
    fn read(&self, file: &Argument, output: &Output) -> Result<(Vec<u8>, Vec<usize>)> {
        // Before it is read, since it may be of any size.
        let Some(buffer) = Buffer::of(file)? else { return Ok((Vec::new(), Vec::new())) };
        buffer.note(output);
        self.ensure_fits(buffer.dtype, buffer.bytes / buffer.dtype.width())?;
        Ok((source_of(file)?.bytes, buffer.shape))
    }

    fn computed(&self, formula: &Formula) -> Result<Vec<u8>> {
        match formula {
            Formula::Copy(named) => Ok(self.operand(*named, 0)?.bytes),
            Formula::Reverse(named) => {
                let mut bytes = self.operand(*named, 0)?.bytes;
                // The bytes of each element are in their order again after the second turn.
                bytes.reverse();
                bytes.chunks_exact_mut(self.dtype.width()).for_each(<[u8]>::reverse);
                Ok(bytes)
            }
            Formula::Permute { shape, axes, source } => self.permuted(shape, axes, &self.operand(*source, 0)?),
            Formula::Fill(number) => {
                let number: Argument = format!("{}:{number}", self.dtype).parse().map_err(anyhow::Error::msg)?;
                let Value::Scalar { bytes: element, .. } = number.value else {
                    refuse!(InvalidArgument, "give a number after fill:")
                };
                let mut bytes = zeroed::<u8>(self.bytes)?;
                bytes.chunks_exact_mut(element.len()).for_each(|to| to.copy_from_slice(&element));
                Ok(bytes)
            }
            Formula::Iota => {
                let iota = format!("{}[{}]=iota", self.dtype, self.bytes / self.dtype.width());
                Ok(source_of(&iota.parse().map_err(anyhow::Error::msg)?)?.bytes)
            }
            &Formula::Elementwise(operation, factor, [x, y]) => {
                let factor = factor.map(|factor| self.factor(factor)).transpose()?;
                let (x, y) = (self.operand(x, 0)?, self.operand(y, 1)?);
                let mut result = zeroed(self.bytes)?;
                arithmetic::elementwise(operation, self.dtype, factor, [&x.bytes, &y.bytes], &mut result)?;
                Ok(result)
            }
            Formula::Sum(named) => {
                let source = self.source(*named, 0)?;
                let mut bytes = zeroed(self.bytes)?;
                self.ensure_fits(self.dtype, 1)?;
                arithmetic::sum(source.dtype, &source.bytes, self.dtype, &mut bytes)?;
                Ok(bytes)
            }
        }
    }

    fn permuted(&self, shape: &[usize], axes: &warpstride::layout::Axes, source: &Source) -> Result<Vec<u8>> {
        let elements: usize = shape.iter().product();
        require!(
            elements == source.len(),
            InvalidArgument,
            "the shape has {}, and the argument that it reads has {}; give the argument's shape",
            counted(elements, "element"),
            source.len()
        );
        let axes = axes.of(shape)?;
        by_width!(self.dtype, T => {
            let mut values = zeroed::<T>(elements)?;
            bytemuck::cast_slice_mut::<T, u8>(&mut values).copy_from_slice(&source.bytes);
            let permuted = reference::permuted(&values, shape, &axes)?;
            Ok(bytemuck::cast_slice::<T, u8>(&permuted).to_vec())
        })
    }

    /// The bytes of an argument that is a number of the result's type.
    fn factor(&self, factor: usize) -> Result<&[u8]> {
        match self.arguments.get(factor).map(|argument| &argument.value) {
            Some(Value::Scalar { dtype, bytes }) if *dtype == self.dtype => Ok(bytes),
            Some(Value::Scalar { dtype, .. }) => {
                refuse!(InvalidArgument, "argument {factor} is {dtype}, and the result {}; use one type", self.dtype)
            }
            _ => refuse!(InvalidArgument, "argument {factor} is not a number; name the factor first: axpy:A,X,Y"),
        }
    }

    /// A source that has the result's type and length.
    fn operand(&self, named: Option<usize>, position: usize) -> Result<Source> {
        let source = self.source(named, position)?;
        self.ensure_fits(source.dtype, source.len())?;
        Ok(source)
    }

    /// The buffer of the argument that is named, or the one at `position` among those besides the
    /// result, before the launch.
    fn source(&self, named: Option<usize>, position: usize) -> Result<Source> {
        let arguments = self.arguments;
        let is_buffer = |argument: &Argument| !matches!(argument.value, Value::Scalar { .. });
        let mut others = (0..arguments.len()).filter(|&i| i != self.argument && is_buffer(&arguments[i]));
        let Some(number) = named.or_else(|| others.nth(position)) else {
            refuse!(
                InvalidArgument,
                "there is no other buffer to read; name one by its number at the end of the oracle"
            )
        };
        match arguments.get(number) {
            Some(argument) if is_buffer(argument) => source_of(argument),
            Some(argument) => refuse!(InvalidArgument, "argument {number}, {argument}, is a number; name a buffer"),
            None => {
                let count = counted(arguments.len(), "argument");
                refuse!(InvalidArgument, "there is no argument {number}: the launch has {count}, counted from 0")
            }
        }
    }

    /// Fails where the result does not have such elements.
    fn ensure_fits(&self, dtype: DType, len: usize) -> Result<()> {
        // NumPy has no bf16: a file holds its bits.
        let is_bits = dtype == DType::U16 && self.dtype == DType::Bf16;
        let own = self.bytes / self.dtype.width();
        require!(
            (dtype == self.dtype || is_bits) && len == own,
            InvalidArgument,
            "it has {} of {dtype}, and argument {} has {own} of {}; use one type and one length",
            counted(len, "element"),
            self.argument,
            self.dtype
        );
        Ok(())
    }
}

/// The elements of an argument before the launch.
fn source_of(argument: &Argument) -> Result<Source> {
    let Some(buffer) = Buffer::of(argument)? else { refuse!(InvalidArgument, "{argument} is a number; name a buffer") };
    let dtype = buffer.dtype;
    match buffer.contents()? {
        Some(bytes) => Ok(Source { dtype, bytes }),
        None => refuse!(InvalidArgument, "{argument} holds nothing before the launch; give it elements"),
    }
}
