// A second reader of .keg files, written from docs/reference/keg.md alone and sharing no code with the compiler.
// readKeg(bytes) checks structure, order and every hash, and returns { fingerprint, exports, counts }.
// It throws an Error for a file that is not canonical. Typing rules are the compiler's own business.

const NAMES = [, "strings", "types", "attributes", "nodes", "regions", "exports", "debug", "places", "structs"];
const FLOATS = { "5,10": "f16", "8,7": "bf16", "8,23": "f32", "11,52": "f64" };
const UTF8 = new TextEncoder();

// ---- SHA3-256 (FIPS 202)
const ROUNDS = 24, RATE = 136, MASK = (1n << 64n) - 1n;
const CONSTANTS = [], ROTATIONS = [];
{
  let lfsr = 1;
  for (let r = 0; r < ROUNDS; r++) {
    let c = 0n;
    for (let j = 0; j < 7; j++) {
      if (lfsr & 1) c |= 1n << BigInt((1 << j) - 1);
      lfsr = (lfsr << 1) ^ (lfsr & 0x80 ? 0x171 : 0);
    }
    CONSTANTS.push(c);
  }
  ROTATIONS[0] = 0n;
  for (let t = 0, x = 1, y = 0; t < 24; t++) {
    ROTATIONS[x + 5 * y] = BigInt(((t + 1) * (t + 2) / 2) % 64);
    [x, y] = [y, (2 * x + 3 * y) % 5];
  }
}
const rotl = (v, n) => n === 0n ? v : ((v << n) | (v >> (64n - n))) & MASK;

function permute(a) {
  for (let round = 0; round < ROUNDS; round++) {
    const c = [0, 1, 2, 3, 4].map((x) => a[x] ^ a[x + 5] ^ a[x + 10] ^ a[x + 15] ^ a[x + 20]);
    for (let i = 0; i < 25; i++) a[i] ^= c[(i + 4) % 5] ^ rotl(c[(i + 1) % 5], 1n);
    const b = [];
    for (let x = 0; x < 5; x++) for (let y = 0; y < 5; y++) b[y + 5 * ((2 * x + 3 * y) % 5)] = rotl(a[x + 5 * y], ROTATIONS[x + 5 * y]);
    for (let y = 0; y < 25; y += 5) for (let x = 0; x < 5; x++) a[x + y] = b[x + y] ^ (~b[(x + 1) % 5 + y] & MASK & b[(x + 2) % 5 + y]);
    a[0] ^= CONSTANTS[round];
  }
}

export function sha3(bytes) {
  const padded = new Uint8Array((Math.floor(bytes.length / RATE) + 1) * RATE);
  padded.set(bytes);
  padded[bytes.length] = 6;
  padded[padded.length - 1] |= 0x80;
  const view = new DataView(padded.buffer), state = new Array(25).fill(0n);
  for (let at = 0; at < padded.length; at += RATE) {
    for (let i = 0; i < RATE / 8; i++) state[i] ^= view.getBigUint64(at + 8 * i, true);
    permute(state);
  }
  const out = new DataView(new ArrayBuffer(32));
  for (let i = 0; i < 4; i++) out.setBigUint64(8 * i, state[i], true);
  return new Uint8Array(out.buffer);
}
const hex = (b) => Array.from(b, (v) => v.toString(16).padStart(2, "0")).join("");
const hashOf = (domain, payload) => sha3(join([UTF8.encode(`kera/1/${domain}\0`), payload]));

function join(parts) {
  const out = new Uint8Array(parts.reduce((n, p) => n + p.length, 0));
  let at = 0;
  for (const p of parts) { out.set(p, at); at += p.length; }
  return out;
}
function leb(value) {
  const out = [];
  for (; value >= 128; value = Math.floor(value / 128)) out.push(value % 128 | 128);
  out.push(value);
  return Uint8Array.from(out);
}
const sized = (bytes) => join([leb(bytes.length), bytes]);
function compare(a, b) {
  for (let i = 0; i < Math.min(a.length, b.length); i++) if (a[i] !== b[i]) return a[i] - b[i];
  return a.length - b.length;
}
function demand(condition, message) { if (!condition) throw new Error(message); }

class Cursor {
  constructor(data, name) { this.data = data; this.name = name; this.at = 0; }
  raw(n) { demand(n <= this.data.length - this.at, `${this.name}: ends early`); this.at += n; return this.data.subarray(this.at - n, this.at); }
  byte() { return this.raw(1)[0]; }
  uint() {
    for (let value = 0, scale = 1; ; scale *= 128) {
      const b = this.byte();
      value += (b & 127) * scale;
      demand(value <= Number.MAX_SAFE_INTEGER, `${this.name}: integer too large`);
      if (b < 128) { demand(b !== 0 || scale === 1, `${this.name}: integer not shortest`); return value; }
    }
  }
  count() { const n = this.uint(); demand(n <= this.data.length - this.at, `${this.name}: count too large`); return n; }
  bytes() { return this.raw(this.uint()); }
  text() { return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(this.bytes()); }
  list(read) { return Array.from({ length: this.count() }, () => read()); }
  index(size) { const i = this.uint(); demand(i < size, `${this.name}: index ${i} out of range`); return i; }
  end() { demand(this.at === this.data.length, `${this.name}: trailing bytes`); }
}

function typeName(c, depth = 0) {
  demand(depth <= 64, "types: too deep");
  const tag = String.fromCharCode(c.byte());
  switch (tag) {
    case "b": return "bool";
    case "i": case "u": return tag + c.uint();
    case "x": case "y": { const w = c.uint(); return `${tag === "x" ? "" : "u"}fix<${w}, ${c.uint()}>`; }
    case "f": { const e = c.uint(), name = FLOATS[`${e},${c.uint()}`]; demand(name, "types: unknown float"); return name; }
    case "t": { const e = typeName(c, depth + 1), shape = c.list(() => c.uint()), space = c.text(); return `${space === "host" ? "" : space + " "}[${e}; ${shape.join(", ")}]`; }
    case "(": { const items = c.list(() => typeName(c, depth + 1)); return items.length === 1 ? `(${items[0]},)` : `(${items.join(", ")})`; }
    case "s": return `{${c.list(() => `${c.text()}: ${typeName(c, depth + 1)}`).join(", ")}}`;
    case "k": return `token<${c.text()}>`;
    default: throw new Error(`types: unknown tag ${tag}`);
  }
}

function sections(file) {
  const view = new DataView(file.buffer, file.byteOffset, file.byteLength);
  demand(file.length >= 8 && view.getUint32(0) === 0x4b454700, "not a .keg file");
  demand(view.getUint16(4, true) === 1, "unknown version");
  const count = view.getUint16(6, true), out = {};
  demand(file.length >= 8 + 52 * count, "table ends early");
  let next = 8 + 52 * count, last = 0;
  for (let i = 0; i < count; i++) {
    const at = 8 + 52 * i, kind = view.getUint32(at, true);
    const offset = Number(view.getBigUint64(at + 4, true)), length = Number(view.getBigUint64(at + 12, true));
    demand(kind > last && kind < NAMES.length && offset === next && length <= file.length - offset, "section out of place");
    const data = file.subarray(offset, offset + length);
    demand(compare(hashOf("section/" + NAMES[kind], data), file.subarray(at + 20, at + 52)) === 0, `${NAMES[kind]}: hash mismatch`);
    out[NAMES[kind]] = data;
    [next, last] = [offset + length, kind];
  }
  demand(next === file.length, "bytes after the last section");
  for (const name of NAMES.slice(1, 7)) demand(out[name], `${name}: missing`);
  return out;
}

export function readKeg(file) {
  const parts = sections(file);
  const table = (name, read) => { const c = new Cursor(parts[name], name), rows = c.list(() => read(c)); c.end(); return rows; };
  const ordered = (rows, name) => rows.forEach((r, i) => demand(i === 0 || compare(rows[i - 1], r) < 0, `${name}: not sorted`));
  const strings = table("strings", (c) => c.text());
  const typeBlobs = table("types", (c) => c.bytes()), attrs = table("attributes", (c) => c.bytes());
  ordered(strings.map((s) => UTF8.encode(s)), "strings"); ordered(typeBlobs, "types"); ordered(attrs, "attributes");
  const types = typeBlobs.map((blob) => { const c = new Cursor(blob, "types"), name = typeName(c); c.end(); return { name, hash: hashOf("type", blob) }; });
  const schema = leb(1), nodes = [];
  let previous = null;
  table("nodes", (c) => {
    const opcode = strings[c.index(strings.length)];
    const outs = c.list(() => types[c.index(types.length)]);
    const inputs = c.list(() => { const n = nodes[c.index(nodes.length)], out = c.uint(); demand(out < n.outs.length, "nodes: no such output"); return { n, out }; });
    const pairs = c.list(() => [strings[c.index(strings.length)], attrs[c.index(attrs.length)]]);
    const hash = hashOf("node", join([
      schema, sized(UTF8.encode(opcode)), leb(outs.length), ...outs.map((t) => t.hash),
      leb(inputs.length), ...inputs.flatMap(({ n, out }) => [n.hash, leb(out)]),
      leb(pairs.length), ...pairs.flatMap(([key, value]) => [sized(UTF8.encode(key)), value])]));
    const depth = inputs.reduce((d, { n }) => Math.max(d, n.depth + 1), 0);
    demand(!previous || depth > previous.depth || (depth === previous.depth && compare(previous.hash, hash) < 0), "nodes: not sorted");
    nodes.push(previous = { opcode, outs, depth, hash });
  });
  const regions = table("regions", (c) => {
    const params = c.list(() => types[c.index(types.length)]);
    const results = c.list(() => { const n = nodes[c.index(nodes.length)], out = c.uint(); demand(out < n.outs.length, "regions: no such output"); return { n, out }; });
    return hashOf("region", join([schema, leb(params.length), ...params.map((t) => t.hash), leb(results.length), ...results.flatMap(({ n, out }) => [n.hash, leb(out)])]));
  });
  ordered(regions, "regions");
  const encoded = [];
  const exports = table("exports", (c) => {
    const name = strings[c.index(strings.length)], kind = ["fn", "stream"][c.index(2)];
    const params = c.list(() => ({ name: strings[c.index(strings.length)], type: types[c.index(types.length)] }));
    const result = types[c.index(types.length)], region = regions[c.index(regions.length)];
    const state = c.list(() => ({ n: nodes[c.index(nodes.length)], out: c.uint() }));
    const effects = c.list(() => strings[c.index(strings.length)]);
    encoded.push(sized(UTF8.encode(name)), sized(UTF8.encode(kind)), leb(params.length),
      ...params.flatMap((p) => [sized(UTF8.encode(p.name)), p.type.hash]), result.hash, region,
      leb(state.length), ...state.flatMap(({ n, out }) => [n.hash, leb(out)]),
      leb(effects.length), ...effects.map((e) => sized(UTF8.encode(e))));
    return { name, kind, params: params.map((p) => `${p.name}: ${p.type.name}`), result: result.name, state: state.length };
  });
  ordered(exports.map((e) => UTF8.encode(e.name)), "exports");
  const fingerprint = "keg:sha3-256:" + hex(hashOf("graph", join([schema, leb(exports.length), ...encoded])));
  return { fingerprint, exports, counts: { strings: strings.length, types: types.length, attributes: attrs.length, nodes: nodes.length, regions: regions.length } };
}

// `node kera_hw/driver/web/keg.mjs FILE...` prints one JSON object a file: the reading, or { error }.
if (typeof process !== "undefined" && process.argv[1] && import.meta.url === new URL(process.argv[1], "file:").href) {
  const { readFileSync } = await import("node:fs");
  for (const path of process.argv.slice(2)) {
    let row;
    try { row = readKeg(new Uint8Array(readFileSync(path))); } catch (error) { row = { error: error.message }; }
    console.log(JSON.stringify(row));
  }
}
