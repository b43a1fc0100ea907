import { integer, pgTable, text } from "drizzle-orm/pg-core";

export const orders = pgTable("orders", {
  id: text("id").primaryKey(),
  customer: text("customer").notNull(),
  amount: integer("amount").notNull(),
});

export type Order = typeof orders.$inferSelect;
