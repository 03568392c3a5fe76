// What the page finds out, without a document: the graph's name, results bit for bit, time, values as numbers.
// "keg" reads .keg files and shares no code with the compiler; "kernel" is the loader of the module.

import { readKeg } from "keg";
import { fingerprint as ofLoader, load, params, results } from "kernel";

export { params, results };

export const bytesOf = (text) => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));

/** A typed array a leaf, from base64 by leaf name. */
export function arraysOf(leaves, texts) {
  return Object.fromEntries(leaves.map((leaf) => {
    const bytes = bytesOf(texts[leaf.name]);
    return [leaf.name, new leaf.array(bytes.buffer, 0, bytes.length / leaf.array.BYTES_PER_ELEMENT)];
  }));
}

/** Three names that have to be one: of the graph that was read, of the module's section, and of the page. */
export async function identify(record) {
  const keg = readKeg(bytesOf(record.keg));
  const module = await WebAssembly.compile(bytesOf(record.wasm));
  const [section] = WebAssembly.Module.customSections(module, "kera.fingerprint");
  const names = {
    graph: keg.fingerprint, module: section ? new TextDecoder().decode(section) : "none",
    loader: ofLoader, page: record.fingerprint,
  };
  return { ...names, same: new Set(Object.values(names)).size === 1, exports: keg.exports, counts: keg.counts };
}

export const open = (record) => load(bytesOf(record.wasm));

/** Bits that differ, how many were compared, and where the first is: { leaf, item, element }. */
export function compare(found, wanted) {
  let differing = 0, bits = 0, first = null;
  for (const leaf of results) {
    const bytes = (array) => new Uint8Array(array.buffer, array.byteOffset, array.byteLength);
    const [a, b] = [bytes(found[leaf.name]), bytes(wanted[leaf.name])];
    if (a.length !== b.length) throw new RangeError(`${leaf.name} has ${a.length} bytes, recorded are ${b.length}`);
    bits += 8 * a.length;
    for (let at = 0; at < a.length; at++) {
      for (let rest = a[at] ^ b[at]; rest; rest &= rest - 1) differing++;
      if (a[at] !== b[at] && first === null) {
        const element = Math.floor(at / leaf.array.BYTES_PER_ELEMENT);
        first = { leaf: leaf.name, item: Math.floor(element / leaf.size), element: element % leaf.size };
      }
    }
  }
  return { differing, bits, first };
}

/** Nanoseconds an item: batches from reset, twice as many each time until they take `leastMs`, or are very many. */
export function measure(kernel, inputs, items, now, leastMs = 100, mostRounds = 1 << 16) {
  for (let rounds = 1; ; rounds *= 2) {
    const start = now();
    for (let round = 0; round < rounds; round++) {
      kernel.reset();
      kernel.run(inputs, items);
    }
    const elapsedMs = now() - start;
    if (elapsedMs >= leastMs || rounds >= mostRounds)
      return { nanoseconds: elapsedMs * 1e6 / (rounds * Math.max(items, 1)), rounds };
  }
}

// ---- Values as numbers

const SMALL = { f16: [5, 10], bf16: [8, 7] };

function decodeSmall(bits, [exponentBits, fractionBits]) {
  const sign = bits >> 15 ? -1 : 1, bias = (1 << (exponentBits - 1)) - 1;
  const exponent = (bits >> fractionBits) & ((1 << exponentBits) - 1), fraction = bits & ((1 << fractionBits) - 1);
  if (exponent === (1 << exponentBits) - 1) return fraction ? NaN : sign * Infinity;
  const significand = exponent ? fraction + (1 << fractionBits) : fraction;
  return sign * significand * 2 ** (Math.max(exponent, 1) - bias - fractionBits);
}

function roundEven(value) {
  const low = Math.floor(value), rest = value - low;
  return rest > 0.5 || (rest === 0.5 && low % 2 !== 0) ? low + 1 : low;
}

function encodeSmall(value, [exponentBits, fractionBits]) {
  const bias = (1 << (exponentBits - 1)) - 1, infinity = ((1 << exponentBits) - 1) << fractionBits;
  if (Number.isNaN(value)) return infinity | (1 << (fractionBits - 1));
  const sign = value < 0 || Object.is(value, -0) ? 0x8000 : 0, size = Math.abs(value);
  if (size === 0) return sign;
  if (size === Infinity) return sign | infinity;
  let exponent = Math.max(Math.floor(Math.log2(size)), 1 - bias);
  if (size < 2 ** exponent) exponent = Math.max(exponent - 1, 1 - bias); // the logarithm was rounded
  const significand = roundEven(size / 2 ** (exponent - fractionBits));
  return sign | Math.min(((exponent + bias - 1) << fractionBits) + significand, infinity);
}

/** The type of a leaf's elements. */
const elementOf = (leaf) => /^\[(.*); [\d, ]*\]$/.exec(leaf.type)?.[1] ?? leaf.type;
const fraction = (type) => Number(/^u?fix<\d+, (\d+)>$/.exec(type)?.[1] ?? 0);

/** The values of a leaf as JavaScript's numbers, to be shown. */
export function numbers(leaf, array) {
  const type = elementOf(leaf), small = SMALL[type], scale = 2 ** -fraction(type);
  return Float64Array.from(array, (value) => small ? decodeSmall(value, small) : Number(value) * scale);
}

/** Numbers as they are written, into the leaf's array. Throws an Error that says what is wrong. */
export function parse(leaf, text) {
  const words = text.split(/[\s,;]+/).filter((word) => word !== "");
  if (leaf.size > 0 && words.length % leaf.size !== 0)
    throw new Error(`${leaf.name} takes ${leaf.size} numbers an item, and there are ${words.length}`);
  return leaf.array.from(words, (word) => parseOne(leaf, word));
}

function parseOne(leaf, word) {
  const type = elementOf(leaf), wide = leaf.array.name.startsWith("Big");
  if (type === "bool" && (word === "true" || word === "false")) return Number(word === "true");
  const integer = /^([iu])(\d+)$/.exec(type) ?? (type === "bool" ? [, "u", "1"] : null);
  if (integer) {
    if (!/^-?\d+$/.test(word)) throw new Error(`${leaf.name}: ${word} is no whole number`);
    return within(leaf, BigInt(word), integer[1] === "i", Number(integer[2]), wide);
  }
  const value = { nan: NaN, inf: Infinity, "-inf": -Infinity }[word.toLowerCase()] ?? Number(word);
  if (Number.isNaN(value) && word.toLowerCase() !== "nan") throw new Error(`${leaf.name}: ${word} is no number`);
  const fixed = /^(u?)fix<(\d+), \d+>$/.exec(type);
  if (fixed) {
    const raw = roundEven(value * 2 ** fraction(type));
    if (!Number.isFinite(raw)) throw new Error(`${leaf.name}: ${word} does not fit ${type}`);
    return within(leaf, BigInt(raw), fixed[1] === "", Number(fixed[2]), wide);
  }
  return SMALL[type] ? encodeSmall(value, SMALL[type]) : value;
}

function within(leaf, value, signed, width, wide) {
  const low = signed ? -(1n << BigInt(width - 1)) : 0n, high = (1n << BigInt(signed ? width - 1 : width)) - 1n;
  if (value < low || value > high) throw new Error(`${leaf.name}: ${value} is not from ${low} to ${high}`);
  return wide ? value : Number(value);
}

/** One item of a leaf as text that `parse` reads. */
export function written(leaf, array, item) {
  const part = array.slice(item * leaf.size, (item + 1) * leaf.size);
  if (/^([iu]\d|bool)/.test(elementOf(leaf))) return Array.from(part, String).join(", ");
  return Array.from(numbers(leaf, part), (value) => Object.is(value, -0) ? "-0" : String(value)).join(", ");
}
