import { type DynamicModule, Logger, Module } from "@nestjs/common";
import { DiscoveryModule, DiscoveryService } from "@nestjs/core";
import { createOutbox, createRelay, type Outbox, type Relay, silentLogger } from "rowpost";
import { ConsumerHost, type RowpostConsumers } from "./consumer-host.ts";
import { RowpostHealthIndicator } from "./health.ts";
import { fromNestLogger } from "./logger.ts";
import type { RowpostAsyncOptions, RowpostOptions } from "./options.ts";
import { RelayHost } from "./relay-host.ts";
import { getConsumersToken, getHealthToken, getOutboxToken, getRelayToken } from "./tokens.ts";

const OPTIONS = Symbol("rowpost options");

/**
 * Makes `Outbox`, `Relay`, `RowpostConsumers` and `RowpostHealthIndicator` injectable everywhere in
 * the application, and starts and stops the relay and the consumers with it.
 *
 *     RowpostModule.forRootAsync({
 *       inject: [ConfigService],
 *       useFactory: (config: ConfigService) => ({
 *         database: mysql({ url: config.getOrThrow("DATABASE_URL") }),
 *         relay: { broker: rocketmq({ endpoints: config.getOrThrow("ROCKETMQ") }) },
 *       }),
 *     })
 */
@Module({})
export class RowpostModule {
  /**
   * Static options. `name` distinguishes several outboxes of one application. Errors of
   * `createOutbox` and `createRelay` are thrown when the application is created.
   */
  static forRoot({ name, ...options }: RowpostOptions & Pick<RowpostAsyncOptions, "name">): DynamicModule {
    return RowpostModule.forRootAsync({ name, useFactory: () => options });
  }

  /** Options from a factory with injected dependencies. */
  static forRootAsync({ name, imports = [], inject = [], useFactory }: RowpostAsyncOptions): DynamicModule {
    const outbox = getOutboxToken(name);
    const relay = getRelayToken(name);
    const health = getHealthToken(name);
    const consumers = getConsumersToken(name);
    return {
      module: RowpostModule,
      global: true,
      imports: [DiscoveryModule, ...imports],
      providers: [
        { provide: OPTIONS, inject, useFactory },
        { provide: outbox, inject: [OPTIONS], useFactory: outboxOf },
        { provide: relay, inject: [OPTIONS], useFactory: relayOf },
        { provide: ConsumerHost, inject: [OPTIONS, DiscoveryService], useFactory: consumerHostOf },
        {
          provide: consumers,
          inject: [ConsumerHost],
          useFactory: ({ consumers: made }: ConsumerHost): RowpostConsumers => made,
        },
        { provide: RelayHost, inject: [OPTIONS, relay, ConsumerHost], useFactory: hostOf },
        { provide: health, inject: [RelayHost, relay], useFactory: healthOf },
      ],
      exports: [outbox, relay, health, consumers],
    };
  }
}

const logger = fromNestLogger(new Logger("Rowpost"));

function outboxOf({ database, layout, createdBy, limits, onDuplicate }: RowpostOptions): Outbox {
  return createOutbox({ database, layout, createdBy, limits, onDuplicate });
}

function relayOf({ database, layout, relay }: RowpostOptions): Relay | undefined {
  return relay && createRelay({ logger, ...relay, database, layout });
}

function consumerHostOf(options: RowpostOptions, discovery: DiscoveryService): ConsumerHost {
  return new ConsumerHost(options, discovery, logger);
}

function hostOf(options: RowpostOptions, relay: Relay | undefined, consumers: ConsumerHost): RelayHost {
  const chosen = options.relay?.logger ?? logger;
  return new RelayHost(options, relay, consumers, chosen === "silent" ? silentLogger : chosen);
}

function healthOf(host: RelayHost, relay: Relay | undefined): RowpostHealthIndicator {
  return new RowpostHealthIndicator(host, relay);
}
