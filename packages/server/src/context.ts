/** What a command runs in. */

/** What commands use of a terminal or pipe. */
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
   * Called by a command that was asked to end: nobody waits for the reader of its output then. The
   * others wait, as `rowpost list | less` must.
   */
  readonly endSoon?: () => void;
}

/**
 * 0 done; 1 it could not be done, or not all of it; 2 the input was wrong and nothing was done; 3
 * messages wait or have failed after `relay --once`, or `reconcile` or `doctor` has found some.
 */
export type ExitCode = 0 | 1 | 2 | 3;

/** The environment of one call of the program. */
export interface CommandContext extends Environment {
  /** Passwords that were seen: {@link redact} takes them out of what is printed. */
  readonly secrets: Set<string>;
  /** Only on a terminal, and not where NO_COLOR is set. */
  readonly colors: boolean;
}

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

/** Remembers a secret, also as it looks in a URL. */
export function keepSecret(context: Pick<CommandContext, "secrets">, secret: string | undefined): void {
  if (secret === undefined || secret === "") return;
  context.secrets.add(secret).add(encodeURIComponent(secret));
}
