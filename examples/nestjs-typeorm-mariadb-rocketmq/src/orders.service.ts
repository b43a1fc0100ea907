import { ConflictException, Injectable } from "@nestjs/common";
import { Outbox } from "rowpost-nestjs";
import { DataSource } from "typeorm";
import { Order } from "./order.entity";
import { TOPIC } from "./settings";

const LIMIT = 1000;

@Injectable()
export class OrdersService {
  constructor(
    private readonly dataSource: DataSource,
    private readonly outbox: Outbox,
  ) {}

  /** The order and the message about it: both, or neither. */
  async place(order: Order): Promise<void> {
    await this.dataSource.transaction(async (manager) => {
      await manager.insert(Order, order);
      await this.outbox.enqueue(manager, { type: "order.created", key: order.id, topic: TOPIC, body: order });
      // Whatever goes wrong after the enqueue takes the message back with the order.
      if (order.amount > LIMIT) throw new ConflictException(`over the limit of ${LIMIT}`);
    });
    this.outbox.wake(); // the relay of this process need not wait for its next poll
  }
}
