//! The tree: PTX as written, names unresolved, with the place of everything that a message may have to name.

/// A piece of the text.
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
    /// Variables of module scope.
    pub(crate) variables: Vec<Variable<'t>>,
    /// Kernels.
    pub(crate) entries: Vec<Entry<'t>>,
    /// Other functions; each name once, with its body where the module has it.
    pub(crate) functions: Vec<Function<'t>>,
    /// `.alias`: another name, and the function that it stands for.
    pub(crate) aliases: Vec<(&'t str, &'t str)>,
    /// `.file` directives: number and name.
    pub(crate) files: Vec<(u32, &'t str)>,
}

/// A `.entry`.
#[derive(Debug)]
pub(crate) struct Entry<'t> {
    /// Its name.
    pub(crate) name: &'t str,
    /// Where that stands.
    pub(crate) span: Span,
    /// Its `.param`s in order.
    pub(crate) params: Vec<Variable<'t>>,
    /// Which blocks it may be launched in.
    pub(crate) bounds: Bounds,
    /// Its statements.
    pub(crate) body: Vec<Statement<'t>>,
}

/// A `.func`.
#[derive(Debug)]
pub(crate) struct Function<'t> {
    /// Its name.
    pub(crate) name: &'t str,
    /// Where that stands.
    pub(crate) span: Span,
    /// What it takes and gives.
    pub(crate) signature: Signature<'t>,
    /// Its statements; `None` where it is only declared.
    pub(crate) body: Option<Vec<Statement<'t>>>,
}

/// What a function takes and gives.
#[derive(Debug, Clone, Default)]
pub(crate) struct Signature<'t> {
    /// What it gives back.
    pub(crate) results: Vec<Formal<'t>>,
    /// What it takes.
    pub(crate) params: Vec<Formal<'t>>,
}

/// One parameter or result of a function.
#[derive(Debug, Clone)]
pub(crate) struct Formal<'t> {
    /// Its name, `_` in a prototype; its size is always known.
    pub(crate) variable: Variable<'t>,
    /// The type of the register that it is, where it is declared with `.reg`.
    pub(crate) register: Option<&'t str>,
}

/// What an entry says of its blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Bounds {
    /// `.maxntid`: threads at most, the product of the extents.
    pub(crate) max_threads: Option<u64>,
    /// `.reqntid`: the shape.
    pub(crate) required: Option<[u64; 3]>,
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
    /// Where it lives.
    pub(crate) space: Space,
    /// Its name.
    pub(crate) name: &'t str,
    /// Its type, or that of its elements: `u64`.
    pub(crate) ty: &'t str,
    /// Its alignment in bytes: a power of two.
    pub(crate) align: u64,
    /// Its bytes; `None` for an array without an extent, whose size the launch gives.
    pub(crate) bytes: Option<u64>,
    /// Bytes of an element, and the extents of its array, outermost first.
    pub(crate) shape: (u64, Vec<u64>),
    /// What it holds at first.
    pub(crate) initial: Option<Initial<'t>>,
    /// Declared here and defined in another module.
    pub(crate) external: bool,
}

/// An initialiser.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Initial<'t> {
    /// A number, as [`Operand`] has them.
    Number(Operand<'t>),
    /// `name+8`, `generic(name)+8`, or with a mask `0xFF00(name)`: the bits of the address that the mask has.
    Address {
        /// A variable or function.
        name: &'t str,
        /// Bytes to add.
        offset: i64,
        /// The bits that are wanted.
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
        /// The declared names.
        names: Vec<RegisterName<'t>>,
    },
    /// `.shared .align 16 .b8 tile[4224];`
    Variable(Variable<'t>),
    /// `prototype_3 : .callprototype (.param .b32 _) _ (.param .b64 _);`
    Prototype(&'t str, Signature<'t>),
    /// `table: .branchtargets $L1, $L2;` or `.calltargets f, g;`
    Targets(&'t str, Vec<&'t str>),
    /// `{ ... }`: names declared inside end with it.
    Scope(Vec<Statement<'t>>),
    /// `.loc`: what follows comes from this line of this file.
    Location {
        /// The number that `.file` gave.
        file: u32,
        /// Line in it.
        line: u32,
    },
    /// Anything that runs.
    Instruction(Instruction<'t>),
}

/// One name of a `.reg`.
#[derive(Debug)]
pub(crate) struct RegisterName<'t> {
    /// The name, or what it begins with.
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
    pub(crate) opcode: &'t str,
    /// What follows, or `None` where it has a form this parser does not know; whoever needs it must refuse.
    pub(crate) operands: Option<Vec<Operand<'t>>>,
    /// The whole statement without its semicolon.
    pub(crate) span: Span,
}

/// `@%p1` or `@!%p1`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Guard<'t> {
    /// The predicate.
    pub(crate) name: &'t str,
    /// With `!`.
    pub(crate) negated: bool,
}

/// An operand.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Operand<'t> {
    /// A register, variable, label or special register, plus a number of bytes.
    Name(&'t str, i64),
    /// `!%p1`
    Negated(&'t str),
    /// `%p1|%p2`: two results.
    Pair(&'t str, &'t str),
    /// An integer; PTX has them in 64 bits.
    Integer(u64),
    /// `0f3F800000`
    F32(u32),
    /// `0d3FF0000000000000`, or a decimal fraction.
    F64(u64),
    /// `{a, b}`
    Vector(Vec<Operand<'t>>),
    /// `(a, b)`: what a call passes or gets.
    List(Vec<Operand<'t>>),
    /// `[base+offset]`
    Address {
        /// A register or variable; `None` for an absolute address.
        base: Option<&'t str>,
        /// Bytes to add.
        offset: i64,
    },
}
