import { ConfigurationError } from "../../runtime/errors.ts";
import { settingsIn } from "./url-settings.ts";

interface UrlForm {
  readonly schemes: readonly [plain: string, secure: string];
  readonly form: string;
  readonly known: readonly string[];
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
  // The WHATWG parser does not support a list of hosts.
  const match = /^([a-z]+):\/\/([^/?#]*)\/?(?:\?([^#]*))?$/i.exec(url);
  const scheme = match?.[1]?.toLowerCase() ?? "";
  const [, , servers = "", query = ""] = match ?? [];
  if (!schemes.includes(scheme)) throw new ConfigurationError(`broker URL: expected ${form}`);
  if (servers.includes("@")) {
    throw new ConfigurationError(`broker URL: no user, password or token in it; ${secrets}`);
  }
  return { isSecure: scheme === schemes[1], servers, settings: settingsIn(query, known) };
}
