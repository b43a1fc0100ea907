/** Converts the placeholders of our statements to those of an ORM. */

/**
 * Quoted text, quoted names, comments and placeholders: all that may contain a question mark or a
 * dollar.
 */
const TOKEN = /'(?:[^'\\]|''|\\.)*'|"[^"]*"|`[^`]*`|--[^\n]*|\/\*[\s\S]*?\*\/|\$\d+|\?/g;

/**
 * For Knex, which wants `?` on every database: `$n` becomes `?` with the parameters in order of
 * use; other question marks (in a text, or a PostgreSQL operator) are escaped.
 */
export function toQuestionMarks(
  text: string,
  params: readonly unknown[],
  options: { readonly dollars: boolean },
): { readonly text: string; readonly params: readonly unknown[] } {
  const ordered: unknown[] = [];
  const converted = text.replace(TOKEN, (token) => {
    if (token === "?") return options.dollars ? "\\?" : "?";
    if (token.startsWith("$")) {
      if (!options.dollars) return token;
      ordered.push(params[Number(token.slice(1)) - 1]);
      return "?";
    }
    return token.replaceAll("?", "\\?");
  });
  return { text: converted, params: options.dollars ? ordered : params };
}
