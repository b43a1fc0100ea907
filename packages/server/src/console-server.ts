import { createServer } from "node:http";
import type { Console } from "./console.ts";
import { CommandFailure } from "./failure.ts";
import type { HttpAddress } from "./http-address.ts";
import { type Listening, listen } from "./http-listen.ts";

export interface ConsoleListening extends Listening {
  readonly failed: AbortSignal;
}

const MOST_CONNECTIONS = 1_000;

/** Listens; `close` closes the console too. Rejects with `CommandFailure`. */
export async function listenForConsole(made: Console, address: HttpAddress): Promise<ConsoleListening> {
  const server = createServer({ headersTimeout: 10_000, requestTimeout: 30_000 }, (...both) => made.node(...both));
  server.maxConnections = MOST_CONNECTIONS;
  const listening = await listen(server, address, "--listen");
  const failure = new AbortController();
  let isClosed = false;
  const fail = (cause?: unknown): void => {
    if (!isClosed)
      failure.abort(new CommandFailure(`the console at ${listening.address} is served no more`, { cause }));
  };
  server.on("error", fail).on("close", () => fail());
  return {
    address: listening.address,
    failed: failure.signal,
    async close() {
      isClosed = true;
      if (server.listening) await listening.close();
      await made.close();
    },
  };
}
