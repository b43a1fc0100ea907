/** Clients of ioredis by the options of a broker's URL. */
import { Redis } from "ioredis";
import type { RedisOptions } from "rowpost/redis";
import { tlsOf } from "./tls.ts";

/** `lazy`: it connects at its first command, or never. */
export function redisClient(options: RedisOptions, { lazy }: { readonly lazy: boolean }): Redis {
  const { url, username, password, tls } = options;
  const client = new Redis(String(url), {
    ...(username !== undefined && { username }),
    ...(password !== undefined && { password }),
    ...(tls !== undefined && { tls: tlsOf(tls) }),
    maxRetriesPerRequest: 0,
    disconnectTimeout: 100,
    lazyConnect: lazy,
  });
  // Each command that it concerns fails too.
  client.on("error", () => undefined);
  return client;
}
