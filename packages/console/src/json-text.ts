/** Formats JSON by its text instead of its values, so that numbers beyond 2^53 stay exact. Pure. */

export interface JsonPiece {
  readonly kind: "key" | "string" | "number" | "word" | "mark";
  readonly text: string;
}

const TOKEN = /\s*("(?:[^"\\]+|\\.)*"|-?\d[\d.eE+-]*|true|false|null|[{}[\],:])\s*/sy;
const MOST_PIECES = 20_000;

/** Undefined if it is not JSON or too long; then it is shown as stored. */
export function layOut(text: string): JsonPiece[] | undefined {
  const tokens = tokensOf(text);
  if (tokens === undefined) return undefined;
  const pieces: JsonPiece[] = [];
  let depth = 0;
  const line = (): string => `\n${"  ".repeat(depth)}`;
  for (const [at, token] of tokens.entries()) {
    const following = tokens[at + 1];
    if (token === "{" || token === "[") {
      const isEmpty = following === "}" || following === "]";
      if (!isEmpty) depth += 1;
      pieces.push({ kind: "mark", text: isEmpty ? token : token + line() });
    } else if (token === "}" || token === "]") {
      const wasEmpty = tokens[at - 1] === "{" || tokens[at - 1] === "[";
      if (!wasEmpty) depth -= 1;
      pieces.push({ kind: "mark", text: wasEmpty ? token : line() + token });
    } else if (token === ",") pieces.push({ kind: "mark", text: `,${line()}` });
    else if (token === ":") pieces.push({ kind: "mark", text: ": " });
    else pieces.push({ kind: kindOf(token, following), text: token });
  }
  return pieces;
}

function kindOf(token: string, following: string | undefined): JsonPiece["kind"] {
  if (token.startsWith('"')) return following === ":" ? "key" : "string";
  return /^[tfn]/.test(token) ? "word" : "number";
}

function tokensOf(text: string): string[] | undefined {
  try {
    JSON.parse(text);
  } catch {
    return undefined;
  }
  const tokens: string[] = [];
  TOKEN.lastIndex = 0;
  while (TOKEN.lastIndex < text.length) {
    const [, token] = TOKEN.exec(text) ?? [];
    if (token === undefined || tokens.length >= MOST_PIECES) return undefined;
    tokens.push(token);
  }
  return tokens;
}
