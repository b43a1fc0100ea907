/**
 * What a command runs in: where it prints, what it reads from the environment, which texts must
 * never be printed.
 */

/**
 * The part of a terminal or pipe that commands use; `process.stdout` and `process.stderr` are ones.
 */
export interface Output {
  write(text: string): unknown;
  readonly isTTY?: boolean | undefined;
  readonly columns?: number | undefined;
  readonly rows?: number | undefined;
}

/** Where the command line was called. */
export interface Environment {
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly stdout: Output;
  readonly stderr: Output;
  /**
   * Told by a command that ends because it was asked to, or in time: what its output's reader has
   * not taken is not worth waiting for. The others wait for their readers, as `rowpost list | less`
   * must.
   */
  readonly endSoon?: () => void;
}

/**
 * Exit codes: 0 done; 1 it could not be done, or not all of it; 2 the input was wrong and nothing
 * was done; 3 a relay that ran once has sent what was due, and messages wait or have failed, or
 * `reconcile` has found something.
 */
export type ExitCode = 0 | 1 | 2 | 3;

/** An {@link Environment} with what one call of the program adds to it. */
export interface CommandContext extends Environment {
  /**
   * Passwords that were seen: {@link redact} takes them out of everything that is printed about an
   * error.
   */
  readonly secrets: Set<string>;
  /** Colors and redrawing are for people: only on a terminal, and not where NO_COLOR is set. */
  readonly colors: boolean;
}

/** Makes the context of one call. */
export function createContext(environment: Environment): CommandContext {
  const noColor = environment.environment["NO_COLOR"];
  return {
    ...environment,
    secrets: new Set(),
    colors: environment.stdout.isTTY === true && (noColor === undefined || noColor === ""),
  };
}

/** The text without any password that was seen in this call. */
export function redact(context: Pick<CommandContext, "secrets">, text: string): string {
  let clean = text;
  for (const secret of context.secrets) clean = clean.replaceAll(secret, "***");
  return clean;
}

/** Remembers a secret, and how it looks in a URL. */
export function keepSecret(context: Pick<CommandContext, "secrets">, secret: string | undefined): void {
  if (secret === undefined || secret === "") return;
  context.secrets.add(secret).add(encodeURIComponent(secret));
}
