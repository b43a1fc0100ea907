/** Query settings of a broker's URL. No error contains the URL or its password. */
import { ConfigurationError } from "../../runtime/errors.ts";
import { namedFile } from "../../runtime/named-file.ts";
import { percentDecoded } from "../../runtime/percent-decoded.ts";
import type { TlsOptions } from "./tls-options.ts";

/** `tls` is `true`, `false` or `insecure`, three are PEM files, one is the certificate's name. */
export const TLS_SETTINGS: readonly string[] = ["tls", "ca", "cert", "key", "serverName"];

/** Throws {@link ConfigurationError} for a name that is not known, or is there twice. */
export function settingsIn(query: string, known: readonly string[]): URLSearchParams {
  const settings = new URLSearchParams(query);
  for (const name of settings.keys()) {
    if (!known.includes(name)) {
      throw new ConfigurationError(`broker URL: unknown setting "${name}"; known are ${known.join(", ")}`);
    }
    if (settings.getAll(name).length > 1) throw new ConfigurationError(`broker URL: ${name} is there more than once`);
  }
  return settings;
}

/** Maps the settings that are present: `names` gives the option, `convert` its value. */
export function optionsOf<Option extends string, Value>(
  settings: URLSearchParams,
  names: Readonly<Record<string, Option>>,
  convert: (name: string, text: string) => Value,
): { [Name in Option]?: Value } {
  const options: { [Name in Option]?: Value } = {};
  for (const [name, option] of Object.entries(names)) {
    const text = settings.get(name);
    if (text !== null) options[option] = convert(name, text);
  }
  return options;
}

export function textSetting(_name: string, text: string): string {
  return text;
}

export function wholeSetting(name: string, text: string): number {
  if (/^\d{1,15}$/.test(text)) return Number(text);
  throw new ConfigurationError(`broker URL: ${name} must be a whole number, not "${text}"`);
}

/** `true`, `1` and the empty text, or `false` and `0`. */
export function truthSetting(name: string, text: string): boolean {
  return truth(name, text, "true or false");
}

export function oneOfSetting<const Word extends string>(words: readonly Word[]): (name: string, text: string) => Word {
  return (name, text) => {
    const word = words.find((each) => each === text);
    if (word !== undefined) return word;
    throw new ConfigurationError(`broker URL: ${name} must be ${listed(words)}, not "${text}"`);
  };
}

/** From the environment, since URLs show in process lists. Empty variables count as unset. */
export function secretsOf<Option extends string>(
  environment: Readonly<Record<string, string | undefined>>,
  variables: Readonly<Record<Option, string>>,
): { [Name in Option]?: string } {
  const secrets: { [Name in Option]?: string } = {};
  for (const [option, variable] of Object.entries(variables) as [Option, string][]) {
    const text = environment[variable];
    if (text) secrets[option] = text;
  }
  return secrets;
}

export function fileSetting(name: string, path: string): Buffer {
  return namedFile(`broker URL: the ${name} file`, path);
}

/** For schemes that do not decide about TLS; `isAsked`: this one asks for it. */
export function tlsOption(settings: URLSearchParams, isAsked = false): boolean | TlsOptions | undefined {
  const word = settings.get("tls");
  const isOn = word === null ? undefined : word === "insecure" || truth("tls", word, "true, false or insecure");
  const details: TlsOptions = {
    ...optionsOf(settings, { ca: "ca", cert: "cert", key: "key" }, fileSetting),
    ...optionsOf(settings, { serverName: "serverName" }, textSetting),
    ...(word === "insecure" ? { rejectUnauthorized: false } : {}),
  };
  const hasDetails = Object.keys(details).length > 0;
  if (isOn === false && (isAsked || hasDetails)) {
    throw new ConfigurationError("broker URL: tls=false contradicts the scheme or the other TLS settings");
  }
  return hasDetails ? details : (isOn ?? (isAsked || undefined));
}

/** For schemes that decide: `secureScheme` is the one with TLS, such as `amqps`. */
export function tlsOfScheme(settings: URLSearchParams, url: string, secureScheme: string): TlsOptions | undefined {
  const isSecure = url.slice(0, secureScheme.length + 1).toLowerCase() === `${secureScheme}:`;
  const tls = tlsOption(settings, isSecure);
  if (tls !== undefined && tls !== false && !isSecure) {
    throw new ConfigurationError(`broker URL: settings of TLS need ${secureScheme}://`);
  }
  return typeof tls === "object" ? tls : undefined;
}

function truth(name: string, text: string, words: string): boolean {
  if (["true", "1", ""].includes(text)) return true;
  if (["false", "0"].includes(text)) return false;
  throw new ConfigurationError(`broker URL: ${name} must be ${words}, not "${text}"`);
}

/** The namespace in a URL's path, or empty. Throws for more than one segment. */
export function namespaceIn(path: string, form: string): string {
  const encoded = path.replace(/\/$/, "");
  if (encoded.includes("/")) {
    throw new ConfigurationError(`broker URL: "/${path}" is more than a namespace; expected ${form}`);
  }
  return percentDecoded("broker URL: the namespace", encoded);
}

function listed(words: readonly string[]): string {
  return words.length < 2 ? words.join("") : `${words.slice(0, -1).join(", ")} or ${words.at(-1)}`;
}
