/**
 * Packs headers whose name, value or number a broker's fields cannot hold into one field, as ASCII
 * JSON.
 */

/** The packed field. A header with this name is packed itself. */
const PACKED_HEADERS = "rowpost-headers";

interface Fields {
  readonly fits: (name: string, value: string) => boolean;
  /** Most fields, including the packed one. Default: any number. */
  readonly most?: number | undefined;
}

/** The fields of a message: what fits as it is, the rest in {@link PACKED_HEADERS}. */
export function packHeaders(
  headers: Readonly<Record<string, string>>,
  { fits, most = Number.POSITIVE_INFINITY }: Fields,
): Record<string, string> {
  const plain: [string, string][] = [];
  const packed: [string, string][] = [];
  for (const entry of Object.entries(headers)) {
    const [name, value] = entry;
    const isPlain = name !== PACKED_HEADERS && name !== "__proto__" && fits(name, value);
    (isPlain ? plain : packed).push(entry);
  }
  if (plain.length + Math.min(packed.length, 1) > most) packed.push(...plain.splice(most - 1));
  if (packed.length > 0) plain.push([PACKED_HEADERS, asciiJson(Object.fromEntries(packed))]);
  return Object.fromEntries(plain);
}

/** Undoes {@link packHeaders}. What is no such JSON stays as it came. */
export function unpackHeaders(fields: Readonly<Record<string, string>>): Record<string, string> {
  const { [PACKED_HEADERS]: packed, ...plain } = fields;
  if (packed === undefined) return plain;
  try {
    return { ...plain, ...(JSON.parse(packed) as Record<string, string>) };
  } catch {
    return { ...fields };
  }
}

function asciiJson(value: unknown): string {
  return JSON.stringify(value).replace(
    /[\u007f-\uffff]/g,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}
