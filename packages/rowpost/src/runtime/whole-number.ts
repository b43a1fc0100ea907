import { ConfigurationError } from "./errors.ts";

/**
 * The value of an option that must be a whole number in these bounds. Throws {@link
 * ConfigurationError}, which names the option.
 */
export function wholeNumber(name: string, value: number, least: number, most: number): number {
  if (Number.isInteger(value) && value >= least && value <= most) return value;
  throw new ConfigurationError(`${name} must be a whole number from ${least} to ${most}, not ${value}`);
}
