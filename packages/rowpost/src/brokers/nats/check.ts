import { BrokerError } from "../../runtime/errors.ts";
import type { PublishFailed } from "../broker.ts";
import type { Keeper } from "../publishing/keeper.ts";
import { failureOfError, type JetStreamError } from "./failures.ts";
import type { Link } from "./link.ts";
import type { Settings } from "./options.ts";

const ASK_TIMEOUT_MS = 5000;

/** Asks JetStream, and for the stream that the option names. Throws {@link BrokerError}. */
export async function checkServer(links: Keeper<Link>, settings: Settings): Promise<void> {
  const link = await links.get();
  if ("scope" in link) throw unusable(link, settings);
  if (settings.onlyStream === undefined) await checkJetStream(link, settings);
  else await checkStream(link, settings.onlyStream, settings);
}

async function checkJetStream(link: Link, settings: Settings): Promise<void> {
  const answer = await link.ask(`${settings.apiPrefix}.INFO`, {}, ASK_TIMEOUT_MS);
  if (answer.kind === "nobody") throw notEnabled(settings);
  if (answer.kind === "silence") throw noAnswer(settings);
  if (answer.kind === "answer") refuseError((answer.body as Answer | undefined)?.error, settings);
}

async function checkStream(link: Link, name: string, settings: Settings): Promise<void> {
  const answer = await link.ask(`${settings.apiPrefix}.STREAM.INFO.${name}`, {}, ASK_TIMEOUT_MS);
  if (answer.kind === "nobody") throw notEnabled(settings);
  if (answer.kind === "silence") throw noAnswer(settings);
  if (answer.kind === "denied") return;
  const { error, config } = (answer.body ?? {}) as Answer;
  if (error?.err_code === STREAM_NOT_FOUND) {
    throw new BrokerError(
      "STREAM_NOT_FOUND",
      `NATS at ${where(settings)} has no stream ${name}, which the option stream names; create it: nats stream add ${name} --storage file`,
    );
  }
  refuseError(error, settings);
  refuseConfig(name, config ?? {}, settings);
}

const STREAM_NOT_FOUND = 10059;

interface Answer {
  readonly error?: JetStreamError | null | undefined;
  readonly config?: StreamConfig | undefined;
}

interface StreamConfig {
  readonly no_ack?: boolean | undefined;
  readonly sealed?: boolean | undefined;
  readonly storage?: string | undefined;
}

/** Without acknowledgments nothing is proven; a memory stream loses messages it acknowledged. */
function refuseConfig(name: string, { no_ack: noAck, sealed, storage }: StreamConfig, settings: Settings): void {
  if (noAck === true) {
    throw new BrokerError(
      "STREAM_WITHOUT_RECEIPTS",
      `the stream ${name} is made with no_ack and sends no receipts, so that no message could ever be called sent: nats stream edit ${name} --ack`,
    );
  }
  if (sealed === true) throw new BrokerError("STREAM_SEALED", `the stream ${name} is sealed and takes no messages`);
  if (storage === "memory") {
    settings.onWarning(
      `the NATS stream ${name} is kept in memory: what it acknowledged is lost when its servers stop. Make it with file storage.`,
    );
  }
}

function refuseError(error: JetStreamError | null | undefined, settings: Settings): void {
  if (error === undefined || error === null) return;
  const { code, reason, scope } = failureOfError(error);
  throw new BrokerError(code, `NATS at ${where(settings)} cannot be used: ${code}: ${reason}`, {
    retriable: scope !== "message",
  });
}

function notEnabled(settings: Settings): BrokerError {
  return new BrokerError(
    "JETSTREAM_NOT_ENABLED",
    `NATS at ${where(settings)} has no JetStream for this account; start nats-server with -js, or enable JetStream for the account`,
    { retriable: true },
  );
}

function noAnswer(settings: Settings): BrokerError {
  return new BrokerError(
    "JETSTREAM_AWAY",
    `NATS at ${where(settings)} is there, and JetStream does not answer; its cluster may have no leader`,
    { retriable: true },
  );
}

function unusable({ code, reason }: PublishFailed, settings: Settings): BrokerError {
  const text = `NATS at ${where(settings)} cannot be used: ${code}: ${reason}. ${adviceFor(code, settings)}`;
  return new BrokerError(code, text, { retriable: !LASTING.has(code) });
}

const LASTING: ReadonlySet<string> = new Set(["UNAUTHORIZED", "PERMISSION_DENIED", "MISSING_PEER"]);

function adviceFor(code: string, { tls, connection }: Settings): string {
  if (connection !== undefined) return "Look at the connection that was handed in.";
  if (code === "MISSING_PEER") return "Install it.";
  if (code === "UNAUTHORIZED") {
    return "Check user and password, token, nkeySeed or credentials (ROWPOST_NATS_USER, ROWPOST_NATS_PASSWORD, ROWPOST_NATS_TOKEN).";
  }
  const port =
    "Is nats-server running, and is this its client port (4222 by default; not 8222, the monitoring, nor 6222, the cluster)?";
  return tls === undefined ? port : `${port} Does it speak TLS, with a certificate that tls.ca trusts?`;
}

function where({ servers }: Settings): string {
  return servers.length === 0 ? "the given connection" : servers.map(({ host, port }) => `${host}:${port}`).join(", ");
}
