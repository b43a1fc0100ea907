import type { Server } from "node:http";
import { CommandFailure } from "./failure.ts";
import type { HttpAddress } from "./http-address.ts";

export interface Listening {
  /** `127.0.0.1:9464`, with the actual port. */
  readonly address: string;
  close(): Promise<void>;
}

/** `option` is the option with the address. Rejects with `CommandFailure`. */
export async function listen(server: Server, { host, port }: HttpAddress, option: string): Promise<Listening> {
  await new Promise<void>((resolve, reject) => {
    server.once("error", (error) => {
      const inUse = "code" in error && error.code === "EADDRINUSE";
      const why = inUse ? "another process has this port; choose another one" : error.message;
      reject(new CommandFailure(`${option} ${host}:${port}: ${why}`, { cause: error }));
    });
    server.listen(port, host, resolve);
  });
  const bound = server.address();
  const taken = typeof bound === "object" && bound !== null ? bound.port : port;
  return {
    address: `${host.includes(":") ? `[${host}]` : host}:${taken}`,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}
