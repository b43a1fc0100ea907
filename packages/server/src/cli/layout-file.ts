/** `--layout`: a built-in layout by name, or a JSON file with the options of `createLayout`. */
import { readFileSync } from "node:fs";
import { createLayout, type LayoutOptions, SHIPPED_LAYOUTS, type TableLayout } from "rowpost";
import { InputError } from "./arguments.ts";

/** What createLayout takes, for the value of `--layout`. Throws {@link InputError}. */
export function layoutOptionsOf(given: string): LayoutOptions {
  const shipped = shippedOf(given);
  if (shipped !== undefined) return { base: shipped };
  if (!/[/\\]|\.json$/i.test(given)) {
    throw new InputError(
      `--layout ${given} is not one of ${names()}, and no file: FILE.json has the options of createLayout`,
    );
  }
  const options = optionsFrom(given, read(given));
  try {
    createLayout(options);
  } catch (error) {
    // Reported here, where the file is known.
    const text = error instanceof Error ? error.message.replace(/^createLayout(, |: )?/, "") : String(error);
    throw new InputError(`--layout ${given}: ${text}`);
  }
  return options;
}

function optionsFrom(file: string, value: unknown): LayoutOptions {
  if (typeof value !== "object" || value === null || Array.isArray(value))
    throw new InputError(`--layout ${file} must be an object such as {"table": "app_event", "columns": {"id": "…"}}`);
  const { base, ...rest } = value as Readonly<Record<string, unknown>>;
  return {
    ...rest,
    ...(base === undefined ? {} : { base: baseOf(file, base) }),
  };
}

function baseOf(file: string, base: unknown): TableLayout {
  const found = typeof base === "string" ? shippedOf(base) : undefined;
  if (found === undefined) throw new InputError(`--layout ${file}: base must be ${names(" or ")}`);
  return found;
}

function read(file: string): unknown {
  try {
    return JSON.parse(readFileSync(file, "utf8"));
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new InputError(`--layout ${file} ${error instanceof SyntaxError ? "is not JSON" : "cannot be read"}: ${why}`);
  }
}

function shippedOf(name: string): TableLayout | undefined {
  return Object.hasOwn(SHIPPED_LAYOUTS, name) ? SHIPPED_LAYOUTS[name] : undefined;
}

function names(between = ", "): string {
  return Object.keys(SHIPPED_LAYOUTS).join(between);
}
