/** What stands between applications and whichever server is the primary now. */
import dns, { type LookupAddress } from "node:dns";
import { createTcpProxy } from "../../src/testing/tcp-proxy.ts";
import type { OwnServer } from "../own-servers/own-server.ts";

export interface Switch {
  /** `host:port`, the same before and after. */
  readonly address: string;
  /** New connections go there; those that are open stay where they are. */
  turnTo(server: OwnServer): void;
  close(): Promise<void>;
}

/** A proxy whose new connections go to another server. */
export async function proxySwitch(first: OwnServer): Promise<Switch> {
  const target = { host: first.host, port: first.port };
  const proxy = await createTcpProxy({ target });
  return {
    address: `127.0.0.1:${proxy.port}`,
    turnTo({ host, port }) {
      Object.assign(target, { host, port });
    },
    close: () => proxy.close(),
  };
}

const NAME = "primary.rowpost.test";

type Lookup = (host: string, options: { readonly all?: boolean }, done: (...answer: unknown[]) => void) => void;

/**
 * A host name that comes to have another address. The system's resolver is not ours to change, so
 * Node.js is given an answer for this one name, where every driver's socket asks for it.
 */
export function nameSwitch(first: OwnServer): Switch & { readonly asked: () => number } {
  const system = dns.lookup as unknown as Lookup;
  let address = first.host;
  let asked = 0;
  const lookup: Lookup = (host, options, done) => {
    if (host !== NAME) return system(host, options, done);
    asked += 1;
    const found: LookupAddress = { address, family: 4 };
    // Never within the call, as the system's.
    setImmediate(() => (options.all === true ? done(null, [found]) : done(null, found.address, found.family)));
  };
  Object.assign(dns, { lookup });
  return {
    address: `${NAME}:${first.port}`,
    asked: () => asked,
    turnTo(server) {
      address = server.host;
    },
    close() {
      Object.assign(dns, { lookup: system });
      return Promise.resolve();
    },
  };
}
