//! Turns the tree into flat code: names become register numbers, labels become pcs, immediates
//! become registers that are filled beforehand.
//!
//! A kernel is lowered together with the functions that it may call. An entry that uses an
//! unsupported feature is not an error here: its kernel carries the reason, and its launch fails.

mod arrivals;
mod atomics;
mod bulk;
mod clusters;
mod contract;
mod copies;
mod desugar;
mod draft;
mod expand;
mod features;
mod fragments;
mod functions;
mod guesses;
mod names;
mod operands;
mod products;
mod recursion;
mod rounds;
mod special;
mod together;
mod variables;
mod widths;

use std::collections::{BTreeSet, HashMap, HashSet};

pub(crate) use self::clusters::check_cluster;
use self::contract::Role;
use self::draft::{Draft, Touched};
use self::names::Names;
pub(crate) use self::variables::Symbols;
use super::cfg::{Graph, Next, Uses};
use super::code::{ALWAYS, Code, Ins, Listing, MAX_INSTRUCTIONS, NEGATED, NOWHERE, Origin, Param, PresetValue, Site};
use super::isa::{self, Form, Op, Shape};
use super::model::atomics::Update;
use super::parse::ast::{self, Operand, Statement};
use super::spelling;
use super::vocabulary::{AccessKind, File, Kind};
use crate::error::{Error, ErrorKind};

/// The reason why an instruction is not supported, as the end of a sentence.
type Refusal = String;
type Result<T, E = Refusal> = std::result::Result<T, E>;
/// The most bytes of a kernel's parameters, since CUDA 12.1.
const MAX_PARAM_BYTES: usize = 32_764;
/// A register: its file, and its number there.
type Slot = (File, u16);

/// Something that is not supported, with its place.
#[derive(Debug, Clone)]
pub(crate) struct Refused {
    pub(crate) span: ast::Span,
    /// File number and line of the source, where the PTX has them.
    source: Option<(u32, u32)>,
    pub(crate) why: Refusal,
}

impl Refused {
    /// The refusal of a whole kernel or function, whose name is at `span`.
    fn whole(span: ast::Span, why: Refusal) -> Self {
        Self { span, source: None, why }
    }
}

/// The result of lowering a kernel.
#[derive(Debug)]
pub(crate) struct Lowered {
    /// The code, or the reason why the kernel cannot run.
    pub(crate) code: Result<Code, Error>,
    /// The instructions that are not supported, with the reason as the end of a sentence.
    pub(crate) refusals: Vec<Refused>,
    /// The numbers of the functions that it may call.
    pub(crate) called: Vec<u32>,
}

/// Lowers the entry of this number, which has these parameters. With `contracts`, products and sums
/// are fused.
pub(crate) fn lower<'t>(
    module: &ast::Module<'t>,
    symbols: &Symbols<'t>,
    listing: &Listing,
    (number, bounds): (usize, &ast::Bounds),
    params: &[Param],
    contracts: bool,
) -> Lowered {
    let entry = &module.entries[number];
    let mut lowering = Lowering { contracts, ..Lowering::new(module, symbols, params) };
    let mut code = lowering.entry(entry, bounds);
    if let Ok(code) = &mut code {
        let spans: Vec<ast::Span> = code.origins.iter().map(|origin| origin.span).collect();
        // Nothing stores where these load from.
        rounds::number(code, &lowering.touched, |pc| listing.line(spans[pc]).contains(".nc"));
        code.guesses = guesses::find(code, &lowering.touched);
    }
    let (refusals, called) = (lowering.refusals, lowering.called);
    let code = code.map_err(|Refused { span, source, why }| {
        let (line, what) = (span.line, listing.line(span));
        let source = source.and_then(|source| listing.source(source));
        let source = source.map(|source| format!(", {source}")).unwrap_or_default();
        let context = format!(
            "unsupported PTX: `{what}` in kernel {:?} (PTX line {line}{source}): {why}; run it on a CUDA device instead",
            entry.name
        );
        Error::new(ErrorKind::UnsupportedPtx, context)
    });
    Lowered { code, refusals, called }
}

/// Lowers an instruction by its opcode and operands, if it is one of some that need no form.
type Special<'m, 't> = fn(&mut Lowering<'m, 't>, &str, &[Operand<'t>]) -> Result<Option<Vec<Draft>>>;

struct Lowering<'m, 't> {
    names: Names<'m, 't>,
    code: Code,
    touched: Vec<Touched>,
    /// The pc of each label, by the number that `names` gives it.
    labels: Vec<Option<u32>>,
    source: Option<(u32, u32)>,
    /// For a line whose code was inlined, the line of the call.
    inlined: HashMap<(u32, u32), (u32, u32)>,
    /// Opcodes that are not in the table, and their spellings there.
    ordered: HashMap<String, Option<String>>,
    /// Instructions to run before the one that is being lowered.
    prelude: Vec<Draft>,
    /// The label at the end of the function, where its lanes meet to return; `None` in the kernel
    /// itself.
    end: Option<usize>,
    /// The number of the function.
    current: Option<u32>,
    /// The place of the kernel's or function's name.
    span: ast::Span,
    /// For each call in the code, the function that contains it.
    callers: Vec<Option<u32>>,
    /// Functions that have been lowered.
    called: Vec<u32>,
    /// Functions to lower.
    pending: Vec<u32>,
    /// Functions whose address the code takes.
    taken: BTreeSet<u32>,
    /// The instructions that are not supported.
    refusals: Vec<Refused>,
    /// The number of the code's tables that already hold pcs instead of labels: those of finished
    /// parts.
    placed_tables: usize,
    /// True if products and sums are fused.
    contracts: bool,
}

impl<'m, 't> Lowering<'m, 't> {
    fn new(module: &'m ast::Module<'t>, symbols: &'m Symbols<'t>, params: &'m [Param]) -> Self {
        Self {
            names: Names::new(module, symbols, params),
            code: Code::default(),
            touched: Vec::new(),
            labels: Vec::new(),
            source: None,
            inlined: HashMap::new(),
            ordered: HashMap::new(),
            prelude: Vec::new(),
            end: None,
            current: None,
            span: ast::Span::default(),
            callers: Vec::new(),
            called: Vec::new(),
            pending: Vec::new(),
            taken: BTreeSet::new(),
            refusals: Vec::new(),
            placed_tables: 0,
            contracts: false,
        }
    }

    fn entry(&mut self, entry: &'m ast::Entry<'t>, bounds: &ast::Bounds) -> Result<Code, Refused> {
        let at_entry = |refusal| Refused::whole(entry.span, refusal);
        self.span = entry.span;
        let sized = entry.params.iter().all(|param| param.bytes.is_some());
        if !sized || self.names.param_bytes() > MAX_PARAM_BYTES {
            return Err(at_entry(format!("parameters of more than {MAX_PARAM_BYTES} bytes, or of no size")));
        }
        self.cluster(bounds).map_err(at_entry)?;
        // The first constant gets the number `ALWAYS`.
        let (_, always) = self.names.constant(File::Pred, PresetValue::Bits(1)).map_err(at_entry)?;
        debug_assert_eq!(always, ALWAYS);
        for statement in &self.names.module.registers {
            if let Statement::Registers { kind, lanes, names } = statement {
                self.names.registers(kind, *lanes, names);
            }
        }
        self.scope(&entry.body);
        let end = self.code.instructions.len();
        self.emit(Draft::new(Op::Exit), ALWAYS, entry.span);
        self.code.instructions[end].first = true;
        self.finish_part(0).map_err(at_entry)?;
        self.code.local_bytes = self.names.frame_bytes as u32;
        self.reachable()?;
        if let Some(first) = self.refusals.first() {
            return Err(first.clone());
        }
        self.finish().map_err(at_entry)
    }

    fn scope(&mut self, statements: &'m [Statement<'t>]) {
        self.names.open(statements, &mut self.labels);
        for statement in statements {
            match statement {
                Statement::Label(name) => {
                    if let Some(label) = self.names.label(name) {
                        self.labels[label] = Some(self.code.instructions.len() as u32);
                    }
                }
                Statement::Registers { kind, lanes, names } => self.names.registers(kind, *lanes, names),
                Statement::Variable(variable) => {
                    if let Err(refusal) = self.names.variable(variable) {
                        self.refusals.push(Refused::whole(self.span, refusal));
                    }
                }
                Statement::Inner(_, index) => {
                    if let Err(refusal) = self.names.inner(self.names.module.named + index) {
                        self.refusals.push(Refused::whole(self.span, refusal));
                    }
                }
                Statement::Prototype(..) | Statement::Targets(..) => {}
                Statement::Scope(inner) => self.scope(inner),
                Statement::Location { file, line, inlined_at } => {
                    self.source = Some((*file, *line));
                    self.inlined.extend(inlined_at.map(|at| ((*file, *line), at)));
                }
                Statement::Instruction(instruction) => {
                    if let Err(why) = self.instruction(instruction) {
                        let source = self.source.map(|source| self.users_line(source));
                        self.refusals.push(Refused { span: instruction.span, source, why });
                    }
                }
            }
        }
        self.names.close();
    }

    /// The line of the user's file that a line of a header was inlined at, or that line itself.
    fn users_line(&self, mut line: (u32, u32)) -> (u32, u32) {
        let is_header = |number: u32| {
            let file = self.names.module.files.iter().find(|(known, _)| *known == number);
            file.is_some_and(|(_, name)| {
                let name = name.to_ascii_lowercase();
                name.contains("/include/") || [".h", ".hpp", ".cuh", ".inl"].iter().any(|end| name.ends_with(end))
            })
        };
        // A line may be inlined at itself, in a loop of two functions.
        for _ in 0..64 {
            match self.inlined.get(&line) {
                Some(&caller) if is_header(line.0) => line = caller,
                _ => break,
            }
        }
        line
    }

    fn instruction(&mut self, instruction: &ast::Instruction<'t>) -> Result<()> {
        if self.code.instructions.len() >= MAX_INSTRUCTIONS {
            return Err(format!("kernels of more than {MAX_INSTRUCTIONS} instructions are not supported"));
        }
        let first = self.code.instructions.len();
        let opcode = self.spelled(&instruction.opcode);
        let operands = instruction.operands.as_deref().ok_or_else(|| {
            let unknown = || "its operands have a form that the software GPU does not support".to_owned();
            features::refusal(&opcode).unwrap_or_else(unknown)
        })?;
        let operands = &*self.plain(&opcode, operands)?;
        let is_fraction = |operand: &Operand| matches!(operand, Operand::F32(_) | Operand::F64(_));
        if operands.iter().any(is_fraction) && desugar::takes_integers(&opcode) {
            return Err("it has a floating-point number where an integer is required".to_owned());
        }
        let guard = match instruction.guard {
            Some(guard) => self.names.register(guard.name, File::Pred)?.1 | if guard.negated { NEGATED } else { 0 },
            None => ALWAYS,
        };
        let drafts = self.drafts(&opcode, operands)?;
        let guard = self.lasting(guard, &drafts, instruction.span)?;
        for draft in std::mem::take(&mut self.prelude).into_iter().chain(drafts) {
            self.emit(draft, guard, instruction.span);
        }
        if let Some(first) = self.code.instructions.get_mut(first) {
            first.first = true;
        }
        if let Some(last) = self.touched[first..].last_mut().filter(|_| self.contracts) {
            last.role = Role::of(&opcode, operands);
        }
        Ok(())
    }

    /// The guard of an instruction of several steps. It is a copy if a step before the last writes
    /// the guard itself.
    fn lasting(&mut self, guard: u16, drafts: &[Draft], span: ast::Span) -> Result<u16> {
        let register = guard & !NEGATED;
        let early = drafts.split_last().map_or(&[][..], |(_, early)| early);
        if !early.iter().any(|draft| draft.writes.contains(&(File::Pred, register))) {
            return Ok(guard);
        }
        let copy = self.names.allocate(File::Pred)?;
        self.emit(Draft::step(Op::MovPred, copy, &[(File::Pred, register)]), ALWAYS, span);
        Ok(copy.1 | guard & NEGATED)
    }

    /// The table's spelling of an opcode, or the opcode itself if the table does not have it.
    fn spelled(&mut self, opcode: &str) -> String {
        if isa::forms(opcode).next().is_some() {
            return opcode.to_owned();
        }
        if let Some(generic) = clusters::generic_atomic(opcode) {
            // The space stands behind the name for `Lowering::addressed`.
            let spelled = self.spelled(&generic);
            return spelled.replacen('.', ".shared::cluster.", 1);
        }
        let known = self.ordered.get(opcode).cloned();
        let ordered = known.unwrap_or_else(|| {
            let found = spelling::ordered(opcode);
            self.ordered.insert(opcode.to_owned(), found.clone());
            found
        });
        ordered.unwrap_or_else(|| opcode.to_owned())
    }

    /// The instructions that an instruction becomes; usually just itself.
    fn drafts(&mut self, opcode: &str, operands: &[Operand<'t>]) -> Result<Vec<Draft>> {
        let special: [Special; 6] =
            [Self::read_special, Self::frame, Self::load_param, Self::unpack, Self::move_vector, Self::expand];
        for lower in special {
            if let Some(drafts) = lower(self, opcode, operands)? {
                return Ok(drafts);
            }
        }
        let generic = clusters::generic_atomic(opcode);
        let mut forms = isa::forms(generic.as_deref().unwrap_or(opcode)).peekable();
        if forms.peek().is_none() {
            return Err(features::refusal(opcode).unwrap_or_else(|| features::unknown(opcode)));
        }
        if self.names.module.demotes && opcode.contains(".f64") {
            return Err(features::DEMOTED.to_owned());
        }
        let fits = |form: &&Form| match form.shape {
            Shape::Pure { sources, .. } => operands.len() > 1 && flat(&operands[1..]).count() == isa::operands(sources),
            _ => true,
        };
        let form = forms.find(fits).ok_or("it has a different number of operands than the software GPU supports")?;
        if let Some(drafts) = self.convert(form, opcode, operands)? {
            return Ok(drafts);
        }
        match form.shape {
            Shape::Call => self.call(operands),
            Shape::Atomic(kinds) => self.atomic(form.op, kinds, opcode, operands),
            Shape::Shuffle(kind) | Shape::Vote(kind) | Shape::Reduce(kind) | Shape::Elect(kind) => {
                self.exchange(form, kind, opcode, operands)
            }
            Shape::BarrierCount | Shape::BarrierVote => self.barrier_vote(form, operands),
            Shape::Bulk | Shape::Send | Shape::Tensor => self.bulk(form.op, opcode, operands),
            Shape::Copy => self.copy(form.op, opcode, operands),
            Shape::Arrival => self.arrival(form.op, opcode, operands),
            Shape::Store if opcode.starts_with("mbarrier") => self.barrier_state(form.op, opcode, operands),
            _ => Ok(vec![self.shaped(form, opcode, operands)?]),
        }
    }

    fn shaped(&mut self, form: &Form, opcode: &str, operands: &[Operand<'t>]) -> Result<Draft> {
        match form.shape {
            Shape::Pure { result, sources } => self.pure(form.op, opcode, result, sources, operands),
            Shape::Load | Shape::Store => self.load_or_store(form, opcode, operands),
            Shape::Branch => self.branch(form.op, operands),
            Shape::WarpSync => self.warp_sync(form.op, operands),
            Shape::BranchTable => self.branch_table(form.op, operands),
            Shape::Arrive if operands.len() == 1 => Err("it gives no number of threads".to_owned()),
            Shape::Barrier | Shape::Arrive => self.barrier(form.op, operands),
            Shape::ActiveMask => self.active_mask(form.op, operands),
            Shape::Hint => self.hint(form.op, operands),
            Shape::CopyWait => self.copy_wait(form.op, operands),
            Shape::BulkWait => self.bulk_wait(form.op, opcode, operands),
            Shape::TensorHint => self.tensor_hint(form.op, opcode, operands),
            Shape::BulkHint => self.bulk_hint(form.op, opcode, operands),
            Shape::Matrix => self.matrix(form.op, opcode, operands),
            Shape::MatrixStore => self.matrix_store(form.op, opcode, operands),
            Shape::Transpose => self.pure(form.op, opcode, Kind::B32, &[Kind::B32], operands),
            Shape::IsShared => {
                let op = if opcode.ends_with("::cluster") { Op::IsWindow } else { form.op };
                self.pure(op, opcode, Kind::Pred, &[Kind::B64], operands)
            }
            Shape::RankOf32 => self.pure(form.op, opcode, Kind::B32, &[Kind::B32], operands),
            Shape::RankOf64 => self.pure(form.op, opcode, Kind::B32, &[Kind::B64], operands),
            Shape::Fragment | Shape::FragmentStore => self.fragment(form.op, opcode, operands),
            Shape::Product if opcode.starts_with("wmma") => self.product_of_fragments(form.op, opcode, operands),
            Shape::Product => self.product(form.op, opcode, operands),
            Shape::Exit | Shape::Trap | Shape::Fence | Shape::Meet | Shape::Nothing if !operands.is_empty() => {
                Err("it takes no operands".to_owned())
            }
            // A function's lanes meet at its end before they return.
            Shape::Exit if opcode.starts_with("ret") && self.end.is_some() => {
                Ok(Draft { imm: self.end.unwrap_or_default() as i32, ..Draft::new(Op::Bra) })
            }
            Shape::Fence => Ok(self.ordering(form.op, opcode)),
            // An arrival publishes unless it says otherwise.
            Shape::Meet if opcode.contains(".relaxed") => Ok(Draft::new(form.op)),
            Shape::Meet => Ok(self.ordering(form.op, "fence.cluster")),
            Shape::Exit | Shape::Trap | Shape::Nothing => Ok(Draft::new(form.op)),
            Shape::Sleep => {
                let [time] = operands else { return Err("it gives no duration".to_owned()) };
                self.source(time, Kind::B32)?;
                Ok(Draft::new(form.op))
            }
            // Forms that are spelled as registers, see `read_special`, or that take several steps.
            _ => Err("it is not an instruction".to_owned()),
        }
    }

    fn pure(&mut self, op: Op, opcode: &str, result: Kind, kinds: &[Kind], operands: &[Operand<'t>]) -> Result<Draft> {
        let [first, rest @ ..] = operands else { return Err("it has no operands".to_owned()) };
        let d = self.result(first, result.file())?;
        Ok(Draft::step(op, d, &self.sources(opcode, kinds, rest)?))
    }

    fn branch(&mut self, op: Op, operands: &[Operand<'t>]) -> Result<Draft> {
        let [Operand::Name(name, 0)] = operands else { return Err("its target is not a label".to_owned()) };
        let label = self.names.label(name).ok_or_else(|| format!("there is no label {name:?} in scope"))?;
        // The label's number, until all pcs are known.
        Ok(Draft { imm: label as i32, ..Draft::new(op) })
    }

    fn emit(&mut self, draft: Draft, guard: u16, span: ast::Span) {
        let Draft { op, mut reads, writes, d, s, access, imm } = draft;
        reads.push((File::Pred, guard & !NEGATED));
        self.touched.push(Touched { reads, writes, conditional: guard != ALWAYS, role: Role::Other });
        let site = self.code.sites.len() as u32;
        if let Some(kind) = accesses(op) {
            let pc = self.code.instructions.len() as u32;
            self.code.sites.push(Site { kind, update: Update::default(), round: None, pc });
        }
        let work = isa::FORMS[op as usize].work(access);
        self.code.instructions.push(Ins { op, guard, d, s, access, imm, site, work, first: false });
        self.code.origins.push(Origin { span, source: self.source });
    }

    /// Finds the control flow of the part that begins at the pc `first`: the kernel itself, or a
    /// function.
    fn finish_part(&mut self, first: usize) -> Result<()> {
        let place = |label: u32| {
            let pc = self.labels.get(label as usize).copied().flatten();
            pc.ok_or_else(|| "a label without a place".to_owned())
        };
        for ins in self.code.instructions[first..].iter_mut().filter(|ins| ins.op == Op::Bra) {
            ins.imm = place(ins.imm as u32)? as i32;
        }
        let first_table = std::mem::replace(&mut self.placed_tables, self.code.tables.len());
        for target in self.code.tables[first_table..].iter_mut().flatten() {
            *target = place(*target)?;
        }
        if self.contracts {
            self.contract(first, first_table)?;
        }
        if self.code.instructions.len() > MAX_INSTRUCTIONS {
            return Err(format!("kernels of more than {MAX_INSTRUCTIONS} instructions are not supported"));
        }
        if self.end.is_none() {
            branches_to_the_end(&mut self.code.instructions);
        }
        let nexts = self.code.instructions[first..].iter().map(|ins| self.next(ins, first as u32, first_table));
        let nexts: Vec<Next> = nexts.collect();
        let table = |targets: &Vec<u32>| targets.iter().map(|target| target - first as u32).collect();
        let tables: Vec<Vec<u32>> = self.code.tables[first_table..].iter().map(table).collect();
        let graph = Graph::new(&nexts, &tables);
        let meets = graph.reconvergence().ok_or("its control flow is too complex to find where threads meet again")?;
        self.code
            .reconvergence
            .extend(meets.into_iter().map(|meet| if meet == NOWHERE { meet } else { meet + first as u32 }));
        let cleared = cleared(&graph, &self.touched[first..], &self.names.filled);
        self.code.cleared.extend(cleared);
        Ok(())
    }

    /// The successors of an instruction, counted from the pc `first` and the table `first_table`.
    fn next(&self, ins: &Ins, first: u32, first_table: usize) -> Next {
        let target = ins.imm as u32;
        match (ins.op, ins.guard, self.end) {
            (Op::Bra, ALWAYS, _) => Next::Jump(target - first),
            (Op::Bra, ..) => Next::Branch(target - first),
            (Op::BrxIdx, guard, _) => Next::Table(ins.imm as usize - first_table, guard != ALWAYS),
            (Op::Exit, ALWAYS, None) | (Op::Return, ..) => Next::End,
            (Op::Exit, _, None) => Next::MayEnd,
            (Op::Exit, ALWAYS, Some(_)) => Next::Nowhere,
            _ => Next::On,
        }
    }

    fn finish(&mut self) -> Result<Code> {
        self.save_registers();
        let mut code = std::mem::take(&mut self.code);
        code.registers = self.names.counts;
        code.presets = std::mem::take(&mut self.names.presets);
        code.cluster = self.names.cluster;
        atomics::classify(&mut code, &self.touched);
        (code.shared_bytes, code.dynamic_align) = self.names.shared()?;
        Ok(code)
    }
}

/// Turns branches to the end into exits, also by way of other jumps, as NVIDIA's assembler does.
/// Lanes that leave early are then not waited for where lanes meet.
fn branches_to_the_end(code: &mut [Ins]) {
    let mut walked = vec![false; code.len()];
    for first in 0..code.len() {
        let mut path = Vec::new();
        let mut pc = first;
        while code[pc].op == Op::Bra && !walked[pc] && (pc == first || code[pc].guard == ALWAYS) {
            // An earlier walk has already turned this jump into an exit, or it does not lead to
            // one.
            walked[pc] = code[pc].guard == ALWAYS;
            path.push(pc);
            let next = code[pc].imm as usize;
            if next == first {
                break;
            }
            pc = next;
        }
        if code[pc].op == Op::Exit && code[pc].guard == ALWAYS {
            path.into_iter().for_each(|pc| code[pc].op = Op::Exit);
        }
    }
}

/// Registers that may be read before they are written, and that are not filled. Only registers that
/// this part of the code touches are considered, because a kernel may have thousands of functions,
/// each with its own registers.
fn cleared(graph: &Graph, touched: &[Touched], filled: &HashSet<Slot>) -> Vec<Slot> {
    let mut numbers = HashMap::new();
    let mut registers = Vec::new();
    let mut number = |register: &Slot| {
        *numbers.entry(*register).or_insert_with(|| {
            registers.push(*register);
            registers.len() - 1
        })
    };
    let mut uses = Vec::with_capacity(touched.len());
    for Touched { reads, writes, conditional, .. } in touched {
        let reads = reads.iter().map(&mut number).collect();
        let writes = writes.iter().map(&mut number).collect();
        uses.push(Uses { reads, writes, conditional: *conditional });
    }
    let early = graph.read_before_written(&uses, registers.len());
    early.into_iter().map(|number| registers[number]).filter(|register| !filled.contains(register)).collect()
}

/// The effect of an instruction on memory.
fn accesses(op: Op) -> Option<AccessKind> {
    match isa::FORMS[op as usize].shape {
        Shape::Load | Shape::CopyRead | Shape::Matrix | Shape::Fragment => Some(AccessKind::Load),
        Shape::Store | Shape::Copy | Shape::MatrixStore | Shape::FragmentStore => Some(AccessKind::Store),
        Shape::Atomic(_) | Shape::Arrival => Some(AccessKind::Atomic),
        _ => None,
    }
}

/// All operands, with vectors split into their elements.
fn flat<'o, 't>(operands: &'o [Operand<'t>]) -> impl Iterator<Item = &'o Operand<'t>> {
    operands.iter().flat_map(|operand| match operand {
        Operand::Vector(elements) => elements.as_slice(),
        single => std::slice::from_ref(single),
    })
}
