import { Redis } from "ioredis";
import type { RedisOptions } from "rowpost/redis";
import { tlsOf } from "./tls.ts";

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
  // Affected commands fail as well.
  client.on("error", () => undefined);
  return client;
}
