/** Proposes a layout, with its costs and the steps to take the table over. */
import type { LayoutOptions } from "rowpost";
import type { MessageState } from "rowpost/admin";
import type { Say } from "../language.ts";
import { type Catalog, type Column, quoted, tableOf } from "./catalog.ts";
import type { Mapping, Property } from "./mapping.ts";
import type { StateValues } from "./states.ts";
import { unfitStates } from "./states.ts";
import { KNOWN } from "./synonyms.ts";

export type LayoutFile = Omit<LayoutOptions, "base" | "columns"> & {
  readonly columns: Readonly<Record<string, string | null>>;
};

/** The engine's own columns, which no other table has. */
const OF_THE_ENGINE = ["deliveryCount", "settlePad"];

const LOST: Partial<Record<Property, readonly [en: string, zh: string]>> = {
  lockVersion: [
    "a relay that lost its connection proves that the old session is dead before it goes on: slower after a failure",
    "relay 断开连接后要先证明旧会话已结束才继续：故障后较慢",
  ],
  orderingKey: ["no order per key", "没有按键的顺序"],
  deliverAt: ["a delay shares its column with the retries", "延时与重试共用一列"],
  headers: ["no headers", "没有消息头"],
  contentType: ["JSON is told from text by looking", "靠内容区分 JSON 和文本"],
  messageId: ["the broker's receipt is not kept", "不保存中间件的回执"],
  sentAt: ["when it was sent is not kept", "不保存发送时间"],
  consumedAt: ["when it was consumed is not kept", "不保存消费时间"],
  lastRetryAt: ["when the last attempt was is not kept", "不保存最近一次尝试的时间"],
  createdBy: ["who wrote it is not kept", "不保存写入者"],
  updatedBy: ["who changed it by hand is not kept", "不保存人工修改者"],
};

export function featuresOf({ columns }: Mapping, say: Say): { readonly kept: string[]; readonly lost: string[] } {
  const optional = KNOWN.filter(({ isRequired }) => !isRequired).map(({ property }) => property);
  const lost = (property: string, [en, zh]: readonly [en: string, zh: string]): string =>
    say(`${property}: ${en}`, `${property}：${zh}`);
  return {
    kept: optional
      .filter((property) => columns.has(property))
      .map((property) => `${property} (${columns.get(property) ?? ""})`),
    lost: [
      ...optional
        .filter((property) => !columns.has(property))
        .map((property) => lost(property, LOST[property] ?? ["not kept", "不保存"])),
      lost("deliveryCount", [
        "a message that crashes the relay each time is not found out",
        "找不出每次都使 relay 崩溃的消息",
      ]),
    ],
  };
}

export function layoutFileOf(
  catalog: Catalog,
  { columns }: Mapping,
  { clock, states }: { readonly clock: "utc" | "server"; readonly states: StateValues },
): LayoutFile {
  const column = (property: Property): Column | undefined =>
    catalog.columns.find(({ name }) => name === columns.get(property));
  const length = (property: Property): number | undefined => column(property)?.length;
  const sized = {
    type: length("messageType"),
    key: length("messageKey"),
    topic: length("topic"),
    orderingKey: length("orderingKey"),
    createdBy: length("createdBy"),
  };
  const body = bodyBytesOf(column("messageBody"));
  const limits = { ...sized, bodyBytes: body };
  const bodyType = column("messageBody")?.kind;
  return {
    table: catalog.table,
    ...(catalog.schema === undefined ? {} : { schema: catalog.schema }),
    columns: Object.fromEntries([
      ...KNOWN.map(({ property }) => [property, columns.get(property) ?? null]),
      ...OF_THE_ENGINE.map((property) => [property, null]),
    ]),
    states,
    clock,
    fractionDigits: (column("gmtCreate")?.fraction ?? 0) >= 3 ? 3 : 0,
    ...(bodyType === "json" || bodyType === "binary" ? { bodyType } : {}),
    ...(column("headers")?.kind === "json" ? { headersType: "json" } : {}),
    limits: Object.fromEntries(Object.entries(limits).filter(([, most]) => most !== undefined)),
    failReasonLength: Math.min(length("failReason") ?? 2_000, 2_000),
    messageIdLength: columns.has("messageId") ? Math.min(length("messageId") ?? 255, 255) : 0,
  };
}

function bodyBytesOf(column: Column | undefined): number | undefined {
  if (column === undefined) return undefined;
  // A character may take four bytes, in MySQL's utf8 three; at least one.
  if (/^(text|blob)$/i.test(column.type) && column.length === 65_535) return 65_535;
  if (/^(tinyblob|varbinary)/i.test(column.type)) return column.length;
  return /char/i.test(column.type) ? column.length : undefined;
}

export function mustFix(
  catalog: Catalog,
  { columns }: Mapping,
  { say, states }: { readonly say: Say; readonly states: StateValues | undefined },
): string[] {
  const of = (property: Property): string => columns.get(property) ?? "";
  const column = (property: Property): Column | undefined =>
    catalog.columns.find(({ name }) => name === columns.get(property));
  const table = tableOf(catalog);
  const [type, key] = [of("messageType"), of("messageKey")];
  const identity = [type, key];
  const problems: string[] = [];
  if (columns.has("messageType") && columns.has("messageKey") && !isUnique(catalog, identity)) {
    const index = `CREATE UNIQUE INDEX ${catalog.table}_identity ON ${table} (${identity.map((name) => quoted(catalog, name)).join(", ")})`;
    problems.push(
      say(
        `no unique key over (${identity.join(", ")}), so a message could be written twice: ${index}`,
        `(${identity.join(", ")}) 上没有唯一键，同一条消息可能写入两次：${index}`,
      ),
    );
  }
  for (const property of ["nextRetryAt", "failReason"] as const) {
    const found = column(property);
    if (found === undefined || found.isNullable) continue;
    const how = nullable(catalog, found, say);
    problems.push(say(`${found.name} must take NULL: ${how}`, `${found.name} 必须允许 NULL：${how}`));
  }
  const state = column("state");
  if (states !== undefined && state !== undefined) {
    const unfit = unfitStates(state, states).join(", ");
    if (unfit !== "")
      problems.push(
        say(
          `${state.name} is ${state.type} and cannot hold ${unfit}: widen it, or give other values with --state`,
          `${state.name} 是 ${state.type}，放不下 ${unfit}：加宽它，或用 --state 换成别的值`,
        ),
      );
  }
  return problems;
}

/** Unique over both; on MySQL over one of them is enough. */
function isUnique({ dialect, primaryKey, uniques }: Catalog, identity: readonly string[]): boolean {
  const fewest = dialect === "mysql" ? 1 : identity.length;
  return [...uniques, primaryKey].some(
    (unique) => unique.length >= fewest && unique.every((column) => identity.includes(column)),
  );
}

function nullable(catalog: Catalog, { name, type }: Column, say: Say): string {
  const table = tableOf(catalog);
  const column = quoted(catalog, name);
  if (catalog.dialect === "mysql")
    return `ALTER TABLE ${table} MODIFY ${column} ${type} NULL, ALGORITHM=INPLACE, LOCK=NONE`;
  if (catalog.dialect === "postgres") return `ALTER TABLE ${table} ALTER COLUMN ${column} DROP NOT NULL`;
  return say("SQLite cannot change a column: copy the table", "SQLite 不能修改列：请复制到新表");
}

/** Recommended statements, in a form that does not block writers. */
export function adviceSql(catalog: Catalog, { columns }: Mapping): string[] {
  const [state, next] = [columns.get("state"), columns.get("nextRetryAt")];
  const table = tableOf(catalog);
  const advice: string[] = [];
  if (
    state !== undefined &&
    next !== undefined &&
    !catalog.indexes.some(([first, second]) => first === state && second === next)
  ) {
    const on = `${table} (${quoted(catalog, state)}, ${quoted(catalog, next)})`;
    const name = quoted(catalog, `idx_${catalog.table}_scan`.slice(0, 60));
    advice.push(
      {
        mysql: `CREATE INDEX ${name} ON ${on} ALGORITHM=INPLACE LOCK=NONE`,
        postgres: `CREATE INDEX CONCURRENTLY ${name} ON ${on}`,
        sqlite: `CREATE INDEX ${name} ON ${on}`,
      }[catalog.dialect],
    );
  }
  if (!columns.has("lockVersion")) advice.push(...addVersion(catalog));
  return advice;
}

/**
 * In two steps, so that the second changes no row. docs/own-table.md has the purpose; a SQLite file
 * has no replica.
 */
function addVersion(catalog: Catalog): string[] {
  const table = tableOf(catalog);
  const add = `ALTER TABLE ${table} ADD COLUMN lock_version BIGINT NOT NULL DEFAULT 0`;
  if (catalog.dialect === "sqlite") return [add];
  const start = catalog.dialect === "mysql" ? "(MICROSECOND(UTC_TIMESTAMP(6)))" : "floor(random() * 1000000)::bigint";
  return [add, `ALTER TABLE ${table} ALTER COLUMN lock_version SET DEFAULT ${start}`];
}

export function notesOf(
  catalog: Catalog,
  { columns }: Mapping,
  { added, say }: { readonly added: readonly MessageState[]; readonly say: Say },
): string[] {
  const id = catalog.columns.find(({ name }) => name === columns.get("id"));
  const known = new Set(columns.values());
  const bare = catalog.columns
    .filter(({ hasDefault, isNullable, name }) => !known.has(name) && !hasDefault && !isNullable)
    .map(({ name }) => name)
    .join(", ");
  const notes: string[] = [];
  if (id !== undefined && /^(int|integer)\b/i.test(id.type) && catalog.dialect !== "sqlite")
    notes.push(
      say(`${id.name} is ${id.type}: ids end at 2,147,483,647`, `${id.name} 是 ${id.type}：id 到 2,147,483,647 为止`),
    );
  if (bare !== "")
    notes.push(
      say(
        `${bare} must be given and rowpost does not know it: only your own programs can insert`,
        `${bare} 必须给值而 rowpost 不认识它：只有你自己的程序能写入`,
      ),
    );
  if (added.length > 0)
    notes.push(
      say(
        `the table has no ${added.join(", ")} yet: they get values of their own in "states"`,
        `表里还没有 ${added.join(", ")}：它们在 "states" 里得到自己的值`,
      ),
    );
  return notes;
}

/** Steps from the old job to the relay without lost or doubly sent messages. */
export function takeOver({ file, say }: { readonly file: string; readonly say: Say }, hasProblems: boolean): string[] {
  return [
    ...(hasProblems ? [say("mend what must be mended, in the order above", "按上面的顺序修好要先修好的")] : []),
    `rowpost migrate --layout ${file}    # ${say("makes the tables beside it, and leaves yours as it is", "在旁边建表，不动你的表")}`,
    `rowpost suspend --all-relay --reason "take-over" --layout ${file}`,
    say("switch the old job off, and wait until nothing is being sent any more", "停掉旧任务，等到不再有消息在发送"),
    `rowpost relay --broker URL --layout ${file}    # ${say("sends nothing yet; rowpost doctor looks at it", "还什么都不发；由 rowpost doctor 检查")}`,
    `rowpost resume --all-relay --reason "take-over" --layout ${file}`,
  ];
}
