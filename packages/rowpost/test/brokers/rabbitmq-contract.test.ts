/** The broker contract on a real RabbitMQ, through a proxy that cuts, mutes and refuses. */
import { type RabbitmqOptions, rabbitmq } from "../../src/brokers/rabbitmq/index.ts";
import { type BrokerHarness, createTcpProxy } from "../../src/testing/index.ts";
import { describeWithService } from "../services.ts";
import { bindBrokerContract } from "./bind.ts";
import { openTestQueues } from "./rabbitmq-queues.ts";

const LIMIT = 1_048_576;

describeWithService("rabbitmq", "the RabbitMQ broker", (service) => {
  async function harness(
    topics: (queues: Awaited<ReturnType<typeof openTestQueues>>) => Promise<{
      readonly topics: BrokerHarness["topics"];
      readonly options: Partial<RabbitmqOptions>;
    }>,
  ): Promise<BrokerHarness> {
    const server = new URL(service.address);
    const queues = await openTestQueues(service.address);
    const proxy = await createTcpProxy({ target: { host: server.hostname, port: Number(server.port || 5672) } });
    const proxied = new URL(service.address);
    proxied.host = `127.0.0.1:${proxy.port}`;
    const made = await topics(queues);
    const create = (options: Partial<RabbitmqOptions> = {}) =>
      rabbitmq({ url: proxied.href, maxBodyBytes: LIMIT, ...made.options, ...options });
    return {
      name: "rabbitmq",
      createBroker: () => create(),
      createUnauthorized: () => create({ password: "of-bad-news" }),
      features: { ordering: "key", reportsUnknownTopic: true, maxBodyBytes: LIMIT },
      topics: made.topics,
      consume: queues.log.consume,
      faults: proxy,
      // The system's server is not ours to stop; rabbitmq.test.ts kills one of its own.
      async restart() {
        await proxy.refuse();
        await proxy.cut();
        await proxy.accept();
      },
      async close() {
        await proxy.close();
        await queues.close();
      },
    };
  }

  bindBrokerContract("rabbitmq, a queue for each topic", () =>
    harness(async (queues) => {
      const [main, other, ordered] = [
        await queues.create("main"),
        await queues.create("other"),
        await queues.create("ordered"),
      ];
      for (const queue of [main, other, ordered]) await queues.consume(queue);
      return { topics: { main, other, ordered, unknown: queues.name("unknown") }, options: {} };
    }),
  );

  bindBrokerContract("rabbitmq, an exchange for each topic", () =>
    harness(async (queues) => {
      const created: string[] = [];
      for (const purpose of ["main", "other"]) {
        const queue = await queues.create(purpose);
        // The exchange has the queue's name, which is what the log calls the topic.
        await queues.channel.assertExchange(queue, "topic", { durable: true, autoDelete: true });
        await queues.channel.bindQueue(queue, queue, "contract.#");
        await queues.consume(queue);
        created.push(queue);
      }
      const [main = "", other = ""] = created;
      return {
        topics: { main, other, ordered: main, unknown: queues.name("unknown") },
        options: { route: ({ topic }) => ({ exchange: topic, routingKey: "contract.checked" }) },
      };
    }),
  );
});
