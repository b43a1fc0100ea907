/**
 * Limits users to some topics: by the path of a route, by its handler, or by closing it. A route
 * that says nothing is closed.
 */
import { reaches, type Topics } from "../access/topics.ts";
import type { Source } from "../source.ts";
import { summaryOf } from "./handlers/messages.ts";
import { Problem } from "./problem.ts";
import type { Route } from "./route.ts";

/** The part of the path, or other way, that limits a route to topics; undefined: it is closed. */
export function limitOf({ limited, path }: Pick<Route, "limited" | "path">) {
  if (path.includes("/:topic")) return "topic";
  if (path.includes("/:operation")) return "operation";
  return path.includes("/messages/:id") ? "message" : limited;
}

/** It exists, but in another topic: for this user it does not. */
export class OtherTopicProblem extends Problem {
  constructor(what: string) {
    super("not-found", `there is no ${what}`);
  }
}

/** For what they name themselves. Throws a {@link Problem}. */
export function requireTopic(topics: Topics, topic: string | undefined): void {
  if (topics === undefined || (topic !== undefined && reaches(topics, topic))) return;
  throw new Problem("forbidden", `your rights reach only: ${topics.join(", ")}`, { more: { topics } });
}

/** Throws a {@link Problem} where the route is closed to them. */
export function refuseClosed(route: Route, topics: Topics): void {
  if (topics !== undefined && limitOf(route) === undefined) requireTopic(topics, undefined);
}

interface Named {
  readonly source: Source | undefined;
  readonly id: string | undefined;
  readonly topic: string | undefined;
  readonly operation: string | undefined;
}

/** Throws a {@link Problem} where what the path names belongs to another topic. */
export async function refuseOthers(
  route: Route,
  topics: Topics,
  { id, operation, source, topic }: Named,
): Promise<void> {
  if (topics === undefined || source === undefined) return;
  const limit = limitOf(route);
  if (limit === "topic" && topic !== undefined && !reaches(topics, topic))
    throw new OtherTopicProblem(`topic ${topic}`);
  if (limit === "message" && id !== undefined) {
    const message = await summaryOf(source, id);
    if (!reaches(topics, message.topic)) throw new OtherTopicProblem(`message ${id}, in the table or its archive`);
  }
  if (limit === "operation" && operation !== undefined) {
    const found = source.bulk.read(operation);
    if (found !== undefined && !isOwn(found, topics)) throw new OtherTopicProblem(`operation ${operation}`);
  }
}

/** An operation on the user's topics, whoever started it: rights count, not names. */
export function isOwn(
  { filter: { topic } }: { readonly filter: { readonly topic?: string | undefined } },
  topics: Topics,
): boolean {
  return topics === undefined || (topic !== undefined && reaches(topics, topic));
}
