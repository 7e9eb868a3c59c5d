//! Module scope: the meaning of its names, and the initial values of its variables.

use std::collections::HashMap;

use super::Result;
use crate::error::counted;
use crate::gpu::parse::ast::{Initial, Module, Operand, Space, Variable};
use crate::gpu::parse::is_opaque;
use crate::gpu::variables::{self, Pointer, Symbol, Variables};

/// Bytes of constant memory that a module may declare on any GPU.
const MAX_CONSTANT: u64 = 64 << 10;
/// Bytes that initialisers may fill: more than any text spells out.
const MAX_IMAGE: u64 = 1 << 30;

/// The meaning of a module's names.
pub(crate) struct Symbols<'t> {
    /// The indices of variables in the module's list, by their names.
    pub(super) variables: HashMap<&'t str, usize>,
    /// The index of the first variable that a body declares.
    first_inner: usize,
    /// The numbers of functions, by their names.
    pub(super) functions: HashMap<&'t str, u32>,
    /// Functions whose addresses variables hold.
    pub(super) taken: Vec<u32>,
    /// For each variable of the module, its number among those in memory, or the reason why it is
    /// not there.
    pub(super) places: Vec<Result<usize>>,
}

impl<'t> Symbols<'t> {
    /// Resolves the names of a module and makes its variables.
    pub(crate) fn of(module: &Module<'t>) -> (Self, Variables) {
        let named = |(index, variable): (usize, &Variable<'t>)| (variable.name, index);
        let mut symbols = Symbols {
            variables: module.variables[..module.named].iter().enumerate().map(named).collect(),
            first_inner: module.named,
            functions: (0..).zip(&module.functions).map(|(number, function)| (function.name, number)).collect(),
            taken: Vec::new(),
            places: Vec::new(),
        };
        for (name, of) in &module.aliases {
            if let Some(&number) = symbols.functions.get(of) {
                symbols.functions.insert(name, number);
            }
        }
        let mut count = 0;
        for variable in &module.variables {
            let place = placed(variable).map(|()| count);
            count += usize::from(place.is_ok());
            symbols.places.push(place);
        }
        // Only now can every pointer find its target.
        let mut list = Vec::with_capacity(count);
        for (index, variable) in module.variables.iter().enumerate() {
            if symbols.places[index].is_ok() {
                let image = Image::of(variable, &symbols).unwrap_or_else(|refusal| {
                    symbols.places[index] = Err(refusal);
                    Image::default()
                });
                let Image { bytes: image, pointers } = image;
                symbols.taken.extend(pointers.iter().filter_map(|pointer| match pointer.to {
                    Symbol::Function(number) => Some(number),
                    Symbol::Variable(_) => None,
                }));
                let bytes = variable.bytes.unwrap_or(0).max(1);
                let (name, constant) = (variable.name.to_owned(), variable.space == Space::Const);
                let managed = variable.managed;
                list.push(variables::Variable { name, constant, managed, bytes, image, pointers });
            }
        }
        (symbols, Variables::new(list))
    }
}

/// Checks that a variable is one of those that lie in memory from launch to launch.
fn placed(variable: &Variable) -> Result<()> {
    match (variable.space, variable.bytes) {
        _ if is_opaque(variable.ty) => {
            Err("is a texture, surface or sampler, which the software GPU does not have".to_owned())
        }
        (Space::Global | Space::Const, _) if variable.external => {
            Err("is declared `.extern`, and this module does not define it".to_owned())
        }
        (Space::Const, Some(bytes)) if bytes > MAX_CONSTANT => {
            Err(format!("has {bytes} bytes of constant memory; there are {MAX_CONSTANT}"))
        }
        (Space::Global | Space::Const, Some(_)) => Ok(()),
        (Space::Global | Space::Const, None) => Err("has no size".to_owned()),
        _ => Err("is not a variable of global or constant memory".to_owned()),
    }
}

/// The initial content of a variable.
#[derive(Default)]
struct Image {
    bytes: Vec<u8>,
    pointers: Vec<Pointer>,
}

impl Image {
    fn of(variable: &Variable, symbols: &Symbols) -> Result<Self> {
        let mut image = Image::default();
        let Some(initial) = &variable.initial else { return Ok(image) };
        let (width, extents) = &variable.shape;
        let size = variable.bytes.unwrap_or(0);
        if size > MAX_IMAGE || *width > 8 {
            return Err(format!(
                "has an initialiser for {size} in elements of {width}, which is not supported",
                size = counted(size, "byte")
            ));
        }
        image.fill(initial, 0, size, *width, extents, symbols)?;
        Ok(image)
    }

    /// Writes a value into the `size` bytes from `at`: an element, or an array of these extents.
    fn fill(
        &mut self,
        initial: &Initial,
        at: u64,
        size: u64,
        width: u64,
        extents: &[u64],
        symbols: &Symbols,
    ) -> Result<()> {
        match (initial, extents) {
            (Initial::List(list), [extent, inner @ ..]) => {
                let step = size.checked_div(*extent).unwrap_or(0);
                // A flat list runs through the elements of all extents.
                let flat = !list.iter().any(|element| matches!(element, Initial::List(_)));
                let (step, inner) = if flat { (width, &[][..]) } else { (step, inner) };
                if list.len() as u64 * step > size {
                    return Err(format!("has an initialiser of {}, more than it holds", counted(list.len(), "value")));
                }
                for (index, element) in (0..).zip(list) {
                    self.fill(element, at + index * step, step, width, inner, symbols)?;
                }
                Ok(())
            }
            (Initial::List(list), []) if list.len() == 1 => self.fill(&list[0], at, size, width, extents, symbols),
            (Initial::List(_), []) => Err("has a list as the initialiser of a single value".to_owned()),
            (_, [_, ..]) => self.fill(initial, at, width, width, &[], symbols),
            (Initial::Number(number), []) => {
                let bits = number_bits(number, width)?;
                self.write(at, &bits.to_le_bytes()[..width as usize]);
                Ok(())
            }
            (&Initial::Address { name, inner, offset, mask }, []) => {
                let inner = inner.map(|number| symbols.first_inner + number);
                let variable = inner.or_else(|| symbols.variables.get(name).copied());
                let to = match (variable, symbols.functions.get(name)) {
                    (Some(variable), _) => Symbol::Variable(
                        symbols.places[variable].clone().map_err(|why| format!("points to {name}, which {why}"))?,
                    ),
                    (None, Some(&function)) => Symbol::Function(function),
                    (None, None) => return Err(format!("points to {name}, which is not declared")),
                };
                self.pointers.push(Pointer { at: (at, width as u8), to, offset, mask });
                Ok(())
            }
        }
    }

    fn write(&mut self, at: u64, bytes: &[u8]) {
        let (start, end) = (at as usize, at as usize + bytes.len());
        self.bytes.resize(self.bytes.len().max(end), 0);
        self.bytes[start..end].copy_from_slice(bytes);
    }
}

fn number_bits(number: &Operand, width: u64) -> Result<u64> {
    Ok(match (number, width) {
        (Operand::Integer(value), _) => *value,
        (Operand::F32(bits), 4) => u64::from(*bits),
        (Operand::F64(bits), 8) => *bits,
        (Operand::F64(bits), 4) => u64::from((f64::from_bits(*bits) as f32).to_bits()),
        (Operand::F32(bits), 8) => f64::from(f32::from_bits(*bits)).to_bits(),
        _ => return Err("has an initialiser that is not a number of its type".to_owned()),
    })
}
