import { Agent as PlainAgent } from "node:http";
import { Agent as SecureAgent } from "node:https";
import type { ExchangeRequest, RunningExchange } from "./exchange.ts";
import { startExchange } from "./exchange.ts";
import type { HttpSettings } from "./settings.ts";

/**
 * Servers close idle connections, Node's after 5 s. A request written into a closing connection has
 * the outcome `unknown`, so the client closes first.
 */
const IDLE_CONNECTION_MS = 4_000;

export interface Connections {
  /**
   * Throws the error of node:http for a request that cannot be written. Must not be called after
   * `close`.
   */
  start(request: ExchangeRequest): RunningExchange;
  close(reason: string): Promise<void>;
}

/** No connection is opened before the first request. */
export function createConnections({ maxInFlight, tls, clock }: HttpSettings): Connections {
  // No maxSockets: the window already bounds the requests in flight.
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
