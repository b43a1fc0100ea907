/**
 * `--broker URL` and `--route PATTERN=URL`: one broker, or several by topic; and the variables that
 * each URL reads.
 */
import { type Broker, type Database, routes } from "rowpost";
import { brokerKind, brokerLabel, brokerSecret, openBroker } from "./broker-url.ts";
import { type CommandContext, keepSecret } from "./context.ts";
import { InputError } from "./failure.ts";

/** Environment variable instead of `--route`: several routes, separated by blanks. */
export const ROUTES_VARIABLE = "ROWPOST_ROUTES";

export interface BrokerFlags {
  readonly broker?: string;
  readonly route?: readonly string[];
}

export interface BrokerAddress {
  readonly url: string;
  readonly environment: Readonly<Record<string, string | undefined>>;
}

export interface BrokerPlan {
  readonly label: string;
  /** Makes the broker, or one for several, for a relay on this database; connects nothing. */
  open(database: Database): Promise<Broker>;
}

type Environment = Readonly<Record<string, string | undefined>>;

/**
 * Collects the `--route` options. Not checked here, because commander would print a wrong value
 * with its password.
 */
export function collectRoutes(text: string, before: readonly string[] = []): readonly string[] {
  return [...before, ...text.split(/\s+/).filter((part) => part !== "")];
}

/**
 * Understands the options; passwords in URLs are kept out of everything that is printed from then
 * on. Throws {@link InputError}. `missing`: what to say when there is no broker at all.
 */
export function planBrokers(context: CommandContext, flags: BrokerFlags, missing: string): BrokerPlan {
  const { environment } = context;
  const { broker: otherwise = "", route = [] } = flags;
  if (otherwise === "" && route.length === 0) throw new InputError(missing);
  for (const text of [otherwise, ...route]) keepSecret(context, brokerSecret(text));
  const table = route.map((text, index) => parseRoute(text, index + 1));
  const addresses = new Map(table.map(({ pattern, url }) => [url, understand(`--route ${pattern}`, url, environment)]));
  if (otherwise !== "") addresses.set(otherwise, understand("--broker", otherwise, environment));
  const named = table.map(({ pattern, url }) => `${pattern}=${brokerLabel(url)}`);
  const rest =
    otherwise === "" ? [] : [route.length === 0 ? brokerLabel(otherwise) : `otherwise ${brokerLabel(otherwise)}`];
  return {
    label: [...named, ...rest].join(", "),
    open: (database) => openAll(table, otherwise, addresses, database),
  };
}

async function openAll(
  table: readonly { readonly pattern: string; readonly url: string }[],
  otherwise: string,
  addresses: ReadonlyMap<string, BrokerAddress>,
  database: Database,
): Promise<Broker> {
  const opened = new Map<string, Broker>();
  try {
    for (const [key, { url, environment }] of addresses) {
      opened.set(key, await openBroker(url, environment, database));
    }
    const rest = opened.get(otherwise);
    if (table.length === 0 && rest !== undefined) return rest;
    const pairs = table.flatMap(({ pattern, url }) => {
      const broker = opened.get(url);
      return broker === undefined ? [] : [[pattern, broker] as const];
    });
    return routes(pairs, { otherwise: rest });
  } catch (error) {
    await Promise.allSettled([...opened.values()].map((broker) => broker.close()));
    throw error;
  }
}

function parseRoute(text: string, number: number): { readonly pattern: string; readonly url: string } {
  const [, pattern, url] = /^([^=:/]+)=(.+)$/.exec(text) ?? [];
  if (pattern !== undefined && url !== undefined) return { pattern, url };
  throw new InputError(
    `--route number ${number} is not PATTERN=URL, as in --route 'orders.*=https://example.org/hook' (a topic pattern has no = : /)`,
  );
}

/** A URL of an option, with the variables that it reads. Throws {@link InputError}. */
export function understand(option: string, text: string, environment: Environment): BrokerAddress {
  const hash = text.indexOf("#");
  const url = hash < 0 ? text : text.slice(0, hash);
  try {
    brokerKind(url);
  } catch (error) {
    if (error instanceof InputError) throw new InputError(error.message.replace(/^--broker/, option));
    throw error;
  }
  return { url, environment: hash < 0 ? environment : variablesOf(option, text.slice(hash + 1), environment) };
}

/**
 * `…#shop`: of the variables that begin with ROWPOST_ it reads only those ending in _SHOP, under
 * their usual names. No fallback: a password must not go to another broker because the right one is
 * missing.
 */
function variablesOf(option: string, name: string, environment: Environment): Environment {
  if (!/^[a-z][a-z0-9_]*$/i.test(name)) {
    throw new InputError(
      `${option}: behind # stands a name of letters, digits and _, whose variables this URL reads; a # in a password is %23`,
    );
  }
  const ending = `_${name.toUpperCase()}`;
  const own = Object.entries(environment).filter(([key]) => key.startsWith("ROWPOST_") && key.endsWith(ending));
  if (own.length === 0) {
    throw new InputError(`${option}: #${name} means variables such as ROWPOST_HTTP_SECRET${ending}, and none is set`);
  }
  const foreign = Object.entries(environment).filter(([key]) => !key.startsWith("ROWPOST_"));
  return Object.fromEntries([...foreign, ...own.map(([key, value]) => [key.slice(0, -ending.length), value] as const)]);
}
