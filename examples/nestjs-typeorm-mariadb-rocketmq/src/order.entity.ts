import { Column, Entity, PrimaryColumn } from "typeorm";

@Entity({ name: "orders" })
export class Order {
  @PrimaryColumn({ type: "varchar", length: 64 })
  id!: string;

  @Column({ type: "int" })
  amount!: number;
}
