import { readFileSync } from "node:fs";
import { ConfigurationError } from "./errors.ts";

/** `what` describes the file, as in `broker URL: the ca file`. */
export function namedFile(what: string, path: string): Buffer {
  try {
    return readFileSync(path);
  } catch (cause) {
    throw new ConfigurationError(`${what} ${path} cannot be read`, { cause });
  }
}
