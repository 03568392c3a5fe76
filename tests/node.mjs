// Runs generated loaders for tests/node.py. A message on standard input is a length (u32) and so much JSON, of
// which `sizes` says how many blobs of how many bytes follow; an answer has the same form.
const kernels = new Map();

async function answer(message, blobs) {
  if (message.load !== undefined) {
    const [loader, binary] = blobs;
    const made = await import(`data:text/javascript;base64,${Buffer.from(loader).toString("base64")}`);
    kernels.set(message.load, { ...made, kernel: await made.load(binary) });
    return [];
  }
  if (message.drop !== undefined) {
    kernels.delete(message.drop);
    return [];
  }
  const { kernel, params, results } = kernels.get(message.of);
  if (message.items === undefined) {
    kernel.reset();
    return [];
  }
  const inputs = params.map((leaf, k) => [leaf.name, new leaf.array(new Uint8Array(blobs[k]).buffer)]);
  const found = kernel.run(Object.fromEntries(inputs), message.items);
  return results.map((leaf) => new Uint8Array(found[leaf.name].buffer));
}

async function* chunks() {
  let held = Buffer.alloc(0);
  let wanted = yield;
  for await (const chunk of process.stdin) {
    held = held.length ? Buffer.concat([held, chunk]) : chunk;
    while (held.length >= wanted) {
      const part = held.subarray(0, wanted);
      held = held.subarray(wanted);
      wanted = yield part;
    }
  }
}

const input = chunks();
await input.next();
const read = async (size) => (await input.next(size)).value;
for (;;) {
  const head = await read(4);
  if (head === undefined) break;
  const message = JSON.parse((await read(head.readUInt32LE(0))).toString());
  const blobs = [];
  for (const size of message.sizes) blobs.push(size ? await read(size) : Buffer.alloc(0));
  let said = {};
  let found = [];
  try {
    found = await answer(message, blobs);
  } catch (error) {
    said = { error: String(error.stack) };
  }
  const text = Buffer.from(JSON.stringify({ ...said, sizes: found.map((one) => one.length) }));
  const size = Buffer.alloc(4);
  size.writeUInt32LE(text.length);
  process.stdout.write(Buffer.concat([size, text, ...found]));
}
