// Runs the module of scripts/wasm, which imports nothing: node tests/wasm/run.mjs MODULE
import { readFileSync } from "node:fs";

const { instance } = await WebAssembly.instantiate(readFileSync(process.argv[2]), {});
const { sum_of_squares, sectors } = instance.exports;

for (const n of [1, 33, 1000]) {
    let sum = 0n;
    for (let i = 0n; i < n; i++) sum += i * i;
    const found = [sum_of_squares(n), sectors(n)].map((value) => BigInt.asUintN(64, value));
    const expected = [sum, BigInt(Math.ceil((n * 8) / 32))];
    if (found.some((value, at) => value !== expected[at])) {
        throw new Error(`squares of ${n}: sum and sectors are ${found}, not ${expected}`);
    }
}
console.log("wasm: a kernel computes and counts what it should");
