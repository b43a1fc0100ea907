import { Module } from "@nestjs/common";
import { TypeOrmModule } from "@nestjs/typeorm";
import { mysql } from "rowpost/mysql";
import { rocketmq } from "rowpost/rocketmq";
import { RowpostModule } from "rowpost-nestjs";
import { Order } from "./order.entity";
import { OrdersController } from "./orders.controller";
import { OrdersService } from "./orders.service";
import { DATABASE_URL, ROCKETMQ_ENDPOINTS } from "./settings";

@Module({
  imports: [
    // synchronize leaves rowpost's tables alone: it has no entity for them.
    TypeOrmModule.forRoot({ type: "mysql", url: DATABASE_URL, entities: [Order], synchronize: true }),
    RowpostModule.forRoot({
      database: mysql({ url: DATABASE_URL }),
      createdBy: "shop",
      relay: { broker: rocketmq({ endpoints: ROCKETMQ_ENDPOINTS }) },
    }),
  ],
  controllers: [OrdersController],
  providers: [OrdersService],
})
export class AppModule {}
