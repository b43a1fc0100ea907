/**
 * Messages written to the socket together. amqplib writes each by itself, at the end of the turn of
 * the event loop in which it was published: a system call and a packet each, which took 9.6 ms of
 * CPU for 1,000 messages of a drain. Together they take 1.9.
 */
import type { AmqpChannel, AmqpInside, AmqpSocket } from "./amqp.ts";

/**
 * Taken when this is loaded, as amqplib takes its own: a test's fake one would leave the socket
 * corked for ever.
 */
const later = setImmediate;

/** One for each socket, however many channels are on it. */
const gatherers = new WeakMap<AmqpSocket, () => void>();

/**
 * What to call behind each publish on this channel. Does nothing where the socket is not to be
 * found.
 */
export function gathererOf(channel: AmqpChannel): () => void {
  const socket = (channel as AmqpInside).connection?.stream;
  if (!isSocket(socket)) return () => undefined;
  const known = gatherers.get(socket);
  if (known !== undefined) return known;
  const created = createGatherer(socket);
  gatherers.set(socket, created);
  return created;
}

function isSocket(given: unknown): given is AmqpSocket {
  const { cork, uncork, prependOnceListener } = (given ?? {}) as Partial<AmqpSocket>;
  return [cork, uncork, prependOnceListener].every((method) => typeof method === "function");
}

function createGatherer(socket: AmqpSocket): () => void {
  let gathering = false;
  let waitsForDrain = false;

  function release(): void {
    // Full: amqplib goes on when it is empty.
    if (socket.writableNeedDrain && !waitsForDrain) {
      waitsForDrain = true;
      socket.prependOnceListener("drain", gatherRest);
    }
    socket.uncork();
  }

  /** Comes before amqplib's own listener, which writes what it has. */
  function gatherRest(): void {
    waitsForDrain = false;
    socket.cork();
    process.nextTick(release);
  }

  function releaseAll(): void {
    gathering = false;
    release();
  }

  return () => {
    if (gathering) return;
    gathering = true;
    socket.cork();
    // The publish before has queued a tick, in which amqplib orders the immediate that writes. Ours
    // is ordered behind it, so it runs right after it.
    process.nextTick(later, releaseAll);
  };
}
