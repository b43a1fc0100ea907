import { ConfigurationError } from "../../runtime/errors.ts";
import { settingsIn } from "./url-settings.ts";

/** What a broker's URL with a list of servers is made of. */
interface UrlForm {
  /** The plain one, and the one that asks for TLS. */
  readonly schemes: readonly [plain: string, secure: string];
  /** For errors. */
  readonly form: string;
  /** Names of the settings behind the `?`. */
  readonly known: readonly string[];
  /** Where secrets come from instead, such as `set A and B instead`. */
  readonly secrets: string;
}

/**
 * The parts of `scheme://host:port,host:port?name=value`. No error holds the URL. Throws
 * {@link ConfigurationError}.
 */
export function serversUrl(
  url: string,
  { schemes, form, known, secrets }: UrlForm,
): { readonly isSecure: boolean; readonly servers: string; readonly settings: URLSearchParams } {
  // Not the WHATWG parser: it knows no list of hosts.
  const match = /^([a-z]+):\/\/([^/?#]*)\/?(?:\?([^#]*))?$/i.exec(url);
  const scheme = match?.[1]?.toLowerCase() ?? "";
  const [, , servers = "", query = ""] = match ?? [];
  if (!schemes.includes(scheme)) throw new ConfigurationError(`broker URL: expected ${form}`);
  if (servers.includes("@")) {
    throw new ConfigurationError(`broker URL: no user, password or token in it; ${secrets}`);
  }
  return { isSecure: scheme === schemes[1], servers, settings: settingsIn(query, known) };
}
