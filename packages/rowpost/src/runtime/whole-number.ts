import { ConfigurationError } from "./errors.ts";

/**
 * Checks that an option is a whole number within bounds; `most` is optional. Throws {@link
 * ConfigurationError}, which names the option.
 */
export function wholeNumber(name: string, value: number, least: number, most?: number): number {
  if (Number.isSafeInteger(value) && value >= least && (most === undefined || value <= most)) return value;
  const bounds = most === undefined ? `of at least ${least}` : `from ${least} to ${most}`;
  throw new ConfigurationError(`${name} must be a whole number ${bounds}, not ${String(value)}`);
}
