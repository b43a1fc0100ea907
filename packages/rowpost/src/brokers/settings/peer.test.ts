import { expect, test } from "vitest";
import { MissingPeerError } from "../../runtime/errors.ts";
import { loadedPeer } from "./peer.ts";

const wanted = { neededFor: "The Redis broker", range: "^5.3.2 || ^6.0.0" };

test("a peer that lacks what is needed is refused, with the line that mends it", async () => {
  const fits = (module: { readonly Redis?: unknown }): boolean => module.Redis !== undefined;
  const old = loadedPeer(Promise.resolve({ default: class {} }), "ioredis", { ...wanted, fits });
  await expect(old).rejects.toBeInstanceOf(MissingPeerError);
  await expect(old).rejects.toMatchObject({
    code: "MISSING_PEER",
    message: 'The Redis broker needs another version of the package ioredis: npm install "ioredis@^5.3.2 || ^6.0.0"',
  });
  const fitting = { Redis: class {} };
  expect(await loadedPeer(Promise.resolve(fitting), "ioredis", { ...wanted, fits })).toBe(fitting);
});

test("a peer that is not there is refused with the same line", async () => {
  const cause = new Error("Cannot find package 'ioredis'");
  await expect(loadedPeer(Promise.reject(cause), "ioredis", wanted)).rejects.toMatchObject({
    cause,
    message: 'The Redis broker needs the package ioredis: npm install "ioredis@^5.3.2 || ^6.0.0"',
  });
});
