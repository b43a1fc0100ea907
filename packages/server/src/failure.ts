/** Invalid input: exit code 2, one line, nothing was done. */
export class InputError extends Error {
  constructor(message: string) {
    super(message);
    this.name = "InputError";
  }
}

/** Its message is the line to print; exit code 1. */
export class CommandFailure extends Error {
  constructor(message: string, options: { cause?: unknown } = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = "CommandFailure";
  }
}

/** SQLSTATE, MySQL's number, ECONNREFUSED and so on, from anywhere in the causes of an error. */
export function errorCodes(error: unknown, depth = 0): readonly string[] {
  if (typeof error !== "object" || error === null || depth > 5) return [];
  const { code, errno, cause, errors } = error as Record<"code" | "errno" | "cause" | "errors", unknown>;
  const own = [code, errno].filter((value) => typeof value === "string" || typeof value === "number").map(String);
  // Node combines failures of a host's addresses (::1 and 127.0.0.1) in an AggregateError.
  const inner = [cause, ...(Array.isArray(errors) ? errors : [])];
  return [...own, ...inner.flatMap((each) => errorCodes(each, depth + 1))];
}
