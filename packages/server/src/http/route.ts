import type { z } from "zod";

/** Roles in rising order; each includes the earlier ones. */
export const ROLES = ["reader", "operator", "admin"] as const;
export type Role = (typeof ROLES)[number];

/** A line of the route table. Nothing is served without a line, and each has a role. */
export interface Route {
  /** HTTP method. */
  readonly method: "GET" | "POST" | "DELETE";
  /** Below `/api/v1`; `:name` is a parameter. */
  readonly path: string;
  /** The lowest role; `anyone`: also without login. */
  readonly role: Role | "anyone";
  /** Text of the OpenAPI document. */
  readonly about: string;
  /** Name in the audit; required for every route that changes something. */
  readonly audit?: string;
  /** Changes a message: disabled by `--read-only`. */
  readonly changes?: true;
  /**
   * How it is limited for users with some topics only. `free`: has no data of any topic.
   * `filtered`: its handler filters. Routes with a topic, message or operation in their path are
   * limited by that; all others are closed to them.
   */
  readonly limited?: "free" | "filtered";
  /** Requires `If-Match`. */
  readonly ifMatch?: true;
  /** Schema of the query. */
  readonly query?: z.ZodObject;
  /** Schema of the body. */
  readonly body?: z.ZodObject;
  /** Largest request in bytes. Default 1,048,576. */
  readonly mostBytes?: number;
  /** Undefined: the answer is an attachment or empty. */
  readonly answer: z.ZodObject | undefined;
  /** Status of a successful answer. Default 200. */
  readonly status?: 200 | 204;
}

export const look = { method: "GET", role: "reader" } as const;

export const change = { method: "POST", role: "operator", changes: true } as const;

/** A read that its handler filters by topics. */
export const lookFiltered = { method: "GET", role: "reader", limited: "filtered" } as const;

export function mayDo(role: Role, least: Role | "anyone"): boolean {
  return least === "anyone" || ROLES.indexOf(role) >= ROLES.indexOf(least);
}
