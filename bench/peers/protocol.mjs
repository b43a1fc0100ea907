/**
 * What every Node driver of a peer does, seen from the bench: it makes its tables in an empty
 * database, drains a small number of messages to get warm, fills in the messages to be measured,
 * says that it is ready, waits for a line on standard input, drains, and says that it is done.
 *
 *   node driver.mjs DATABASE_URL MESSAGES [append | drain] [GROUPS]
 *
 * With `append` the filling in is what is measured. A peer is an object: prepare(), fill(count),
 * start(onPublish), stop(), waiting(), close(), tidy() after a fill, and statements() where its
 * driver has to count. With several groups each message is published once for each of them.
 */
import { once } from "node:events";

const WARM_UP = 500;

/** A JSON body of about 400 bytes, as the other side of the comparison has. */
export function bodyOf(number) {
  return { orderId: number, note: "x".repeat(380) };
}

/** Runs a peer through the protocol and ends the process. */
export async function runPeer(peer, messages, { phase = "drain", groups = 1 } = {}) {
  await peer.prepare();
  if (phase === "append") {
    await append(peer, messages);
  } else {
    await drain(peer, WARM_UP, { groups, measured: false });
    await drain(peer, messages, { groups, measured: true });
  }
  await peer.close();
  process.exit(0);
}

/** What the words after the number of messages say. */
export function phaseOf([phase, groups]) {
  return { phase: phase ?? "drain", groups: Number(groups ?? 1) };
}

async function append(peer, messages) {
  await peer.fill(WARM_UP);
  await sayAndWait({ kind: "ready" });
  const before = peer.statements?.() ?? 0;
  await peer.fill(messages);
  await sayAndWait({ kind: "done", published: messages, statements: (peer.statements?.() ?? 0) - before });
}

async function drain(peer, messages, { groups, measured }) {
  await peer.fill(messages);
  await peer.tidy?.();
  if (measured) await sayAndWait({ kind: "ready" });
  const before = peer.statements?.() ?? 0;
  let published = 0;
  let reached;
  const all = new Promise((resolve) => {
    reached = resolve;
  });
  await peer.start(() => {
    published += 1;
    if (published === messages * groups) reached();
  });
  await all;
  // Published is not enough: what is not recorded would be sent again.
  while ((await peer.waiting()) > 0) await new Promise((resolve) => setTimeout(resolve, 5));
  const statements = (peer.statements?.() ?? 0) - before;
  if (measured) await sayAndWait({ kind: "done", published, statements });
  await peer.stop();
}

/** The bench reads its clocks and answers with a line. */
async function sayAndWait(message) {
  process.stdout.write(`${JSON.stringify(message)}\n`);
  await once(process.stdin, "data");
}

/** Numbers from `first` on in runs of 1,000, the last one shorter. */
export function* runsOf(count, size = 1_000) {
  for (let first = 0; first < count; first += size)
    yield Array.from({ length: Math.min(size, count - first) }, (_, offset) => first + offset);
}

/** Sends them by a function of the database that takes an array of bodies as JSON, in its $1. */
export async function sendAll(client, send, count) {
  for (const numbers of runsOf(count)) await client.query({ ...send, values: [JSON.stringify(numbers.map(bodyOf))] });
}

/** Counts the calls of `query` on the pg driver. */
export function countQueries(pg) {
  const query = pg.Client.prototype.query;
  let count = 0;
  pg.Client.prototype.query = function counted(...parameters) {
    count += 1;
    return query.apply(this, parameters);
  };
  return () => count;
}
