/** Who asks, and what they may do. */
import type { Role } from "../http/route.ts";
import type { Access } from "./access-file.ts";
import { sha256 } from "./secrets.ts";

/** Somebody who is logged in. */
export interface Principal {
  /** As the audit has it. */
  readonly name: string;
  readonly role: Role;
  /** `console`: with a session, `api`: with a token, `host`: told by the program around it. */
  readonly via: "console" | "api" | "host";
}

/** Kept with a session: who, and by which way in. */
export interface Holder {
  readonly name: string;
  readonly by: "password" | "link";
  /** Of the password that it was opened with: another one ends the session. */
  readonly mark?: string | undefined;
}

/** Says nothing about the password. */
export function markOf(user: Access["users"][number]): string {
  return sha256(user.password).slice(0, 16);
}

/**
 * The one who holds a session, as of now; undefined: that way in is shut. A user who is no longer
 * in the access file, or has another role or password there, is not who logged in.
 */
export function holderOf(
  text: string,
  { hasLink, users }: { readonly hasLink: boolean; readonly users: Access["users"] },
): Principal | undefined {
  const { by, mark, name } = JSON.parse(text) as Holder;
  const user = users.find((each) => each.name === name);
  const isUser = user !== undefined && markOf(user) === mark;
  const role = by === "link" ? (hasLink ? "admin" : undefined) : isUser ? user.role : undefined;
  return role === undefined ? undefined : { name, role, via: "console" };
}
