/**
 * Removes written values from errors of drivers and ORMs, which repeat the statement and its
 * parameters in the message or beside it: logging them would log the bodies of messages.
 */

/**
 * Properties with such values: mysql2, mariadb (`sql`); TypeORM, Drizzle, postgres.js (the others).
 */
const VALUES: readonly PropertyKey[] = ["sql", "query", "parameters", "params", "args"];
/** Where an ORM keeps the driver's error. */
const INNER = ["cause", "driverError"] as const;

/**
 * The driver's own error, extracted from an ORM's and with the server's message alone. Errors
 * without values are returned unchanged.
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
