// Runs kernels of ours, of onnxruntime-web and of tfjs-wasm in turn, one thread each, for bench/wasm.py:
//     node run.mjs MANIFEST.json FOLDER-WITH-node_modules
// A line of JSON a kernel: microseconds of processor time, the least of several runs, and results as files.
import fs from "node:fs";
import path from "node:path";
import { createRequire } from "node:module";

const [manifestPath, packages] = process.argv.slice(2);
const manifest = JSON.parse(fs.readFileSync(manifestPath));
const folder = path.dirname(manifestPath);
const require = createRequire(path.join(packages, "package.json"));
const ort = require("onnxruntime-web");
const tf = require("@tensorflow/tfjs-core");
const tfjs = require("@tensorflow/tfjs-backend-wasm");
ort.env.wasm.numThreads = 1;
tfjs.setWasmPaths(`${packages}/node_modules/@tensorflow/tfjs-backend-wasm/dist/`);
tfjs.setThreadsCount(1);
await tf.setBackend("wasm");
await tf.ready();

const RUNS = 9;
const LEAST_US = 20000;
const cpu = () => { const used = process.cpuUsage(); return used.user + used.system; };
const ARRAYS = { float32: Float32Array, int8: Int8Array, int16: Int16Array, int32: Int32Array, uint32: Uint32Array };
const bytesOf = (file) => { const raw = fs.readFileSync(path.join(folder, file)); return new Uint8Array(raw); };
const aligned = (size) => Math.ceil(size / 64) * 64;

/** Ours: results lie where inputs do, in the module's memory; `copied` brings inputs in and results out. */
async function ours(kernel) {
  const binary = bytesOf(kernel.module);
  const began = performance.now();
  const module = new WebAssembly.Module(binary);
  const compileMs = performance.now() - began;
  const { memory, run } = (await WebAssembly.instantiate(module)).exports;
  let top = aligned(kernel.room);
  const place = (size) => { const here = top; top += aligned(size); return here; };
  const inputs = kernel.params.map((one) => [place(one.bytes), bytesOf(one.file)]);
  const results = kernel.results.map((size) => [place(size), new Uint8Array(size)]);
  const missing = top - memory.buffer.byteLength;
  if (missing > 0) memory.grow(Math.ceil(missing / 65536));
  const pointers = [...inputs, ...results].map(([here]) => here);
  const view = new Uint8Array(memory.buffer);
  const bring = () => { for (const [here, data] of inputs) view.set(data, here); };
  const take = () => { for (const [here, into] of results) into.set(view.subarray(here, here + into.length)); };
  bring();
  return {
    compileMs,
    resident: () => run(1, ...pointers),
    copied: () => { bring(); run(1, ...pointers); take(); },
    result: () => { run(1, ...pointers); take(); return results[0][1]; },
  };
}

/** onnxruntime-web: inputs are copied in, results out. */
async function onnx(kernel) {
  const session = await ort.InferenceSession.create(bytesOf(kernel.onnx), { executionProviders: ["wasm"] });
  const feeds = {};
  for (const one of kernel.feeds) {
    feeds[one.name] = new ort.Tensor(one.dtype, new ARRAYS[one.dtype](bytesOf(one.file).buffer), one.shape);
  }
  const run = () => session.run(feeds);
  return { run, result: async () => { const { data } = Object.values(await run())[0]; return new Uint8Array(data.buffer, data.byteOffset, data.byteLength); } };
}

/** tfjs-wasm: inputs and results stay in its memory. */
const TF = {
  chain: ({ x, a, b, c }) => tf.mul(tf.relu(tf.add(tf.mul(x, a), b)), c),
  matmul: ({ A, B }) => tf.matMul(A, B),
  softmax: ({ x }) => tf.softmax(x),
  exp: ({ x }) => tf.exp(x),
  tanh: ({ x }) => tf.tanh(x),
  sum: ({ x }) => tf.sum(x),
  conv: ({ x, w }) => tf.conv2d(x, w, 1, "same"),
  mlp: ({ x, W1, b1, W2, b2, W3, b3 }) => {
    const h = tf.relu(tf.add(tf.matMul(x, W1), b1));
    return tf.add(tf.matMul(tf.relu(tf.add(tf.matMul(h, W2), b2)), W3), b3);
  },
};
function tensors(kernel) {
  const given = {};
  for (const one of kernel.inputs) given[one.name] = tf.tensor(new Float32Array(bytesOf(one.file).buffer), one.shape);
  if (kernel.tfjs === "conv") {  // it wants channels last
    given.x = tf.expandDims(tf.transpose(given.x, [1, 2, 0]), 0);
    given.w = tf.transpose(given.w, [2, 3, 1, 0]);
  }
  const compute = () => TF[kernel.tfjs](given);
  return {
    run: () => tf.tidy(() => { compute(); }),
    result: () => {
      const found = kernel.tfjs === "conv" ? tf.transpose(tf.squeeze(compute(), [0]), [2, 0, 1]) : compute();
      return new Uint8Array(new Float32Array(found.dataSync()).buffer);
    },
  };
}

async function repeated(run, count) {
  const before = cpu();
  for (let k = 0; k < count; k++) { const found = run(); if (found instanceof Promise) await found; }
  return cpu() - before;
}

/** How often to run it so that it takes long enough to time; by then it is warm. */
async function rounds(run) {
  for (let count = 1; ;) {
    const spent = await repeated(run, count);
    if (spent >= LEAST_US) return count;
    count = Math.max(count + 1, Math.floor(count * Math.min(20, (1.2 * LEAST_US) / Math.max(spent, 1))));
  }
}

for (const kernel of manifest) {
  const mine = await ours(kernel);
  const runs = { ours: mine.resident, ours_copied: mine.copied };
  const results = { ours: mine.result };
  const faults = {};
  for (const [name, make] of [["ort", kernel.onnx && onnx], ["tfjs", kernel.tfjs && tensors]]) {
    if (!make) continue;
    try {
      const peer = await make(kernel);
      results[name] = peer.result;
      fs.writeFileSync(path.join(folder, `${kernel.name}.${name}.out`), await peer.result());
      runs[name] = peer.run;
    } catch (error) {
      faults[name] = String(error).slice(0, 200);
    }
  }
  fs.writeFileSync(path.join(folder, `${kernel.name}.ours.out`), await results.ours());
  const counts = {};
  for (const [name, run] of Object.entries(runs)) counts[name] = await rounds(run);
  const least = {};
  for (let k = 0; k < RUNS; k++) {
    for (const [name, run] of Object.entries(runs)) {
      const us = (await repeated(run, counts[name])) / counts[name];
      least[name] = Math.min(least[name] ?? Infinity, us);
    }
  }
  console.log(JSON.stringify({ kernel: kernel.name, us: least, engine_ms: mine.compileMs, faults }));
}
