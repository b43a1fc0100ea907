import { readFileSync } from "node:fs";
import { ConfigurationError } from "./errors.ts";

/** What is in a file that a setting names; `what` says which, as in `broker URL: the ca file`. */
export function namedFile(what: string, path: string): Buffer {
  try {
    return readFileSync(path);
  } catch (cause) {
    throw new ConfigurationError(`${what} ${path} cannot be read`, { cause });
  }
}
