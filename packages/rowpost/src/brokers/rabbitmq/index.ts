import { BrokerError, describeError } from "../../runtime/errors.ts";
import type { Broker } from "../broker.ts";
import { createBroker } from "../publishing/lifecycle.ts";
import { createWindow } from "../publishing/window.ts";
import { targetOf } from "../settings/server-address.ts";
import type { RabbitmqConnection } from "./amqp.ts";
import { createChannels } from "./channels.ts";
import { createConnection } from "./connection.ts";
import { blockedBy, saidBy } from "./failures.ts";
import { type RabbitmqOptions, settingsFrom } from "./options.ts";
import { type Publishing, publishBatch } from "./publish.ts";
import { rabbitmqOptionsFromUrl } from "./url.ts";

export type { TlsOptions as RabbitmqTlsOptions } from "../settings/tls-options.ts";
export type { RabbitmqConnection } from "./amqp.ts";
export type { RabbitmqOptions, RabbitmqRoute } from "./options.ts";
export { rabbitmqOptionsFromUrl } from "./url.ts";

/**
 * A broker that publishes to RabbitMQ. Connects at the first `publish` or `check`. Throws
 * `ConfigurationError` for invalid options. The receipt (`message_id`) is `exchange/routing
 * key#channel-number`, with the number that RabbitMQ confirmed.
 */
export function rabbitmq(given: RabbitmqOptions | RabbitmqConnection): Broker {
  const options = isConnection(given) ? { connection: given } : given;
  const settings = settingsFrom(options);
  const calls: Publishing["calls"] = new Set();
  const connection = createConnection(settings, (reason) => {
    for (const call of calls) call.breakOff(blockedBy(reason));
  });
  const channels = createChannels(connection);
  const publishing: Publishing = {
    channels,
    window: createWindow({ loads: settings.maxInFlight }),
    route: settings.route,
    maxBodyBytes: settings.maxBodyBytes,
    calls,
  };

  return createBroker({
    name: "rabbitmq",
    title: "RabbitMQ",
    target: targetOf(settings.servers, `/${settings.servers[0]?.vhost ?? ""}`),
    features: () => ({ ordering: "key", reportsUnknownTopic: true, maxBodyBytes: settings.maxBodyBytes }),
    publish: (batch, scope) => publishBatch(publishing, batch, scope),
    async check() {
      const link = await connection.open();
      if ("status" in link) {
        throw new BrokerError(link.code, `RabbitMQ cannot be used: ${link.reason}`, {
          retriable: !LASTING.has(link.code),
        });
      }
      if (link.blocked !== undefined) {
        const { code, reason } = blockedBy(link.blocked);
        throw new BrokerError(code, reason, { retriable: true });
      }
      try {
        const channel = await link.openChannel();
        // Without a listener the client would end the process.
        channel.on("error", () => undefined);
        if (settings.exchange !== undefined) await channel.checkExchange(settings.exchange);
        await channel.close();
      } catch (error) {
        const { code, reason } = saidBy(error);
        const advice = code === "NOT_FOUND" ? "; declare it, or correct the option exchange" : "";
        throw new BrokerError(code, `RabbitMQ at ${link.label} cannot be used: ${reason}${advice}`, {
          retriable: !LASTING.has(code),
          cause: describeError(error),
        });
      }
    },
    async close() {
      await channels.close();
      await connection.close();
    },
  });
}

function isConnection(given: RabbitmqOptions | RabbitmqConnection): given is RabbitmqConnection {
  return typeof given === "object" && given !== null && "createConfirmChannel" in given;
}

const LASTING: ReadonlySet<string> = new Set(["MISSING_PEER", "ACCESS_REFUSED"]);

/** The broker of `amqp://host1,host2/vhost?exchange=shop`; see {@link rabbitmqOptionsFromUrl}. */
export function rabbitmqFromUrl(
  url: string,
  environment: Readonly<Record<string, string | undefined>> = process.env,
): Broker {
  return rabbitmq(rabbitmqOptionsFromUrl(url, environment));
}
