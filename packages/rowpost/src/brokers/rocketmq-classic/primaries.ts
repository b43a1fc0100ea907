/** Connections to primary brokers: opened on demand, greeted, kept open by heartbeats. */
import { randomUUID } from "node:crypto";
import { hostname } from "node:os";
import type { AbortScope } from "../publishing/abort-scope.ts";
import { closedFailure, failed } from "../publishing/failures.ts";
import { createKeeper, type Keeper } from "../publishing/keeper.ts";
import type { Failure } from "../rocketmq/rules.ts";
import { addressFrom } from "./address.ts";
import { failureOfAnswer, failureOfQuestion } from "./failures.ts";
import type { Request } from "./frames.ts";
import { connectTo, type Link } from "./link.ts";
import type { Settings } from "./options.ts";

export interface Primaries {
  /** The link to a broker, by its address from the name servers. Never rejects. */
  link(address: string): Link | Promise<Link | Failure>;
  isAway(address: string): boolean;
  hasLink(): boolean;
  close(): void;
}

const HEARTBEAT = 34;
/** As the Java client; a broker closes a connection after 2 minutes of silence. */
const HEARTBEAT_EVERY_MS = 30_000;
const RETRY_EVERY_MS = 200;
/** Messages that may use another broker do so for this long. */
const AVOID_FOR_MS = 5000;

export function createPrimaries(settings: Settings, lifetime: AbortScope): Primaries {
  const { tls, keys, connectTimeoutMs } = settings;
  const primaries = new Map<string, Keeper<Link, Failure>>();
  const heartbeat = heartbeatOf(settings.producerGroup);
  let timer: NodeJS.Timeout | undefined;

  function of(address: string): Keeper<Link, Failure> {
    const known = primaries.get(address);
    if (known !== undefined) return known;
    const keeper = createKeeper<Link, Failure>({
      ways: [() => open(address)],
      isUsable: ({ isUsable }) => isUsable,
      pauseMs: RETRY_EVERY_MS,
      closed: CLOSED,
    });
    primaries.set(address, keeper);
    return keeper;
  }

  /**
   * The greeting announces our group. Its answer proves that the keys are right and the broker is
   * alive: the kernel of a frozen server accepts connections too.
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
    for (const { current } of primaries.values()) {
      // A link without an answer takes no more requests.
      void current()?.exchange(heartbeat, { timeoutMs: connectTimeoutMs, scope: lifetime });
    }
  }

  async function open(address: string): Promise<Link | Failure> {
    const made = await connect(address);
    if (!("isUsable" in made)) return made;
    if (lifetime.aborted) made.end("CLOSED", CLOSED.reason);
    else timer ??= setInterval(beat, HEARTBEAT_EVERY_MS).unref();
    return made;
  }

  return {
    link(address) {
      const primary = of(address);
      return primary.current() ?? primary.get();
    },
    isAway: (address) => of(address).failureWithin(AVOID_FOR_MS) !== undefined,
    hasLink: () => [...primaries.values()].some(({ current }) => current() !== undefined),
    close() {
      clearInterval(timer);
      for (const { current } of primaries.values())
        current()?.end("CLOSED", "the RocketMQ broker was closed before the answer came");
    },
  };
}

const CLOSED = closedFailure("RocketMQ");

/** A unique id for each producer, because a broker identifies clients by it. */
function heartbeatOf(producerGroup: string): Request {
  const clientID = `${hostname()}@rowpost-${process.pid}-${randomUUID()}`;
  const greeting = { clientID, producerDataSet: [{ groupName: producerGroup }], consumerDataSet: [] };
  return { code: HEARTBEAT, fields: {}, body: Buffer.from(JSON.stringify(greeting)) };
}
