/**
 * Validation by the user's schema library (Zod, Valibot, ArkType, Effect, …): all share the
 * property `~standard` (https://standardschema.dev). Only its shape is declared here, without a
 * dependency.
 */
import { InvalidMessageError } from "../runtime/errors.ts";

/** One problem of a value. */
export interface StandardIssue {
  /** Description of the problem. */
  readonly message: string;
  /** Path in the value: keys, or objects that hold one. */
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined;
}

/**
 * Result of a validation: the value from the schema (defaults filled in, unknown fields dropped),
 * or the problems.
 */
export type StandardResult<Output> =
  | { readonly value: Output; readonly issues?: undefined }
  | { readonly issues: readonly StandardIssue[] };

/** Any schema of the Standard Schema specification, version 1, from `Input` to `Output`. */
export interface StandardSchema<Input = unknown, Output = unknown> {
  /** The property required by the specification. */
  readonly "~standard": {
    /** Version of the specification. */
    readonly version: 1;
    /** Name of the library. */
    readonly vendor: string;
    /** Checks a value. */
    readonly validate: (value: unknown) => StandardResult<Output> | Promise<StandardResult<Output>>;
    /** For the type checker only. */
    readonly types?: { readonly input: Input; readonly output: Output } | undefined;
  };
}

/** More are only counted, to keep the error readable. */
const LISTED_ISSUES = 5;

/**
 * The schema's result, as a promise if the schema returns one.
 *
 * Throws `InvalidMessageError` that lists the problems and their paths; `what` names the value. An
 * error thrown by the schema becomes the `cause` of an `InvalidMessageError`.
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
