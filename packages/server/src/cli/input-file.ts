import { readFile } from "node:fs/promises";
import { text as textOf } from "node:stream/consumers";
import { describeError } from "rowpost";
import { InputError } from "./arguments.ts";

export async function contentOf(file: string): Promise<string> {
  try {
    return file === "-" ? await textOf(process.stdin) : await readFile(file, "utf8");
  } catch (error) {
    throw new InputError(`--file ${file} cannot be read: ${describeError(error)}`);
  }
}
