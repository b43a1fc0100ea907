/**
 * The three table layouts that ship, and the way to make one's own. A layout is data: nothing here
 * knows a dialect.
 *
 * The seeds' layouts name the columns of their documents' own DDL; what those tables lack (headers,
 * ordering key, claim counter, …) is undefined, which turns the feature off.
 */

import { DEFAULT_LIMITS, type MessageLimits } from "../../message/message.ts";
import { MESSAGE_STATES, type MessageState } from "../../message/states.ts";
import { checkOptions, LAYOUT, type OptionKinds, oneOf, refuseUnknown } from "../../runtime/check-options.ts";
import { ConfigurationError } from "../../runtime/errors.ts";
import type { LayoutColumns, TableLayout } from "./layout.ts";
import { checkNames, checkStates } from "./layout-names.ts";

export { companionTables, formerTables } from "./layout-names.ts";

/**
 * Numbers of the states in the default layout and, 0 to 3 as that document gives them, in
 * `t_local_message`.
 */
const STATE_NUMBERS: Readonly<Record<MessageState, number>> = {
  pending: 0,
  sending: 1,
  sent: 2,
  failed: 3,
  consumed: 4,
  suspended: 5,
};

/** The table of our own: every feature. */
export const defaultLayout: TableLayout = {
  name: "default",
  table: "local_message",
  schema: undefined,
  companion: "local_message",
  columns: {
    id: "id",
    messageType: "message_type",
    messageKey: "message_key",
    topic: "topic",
    messageBody: "message_body",
    state: "state",
    retryCount: "retry_count",
    nextRetryAt: "next_retry_at",
    failReason: "fail_reason",
    gmtCreate: "gmt_create",
    gmtModified: "gmt_modified",
    lastRetryAt: "last_retry_at",
    headers: "headers",
    contentType: "content_type",
    orderingKey: "ordering_key",
    deliveryCount: "delivery_count",
    deliverAt: "deliver_at",
    messageId: "message_id",
    lockVersion: "lock_version",
    sentAt: "sent_at",
    consumedAt: "consumed_at",
    createdBy: "created_by",
    updatedBy: "updated_by",
    settlePad: "settle_pad",
    waitingTopic: "waiting_topic",
    openKey: "open_key",
  },
  states: STATE_NUMBERS,
  clock: "utc",
  fractionDigits: 3,
  bodyType: "text",
  headersType: "text",
  limits: DEFAULT_LIMITS,
  failReasonLength: 1_024,
  messageIdLength: 255,
};

/**
 * `t_local_message` of the first seed document. `consumed` is 4 and `suspended` 5: its tinyint
 * takes them. It has no claim token (neither lock_version nor delivery_count), so a relay proves
 * that an old session is dead before it claims a row again (rule: claim-token).
 */
export const tLocalMessageLayout: TableLayout = {
  name: "t_local_message",
  table: "t_local_message",
  schema: undefined,
  companion: "t_local_message",
  columns: {
    id: "id",
    messageType: "biz_type",
    messageKey: "biz_key",
    topic: "topic",
    messageBody: "message_body",
    state: "status",
    retryCount: "retry_count",
    nextRetryAt: "next_retry_time",
    failReason: "fail_reason",
    gmtCreate: "gmt_create",
    gmtModified: "gmt_modified",
    lastRetryAt: "last_exec_time",
    headers: undefined,
    contentType: undefined,
    orderingKey: undefined,
    deliveryCount: undefined,
    deliverAt: undefined,
    messageId: undefined,
    lockVersion: undefined,
    sentAt: undefined,
    consumedAt: undefined,
    createdBy: "created_by",
    updatedBy: "updated_by",
    settlePad: undefined,
    waitingTopic: undefined,
    openKey: undefined,
  },
  states: STATE_NUMBERS,
  clock: "server",
  fractionDigits: 0,
  bodyType: "text",
  headersType: "text",
  // TEXT holds 65,535 bytes.
  limits: { ...DEFAULT_LIMITS, bodyBytes: 65_535 },
  failReasonLength: 512,
  messageIdLength: 0,
};

/**
 * `message_table` of the second seed document. Its states are words, in English unless {@link
 * createLayout} maps others.
 */
export const messageTableLayout: TableLayout = {
  name: "message_table",
  table: "message_table",
  schema: undefined,
  companion: "message_table",
  columns: {
    id: "id",
    messageType: "message_type",
    messageKey: "message_key",
    topic: "topic",
    messageBody: "message_body",
    state: "state",
    retryCount: "retry_count",
    nextRetryAt: "next_retry_at",
    failReason: "fail_reason",
    gmtCreate: "gmt_create",
    gmtModified: "gmt_modified",
    lastRetryAt: "last_retry_time",
    headers: undefined,
    contentType: undefined,
    orderingKey: undefined,
    deliveryCount: undefined,
    deliverAt: undefined,
    messageId: "message_id",
    lockVersion: "lock_version",
    sentAt: undefined,
    consumedAt: undefined,
    createdBy: undefined,
    updatedBy: undefined,
    settlePad: undefined,
    waitingTopic: undefined,
    openKey: undefined,
  },
  states: {
    pending: "pending",
    sending: "sending",
    sent: "sent",
    failed: "failed",
    consumed: "consumed",
    suspended: "suspended",
  },
  clock: "server",
  fractionDigits: 0,
  bodyType: "text",
  headersType: "text",
  limits: { ...DEFAULT_LIMITS, topic: 64, bodyBytes: 65_535 },
  // The column is TEXT; a reason longer than this helps nobody who reads the table.
  failReasonLength: 2_000,
  messageIdLength: 128,
};

/** The layouts that ship, by the name that `--layout` takes. */
export const SHIPPED_LAYOUTS: Readonly<Record<string, TableLayout>> = {
  default: defaultLayout,
  t_local_message: tLocalMessageLayout,
  message_table: messageTableLayout,
};

/** Options of {@link createLayout}: what differs from the base. */
export interface LayoutOptions {
  /** Default: {@link defaultLayout}. */
  readonly base?: TableLayout | undefined;
  /** Name of the table. Default: that of the base. */
  readonly table?: string | undefined;
  /** Database (MySQL) or schema (PostgreSQL) of the table. Default: the connection's. */
  readonly schema?: string | undefined;
  /**
   * Prefix of rowpost's own tables beside it. Default: the table's name. Several message tables may
   * share one prefix; each still has an archive of its own, named after it.
   */
  readonly companion?: string | undefined;
  /**
   * Other column names; `undefined`, in JSON null, for an optional column that the table does not
   * have.
   */
  readonly columns?: { readonly [Name in keyof LayoutColumns]?: LayoutColumns[Name] | null } | undefined;
  /** Other values of states: numbers or words, all of one kind, no two alike. */
  readonly states?: Partial<Record<MessageState, number | string>> | undefined;
  /** Whose time its instants are. Default: the base's, UTC. */
  readonly clock?: "utc" | "server" | undefined;
  /** Of its instants: milliseconds, or whole seconds. */
  readonly fractionDigits?: 0 | 3 | undefined;
  /** The column of bodies: `text` (default), `json` (json, jsonb) or `binary` (bytea, BLOB). */
  readonly bodyType?: TableLayout["bodyType"] | undefined;
  /** The column of headers: `text` (default) or `json`. */
  readonly headersType?: TableLayout["headersType"] | undefined;
  /** What its columns hold. */
  readonly limits?: Partial<MessageLimits> | undefined;
  /** Characters that the column of reasons holds. */
  readonly failReasonLength?: number | undefined;
  /** Characters that the column of receipts holds. */
  readonly messageIdLength?: number | undefined;
}

const KINDS: OptionKinds<LayoutOptions> = {
  base: LAYOUT,
  table: "string",
  schema: "string",
  companion: "string",
  columns: "object",
  states: "object",
  clock: "string",
  fractionDigits: "number",
  bodyType: "string",
  headersType: "string",
  limits: "object",
  failReasonLength: "number",
  messageIdLength: "number",
};

/** Every table has them. */
function isRequired(column: string): boolean {
  const seeds = [tLocalMessageLayout, messageTableLayout].map(
    ({ columns }) => new Map<string, unknown>(Object.entries(columns)),
  );
  return column !== "lastRetryAt" && seeds.every((columns) => columns.get(column) !== undefined);
}

/** Throws `ConfigurationError` for what the types of the options would not let through. */
function checkShape(options: LayoutOptions): void {
  checkOptions("createLayout", options, KINDS);
  const { columns = {}, states = {}, limits = {} } = options;
  refuseUnknown("createLayout, columns", columns, Object.keys(defaultLayout.columns));
  refuseUnknown("createLayout, states", states, MESSAGE_STATES);
  refuseUnknown("createLayout, limits", limits, Object.keys(DEFAULT_LIMITS));
  for (const [name, column] of Object.entries<unknown>({ ...columns })) {
    if (typeof column === "string" || ((column ?? undefined) === undefined && !isRequired(name))) continue;
    const otherwise = isRequired(name) ? ": nothing works without it" : ", or undefined";
    throw new ConfigurationError(`createLayout: columns.${name} must be the name of a column${otherwise}`);
  }
  const { failReasonLength, messageIdLength } = options;
  for (const [name, length] of Object.entries<unknown>({ ...limits, failReasonLength, messageIdLength })) {
    if (length === undefined || (typeof length === "number" && length >= 0)) continue;
    throw new ConfigurationError(`createLayout: ${name in limits ? "limits." : ""}${name} must be a number, 0 or more`);
  }
  oneOf("createLayout: clock", options.clock, [undefined, "utc", "server"]);
  oneOf("createLayout: fractionDigits", options.fractionDigits, [undefined, 0, 3]);
  oneOf("createLayout: bodyType", options.bodyType, [undefined, "text", "json", "binary"]);
  oneOf("createLayout: headersType", options.headersType, [undefined, "text", "json"]);
}

/**
 * A layout for a table of one's own: a shipped layout with other names, states or clock. With other
 * columns, types or states than the base has, its name is `custom`: `rowpost migrate` then makes
 * only the tables beside it, and the message table is the user's own. Throws `ConfigurationError`
 * for a name that no database takes, or states that cannot be told apart.
 */
export function createLayout(options: LayoutOptions = {}): TableLayout {
  checkShape(options);
  const base = options.base ?? defaultLayout;
  const table = options.table ?? base.table;
  const named = Object.entries(options.columns ?? {}).map(([name, column]) => [name, column ?? undefined]);
  const given: Partial<LayoutColumns> = Object.fromEntries(named);
  const chosen: LayoutColumns = { ...base.columns, ...given };
  const states = { ...base.states, ...options.states };
  const { bodyType = base.bodyType, headersType = base.headersType } = options;
  const unchanged =
    sameEntries(chosen, base.columns) &&
    sameEntries(states, base.states) &&
    sameEntries({ bodyType, headersType }, base);
  // A table of the user's own has our generated columns only when he says so.
  const { openKey, waitingTopic } = unchanged ? chosen : given;
  const layout: TableLayout = {
    name: unchanged ? base.name : "custom",
    table,
    schema: options.schema ?? base.schema,
    companion: options.companion ?? (options.table === undefined ? base.companion : table),
    columns: { ...chosen, openKey, waitingTopic },
    states,
    clock: options.clock ?? base.clock,
    fractionDigits: options.fractionDigits ?? base.fractionDigits,
    bodyType,
    headersType,
    limits: { ...base.limits, ...options.limits },
    failReasonLength: options.failReasonLength ?? base.failReasonLength,
    messageIdLength: options.messageIdLength ?? base.messageIdLength,
  };
  checkNames(layout);
  checkStates(layout);
  return layout;
}

/**
 * What `table_name` holds for this layout in the companion tables: they may serve several message
 * tables.
 */
export function tableKey(layout: TableLayout): string {
  return layout.schema === undefined ? layout.table : `${layout.schema}.${layout.table}`;
}

/**
 * Has the table what tells a claim from an earlier one of the same row (rule: claim-token):
 * lock_version, which only grows? delivery_count is none: a return that does not count takes one
 * off and an operator's retry sets it to 0, so the next claim has the number of an earlier one, and
 * a late copy of that one's settle would be taken for its own.
 */
export function hasClaimToken({ columns }: Pick<TableLayout, "columns">): boolean {
  return columns.lockVersion !== undefined;
}

/** Columns that mean nothing to people: what makes a row cheap to write or find on MySQL. */
export const ENGINE_COLUMNS: ReadonlySet<string> = new Set<keyof LayoutColumns>([
  "settlePad",
  "waitingTopic",
  "openKey",
]);

function sameEntries(left: object, right: object): boolean {
  const other = new Map<string, unknown>(Object.entries(right));
  return Object.entries(left).every(([name, value]) => other.get(name) === value);
}
