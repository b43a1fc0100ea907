/** `@OnMessage` methods: what they get, how consumers start and end, and what does not start. */
import "reflect-metadata";
import type { IncomingMessage } from "node:http";
import { connect, type NatsConnection } from "@nats-io/transport-node";
import {
  Controller,
  type INestApplication,
  Injectable,
  type LoggerService,
  Module,
  Post,
  type Provider,
  type RawBodyRequest,
  Req,
  Res,
  Scope,
  type Type,
} from "@nestjs/common";
import { NestFactory } from "@nestjs/core";
import { type Database, memory } from "rowpost";
import {
  consumeNats,
  consumeWebhooks,
  type DeliveredMessage,
  type NatsConsumeOptions,
  type Webhooks,
} from "rowpost/consume";
import { http } from "rowpost/http";
import { createInbox } from "rowpost/inbox";
import { mysql } from "rowpost/mysql";
import { nats } from "rowpost/nats";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from "vitest";
import { noDeadline, outgoing } from "../../rowpost/test/brokers/messages.ts";
import { uniqueName } from "../../rowpost/test/brokers/nats-server.ts";
import { gate } from "../../rowpost/test/queue/members.ts";
import { createRelayDatabase, type RelayTestDatabase } from "../../rowpost/test/relay/bench-database.ts";
import { describeWithService } from "../../rowpost/test/services.ts";
import {
  type MessageContext,
  OnMessage,
  RowpostConsumers,
  RowpostModule,
  type RowpostOptions,
  type StartConsumer,
} from "../src/index.ts";

/** Of Express, as far as it is called. */
interface Answer {
  status(code: number): this;
  set(headers: object): this;
  send(body: unknown): this;
}

/** As `@OnMessage(type, options)` above a method does. */
function onMessage(type: string, target: Type, method: string, options?: { readonly consumer: string }): void {
  const descriptor = Object.getOwnPropertyDescriptor(target.prototype, method);
  OnMessage(type, options)(target.prototype as object, method, descriptor as PropertyDescriptor);
}

describeWithService("mariadb", "@OnMessage", (service) => {
  describeWithService("nats", "with a consumer of NATS", ({ address }) => {
    let tables: RelayTestDatabase;
    let connection: NatsConnection;
    let topic: string;
    let app: INestApplication | undefined;
    const servers = new URL(address).host;
    const broker = nats({ servers });
    const open = (): Database => mysql({ url: tables.url.replace(/^mariadb:/, "mysql:") });

    /** Asks JetStream. */
    async function ask(what: string, request: object = {}): Promise<Readonly<Record<string, unknown>>> {
      const answer = (await connection.request(`$JS.API.${what}`, JSON.stringify(request))).json();
      expect(answer).not.toHaveProperty("error");
      return answer as Readonly<Record<string, unknown>>;
    }

    beforeAll(async () => {
      tables = await createRelayDatabase(service.name);
      await createInbox({ database: tables.connect() }).migrate();
      await tables.sql("CREATE TABLE points (message VARCHAR(64) NOT NULL)");
      connection = await connect({ servers });
    });
    afterAll(async () => {
      await broker.close();
      await connection.close();
      await tables.drop();
    });
    beforeEach(async () => {
      topic = uniqueName("nest");
      await ask(`STREAM.CREATE.${topic}`, { name: topic, subjects: [topic], num_replicas: 1 });
      const config = { durable_name: "points", ack_policy: "explicit", deliver_policy: "all", max_deliver: -1 };
      await ask(`CONSUMER.DURABLE.CREATE.${topic}.points`, { stream_name: topic, config });
      await tables.sql("DELETE FROM points");
      await tables.sql("DELETE FROM message_inbox");
    });
    afterEach(async () => {
      await app?.close();
      app = undefined;
      await ask(`STREAM.DELETE.${topic}`);
    });

    const reading =
      (more: Partial<NatsConsumeOptions<unknown>> = {}): StartConsumer =>
      (parts) =>
        consumeNats({ ...parts, connect: () => connect({ servers }), stream: topic, durable: "points", ...more });

    async function create(
      options: Omit<RowpostOptions, "database"> & { readonly database?: Database },
      parts: { readonly providers?: Provider[]; readonly controllers?: Type[] },
      logger: LoggerService | false = false,
    ): Promise<INestApplication> {
      class AppModule {}
      Module({ imports: [RowpostModule.forRoot({ database: open(), ...options })], ...parts })(AppModule);
      app = await NestFactory.create(AppModule, { logger, rawBody: true, abortOnError: false });
      return app;
    }

    async function publish(...messages: readonly (readonly [type: string, key: string])[]): Promise<void> {
      const sent = await broker.publish(
        messages.map(([type, key]) => outgoing(key, { type, topic, orderingKey: "one" })),
        noDeadline(),
      );
      expect(sent.map(({ status }) => status)).toEqual(messages.map(() => "sent"));
    }

    const points = async (): Promise<unknown[]> =>
      (await tables.sql("SELECT message FROM points ORDER BY message")).map((row) => row["message"]);

    /** A provider that writes what it gets in the transaction that it gets. */
    function pointsProvider() {
      class Points {
        readonly calls: string[] = [];
        async give({ key, type }: DeliveredMessage, { tx }: MessageContext): Promise<void> {
          this.calls.push(`${type} ${key}`);
          await tx.query("INSERT INTO points (message) VALUES (?)", [`${type} ${key}`]);
        }
      }
      return Points;
    }

    test("methods of providers and controllers get the messages of their types, each once", async () => {
      const Points = pointsProvider();
      onMessage("order.paid", Points, "give");
      onMessage("order.refunded", Points, "give");
      class Others extends pointsProvider() {}
      onMessage("*", Others, "give");
      Controller()(Others);
      await publish(["order.paid", "1"], ["order.paid", "1"], ["order.refunded", "2"], ["order.sent", "3"]);
      const made = await create({ consumers: { points: reading() } }, { providers: [Points], controllers: [Others] });
      await made.init();
      await expect.poll(points).toEqual(["order.paid 1", "order.refunded 2", "order.sent 3"]);
      expect(made.get(Points).calls).toEqual(["order.paid 1", "order.refunded 2"]);
      expect(made.get(Others).calls).toEqual(["order.sent 3"]);
    });

    test("a method that a subclass overrides is called in its place, and counts once", async () => {
      class Base extends pointsProvider() {}
      onMessage("order.paid", Base, "give");
      class Points extends Base {
        override async give(message: DeliveredMessage, context: MessageContext): Promise<void> {
          await super.give({ ...message, key: `${message.key}!` }, context);
        }
      }
      const alias: Provider = { provide: "alias", useExisting: Points };
      await publish(["order.paid", "1"]);
      await (await create({ consumers: { points: reading() } }, { providers: [Points, alias] })).init();
      await expect.poll(points).toEqual(["order.paid 1!"]);
    });

    test("one of a type that no method takes is given up, and says so", async () => {
      const Points = pointsProvider();
      onMessage("order.paid", Points, "give");
      const parked: unknown[] = [];
      const start = reading({ unhandled: (_raw, error) => parked.push(error) });
      await publish(["order.sent", "3"], ["order.paid", "1"]);
      await (await create({ consumers: { points: start } }, { providers: [Points] })).init();
      await expect.poll(points).toEqual(["order.paid 1"]);
      expect(parked).toMatchObject([{ code: "INVALID_MESSAGE" }]);
      expect(String(parked[0])).toMatch(/no @OnMessage of the consumer points takes the type order\.sent/);
    });

    test("the shutdown waits for the method that runs, and pools close behind it", async () => {
      const steps: string[] = [];
      const [begun, held] = [gate(), gate()];
      class Points {
        async give(_message: DeliveredMessage, { tx }: MessageContext): Promise<void> {
          begun.open();
          await held.opened;
          await tx.query("INSERT INTO points (message) VALUES ('late')");
          steps.push("handled");
        }
        onApplicationShutdown(): void {
          steps.push("pools close");
        }
      }
      onMessage("order.paid", Points, "give");
      await publish(["order.paid", "1"]);
      const made = await create({ consumers: { points: reading() } }, { providers: [Points] });
      await made.init();
      await begun.opened;
      const closing = made.close();
      held.open();
      await closing;
      expect(steps).toEqual(["handled", "pools close"]);
      expect(await points()).toEqual(["late"]);
      expect(await ask(`CONSUMER.INFO.${topic}.points`)).toMatchObject({ num_pending: 0, num_ack_pending: 0 });
    });

    test("one that is being started at the shutdown is closed, and no other one begins", async () => {
      const Points = pointsProvider();
      for (const consumer of ["points", "mails"]) onMessage("order.paid", Points, "give", { consumer });
      const [begun, held] = [gate(), gate()];
      const close = vi.fn(async () => undefined);
      const points: StartConsumer = async () => {
        begun.open();
        await held.opened;
        return { close };
      };
      const mails = vi.fn<StartConsumer>();
      const database = open();
      const closed = vi.spyOn(database, "close");
      const relayBroker = memory();
      // The relay stops beside the consumers.
      vi.spyOn(relayBroker, "close").mockImplementation(async () => held.open());
      const options = { database, consumers: { points, mails }, relay: { broker: relayBroker } };
      const made = await create(options, { providers: [Points] });
      const starting = made.init();
      await begun.opened;
      await Promise.all([starting, made.close()]);
      expect([close.mock.calls.length, mails.mock.calls.length, closed.mock.calls.length]).toEqual([1, 0, 1]);
      expect(close.mock.invocationCallOrder[0]).toBeLessThan(closed.mock.invocationCallOrder[0] ?? 0);
      app = undefined;
    });

    test("a running consumer is there by its name, and one that is switched off is not", async () => {
      const Points = pointsProvider();
      onMessage("order.paid", Points, "give", { consumer: "points" });
      onMessage("order.paid", Points, "give", { consumer: "mails" });
      const running = { close: async () => undefined };
      const made = await create({ consumers: { points: () => running, mails: false } }, { providers: [Points] });
      await made.init();
      const consumers = made.get(RowpostConsumers);
      expect(consumers.get("points")).toBe(running);
      expect(() => consumers.get("mails")).toThrow("the consumer mails does not run");
    });

    test("webhooks are received by a controller, from the bytes as they came", async () => {
      const Points = pointsProvider();
      onMessage("order.paid", Points, "give");
      const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
      class Hooks {
        readonly #consumers: RowpostConsumers;
        constructor(consumers: RowpostConsumers) {
          this.#consumers = consumers;
        }
        async receive({ headers, rawBody }: RawBodyRequest<IncomingMessage>, response: Answer): Promise<void> {
          const answer = await this.#consumers.get<Webhooks>("hooks").receive({ headers, body: rawBody });
          response.status(answer.status).set(answer.headers).send(answer.body);
        }
      }
      Reflect.defineMetadata("design:paramtypes", [RowpostConsumers], Hooks);
      const descriptor = Object.getOwnPropertyDescriptor(Hooks.prototype, "receive") as PropertyDescriptor;
      Post()(Hooks.prototype, "receive", descriptor);
      Req()(Hooks.prototype, "receive", 0);
      Res()(Hooks.prototype, "receive", 1);
      Controller("hooks")(Hooks);
      const hooks: StartConsumer = (parts) => consumeWebhooks({ ...parts, secret });
      const made = await create({ consumers: { hooks } }, { providers: [Points], controllers: [Hooks] });
      await made.listen(0, "127.0.0.1");
      const sender = http({ url: `${await made.getUrl()}/hooks`, secret });
      const paid = outgoing("7", { type: "order.paid" });
      // The second time for the inbox.
      for (const message of [paid, paid]) {
        expect(await sender.publish([message], noDeadline())).toMatchObject([{ status: "sent" }]);
      }
      expect(await sender.publish([outgoing("8")], noDeadline())).toMatchObject([{ status: "failed" }]);
      await sender.close();
      expect(await points()).toEqual(["order.paid 7"]);
    });

    describe("does not start", () => {
      const idle: StartConsumer = () => ({ close: async () => undefined });

      async function refusal(
        consumers: RowpostOptions["consumers"],
        providers: Provider[],
        more: Partial<RowpostOptions> = {},
      ): Promise<unknown> {
        const database = open();
        const closed = vi.spyOn(database, "close");
        const made = await create({ ...more, database, consumers }, { providers });
        const error = await made.init().catch((reason: unknown) => reason);
        expect(closed).toHaveBeenCalledTimes(1);
        app = undefined;
        return error;
      }

      const refused = (message: RegExp) =>
        expect.objectContaining({ code: "CONFIGURATION", message: expect.stringMatching(message) });

      test("a consumer without a method", async () => {
        expect(await refusal({ points: idle }, [])).toEqual(refused(/^the consumer points has no method/));
      });

      test("two methods for one type, and a class that is provided twice", async () => {
        const [One, Other] = [pointsProvider(), pointsProvider()];
        for (const each of [One, Other]) onMessage("order.paid", each, "give");
        const both = /^the type order\.paid of the consumer points is taken by Points\.give twice/;
        expect(await refusal({ points: idle }, [One, Other])).toEqual(refused(both));
        expect(await refusal({ points: idle }, [One, { provide: "again", useClass: One }])).toEqual(refused(both));
      });

      test("a provider of a request, and one that is transient", async () => {
        for (const scope of [Scope.REQUEST, Scope.TRANSIENT]) {
          const Points = pointsProvider();
          Injectable({ scope })(Points);
          onMessage("order.paid", Points, "give");
          expect(await refusal({ points: idle }, [Points])).toEqual(
            refused(/^Points has an @OnMessage and is no singleton/),
          );
        }
      });

      test("a method without a consumer, and one that does not say which of several", async () => {
        const Points = pointsProvider();
        onMessage("order.paid", Points, "give", { consumer: "mails" });
        const missing =
          /^Points\.give takes messages of the type order\.paid and there is no consumer mails; there is points/;
        expect(await refusal({ points: idle }, [Points])).toEqual(refused(missing));
        expect(await refusal(undefined, [Points])).toEqual(refused(/there is no consumer mails; there is none/));
        const Unsaid = pointsProvider();
        onMessage("order.paid", Unsaid, "give");
        expect(await refusal(undefined, [Unsaid])).toEqual(refused(/order\.paid and there is none: add it/));
        expect(await refusal({ points: idle, mails: false }, [Unsaid])).toEqual(
          refused(/^Points\.give says no consumer and there are several/),
        );
      });

      test("one that cannot be started: the relay and the others end with it", async () => {
        const Points = pointsProvider();
        for (const consumer of ["points", "mails"]) onMessage("order.paid", Points, "give", { consumer });
        const close = vi.fn(async () => undefined);
        const relayBroker = memory();
        const brokerClose = vi.spyOn(relayBroker, "close");
        const fault = new Error("nobody there");
        const consumers = { points: () => ({ close }), mails: () => Promise.reject(fault) };
        expect(await refusal(consumers, [Points], { relay: { broker: relayBroker } })).toBe(fault);
        expect(close).toHaveBeenCalledTimes(1);
        expect(brokerClose).toHaveBeenCalledTimes(1);
      });

      test("a consumer whose inbox has no table", async () => {
        const Points = pointsProvider();
        onMessage("order.paid", Points, "give");
        const inbox = { table: "not_there" };
        expect(await refusal({ points: idle }, [Points], { inbox })).toMatchObject({
          code: "SCHEMA",
          message: expect.stringContaining("inbox.migrate()"),
        });
      });
    });
  });
});
