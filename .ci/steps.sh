# The checks of this repository: a function a step, and `run_steps`, which runs steps by name. `.ci/run` and `.ci/full` source this
# file.
#
# The steps need stable Rust by rustup, gcc, Python 3.11 or newer with venv and pip, Node.js, and the network for crates and
# for what `scripts/tools` installs. On other systems than Debian they also need g++, clang and a browser.
export CARGO_TERM_COLOR=never
# A clean clone compiles everything once: what speeds up a second compilation only costs time.
export CARGO_INCREMENTAL=0
# A build fails where the committed PTX is not the one that its manifest describes.
export WARPSTRIDE_KERNELS=prebuilt
# A test fails where a tool is missing that `scripts/tools` installs.
export WARPSTRIDE_TOOLS=required
exec </dev/null

is_long() { [[ ${WARPSTRIDE_LONG-} == 1 ]]; }

# The packages beside the crate. Those that the steps compile for the host are compiled in target/packages.
packages=(examples/candle examples/cust fuzz kernels tests/loom tests/public-api tests/timelines tests/wasm)

step-format() {
  local package
  cargo fmt --all --check
  for package in "${packages[@]}"; do
    cargo fmt --check --manifest-path "$package/Cargo.toml"
  done
  rustfmt --check --edition 2024 cli/lessons/*/*.rs
}

# Checks all that is compiled, with all features.
step-clippy() {
  cargo clippy --locked --all-targets --all-features -- -D warnings
  cargo clippy --locked --manifest-path tests/timelines/Cargo.toml --target-dir target/packages -- -D warnings
}

# Installs the tools that the steps behind it use.
step-tools() { scripts/tools; }

# Runs README's command, which compiles the examples and all tests but those that few features have.
step-tests() {
  cargo test --locked
  if is_long; then cargo test --locked --all-features --lib; fi
}

# Runs the examples. `tests` has compiled them, but for the one that needs a feature, which `clippy` checks and the long form runs.
step-examples() {
  compiled
  local example
  for example in examples/*.rs; do
    example=$(basename "$example" .rs)
    if is_long; then
      cargo run --locked --quiet --features cudarc --example "$example"
    elif [[ $example != 06_cudarc ]]; then
      "target/debug/examples/$example" >/dev/null
    fi
  done
}

# Compiles what `tests` compiles, for steps that run it by themselves.
compiled() { cargo test --locked --no-run --quiet; }

# Draws the lessons' pictures again, and runs the lessons in Rust; `tests` checks the others.
step-lessons() {
  compiled
  WARPSTRIDE=target/debug/warpstride scripts/lesson-pictures --check
  scripts/rust-lessons
}

# Compares `.npy` files with NumPy; in the long form by the release binary.
step-numpy() {
  if is_long; then
    scripts/numpy-oracle
  else
    compiled
    WARPSTRIDE=target/debug/warpstride scripts/numpy-oracle
  fi
}

# Builds the book, and checks its links and pictures.
step-book() { scripts/book; }

# Builds the docs of the libraries as docs.rs does, with the feature that each item needs beside it. For that, rustdoc needs a switch
# that stable Rust takes from the environment. cargo takes rustdoc from the variable RUSTDOC, so build scripts do not see the
# switch, and nothing is rebuilt.
step-docs() {
  mkdir -p target
  printf '#!/bin/sh\nRUSTC_BOOTSTRAP=1 exec rustdoc "$@"\n' >target/docsrs-rustdoc
  chmod +x target/docsrs-rustdoc
  RUSTDOC=$PWD/target/docsrs-rustdoc RUSTDOCFLAGS="-D warnings --cfg docsrs" \
    cargo doc --locked --no-deps --all-features --package warpstride --package warpstride-interp
}

# Shows a change of the public items.
step-api() { scripts/public-api --check; }

# Checks the dependencies against the oldest Rust that Cargo.toml promises; `clippy` checks the crate's own code.
step-msrv() { scripts/msrv; }

# Checks the published crates: their sources, the lessons and the benches, in less than 3 MB together.
step-package() {
  local package list size
  for package in warpstride warpstride-interp warpstride-cli; do
    list=$(cargo package --list --allow-dirty --package "$package" |
      grep -vE '^(src|build|lessons|benches/(idle|support))/|^(benches|examples)/[0-9a-z_]+\.rs$|^build\.rs$|^[A-Z]|^\.cargo') &&
      { echo "ci: $package has $list; add it to exclude in its Cargo.toml" >&2; return 1; }
  done
  rm -rf target/package
  cargo package --quiet --package warpstride --package warpstride-interp --package warpstride-cli --no-verify --allow-dirty \
    --target-dir target/package
  size=$(cat target/package/package/*.crate | wc --bytes)
  echo "ci: the packages have $size bytes"
  ((size < 3000000))
}

# Checks the library with few features; in the long form with each alone, and with tests and examples.
step-features() {
  local feature
  if ! is_long; then
    for feature in "" cuda interp,pipeline; do
      cargo clippy --locked --package warpstride --lib --no-default-features --features "$feature" -- -D warnings
    done
    return
  fi
  for feature in "" criterion cuda cudarc distributed distributed,interp interp interp,parallel half ndarray pipeline serde; do
    cargo clippy --locked --package warpstride --all-targets --no-default-features --features "$feature" -- -D warnings
  done
  for feature in "" gpu gpu,serde; do
    cargo clippy --locked --package warpstride-interp --all-targets --no-default-features --features "$feature" -- -D warnings
  done
  cargo clippy --locked --all-targets -- -D warnings
}

# Compares the committed PTX with its source and tests it with NVIDIA's assembler, unless it is the PTX that passed before.
step-kernels() {
  if is_long; then scripts/prove-kernels --record; else scripts/prove-kernels; fi
}

# Compiles the software GPU to WebAssembly, checks its size, and runs it.
step-wasm() { scripts/wasm; }

# Builds a program of cust against a stub of the CUDA driver, and runs it.
step-cust() { scripts/cust-example; }

# Runs the tests of devices over libcuda.so.1 that is the software GPU: those of the driver, in the long form all. Before that,
# examples/cust.
step-libcuda() {
  scripts/libcuda-tests
}

# Runs the tests of other programs that call CUDA's driver, over that libcuda.so.1.
step-clients() { scripts/cuda-clients; }

# Runs the models of what threads share in every order.
step-loom() { scripts/sanitize-host loom; }

# Runs tests of the host's code under ThreadSanitizer and AddressSanitizer.
step-host-sanitizers() { scripts/sanitize-host thread address; }

# Runs a debug build of every kernel on the software GPU.
step-debug-kernels() { scripts/debug-kernels; }

# Checks programs that have candle, CubeCL or cudarc as well.
step-beside() { scripts/beside; }

# Tests examples/candle on the CPU; `beside` checks it with candle's CUDA.
step-candle() { cargo test --locked --manifest-path examples/candle/Cargo.toml --target-dir target/packages; }

# Checks the crate for other systems, with the library source of the kernels' compiler.
step-platforms() { scripts/platforms; }

# Runs README's first command, and installs the wheel of the command line where Rust and CUDA are missing. The wheel has the binary
# that the first command built.
step-release() {
  local binary=target/release/warpstride built
  cargo run --locked --release -- compare
  built=$(stat --format '%i %Y' $binary)
  scripts/wheel
  [[ $(stat --format '%i %Y' $binary) == "$built" ]] || { echo "ci: scripts/wheel compiled the binary anew" >&2; return 1; }
}

# run_steps STEP...: runs steps, and prints the seconds of each and their sum.
run_steps() {
  # The trap reads these after the function has ended.
  step='' started=$SECONDS
  report=
  for step; do
    declare -F "step-$step" >/dev/null || { echo "ci: no step '$step'; there are: ${steps[*]}" >&2; return 2; }
  done
  trap 'echo "ci: $step failed after $((SECONDS - started)) s$report" >&2' EXIT
  for step; do
    echo "ci: $step ..."
    started=$SECONDS
    "step-$step"
    report+=$(printf '\nci: %6d s  %s' $((SECONDS - started)) "$step")
    echo "ci: $step passed in $((SECONDS - started)) s"
  done
  trap - EXIT
  printf '%s\nci: %6d s  in all\n' "$report" $SECONDS
}
