/**
 * Validation by whatever schema library the user has (Zod, Valibot, ArkType, Effect, …): all of
 * them carry the same `~standard` property (https://standardschema.dev). Only its shape is declared
 * here, so that the library depends on none of them.
 */
import { InvalidMessageError } from "../runtime/errors.ts";

/** One thing that is wrong with a value. */
export interface StandardIssue {
  /** What is wrong. */
  readonly message: string;
  /** Where in the value: keys, or objects that hold one. */
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined;
}

/**
 * What a validation says: the value as the schema makes it (defaults filled in, unknown fields
 * dropped), or what is wrong.
 */
export type StandardResult<Output> =
  | { readonly value: Output; readonly issues?: undefined }
  | { readonly issues: readonly StandardIssue[] };

/**
 * Any schema of the Standard Schema specification, version 1. `Input` is what may be given,
 * `Output` what it becomes.
 */
export interface StandardSchema<Input = unknown, Output = unknown> {
  /** What the specification asks a schema to have. */
  readonly "~standard": {
    /** Of the specification. */
    readonly version: 1;
    /** Name of the library. */
    readonly vendor: string;
    /** Checks a value. */
    readonly validate: (value: unknown) => StandardResult<Output> | Promise<StandardResult<Output>>;
    /** Exists for the type checker only. */
    readonly types?: { readonly input: Input; readonly output: Output } | undefined;
  };
}

/** More than these are counted, not listed: an error text is for a person. */
const LISTED_ISSUES = 5;

/**
 * The value as the schema makes it, at once or as a promise, as the schema does it.
 *
 * Throws `InvalidMessageError` that lists what is wrong and where; `what` names the value in it. A
 * schema that throws by itself is an `InvalidMessageError` too, with the thrown error as `cause`.
 */
export function validateWith(schema: StandardSchema, value: unknown, what: string): unknown {
  let result: StandardResult<unknown> | Promise<StandardResult<unknown>>;
  try {
    result = schema["~standard"].validate(value);
  } catch (cause) {
    throw new InvalidMessageError(`the schema of ${what} threw instead of answering`, { cause });
  }
  if (!(result instanceof Promise)) return accept(result, what);
  return result.then(
    (settled) => accept(settled, what),
    (cause: unknown) => {
      throw new InvalidMessageError(`the schema of ${what} threw instead of answering`, { cause });
    },
  );
}

function accept(result: StandardResult<unknown>, what: string): unknown {
  if (result.issues === undefined) return result.value;
  const lines = result.issues.slice(0, LISTED_ISSUES).map((issue) => {
    const path = (issue.path ?? []).map((step) => String(typeof step === "object" ? step.key : step)).join(".");
    return path === "" ? issue.message : `${path}: ${issue.message}`;
  });
  const more = result.issues.length - lines.length;
  if (more > 0) lines.push(`and ${more} more`);
  throw new InvalidMessageError(`${what} does not fit its schema: ${lines.join("; ")}`);
}
