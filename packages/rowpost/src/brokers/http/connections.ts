import { Agent as PlainAgent } from "node:http";
import { Agent as SecureAgent } from "node:https";
import type { ExchangeRequest, RunningExchange } from "./exchange.ts";
import { startExchange } from "./exchange.ts";
import type { HttpSettings } from "./settings.ts";

/**
 * An unused connection is given up after this time. Servers do the same, Node's after 5 s: whoever
 * is second sends a request into a connection that is being closed, and an outcome that was certain
 * becomes `unknown`. So we are first.
 */
const IDLE_CONNECTION_MS = 4_000;

/** The connections of one broker, and the requests that run on them. */
export interface Connections {
  /**
   * Throws what node:http throws on a request that cannot be written. Must not be called after
   * `close`.
   */
  start(request: ExchangeRequest): RunningExchange;
  /** Ends every request and every connection. */
  close(reason: string): Promise<void>;
}

/** Makes them; none is opened before the first request. */
export function createConnections({ maxInFlight, tls, clock }: HttpSettings): Connections {
  // No maxSockets: what runs at once is bounded before it comes here, over all hosts and not for
  // each.
  const options = { keepAlive: true, maxFreeSockets: maxInFlight, timeout: IDLE_CONNECTION_MS };
  const agents = { plain: new PlainAgent(options), secure: new SecureAgent({ ...options, ...tls }) };
  const running = new Set<RunningExchange>();
  return {
    start(request) {
      const started = startExchange(request, agents, clock);
      running.add(started);
      void started.done.then(() => running.delete(started));
      return started;
    },
    async close(reason) {
      const ending = [...running];
      for (const started of ending) started.abort("CLOSED", reason);
      await Promise.all(ending.map(({ done }) => done));
      agents.plain.destroy();
      agents.secure.destroy();
    },
  };
}
