// The page: checks what it was made with, times it, shows it, and runs it on what a reader writes.

import { arraysOf, compare, identify, measure, numbers, open, params, parse, results, written } from "check";

const MOST_POINTS = 4000, RATE_HZ = 44100;
const record = JSON.parse(document.getElementById("record").textContent);
const at = (id) => document.getElementById(id);
const count = (number) => number.toLocaleString("en");

function say(id, good, text) {
  const row = at(id);
  row.dataset.verdict = good ? "good" : "bad";
  row.querySelector(".mark").textContent = good ? "✓" : "✗";
  row.querySelector(".said").textContent = text;
}

// ---- Pictures of results

function context() {
  const canvas = at("canvas"), drawing = canvas.getContext("2d");
  drawing.clearRect(0, 0, canvas.width, canvas.height);
  return [canvas, drawing];
}

function range(values) {
  let low = Infinity, high = -Infinity;
  for (const value of values) if (Number.isFinite(value)) { low = Math.min(low, value); high = Math.max(high, value); }
  return low <= high ? [low, high] : [0, 0];
}

function series(values) {
  const [canvas, drawing] = context(), style = getComputedStyle(canvas), [low, high] = range(values);
  const step = Math.max(1, Math.ceil(values.length / MOST_POINTS)), span = high - low || 1, edge = 12;
  const x = (k) => edge + k * (canvas.width - 2 * edge) / Math.max(values.length - 1, 1);
  const y = (value) => canvas.height - edge - (value - low) * (canvas.height - 2 * edge) / span;
  drawing.strokeStyle = style.getPropertyValue("--line");
  if (low <= 0 && high >= 0) { drawing.beginPath(); drawing.moveTo(edge, y(0)); drawing.lineTo(canvas.width - edge, y(0)); drawing.stroke(); }
  drawing.strokeStyle = style.getPropertyValue("--accent");
  drawing.lineWidth = 2;
  drawing.beginPath();
  for (let k = 0; k < values.length; k += step) if (Number.isFinite(values[k])) drawing.lineTo(x(k), y(values[k]));
  drawing.stroke();
  return `A line of ${count(values.length)} values from ${low} to ${high}.`;
}

function picture(values, width, channels) {
  const [canvas, drawing] = context(), height = Math.max(1, Math.ceil(values.length / channels / width));
  const [low, high] = range(values), bytes = low >= 0 && high <= 255 && values.every(Number.isInteger) && high > 1;
  const image = new ImageData(width, height), span = high - low || 1;
  for (let k = 0; k < width * height; k++)
    for (let c = 0; c < 4; c++) {
      const value = values[k * channels + Math.min(c, channels - 1)] ?? low;
      image.data[4 * k + c] = c === 3 ? 255 : bytes ? value : (value - low) * 255 / span;
    }
  const small = document.createElement("canvas");
  [small.width, small.height] = [width, height];
  small.getContext("2d").putImageData(image, 0, 0);
  const scale = Math.min(canvas.width / width, canvas.height / height);
  drawing.imageSmoothingEnabled = scale < 1;
  const [w, h] = [width * scale, height * scale];
  drawing.drawImage(small, (canvas.width - w) / 2, (canvas.height - h) / 2, w, h);
  return `A picture of ${width} by ${height}, values from ${low} to ${high}.`;
}

function sound(values) {
  const audio = new AudioContext(), [low, high] = range(values), size = Math.max(-low, high, 1e-9);
  const buffer = audio.createBuffer(1, Math.max(values.length, 1), RATE_HZ);
  buffer.getChannelData(0).set(Float32Array.from(values, (value) => Number.isFinite(value) ? value / size : 0));
  const source = audio.createBufferSource();
  source.buffer = buffer;
  source.connect(audio.destination);
  source.start();
}

/** Of a tensor: the rows and columns of one item. Of scalars: all items in rows of the width given. */
function shapeOf(leaf, items) {
  const shape = [...leaf.shape], channels = shape.length > 2 && shape.at(-1) === 3 ? shape.pop() : 1;
  if (shape.length > 1) return { width: shape.at(-1), channels };
  return { width: leaf.size > 1 ? leaf.size : Math.ceil(Math.sqrt(items)), channels };
}

function show(found, items) {
  const leaf = results[at("leaf").selectedIndex], values = numbers(leaf, found[leaf.name]);
  const { width, channels } = shapeOf(leaf, items);
  const chosen = Math.max(1, Math.min(4096, Math.round(Number(at("width").value) || width)));
  const text = at("view").value === "picture" ? picture(values, chosen, channels) : series(values);
  at("canvas").setAttribute("aria-label", `${leaf.name}: ${text}`);
  at("caption").textContent = text;
}

// ---- The course of the page

async function start() {
  const named = await identify(record);
  say("identity", named.same, named.same ? "Its name, computed here from its nodes, is the one that module and page have."
    : `The names differ: graph ${named.graph}, module ${named.module}, loader ${named.loader}, page ${named.page}.`);
  const kernel = await open(record), inputs = arraysOf(params, record.inputs), wanted = arraysOf(results, record.wanted);
  kernel.reset();
  const found = kernel.run(inputs, record.items), { differing, bits, first } = compare(found, wanted);
  say("bits", differing === 0, differing === 0 ? `${count(record.items)} items, ${count(bits)} bits: 0 differ from the recorded.`
    : `${count(differing)} of ${count(bits)} bits differ; first in ${first.leaf}, item ${first.item}, element ${first.element}.`);
  let current = { found, items: record.items };
  const time = () => {
    const { nanoseconds, rounds } = measure(kernel, inputs, record.items, () => performance.now());
    const aSecond = nanoseconds > 0 ? ` (${count(Math.round(1e9 / nanoseconds))} a second)` : "";
    say("time", true, `${nanoseconds.toPrecision(3)} ns an item${aSecond}, over ${count(rounds)} batches from reset.`);
  };
  time();
  at("again").addEventListener("click", time);
  const refresh = () => show(current.found, current.items);
  for (const id of ["leaf", "view", "width"]) at(id).addEventListener("change", refresh);
  at("play").addEventListener("click", () => sound(numbers(results[at("leaf").selectedIndex], current.found[results[at("leaf").selectedIndex].name])));
  if (record.items > 0) for (const leaf of params) at(`in-${leaf.name}`).value = written(leaf, inputs[leaf.name], 0);
  at("own").addEventListener("submit", (event) => {
    event.preventDefault();
    try {
      const given = Object.fromEntries(params.map((leaf) => [leaf.name, parse(leaf, at(`in-${leaf.name}`).value)]));
      const sized = params.find((leaf) => leaf.size > 0), items = sized ? given[sized.name].length / sized.size : 1;
      kernel.reset();
      current = { found: kernel.run(given, items), items };
      at("answer").textContent = results.map((leaf) =>
        `${leaf.name} = ${Array.from({ length: Math.min(items, 8) }, (_, k) => written(leaf, current.found[leaf.name], k)).join(" | ")}${items > 8 ? " | …" : ""}`).join("\n");
    } catch (error) {
      at("answer").textContent = error.message;
      return;
    }
    refresh();
  });
  refresh();
  for (const control of document.querySelectorAll("[data-ready]")) control.disabled = false;
  at("verdict").textContent = named.same && differing === 0 ? "Everything here is what was recorded." : "Something differs: see below.";
  document.documentElement.dataset.state = named.same && differing === 0 ? "same" : "different";
}

start().catch((error) => {
  at("verdict").textContent = `This page could not do its work: ${error.message}`;
  document.documentElement.dataset.state = "failed";
});
