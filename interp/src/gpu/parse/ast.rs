//! The tree: PTX as written, with unresolved names, and the place of everything that a message may
//! have to name.

use std::borrow::Cow;

use super::type_bytes;

/// A range of the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Span {
    /// First byte.
    pub(crate) start: u32,
    /// The byte after the last.
    pub(crate) end: u32,
    /// Line of the first byte, from 1.
    pub(crate) line: u32,
}

/// A module.
#[derive(Debug, Default)]
pub(crate) struct Module<'t> {
    /// The architecture of `.target sm_80`: 80, or 0 if the module names none.
    pub(crate) architecture: u32,
    /// True if `.target` says `map_f64_to_f32`: double precision is single precision.
    pub(crate) demotes: bool,
    /// Variables of module scope, and after them those of global and constant memory that bodies
    /// declare.
    pub(crate) variables: Vec<Variable<'t>>,
    /// The number of variables of module scope.
    pub(crate) named: usize,
    /// Registers of module scope, which PTX 1 has; each kernel has its own.
    pub(crate) registers: Vec<Statement<'t>>,
    /// Kernels.
    pub(crate) entries: Vec<Entry<'t>>,
    /// Other functions; each name appears once, with its body if the module has it.
    pub(crate) functions: Vec<Function<'t>>,
    /// `.alias`: another name, and the function that it stands for.
    pub(crate) aliases: Vec<(&'t str, &'t str)>,
    /// `.file` directives: number and name.
    pub(crate) files: Vec<(u32, String)>,
}

/// A `.entry`.
#[derive(Debug)]
pub(crate) struct Entry<'t> {
    /// Its name.
    pub(crate) name: &'t str,
    /// The place of the name.
    pub(crate) span: Span,
    /// Its `.param`s in order.
    pub(crate) params: Vec<Variable<'t>>,
    /// The block shapes that it may be launched with.
    pub(crate) bounds: Bounds,
    /// Its statements.
    pub(crate) body: Vec<Statement<'t>>,
}

/// A `.func`.
#[derive(Debug)]
pub(crate) struct Function<'t> {
    /// Its name.
    pub(crate) name: &'t str,
    /// The place of the name.
    pub(crate) span: Span,
    /// Its results and parameters.
    pub(crate) signature: Signature<'t>,
    /// Its statements; `None` if it is only declared.
    pub(crate) body: Option<Vec<Statement<'t>>>,
}

/// The results and parameters of a function.
#[derive(Debug, Clone, Default)]
pub(crate) struct Signature<'t> {
    /// Its results.
    pub(crate) results: Vec<Formal<'t>>,
    /// Its parameters.
    pub(crate) params: Vec<Formal<'t>>,
}

/// One parameter or result of a function.
#[derive(Debug, Clone)]
pub(crate) struct Formal<'t> {
    /// Its variable, whose name is `_` in a prototype; its size is always known.
    pub(crate) variable: Variable<'t>,
    /// Its type, without the dot.
    pub(crate) ty: &'t str,
    /// True if it is declared with `.reg`.
    pub(crate) is_register: bool,
    /// 2 or 4 for vectors; else 1.
    pub(crate) lanes: u8,
}

/// An entry's requirements on its blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Bounds {
    /// `.maxntid`: the largest number of threads, the product of the extents.
    pub(crate) max_threads: Option<u64>,
    /// `.reqntid`: the required shape.
    pub(crate) required: Option<[u64; 3]>,
    /// `.reqnctapercluster`: the shape of a cluster in blocks.
    pub(crate) cluster: Option<[u64; 3]>,
    /// `.explicitcluster`: a launch has clusters, whose shape it gives unless `cluster` does.
    pub(crate) has_clusters: bool,
    /// `.maxclusterrank`: the most blocks of a cluster.
    pub(crate) max_cluster: Option<u64>,
    /// A directive that changes the meaning of a launch in a way that the software GPU does not
    /// have.
    pub(crate) foreign: Option<&'static str>,
}

/// A state space that variables are declared in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Space {
    /// `.global`
    Global,
    /// `.const`
    Const,
    /// `.shared`
    Shared,
    /// `.local`
    Local,
    /// `.param`
    Param,
}

/// A declared variable.
#[derive(Debug, Clone)]
pub(crate) struct Variable<'t> {
    /// Its state space.
    pub(crate) space: Space,
    /// Its name.
    pub(crate) name: &'t str,
    /// Its type, or that of its elements: `u64`.
    pub(crate) ty: &'t str,
    /// Its alignment in bytes: a power of two.
    pub(crate) align: u64,
    /// Its bytes; `None` for an array without an extent, whose size the launch determines.
    pub(crate) bytes: Option<u64>,
    /// Bytes of an element, and the extents of its array, outermost first.
    pub(crate) shape: (u64, Vec<u64>),
    /// Its initial value.
    pub(crate) initial: Option<Initial<'t>>,
    /// True if it is declared here and defined in another module.
    pub(crate) external: bool,
    /// True if the host uses it, too, at the same address: `.attribute(.managed)`.
    pub(crate) managed: bool,
}

/// An initialiser.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Initial<'t> {
    /// A number, in the form of [`Operand`].
    Number(Operand<'t>),
    /// `name+8`, `generic(name)+8`, or with a mask `0xFF00(name)`: the bits of the address that the
    /// mask selects.
    Address {
        /// A variable or function.
        name: &'t str,
        /// The number of the variable among those that bodies declare, if it is one of them.
        inner: Option<usize>,
        /// Bytes to add.
        offset: i64,
        /// The selected bits.
        mask: u64,
    },
    /// `{1, 2, {3}}`
    List(Vec<Initial<'t>>),
}

/// A statement of a body.
#[derive(Debug)]
pub(crate) enum Statement<'t> {
    /// `name:`
    Label(&'t str),
    /// `.reg .b32 %r<7>;` or `.reg .pred p, q;`
    Registers {
        /// `.b32` and the like, without the dot.
        kind: &'t str,
        /// 2 or 4 for vectors, whose elements are `v.x` and so on; else 1.
        lanes: u8,
        /// The declared names.
        names: Vec<RegisterName<'t>>,
    },
    /// `.shared .align 16 .b8 tile[4224];`
    Variable(Variable<'t>),
    /// `.global .b32 seven = 7;` in a body: its name, and its number among the module's variables
    /// after those of module scope.
    Inner(&'t str, usize),
    /// `prototype_3 : .callprototype (.param .b32 _) _ (.param .b64 _);`
    Prototype(&'t str, Signature<'t>),
    /// `table: .branchtargets $L1, $L2;` or `.calltargets f, g;`
    Targets(&'t str, Vec<&'t str>),
    /// `{ ... }`: names declared inside end with it.
    Scope(Vec<Statement<'t>>),
    /// `.loc`: the following statements come from this line of this file.
    Location {
        /// The number that `.file` gave.
        file: u32,
        /// The line in that file.
        line: u32,
        /// File and line of the call that was inlined there.
        inlined_at: Option<(u32, u32)>,
    },
    /// An instruction.
    Instruction(Instruction<'t>),
}

/// Finds the first `.loc` of a body, in the order of the text: file number and line.
pub(crate) fn first_location(body: &[Statement]) -> Option<(u32, u32)> {
    body.iter().find_map(|statement| match statement {
        Statement::Location { file, line, .. } => Some((*file, *line)),
        Statement::Scope(inner) => first_location(inner),
        _ => None,
    })
}

/// One name of a `.reg`.
#[derive(Debug)]
pub(crate) struct RegisterName<'t> {
    /// The name, or its beginning.
    pub(crate) name: &'t str,
    /// `n` of `%r<n>`: the names `%r0` to `%r(n-1)`.
    pub(crate) count: Option<u64>,
}

/// An instruction.
#[derive(Debug)]
pub(crate) struct Instruction<'t> {
    /// Guard predicate.
    pub(crate) guard: Option<Guard<'t>>,
    /// `mad.lo.s32`
    pub(crate) opcode: Cow<'t, str>,
    /// The operands; `None` if they have a form that this parser does not know. Code that needs
    /// them must then refuse.
    pub(crate) operands: Option<Vec<Operand<'t>>>,
    /// The whole statement without its semicolon.
    pub(crate) span: Span,
}

/// `@%p1` or `@!%p1`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Guard<'t> {
    /// The predicate.
    pub(crate) name: &'t str,
    /// True if it has a `!`.
    pub(crate) negated: bool,
}

/// An operand.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Operand<'t> {
    /// A register, variable, label or special register, plus a number of bytes.
    Name(&'t str, i64),
    /// `tile[2]`, `tile[%r1]` or `tile[%r1+2]`: an element of an array.
    Element {
        /// The whole operand.
        text: &'t str,
        /// The variable.
        array: &'t str,
        /// The register that the index counts from; `None` for 0.
        register: Option<&'t str>,
        /// The number in the index.
        index: i64,
    },
    /// `v.y`: an element of a vector register.
    Lane(&'t str, u8),
    /// `!%p1`
    Negated(&'t str),
    /// `%p1|%p2`: two results.
    Pair(&'t str, &'t str),
    /// An integer; PTX integers have 64 bits.
    Integer(u64),
    /// `0f3F800000`
    F32(u32),
    /// `0d3FF0000000000000`, or a decimal fraction.
    F64(u64),
    /// `{a, b}`
    Vector(Vec<Operand<'t>>),
    /// `(a, b)`: the arguments or results of a call.
    List(Vec<Operand<'t>>),
    /// `[base+offset, {a, b}]`: a box of a tensor, by its map and its place.
    Tensor {
        /// The address of the map.
        map: Box<Operand<'t>>,
        /// The place in each dimension.
        at: Vec<Operand<'t>>,
    },
    /// `[base+offset]`
    Address {
        /// A register or variable; `None` for an absolute address.
        base: Option<&'t str>,
        /// Bytes to add.
        offset: i64,
    },
}

/// Returns whether a body may read bytes of a parameter from byte `begin` on. Only loads from known
/// addresses are known not to.
pub(crate) fn may_read(body: &[Statement], param: &str, begin: usize) -> bool {
    body.iter().any(|statement| match statement {
        Statement::Scope(inner) => may_read(inner, param, begin),
        Statement::Instruction(instruction) => instruction.may_read(param, begin),
        _ => false,
    })
}

impl Instruction<'_> {
    fn may_read(&self, param: &str, begin: usize) -> bool {
        let Some(operands) = self.operands.as_deref() else { return true };
        if !operands.iter().any(|operand| operand.names(param)) {
            return false;
        }
        let (Some(opcode), [results, Operand::Address { offset, .. }]) =
            (self.opcode.strip_prefix("ld.param"), operands)
        else {
            return true;
        };
        // The result may be a vector of registers, whose elements only its declaration tells.
        if matches!(results, Operand::Name(..)) && [".v2", ".v4"].iter().any(|vector| opcode.contains(vector)) {
            return true;
        }
        let results = if let Operand::Vector(elements) = results { elements } else { std::slice::from_ref(results) };
        let Some(width) = opcode.rsplit('.').next().and_then(type_bytes) else { return true };
        let mut ends = (1_i64..).zip(results).filter(|(_, result)| **result != Operand::Name("_", 0));
        ends.any(|(count, _)| offset.saturating_add(count * width as i64) > begin as i64)
    }
}

impl Operand<'_> {
    /// Returns whether it names a variable, or parts of it do.
    fn names(&self, variable: &str) -> bool {
        match self {
            Self::Name(name, _) | Self::Lane(name, _) | Self::Negated(name) | Self::Element { array: name, .. } => {
                *name == variable
            }
            Self::Pair(first, second) => [first, second].contains(&&variable),
            Self::Vector(parts) | Self::List(parts) => parts.iter().any(|part| part.names(variable)),
            Self::Tensor { map, at } => map.names(variable) || at.iter().any(|place| place.names(variable)),
            Self::Address { base, .. } => *base == Some(variable),
            Self::Integer(_) | Self::F32(_) | Self::F64(_) => false,
        }
    }
}
