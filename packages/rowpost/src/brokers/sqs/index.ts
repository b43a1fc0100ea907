/** Amazon SQS through the AWS SDK. See `docs/brokers/sqs.md` for what goes where in a message. */
import { BrokerError } from "../../runtime/errors.ts";
import type { Broker } from "../broker.ts";
import { unusableFailure } from "../publishing/failures.ts";
import { createBroker } from "../publishing/lifecycle.ts";
import { failBatch } from "../publishing/results.ts";
import { createWindow } from "../publishing/window.ts";
import { loadSqs } from "./client.ts";
import { failureOf } from "./failures.ts";
import { type SqsOptions, settingsFrom, sqsOptionsFromUrl } from "./options.ts";
import { type Publishing, publishBatch } from "./publish.ts";
import { createQueues } from "./queues.ts";

export { decodeSqsMessage, type SqsMessage } from "./carry.ts";
export { type SqsCredentials, type SqsOptions, sqsOptionsFromUrl } from "./options.ts";

/**
 * A broker that publishes to SQS queues. Opens nothing until the first `publish` or `check`. Throws
 * `ConfigurationError` for wrong options. The receipt of a message (`message_id`) is its MessageId.
 */
export function sqs(options: SqsOptions): Broker {
  const settings = settingsFrom(options);
  const { maxInFlight } = settings;
  const window = createWindow({ loads: maxInFlight });
  const ending = new AbortController();
  let opening: Promise<Publishing> | undefined;

  async function open(): Promise<Publishing> {
    const module = await loadSqs();
    const { connectTimeoutMs, timeoutMs, place } = settings;
    const requestHandler = {
      connectionTimeout: connectTimeoutMs,
      requestTimeout: timeoutMs,
      throwOnRequestTimeout: true,
      // As many as the windows of all topics together let out; those above wait inside of the SDK.
      httpAgent: { keepAlive: true, maxSockets: 2 * maxInFlight + 2 },
      httpsAgent: { keepAlive: true, maxSockets: 2 * maxInFlight + 2 },
    };
    const client =
      settings.client ??
      // Retries are the relay's. A queue's URL names it, and not where it is reached.
      new module.SQSClient({ ...place, maxAttempts: 1, useQueueUrlAsEndpoint: false, requestHandler });
    return { settings, window, module, client, queues: createQueues(module, client, settings, ending.signal) };
  }

  async function opened(): Promise<Publishing> {
    opening ??= open();
    try {
      return await opening;
    } catch (error) {
      opening = undefined;
      throw error;
    }
  }

  return createBroker({
    name: "sqs",
    title: "SQS",
    target: settings.client === undefined ? settings.label : undefined,
    // SQS counts attributes with the body, so that no limit is the body's alone.
    features: () => ({ ordering: "key", reportsUnknownTopic: true, maxBodyBytes: undefined }),
    async publish(batch, scope) {
      try {
        return await publishBatch(await opened(), batch, scope);
      } catch (error) {
        if (opening === undefined) return failBatch(batch, unusableFailure(error));
        throw error;
      }
    },
    async check() {
      const { module, client } = await opened();
      try {
        await client.send(new module.ListQueuesCommand({ MaxResults: 1 }), { abortSignal: ending.signal });
      } catch (error) {
        const { code, reason, scope } = failureOf(error, settings.label);
        // Who may not list queues may publish all the same.
        if (scope === "destination") return;
        const text = `SQS cannot be used: ${code}: ${reason}. Are region and endpoint right?`;
        throw new BrokerError(code, text, { retriable: true });
      }
    },
    async close() {
      ending.abort();
      const publishing = await opening?.catch(() => undefined);
      if (settings.client === undefined) publishing?.client.destroy();
    },
  });
}

/** The broker of `sqs://eu-central-1`; see {@link sqsOptionsFromUrl}. */
export function sqsFromUrl(url: string): Broker {
  return sqs(sqsOptionsFromUrl(url));
}
