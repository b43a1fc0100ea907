/**
 * Errors of drivers and ORMs without what was to be written: they repeat the statement and its
 * parameters, in the message or beside it, and whoever logs them would log the bodies of messages.
 */

/** Where they keep them: mysql2, mariadb (`sql`); TypeORM, Drizzle, postgres.js (the others). */
const VALUES: readonly PropertyKey[] = ["sql", "query", "parameters", "params", "args"];
/** Where a wrapper of an ORM keeps the driver's error. */
const INNER = ["cause", "driverError"] as const;

/**
 * The driver's own error, out of an ORM's around it, and with the server's message alone. What
 * holds no values is returned as it is.
 */
export function withoutValues(error: unknown): unknown {
  if (!(error instanceof Error)) return error;
  const inner = INNER.map((name): unknown => Reflect.get(error, name)).find((each) => each instanceof Error);
  if ("query" in error && inner !== undefined) return withoutValues(inner);
  const message = serverMessage(error);
  if (message === error.message && !VALUES.some((name) => name in error)) return error;
  const plain: Error = Object.setPrototypeOf(new Error(message), Object.getPrototypeOf(error));
  for (const name of Reflect.ownKeys(error)) {
    const descriptor = Object.getOwnPropertyDescriptor(error, name);
    if (name === "message" || name === "stack" || VALUES.includes(name) || descriptor === undefined) continue;
    Object.defineProperty(plain, name, descriptor);
  }
  const frames = error.stack?.indexOf("\n    at ") ?? -1;
  plain.stack = `${error.name}: ${message}${frames === -1 ? "" : error.stack?.slice(frames)}`;
  return plain;
}

/** mariadb and Knex put the statement, and values, into the message. */
export function serverMessage(error: Error): string {
  return "sqlMessage" in error && typeof error.sqlMessage === "string" ? error.sqlMessage : error.message;
}
