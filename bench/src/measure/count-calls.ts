/**
 * Counts statements by wrapping the driver's method that all of them pass. For engines without a
 * suitable server-side counter: PostgreSQL without pg_stat_statements, and SQLite, a library in
 * this process.
 */

/**
 * Wraps `prototype[method]` to call `seen` with the object and arguments of each call. Calls made
 * by the method itself count again.
 */
export function countCalls(prototype: object, method: string, seen: (self: unknown) => void): void {
  const original: unknown = Reflect.get(prototype, method);
  if (typeof original !== "function")
    throw new Error(`${method} is not a method: the driver has changed, and statements cannot be counted`);
  Reflect.set(prototype, method, function counted(this: unknown, ...parameters: unknown[]): unknown {
    seen(this);
    return Reflect.apply(original, this, parameters);
  });
}
