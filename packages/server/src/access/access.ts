/** Authenticates a request: by token, by session, or by the program around the console. */
import type { OperationsStore } from "rowpost/admin";
import { peerOf } from "../http/peer.ts";
import { Problem } from "../http/problem.ts";
import type { Role } from "../http/route.ts";
import type { Access } from "./access-file.ts";
import type { OneTimeLink } from "./link.ts";
import { createLoginLimits } from "./login-limits.ts";
import { type Holder, holderOf, limited, markOf, type Principal } from "./principal.ts";
import { createProxyWay } from "./proxy.ts";
import { isPassword, randomSecret, sameHash, sha256 } from "./secrets.ts";
import { type Topics, topicsSchema } from "./topics.ts";

/**
 * An authenticated user. `topics`: topics the rights cover, such as `orders` or `orders.*`; default
 * all.
 */
export interface Authorized {
  readonly name: string;
  readonly role: Role;
  readonly topics?: readonly string[] | undefined;
}

/** Authenticates a request; null: no rights. */
export type Authorize = (request: Request) => Promise<Authorized | null> | Authorized | null;

export interface AccessOptions {
  readonly users: Access["users"];
  readonly tokens: Access["tokens"];
  readonly proxy: Access["proxy"];
  readonly link: OneTimeLink | undefined;
  readonly authorize: Authorize | undefined;
  readonly store: OperationsStore;
  readonly isHttps: boolean;
  readonly basePath: string;
  /** Address used by browsers; undefined: that of the request. */
  readonly publicUrl: string | undefined;
  readonly linkUser: string;
}

export interface LoggedIn {
  readonly principal: Principal;
  readonly cookie: string;
}

export interface AccessService {
  /** Undefined: nobody. Throws a {@link Problem} for a token that is none. */
  principalOf(request: Request): Promise<Principal | undefined>;
  /**
   * Whether the request may read the metrics: with any role for all topics, or a token of the role
   * metrics; `isOpen`: also without login, unless the program around the console authenticates.
   */
  mayScrape(request: Request, from: { readonly isOpen: boolean }): Promise<boolean>;
  /** The request has the cookie, so another site may have caused it. */
  hasCookie(request: Request): boolean;
  login(request: Request, name: string, password: string): Promise<LoggedIn>;
  exchange(request: Request, token: string): Promise<LoggedIn>;
  logout(request: Request): Promise<string>;
  readonly ways: () => { readonly password: boolean; readonly link: boolean };
}

const LIFE_MS = 12 * 3_600_000;
const IDLE_MS = 3_600_000;
/** How long a session that ended elsewhere may still be accepted here. */
const BELIEVED_MS = 10_000;
const MOST_BELIEVED = 10_000;

export function createAccess(options: AccessOptions): AccessService {
  const { authorize, isHttps, link, linkUser, store, tokens, users } = options;
  const proxy = options.proxy && createProxyWay(options.proxy);
  const limits = createLoginLimits();
  let logouts = 0;
  const believed = new Map<string, { readonly principal: Principal; readonly untilMs: number }>();
  // The prefix binds a cookie to this host and https, and requires the path /.
  const isHost = isHttps && options.basePath === "/";
  const attributes = `Path=${options.basePath}; HttpOnly; SameSite=Strict${isHttps ? "; Secure" : ""}`;

  /** Browsers share cookies between ports, so two consoles on one host need two names. */
  function cookieName(request: Request): string {
    const { port } = new URL(options.publicUrl ?? request.url);
    return `${isHost ? "__Host-" : ""}rowpost${port === "" ? "" : `-${port}`}`;
  }

  function cookieOf(request: Request): string | undefined {
    const pairs = (request.headers.get("cookie") ?? "").split(";").map((pair) => pair.trim().split("="));
    return pairs.find(([name]) => name === cookieName(request))?.[1];
  }

  async function sessionOf(request: Request): Promise<Principal | undefined> {
    const secret = cookieOf(request);
    if (secret === undefined) return undefined;
    const hash = sha256(secret);
    const known = believed.get(hash);
    if (known !== undefined && performance.now() < known.untilMs) return known.principal;
    believed.delete(hash);
    const logoutsBefore = logouts;
    const holder = await store.readSession(hash, IDLE_MS);
    if (holder === undefined) return undefined;
    const principal = holderOf(holder, { hasLink: link !== undefined, users });
    if (principal === undefined) return undefined;
    if (logouts !== logoutsBefore) return principal;
    if (believed.size >= MOST_BELIEVED) believed.clear();
    believed.set(hash, { principal, untilMs: performance.now() + BELIEVED_MS });
    return principal;
  }

  function knownToken(given: string): Access["tokens"][number] | undefined {
    const found = tokens.find(({ hash }) => sameHash(given, hash));
    const isOver = found?.expires !== undefined && Date.parse(found.expires) <= Date.now();
    return isOver ? undefined : found;
  }

  function tokenHolder(given: string): Principal {
    const found = knownToken(given);
    if (found === undefined) throw new Problem("unauthenticated", "the token is not known here, or has expired");
    const { name, role, topics } = found;
    if (role === "metrics") throw new Problem("forbidden", "a token of the role metrics is for /metrics alone");
    return { name, role, via: "api", ...limited(topics) };
  }

  async function principalOf(request: Request): Promise<Principal | undefined> {
    if (authorize !== undefined) {
      const found = await authorize(request);
      if (found?.topics !== undefined && !topicsSchema.safeParse(found.topics).success)
        throw new TypeError("authorize: topics must be a list of names, or left out for all topics");
      return found === null ? undefined : { name: found.name, role: found.role, via: "host", ...limited(found.topics) };
    }
    // First, because a proxy may pass on its own tokens too.
    const told = proxy?.principalOf(request);
    if (told !== undefined) return told;
    const bearer = bearerOf(request);
    return bearer === undefined ? await sessionOf(request) : tokenHolder(bearer);
  }

  async function open(
    request: Request,
    who: { readonly name: string; readonly role: Role; readonly topics?: Topics },
    way: Omit<Holder, "name">,
  ): Promise<LoggedIn> {
    const secret = randomSecret();
    const holder: Holder = { name: who.name, ...way };
    await store.openSession({ hash: sha256(secret), holder: JSON.stringify(holder), lifeMs: LIFE_MS });
    const principal = { name: who.name, role: who.role, via: "console" as const, ...limited(who.topics) };
    return { principal, cookie: `${cookieName(request)}=${secret}; ${attributes}` };
  }

  return {
    ways: () => ({
      password: authorize === undefined && users.length > 0,
      link: authorize === undefined && link?.isOpen() === true,
    }),
    hasCookie: (request) =>
      cookieOf(request) !== undefined || authorize !== undefined || proxy?.tellsWho(request) === true,

    principalOf,

    async mayScrape(request, { isOpen }) {
      const isAll = (who: { readonly topics?: Topics } | undefined) => who !== undefined && who.topics === undefined;
      if (authorize !== undefined) return isAll(await principalOf(request));
      const bearer = bearerOf(request);
      if (bearer !== undefined && proxy?.speaks(request) !== true) return isAll(knownToken(bearer));
      // A request from this machine may come from the proxy.
      return (isOpen && proxy === undefined) || isAll(await principalOf(request));
    },

    async login(request, name, password) {
      const user = users.find((each) => each.name === name);
      if (
        !(await limits.guard({ name, address: peerOf(request) }, () => isPassword(password, user?.password))) ||
        user === undefined
      )
        throw new Problem("unauthenticated", "name or password is wrong");
      return await open(request, user, { by: "password", mark: markOf(user) });
    },

    async exchange(request, token) {
      const opened = await link?.use(token, () => open(request, { name: linkUser, role: "admin" }, { by: "link" }));
      if (opened === undefined)
        throw new Problem("unauthenticated", "the link was used already, or is older than ten minutes: start again");
      return opened;
    },

    async logout(request) {
      const secret = cookieOf(request);
      if (secret !== undefined) {
        await store.endSession(sha256(secret));
        // A request that read the session earlier must not cache it now.
        logouts += 1;
        believed.delete(sha256(secret));
      }
      return `${cookieName(request)}=; ${attributes}; Max-Age=0`;
    },
  };
}

function bearerOf(request: Request): string | undefined {
  return /^Bearer +(\S+)\s*$/i.exec(request.headers.get("authorization") ?? "")?.[1];
}
