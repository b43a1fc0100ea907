/**
 * Kafka, through kafkajs or \@platformatic/kafka. The packages only carry requests here:
 * partitions, batches, order, and what an error means are decided in this folder, once for both.
 * See `docs/brokers/kafka.md`.
 */

import { BrokerError } from "../../runtime/errors.ts";
import type { Broker } from "../broker.ts";
import { createBroker } from "../publishing/lifecycle.ts";
import { inTurns, topicOf } from "../publishing/turns.ts";
import { createWindow } from "../publishing/window.ts";
import type { Failure } from "./failures.ts";
import { failureOfQuestion } from "./failures.ts";
import { loadDriver } from "./load.ts";
import { type KafkaOptions, type Settings, settingsFrom } from "./options.ts";
import { publishBatch } from "./publish.ts";
import { createSessions, isFailure } from "./sessions.ts";
import { createTopics } from "./topics.ts";
import { kafkaOptionsFromUrl } from "./url.ts";

export type { TlsOptions as KafkaTlsOptions } from "../settings/tls-options.ts";
export type { KafkaClient, KafkajsClient, PlatformaticClient } from "./given-client.ts";
export type { KafkaOptions, KafkaSaslOptions } from "./options.ts";
export { kafkaOptionsFromUrl } from "./url.ts";

/**
 * A broker that publishes to Kafka. Opens nothing until the first `publish` or `check`. Throws
 * `ConfigurationError` for wrong options, and for a client that could lose messages. The receipt of
 * a message (`message_id`) is `topic-partition@offset`.
 */
export function kafka(options: KafkaOptions): Broker {
  const settings = settingsFrom(options);
  const stop = new AbortController();
  const sessions = createSessions({ load: () => loadDriver(settings), ...settings });
  const topics = createTopics({
    now: () => performance.now(),
    async describe(topic) {
      const session = await sessions.get(stop.signal);
      if (session === undefined) return failureOfQuestion({ kind: "unreachable", code: "CONNECT_TIMEOUT", text: "" });
      return isFailure(session) ? session : await session.describe(topic);
    },
  });
  const publishing = { sessions, topics, window: createWindow() };

  return createBroker({
    name: "kafka",
    title: "Kafka",
    target: settings.brokers.length === 0 ? undefined : [...settings.brokers].sort().join(","),
    features: () => ({ ordering: "key", reportsUnknownTopic: true, maxBodyBytes: undefined }),
    publish: (batch, scope) => inTurns(batch, scope, topicOf, (messages) => publishBatch(publishing, messages, scope)),
    async check() {
      const session = await sessions.get(stop.signal);
      const failure = session === undefined || isFailure(session) ? session : await session.check(stop.signal);
      if (failure !== undefined) throw cannotBeUsed(settings, failure);
    },
    async close() {
      stop.abort();
      await sessions.close();
    },
  });
}

/** The broker of `kafka://host1:9092,host2:9092?tls=true`; see {@link kafkaOptionsFromUrl}. */
export function kafkaFromUrl(url: string, env: Readonly<Record<string, string | undefined>> = process.env): Broker {
  return kafka(kafkaOptionsFromUrl(url, env));
}

function cannotBeUsed({ brokers, tls }: Settings, { code, reason, scope }: Failure): BrokerError {
  const where = brokers.length === 0 ? "Kafka, through the given client," : `Kafka at ${brokers.join(", ")}`;
  const tlsAdvice =
    tls === undefined
      ? "a listener that takes TLS only needs the tls option"
      : "does it speak TLS, with a certificate that tls.ca trusts?";
  const advice = ADVISED.includes(code)
    ? ""
    : `. Is it running, is this a client port (9092 by default; not 9093, a controller), and can the addresses in its advertised.listeners be reached from here? And ${tlsAdvice}`;
  return new BrokerError(code, `${where} cannot be used: ${code}: ${reason}${advice}`, {
    retriable: scope !== "message" && !ADVISED.includes(code),
  });
}

/** Failures that carry their own advice and last until someone follows it. */
const ADVISED: readonly string[] = ["UNAUTHORIZED", "MISSING_PEER", "CONFIGURATION"];
