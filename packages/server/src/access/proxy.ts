/**
 * Authentication by a proxy. Its headers are trusted only with the proxy's secret and from its
 * address; from others they are refused instead of ignored.
 */
import { BlockList, isIP } from "node:net";
import { z } from "zod";
import { socketOf } from "../http/peer.ts";
import { Problem } from "../http/problem.ts";
import { role } from "../http/schemas.ts";
import { limited, type Principal } from "./principal.ts";
import { sameHash, sha256 } from "./secrets.ts";
import { topicsSchema } from "./topics.ts";

const header = z.string().regex(/^[\w!#$%&'*+.^`|~-]+$/, "must be the name of a header");
const network = z
  .string()
  .refine((text) => subnetOf(text) !== undefined, "must be an address, or one such as 10.0.0.0/8");

export const proxySchema = z.strictObject({
  user: header,
  groups: header.optional(),
  /** Header sent only by the proxy, and the hash of its value. */
  secret: z.strictObject({
    header,
    hash: z
      .string()
      .regex(/^[0-9a-f]{64}$/, "must be a SHA-256 in hexadecimal")
      .refine((hash) => hash !== sha256(""), "is the hash of nothing: the secret was empty"),
  }),
  from: z.array(network).min(1),
  /**
   * Rights by group; the first entry that matches counts. `*` matches everyone the proxy lets
   * through.
   */
  roles: z.array(z.strictObject({ group: z.string().min(1), role, topics: topicsSchema.optional() })).min(1),
});

export type ProxyAccess = z.infer<typeof proxySchema>;

export interface ProxyWay {
  speaks(request: Request): boolean;
  tellsWho(request: Request): boolean;
  /** Undefined: it does not say who asks. Throws a {@link Problem} where it may not be believed. */
  principalOf(request: Request): Principal | undefined;
}

export function createProxyWay({ from, groups, roles, secret, user }: ProxyAccess): ProxyWay {
  const trusted = new BlockList();
  for (const { address, family, prefix } of from.map(subnetOf).filter((each) => each !== undefined))
    trusted.addSubnet(address, prefix, family);
  const names = [user, secret.header, ...(groups === undefined ? [] : [groups])];
  const speaks = ({ headers }: Request): boolean => names.some((name) => headers.has(name));

  const nameIn = ({ headers }: Request): string => headers.get(user)?.trim() ?? "";

  function isProxy(request: Request): boolean {
    const address = socketOf(request)?.replace(/^::ffff:(?=\d+\.)/i, "") ?? "";
    const isThere = isIP(address) !== 0 && trusted.check(address, isIP(address) === 6 ? "ipv6" : "ipv4");
    const given = request.headers.get(secret.header) ?? "";
    return isThere && given !== "" && sameHash(given, secret.hash);
  }

  return {
    speaks,
    tellsWho: (request) => nameIn(request) !== "",
    principalOf(request) {
      if (!speaks(request)) return undefined;
      if (!isProxy(request))
        throw new Problem(
          "invalid-request",
          `the headers ${names.join(", ")} are the proxy's, and this is not the proxy`,
        );
      const name = nameIn(request);
      if (name === "") return undefined;
      // Repeated headers are joined by a comma, and one of them is not the proxy's.
      if (name.length > 64 || name.includes(","))
        throw new Problem("invalid-request", `${user} must be one name of up to 64 characters`);
      const theirs = (groups === undefined ? "" : (request.headers.get(groups) ?? ""))
        .split(",")
        .map((one) => one.trim());
      const rights = roles.find(({ group }) => group === "*" || theirs.includes(group));
      if (rights === undefined)
        throw new Problem("forbidden", `${name} is known to the proxy, and in no group that has rights here`);
      return { name, role: rights.role, via: "console", ...limited(rights.topics) };
    },
  };
}

function subnetOf(text: string) {
  const [, address = "", bits] = /^([^/]+)(?:\/(\d{1,3}))?$/.exec(text) ?? [];
  const version = isIP(address);
  const most = version === 6 ? 128 : 32;
  const prefix = bits === undefined ? most : Number(bits);
  if (version === 0 || prefix > most) return undefined;
  return { address, prefix, family: version === 6 ? ("ipv6" as const) : ("ipv4" as const) };
}
