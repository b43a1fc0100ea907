/** Connections to primary brokers: made at the first use, greeted, kept awake by heartbeats. */
import { randomUUID } from "node:crypto";
import { hostname } from "node:os";
import type { AbortScope } from "../publishing/abort-scope.ts";
import { failed } from "../publishing/failures.ts";
import { addressFrom } from "./address.ts";
import { type Failure, failureOfAnswer, failureOfQuestion } from "./failures.ts";
import type { Request } from "./frames.ts";
import { connectTo, type Link } from "./link.ts";
import type { Settings } from "./options.ts";

export interface Primaries {
  /** The link to a broker, by its address as the name servers tell it. Never rejects. */
  link(address: string): Link | Promise<Link | Failure>;
  /** It could not be reached a moment ago. */
  isAway(address: string): boolean;
  /** Some broker can be used now. */
  hasLink(): boolean;
  close(): void;
}

const HEARTBEAT = 34;
/** As the Java client does; a broker closes a connection that was silent for 2 minutes. */
const HEARTBEAT_EVERY_MS = 30_000;
/** A failed connect stands for the next ones so long, so that nobody knocks without pause. */
const RETRY_EVERY_MS = 200;
/** What may go to another broker does so for this long. */
const AVOID_FOR_MS = 5000;

interface Primary {
  link: Link | undefined;
  connecting: Promise<Link | Failure> | undefined;
  lastFailure: { readonly failure: Failure; readonly at: number } | undefined;
}

export function createPrimaries(settings: Settings, lifetime: AbortScope): Primaries {
  const { tls, keys, connectTimeoutMs } = settings;
  const primaries = new Map<string, Primary>();
  const heartbeat = heartbeatOf(settings.producerGroup);
  let timer: NodeJS.Timeout | undefined;

  const of = (address: string): Primary => {
    const known = primaries.get(address);
    if (known !== undefined) return known;
    const primary: Primary = { link: undefined, connecting: undefined, lastFailure: undefined };
    primaries.set(address, primary);
    return primary;
  };

  /**
   * The greeting tells the broker our group. Its answer proves that the keys are right, and that
   * somebody is there: the kernel of a frozen server accepts connections too.
   */
  async function connect(address: string): Promise<Link | Failure> {
    const target = addressFrom(settings.brokerAddress(address));
    if (target === undefined) {
      return failed("connection", "BAD_ADDRESS", `the broker's address ${address} is not host:port`);
    }
    const link = await connectTo(target, { tls, keys, connectTimeoutMs, closing: lifetime });
    if (!("isUsable" in link)) return failureOfQuestion(link);
    const { answer, ...silence } = await link.exchange(heartbeat, { timeoutMs: connectTimeoutMs, scope: lifetime });
    if (answer?.code === 0) return link;
    link.end("CONNECTION_LOST", "the broker did not take the greeting");
    if (answer !== undefined) return { ...failureOfAnswer(answer), scope: "connection" };
    const failure = failureOfQuestion(silence as Parameters<typeof failureOfQuestion>[0]);
    const code = failure.code === "TIMEOUT" ? "CONNECT_TIMEOUT" : failure.code;
    return { ...failure, code };
  }

  function beat(): void {
    for (const { link } of primaries.values()) {
      // One without an answer takes nothing more.
      if (link?.isUsable === true) void link.exchange(heartbeat, { timeoutMs: connectTimeoutMs, scope: lifetime });
    }
  }

  async function open(address: string, primary: Primary): Promise<Link | Failure> {
    const made = await connect(address);
    primary.connecting = undefined;
    const isLink = "isUsable" in made;
    primary.link = isLink ? made : undefined;
    primary.lastFailure = isLink ? undefined : { failure: made, at: performance.now() };
    if (isLink) timer ??= setInterval(beat, HEARTBEAT_EVERY_MS).unref();
    if (isLink && lifetime.aborted) made.end("CLOSED", "the RocketMQ broker was closed");
    if (lifetime.aborted) clearInterval(timer);
    return made;
  }

  const failureWithin = ({ lastFailure }: Primary, ms: number): Failure | undefined =>
    lastFailure !== undefined && performance.now() - lastFailure.at < ms ? lastFailure.failure : undefined;

  return {
    link(address) {
      const primary = of(address);
      if (primary.link?.isUsable === true) return primary.link;
      const failure = failureWithin(primary, RETRY_EVERY_MS);
      if (failure !== undefined && primary.connecting === undefined) return Promise.resolve(failure);
      primary.connecting ??= open(address, primary);
      return primary.connecting;
    },
    isAway: (address) => failureWithin(of(address), AVOID_FOR_MS) !== undefined,
    hasLink: () => [...primaries.values()].some(({ link }) => link?.isUsable === true),
    close() {
      clearInterval(timer);
      for (const { link } of primaries.values())
        link?.end("CLOSED", "the RocketMQ broker was closed before the answer came");
    },
  };
}

/** No two producers have the same id, whatever they share: a broker knows a client by it. */
function heartbeatOf(producerGroup: string): Request {
  const clientID = `${hostname()}@rowpost-${process.pid}-${randomUUID()}`;
  const greeting = { clientID, producerDataSet: [{ groupName: producerGroup }], consumerDataSet: [] };
  return { code: HEARTBEAT, fields: {}, body: Buffer.from(JSON.stringify(greeting)) };
}
