import { wholeNumber } from "../../runtime/whole-number.ts";

export type Checked<Options, Name extends keyof Options> = {
  readonly [Key in Name]-?: Exclude<Options[Key], undefined>;
};

type Bounds = readonly [byDefault: number, least: number, most: number];

export function timeoutBounds(byDefaultMs: number): Bounds {
  return [byDefaultMs, 100, 600_000];
}

/** Whole numbers among the options. Throws `ConfigurationError`, which names the option. */
export function numbersOf<Name extends string>(
  options: { readonly [Key in NoInfer<Name>]?: number | undefined },
  bounds: Readonly<Record<Name, Bounds>>,
): Record<Name, number> {
  const numbers: Partial<Record<Name, number>> = {};
  for (const [name, [byDefault, least, most]] of Object.entries(bounds) as [Name, Bounds][]) {
    numbers[name] = wholeNumber(name, options[name] ?? byDefault, least, most);
  }
  return numbers as Record<Name, number>;
}

export function numberKinds<Name extends string>(bounds: Readonly<Record<Name, Bounds>>): Record<Name, "number"> {
  return Object.fromEntries(Object.keys(bounds).map((name) => [name, "number"])) as Record<Name, "number">;
}

export function optionalNumber(name: string, value: number | undefined, least: number): number | undefined {
  return value === undefined ? undefined : wholeNumber(name, value, least, Number.MAX_SAFE_INTEGER);
}
