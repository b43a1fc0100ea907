import { Body, Controller, Post } from "@nestjs/common";
import { Order } from "./order.entity";
import { OrdersService } from "./orders.service";

@Controller("orders")
export class OrdersController {
  constructor(private readonly orders: OrdersService) {}

  @Post()
  async create(@Body() order: Order): Promise<Order> {
    await this.orders.place(order);
    return order;
  }
}
