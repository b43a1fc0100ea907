/**
 * A small shop: each order is one transaction with its row and its message. Some transactions roll
 * back on purpose.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { type Database, describeError, type Outbox, type Transaction } from "rowpost";
import { insertOrder, orderCreated, orderNumber } from "./tables.ts";

export interface ShopOptions {
  readonly database: Pick<Database, "dialect">;
  readonly outbox: Outbox;
  readonly topic: string;
  readonly run: string;
  readonly orders: number;
  readonly ratePerSecond: number | undefined;
  /** Parallel transactions. SQLite has one writer. */
  readonly workers: number;
  readonly signal: AbortSignal;
  /** Whether the order is in the table, asked after a COMMIT without an answer. */
  readonly hasOrder: (orderNo: string) => Promise<boolean>;
  readonly onTrouble: (text: string) => void;
}

export interface Shop {
  readonly committed: number;
  readonly rolledBack: number;
  /**
   * Resolves when all orders are placed, or after an abort when the open transactions have ended.
   */
  readonly done: Promise<void>;
}

/** Thrown in a transaction to roll it back, like a business rule. */
class OrderRefused extends Error {}

const CUSTOMERS = ["王芳", "李伟", "张敏", "Grace", "Edsger", "Barbara"] as const;
const ARTICLES = ["tea 茶", "paper 纸", "ink 墨", "brush 笔", "stone 砚"] as const;

export function openShop(options: ShopOptions): Shop {
  const { signal } = options;
  const beganAt = performance.now();
  let next = 0;
  let committed = 0;
  let rolledBack = 0;

  async function worker(): Promise<void> {
    while (next < options.orders && !signal.aborted) {
      const index = next;
      next += 1;
      if (options.ratePerSecond !== undefined) {
        const waitMs = beganAt + (index * 1_000) / options.ratePerSecond - performance.now();
        if (waitMs > 0) await sleep(waitMs, undefined, { signal }).catch(() => undefined);
        if (signal.aborted) return;
      }
      if (await place(options, index)) committed += 1;
      else rolledBack += 1;
    }
  }

  return {
    get committed() {
      return committed;
    },
    get rolledBack() {
      return rolledBack;
    },
    done: Promise.all(Array.from({ length: options.workers }, worker)).then(() => undefined),
  };
}

/**
 * Places one order, retrying on database errors. True: its transaction committed. After a COMMIT
 * without an answer only the table shows it.
 */
async function place(options: ShopOptions, index: number): Promise<boolean> {
  const orderNo = orderNumber(options.run, index);
  for (let attempt = 1; ; attempt += 1) {
    try {
      await options.outbox.transaction((tx) => placeIn(tx, options, orderNo, index));
      return true;
    } catch (error) {
      if (error instanceof OrderRefused) return false;
      options.onTrouble(`order ${orderNo}: ${describeError(error)}`);
      if (await options.hasOrder(orderNo).catch(() => false)) return true;
      if (attempt >= MOST_ATTEMPTS || options.signal.aborted) throw error;
      await sleep(Math.min(1_000, 20 * 2 ** attempt));
    }
  }
}

/** About a minute without a database. */
const MOST_ATTEMPTS = 60;

async function placeIn(tx: Transaction, options: ShopOptions, orderNo: string, index: number): Promise<void> {
  const customer = CUSTOMERS[index % CUSTOMERS.length];
  const amountCents = 100 + ((index * 7_919) % 100_000);
  const order = { orderNo, customer, article: ARTICLES[index % ARTICLES.length], amountCents };
  await tx.query(insertOrder(options.database.dialect), [orderNo, `customer-${index % CUSTOMERS.length}`, amountCents]);
  // Every twentieth order fails before its message is written and every twentieth after it; neither
  // may reach the consumer.
  if (index % 20 === 7) throw new OrderRefused("out of stock");
  await options.outbox.enqueue(tx, orderCreated.message({ key: orderNo, topic: options.topic, body: order }));
  if (index % 20 === 17) throw new OrderRefused("payment declined");
}
