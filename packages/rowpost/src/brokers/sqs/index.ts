/** Amazon SQS through the AWS SDK. `docs/brokers/sqs.md` lists the fields of a message. */
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
 * A broker that publishes to SQS queues. Connects at the first `publish` or `check`. Throws
 * `ConfigurationError` for invalid options. The receipt (`message_id`) is the MessageId.
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
      // As many as all windows together allow; more would wait inside the SDK.
      httpAgent: { keepAlive: true, maxSockets: 2 * maxInFlight + 2 },
      httpsAgent: { keepAlive: true, maxSockets: 2 * maxInFlight + 2 },
    };
    const client =
      settings.client ??
      // Retries are up to the relay. A queue's URL identifies it, but need not be its network
      // address.
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
    // SQS counts attributes with the body, so there is no limit of the body alone.
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
        // A user without permission to list queues may still publish.
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
