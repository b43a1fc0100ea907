/** What a route is. */
import type { z } from "zod";

/** What somebody may do; each role may do what the ones before it may. */
export const ROLES = ["reader", "operator", "admin"] as const;
export type Role = (typeof ROLES)[number];

/**
 * A line of the route table. Nothing is served that has no line, and no line goes without a role.
 */
export interface Route {
  /** Of HTTP. */
  readonly method: "GET" | "POST" | "DELETE";
  /** Below `/api/v1`; `:name` is a parameter. */
  readonly path: string;
  /** Who may call it, at least; `anyone`: also who is not logged in. */
  readonly role: Role | "anyone";
  /** For the OpenAPI document. */
  readonly about: string;
  /** What it is called in the audit; every route that changes something has it. */
  readonly audit?: string;
  /** Changes a message: not offered with `--read-only`. */
  readonly changes?: true;
  /**
   * How it is kept to the topics of somebody whose rights reach no others: `free` has nothing of
   * any topic, `filtered` is kept by its handler. Those with a topic, message or operation in their
   * path are kept by that; any other is closed to them.
   */
  readonly limited?: "free" | "filtered";
  /** Only with `If-Match`. */
  readonly ifMatch?: true;
  /** What may stand in the query. */
  readonly query?: z.ZodObject;
  /** What has to stand in the body. */
  readonly body?: z.ZodObject;
  /** Of a request. Default 1,048,576. */
  readonly mostBytes?: number;
  /** Undefined: no JSON is answered, but an attachment or nothing. */
  readonly answer: z.ZodObject | undefined;
  /** Of an answer that succeeds. Default 200. */
  readonly status?: 200 | 204;
}

/** A route that anybody may look at who is logged in. */
export const look = { method: "GET", role: "reader" } as const;

/** One that changes something, by an operator. */
export const change = { method: "POST", role: "operator", changes: true } as const;

/** A look that is kept to somebody's topics by its handler. */
export const lookFiltered = { method: "GET", role: "reader", limited: "filtered" } as const;

/** Has `role` what `least` asks for? */
export function mayDo(role: Role, least: Role | "anyone"): boolean {
  return least === "anyone" || ROLES.indexOf(role) >= ROLES.indexOf(least);
}
