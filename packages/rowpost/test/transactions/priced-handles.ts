/** Every handle that enqueue takes, and what it costs. */
import * as drivers from "./driver-handles.ts";
import type { Connect } from "./handles.ts";
import * as orms from "./orm-handles.ts";

/**
 * A handle and its price: statements of one enqueue. MariaDB checks inside the INSERT that there is
 * a transaction. MySQL 8 and 9 and PostgreSQL cannot, so there it takes one more, on postgres.js in
 * one round trip with the INSERT, and none where the driver knows (pg).
 */
type Priced = readonly [name: string, connect: Connect, onMysql: number | undefined, onPostgres: number | undefined];

export const HANDLES: readonly Priced[] = [
  ["mysql2 connection", drivers.mysql2Promise, 2, undefined],
  ["mysql2 connection with callbacks", drivers.mysql2Callback, 2, undefined],
  ["mariadb connection", drivers.mariadbPromise, 2, undefined],
  ["mariadb connection with callbacks", drivers.mariadbCallback, 2, undefined],
  ["pg client", drivers.pgClient, undefined, 1],
  ["postgres.js transaction", drivers.postgresJs, undefined, 2],
  ["postgres.js transaction with camelCase", drivers.postgresJsCamel, undefined, 2],
  ["postgres.js transaction with PascalCase", drivers.postgresJsPascal, undefined, 2],
  ["drizzle", orms.drizzle, 2, 2],
  ["drizzle on postgres.js", orms.drizzleOnPostgresJs, undefined, 2],
  ["kysely", orms.kysely, 2, 2],
  ["kysely with camelCase", orms.kyselyCamelCase, 2, 2],
  ["kysely, controlled", orms.kyselyControlled, 2, 2],
  ["knex", orms.knex, 2, 2],
  ["knex with camelCase", orms.knexCamelCase, 2, 2],
  ["typeorm entity manager", orms.typeormManager, 2, 2],
  ["typeorm query runner", orms.typeormRunner, 2, 2],
  ["mikro-orm", orms.mikroOrm, 2, 2],
  ["sequelize", orms.sequelize, 2, 1],
  ["sequelize on the mariadb driver", orms.sequelizeOnMariadb, 2, undefined],
  ["prisma", orms.prisma, 2, 2],
];
