import { ConfigurationError } from "../../runtime/errors.ts";
import type { TlsOptions } from "../settings/tls-options.ts";
import { namespaceIn, secretsOf, settingsIn, TLS_SETTINGS, tlsOption } from "../settings/url-settings.ts";

/** Variables with the keys: a URL shows in process lists and logs. */
const ACCESS_KEY = "ROWPOST_ROCKETMQ_ACCESS_KEY";
const SECRET_KEY = "ROWPOST_ROCKETMQ_SECRET_KEY";
const SESSION_TOKEN = "ROWPOST_ROCKETMQ_SESSION_TOKEN";

interface UrlForm {
  readonly scheme: string;
  readonly form: string;
  readonly known: readonly string[];
}

interface UrlParts {
  readonly hosts: string;
  readonly settings: URLSearchParams;
  readonly common: {
    readonly namespace?: string;
    readonly tls: boolean | TlsOptions | undefined;
    readonly accessKey?: string;
    readonly secretKey?: string;
    readonly sessionToken?: string;
  };
}

/** No error holds the URL. Throws {@link ConfigurationError}. */
export function rocketmqUrl(
  url: string,
  { scheme, form, known }: UrlForm,
  env: Readonly<Record<string, string | undefined>>,
): UrlParts {
  // The WHATWG parser does not support a list of hosts.
  const match = /^([a-z-]+):\/\/([^/?#]*)(?:\/([^?#]*))?(?:\?([^#]*))?$/i.exec(url);
  const [, given = "", hosts = "", path = "", query = ""] = match ?? [];
  if (given.toLowerCase() !== scheme) throw new ConfigurationError(`broker URL: expected ${form}`);
  if (hosts.includes("@")) {
    throw new ConfigurationError(`broker URL: no user or password in it; set ${ACCESS_KEY} and ${SECRET_KEY} instead`);
  }
  const namespace = namespaceIn(path, form);
  const settings = settingsIn(query, [...known, ...TLS_SETTINGS]);
  return {
    hosts,
    settings,
    common: {
      ...(namespace === "" ? {} : { namespace }),
      tls: tlsOption(settings),
      ...secretsOf(env, { accessKey: ACCESS_KEY, secretKey: SECRET_KEY, sessionToken: SESSION_TOKEN }),
    },
  };
}
