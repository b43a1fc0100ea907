export interface Output {
  write(text: string): unknown;
  readonly isTTY?: boolean | undefined;
  readonly columns?: number | undefined;
  readonly rows?: number | undefined;
}

export interface Environment {
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly stdout: Output;
  readonly stderr: Output;
  /**
   * Called by a command told to stop: the process then does not wait for the reader of its output.
   * Other commands wait, as `rowpost list | less` requires.
   */
  readonly endSoon?: () => void;
}

/**
 * 0: done. 1: failed, at least in part. 2: invalid input, nothing was done. 3: messages wait or
 * have failed after `relay --once`, or `reconcile` or `doctor` found some.
 */
export type ExitCode = 0 | 1 | 2 | 3;

export interface CommandContext extends Environment {
  /** Passwords that were seen: {@link redact} takes them out of what is printed. */
  readonly secrets: Set<string>;
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

export function redact(context: Pick<CommandContext, "secrets">, text: string): string {
  let clean = text;
  for (const secret of context.secrets) clean = clean.replaceAll(secret, "***");
  return clean;
}

/** Registers a secret, also in its URL-encoded form. */
export function keepSecret(context: Pick<CommandContext, "secrets">, secret: string | undefined): void {
  if (secret === undefined || secret === "") return;
  context.secrets.add(secret).add(encodeURIComponent(secret));
}
