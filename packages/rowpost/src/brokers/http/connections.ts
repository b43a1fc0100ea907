import { Agent as PlainAgent } from "node:http";
import { Agent as SecureAgent } from "node:https";
import type { ExchangeRequest, RunningExchange } from "./exchange.ts";
import { startExchange } from "./exchange.ts";
import type { HttpSettings } from "./settings.ts";

/**
 * Servers give up unused connections, Node's after 5 s. Whoever is second writes into one that is
 * being closed, and its outcome is `unknown`: so we are first.
 */
const IDLE_CONNECTION_MS = 4_000;

/** The connections of one broker, and the requests that run on them. */
export interface Connections {
  /** Throws what node:http throws on a request that cannot be written. Not after `close`. */
  start(request: ExchangeRequest): RunningExchange;
  /** Ends every request and every connection. */
  close(reason: string): Promise<void>;
}

/** Makes them; none is opened before the first request. */
export function createConnections({ maxInFlight, tls, clock }: HttpSettings): Connections {
  // No maxSockets: the window has bounded what runs at once.
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
