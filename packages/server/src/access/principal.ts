/** Who asks, and what they may do. */
import type { Role } from "../http/route.ts";
import { sha256 } from "./secrets.ts";
import type { Topics } from "./topics.ts";

/** Somebody who is logged in. */
export interface Principal {
  /** As the audit has it. */
  readonly name: string;
  readonly role: Role;
  /** All that the rights reach; absent: all topics. */
  readonly topics?: string[];
  /** `console`: with a session, `api`: with a token, `host`: told by the program around it. */
  readonly via: "console" | "api" | "host";
}

/** A user of the access file, as it is now. */
export interface KnownUser {
  readonly name: string;
  readonly role: Role;
  readonly topics?: Topics;
  /** Its hash. */
  readonly password: string;
}

/** Kept with a session: who, and by which way in. */
export interface Holder {
  readonly name: string;
  readonly by: "password" | "link";
  /** Of the password that it was opened with: another one ends the session. */
  readonly mark?: string | undefined;
}

/** Says nothing about the password. */
export function markOf(user: Pick<KnownUser, "password">): string {
  return sha256(user.password).slice(0, 16);
}

/** Nothing at all where the rights reach every topic. */
export function limited(topics: Topics): Pick<Principal, "topics"> {
  return topics === undefined ? {} : { topics: [...topics] };
}

/**
 * The one who holds a session, as of now; undefined: that way in is shut. A user who is no longer
 * in the access file, or has another role or password there, is not who logged in.
 */
export function holderOf(
  text: string,
  { hasLink, users }: { readonly hasLink: boolean; readonly users: readonly KnownUser[] },
): Principal | undefined {
  const { by, mark, name } = JSON.parse(text) as Holder;
  const user = users.find((each) => each.name === name);
  const isUser = user !== undefined && markOf(user) === mark;
  const role = by === "link" ? (hasLink ? "admin" : undefined) : isUser ? user.role : undefined;
  if (role === undefined) return undefined;
  return { name, role, via: "console", ...(by === "link" ? {} : limited(user?.topics)) };
}
