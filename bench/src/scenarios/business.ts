/**
 * The business side of the scenarios: an order table, an order row, and a message body of the size
 * that the figures are defined for.
 */
import type { NewMessage } from "rowpost";
import { keyOf } from "../relay/messages.ts";
import { type BenchDatabase, BODY_BYTES } from "../servers/server.ts";

export interface OrderBody {
  readonly orderId: number;
  readonly note: string;
}

export async function createOrderTable(database: BenchDatabase): Promise<void> {
  const id = {
    mysql: "id BIGINT AUTO_INCREMENT PRIMARY KEY",
    mariadb: "id BIGINT AUTO_INCREMENT PRIMARY KEY",
    postgres: "id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY",
    sqlite: "id INTEGER PRIMARY KEY AUTOINCREMENT",
  }[database.product];
  await database.script(
    `CREATE TABLE bench_order (${id}, customer VARCHAR(32) NOT NULL, total DECIMAL(12, 2) NOT NULL)`,
  );
}

/** INSERT of one order, in the placeholder style of the database. */
export function insertOrder(database: BenchDatabase): string {
  return `INSERT INTO bench_order (customer, total) VALUES (${database.placeholder(1)}, ${database.placeholder(2)})`;
}

export function orderValues(number: number): readonly [string, number] {
  return [`customer-${number % 1000}`, 12.5 + (number % 100)];
}

/** A body whose JSON has exactly {@link BODY_BYTES} bytes. */
function orderBody(number: number): OrderBody {
  const short: OrderBody = { orderId: number, note: "" };
  return { orderId: number, note: "x".repeat(BODY_BYTES - JSON.stringify(short).length) };
}

export function orderMessage(number: number): NewMessage<OrderBody> {
  return { type: "order.created", key: keyOf(number), topic: "orders", body: orderBody(number) };
}
