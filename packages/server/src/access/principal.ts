import type { Role } from "../http/route.ts";
import { sha256 } from "./secrets.ts";
import type { Topics } from "./topics.ts";

export interface Principal {
  readonly name: string;
  readonly role: Role;
  readonly topics?: string[];
  /** `console`: by session, `api`: by token, `host`: authenticated by the program around it. */
  readonly via: "console" | "api" | "host";
}

export interface KnownUser {
  readonly name: string;
  readonly role: Role;
  readonly topics?: Topics;
  readonly password: string;
}

export interface Holder {
  readonly name: string;
  readonly by: "password" | "link";
  /** Derived from the password at login; another password ends the session. */
  readonly mark?: string | undefined;
}

/** Reveals nothing about the password. */
export function markOf(user: Pick<KnownUser, "password">): string {
  return sha256(user.password).slice(0, 16);
}

/** Empty if the rights cover every topic. */
export function limited(topics: Topics): Pick<Principal, "topics"> {
  return topics === undefined ? {} : { topics: [...topics] };
}

/**
 * The current user of a session. Undefined if that login is no longer valid: the user was removed
 * from the access file, or has another role or password there.
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
