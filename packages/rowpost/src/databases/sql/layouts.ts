/**
 * The three shipped table layouts, and a way to make your own. `t_local_message` and
 * `message_table` use the columns of their original DDL; missing ones (headers, ordering key, claim
 * counter, …) are undefined, which turns the feature off.
 */

import { DEFAULT_LIMITS, type MessageLimits } from "../../message/message.ts";
import { MESSAGE_STATES, type MessageState } from "../../message/states.ts";
import { checkOptions, LAYOUT, type OptionKinds, oneOf, refuseUnknown } from "../../runtime/check-options.ts";
import { ConfigurationError } from "../../runtime/errors.ts";
import type { LayoutColumns, TableLayout } from "./layout.ts";
import { checkNames, checkStates } from "./layout-names.ts";

export { companionTables, formerTables } from "./layout-names.ts";

/**
 * Numbers of the states in the default layout, and 0 to 3 also in the original `t_local_message`.
 */
const STATE_NUMBERS: Readonly<Record<MessageState, number>> = {
  pending: 0,
  sending: 1,
  sent: 2,
  failed: 3,
  consumed: 4,
  suspended: 5,
};

/** The default table, with every feature. */
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
 * `t_local_message`. Its tinyint holds `consumed` as 4 and `suspended` as 5. Without a claim token
 * (neither lock_version nor delivery_count), a relay proves that an old session is dead before it
 * claims a row again (rule: claim-token).
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

/** `message_table`. Its states are words, in English unless {@link createLayout} maps others. */
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
  // The column is TEXT; longer reasons do not help a reader of the table.
  failReasonLength: 2_000,
  messageIdLength: 128,
};

/** Shipped layouts by their name for `--layout`. */
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
   * share a prefix; each still has its own archive, named after it.
   */
  readonly companion?: string | undefined;
  /** Other column names; `undefined` (null in JSON) for an optional column that the table lacks. */
  readonly columns?: { readonly [Name in keyof LayoutColumns]?: LayoutColumns[Name] | null } | undefined;
  /** Other state values: all numbers or all words, no two alike. */
  readonly states?: Partial<Record<MessageState, number | string>> | undefined;
  /** Clock of its instants. Default: the base's, UTC. */
  readonly clock?: "utc" | "server" | undefined;
  /** Precision of its instants: milliseconds (3) or whole seconds (0). */
  readonly fractionDigits?: 0 | 3 | undefined;
  /** Type of the body column: `text` (default), `json` (json, jsonb) or `binary` (bytea, BLOB). */
  readonly bodyType?: TableLayout["bodyType"] | undefined;
  /** Type of the headers column: `text` (default) or `json`. */
  readonly headersType?: TableLayout["headersType"] | undefined;
  /** What its columns hold. */
  readonly limits?: Partial<MessageLimits> | undefined;
  /** Longest reason in characters. */
  readonly failReasonLength?: number | undefined;
  /** Longest receipt in characters. */
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

/** Throws `ConfigurationError` for values that the option types exclude. */
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
 * Layout for your own table: a shipped layout with other names, states or clock. If columns, types
 * or states differ from the base, its name is `custom`: `rowpost migrate` then makes only the
 * companion tables, not the message table. Throws `ConfigurationError` for names that no database
 * accepts, or ambiguous states.
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
  // A user's own table has our generated columns only if the options name them.
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

/** Value of `table_name` in the companion tables, which may serve several message tables. */
export function tableKey(layout: TableLayout): string {
  return layout.schema === undefined ? layout.table : `${layout.schema}.${layout.table}`;
}

/**
 * Whether lock_version, which only grows, tells a claim from an earlier one of the same row (rule:
 * claim-token). delivery_count cannot: uncounted returns decrease it and an operator's retry resets
 * it, so a late copy of an earlier settle could match a later claim.
 */
export function hasClaimToken({ columns }: Pick<TableLayout, "columns">): boolean {
  return columns.lockVersion !== undefined;
}

/** Columns that mean nothing to people: they make a row cheap to write or find on MySQL. */
export const ENGINE_COLUMNS: ReadonlySet<string> = new Set<keyof LayoutColumns>([
  "settlePad",
  "waitingTopic",
  "openKey",
]);

function sameEntries(left: object, right: object): boolean {
  const other = new Map<string, unknown>(Object.entries(right));
  return Object.entries(left).every(([name, value]) => other.get(name) === value);
}
