/** Like `await`: a function may have a `then`, and a proxy may simulate one. */
export function isThenable(value: unknown): value is PromiseLike<unknown> {
  const mayHaveThen = (typeof value === "object" && value !== null) || typeof value === "function";
  return mayHaveThen && typeof (value as { readonly then?: unknown }).then === "function";
}
