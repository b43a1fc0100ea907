/** Checks before publishing that the server is writable and keeps its data. */

import type { IoClient } from "./client.ts";
import type { Failure } from "./failures.ts";
import { failure, isReplyError, notConnected } from "./failures.ts";

/** Default of `proto-max-bulk-len`. */
const DEFAULT_MAX_BULK_BYTES = 536_870_912;

export interface ServerFacts {
  readonly maxBulkBytes: number;
}

/**
 * Asks each primary. A question forbidden to this user (ACL) is no reason to refuse. May reject.
 */
export async function inspectServer(
  client: IoClient,
  options: { readonly allowEviction: boolean },
): Promise<ServerFacts | Failure> {
  const primaries = client.isCluster ? (client.nodes?.("master") ?? []) : [client];
  const infos = await Promise.all(primaries.map(async (node) => infoOf(await unlessForbidden(node.info()))));
  for (const info of infos) {
    const refusal = refusalOf(info, options.allowEviction);
    if (refusal !== undefined) return refusal;
  }
  const limit = await unlessForbidden(client.config("GET", "proto-max-bulk-len"));
  const bytes = Array.isArray(limit) ? Number(limit[1]) : Number.NaN;
  return { maxBulkBytes: Number.isSafeInteger(bytes) && bytes > 0 ? bytes : DEFAULT_MAX_BULK_BYTES };
}

function refusalOf(info: ReadonlyMap<string, string>, allowEviction: boolean): Failure | undefined {
  if (info.get("loading") === "1") return failure("LOADING", "Redis is loading its data", { scope: "connection" });
  if (info.get("role") === "slave") {
    return notConnected(
      "READONLY",
      "this server is a replica; connect to its primary, or hand in a client with sentinels",
    );
  }
  const policy = info.get("maxmemory_policy") ?? "";
  if (policy.startsWith("allkeys-") && info.get("maxmemory") !== "0" && !allowEviction) {
    return notConnected(
      "EVICTION_POLICY",
      `maxmemory-policy is ${policy}: when its memory is full this server drops whole streams, and with them messages that were sent; ` +
        "set noeviction or a volatile- policy, or the option allowEviction where losing messages is fine",
    );
  }
  return undefined;
}

async function unlessForbidden(asked: Promise<unknown>): Promise<unknown> {
  try {
    return await asked;
  } catch (error) {
    // Except NOAUTH and WRONGPASS: nothing works without credentials.
    if (isReplyError(error) && !/^(NOAUTH|WRONGPASS)/.test(error.message)) return undefined;
    throw error;
  }
}

function infoOf(reply: unknown): ReadonlyMap<string, string> {
  const lines = typeof reply === "string" ? reply.split("\r\n") : [];
  return new Map(
    lines.flatMap((line): [string, string][] => {
      const colon = line.indexOf(":");
      return colon > 0 ? [[line.slice(0, colon), line.slice(colon + 1)]] : [];
    }),
  );
}
