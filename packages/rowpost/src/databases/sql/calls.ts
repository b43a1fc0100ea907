/**
 * Maps calls to statements for dialects that build their texts once. The order of the values is
 * documented here, so dialects with `?` and `$1` differ only in their texts.
 */

import type { OperatorAction } from "../../admin/message-admin.ts";
import type { EncodedMessage } from "../../outbox/message-writer.ts";
import type { Statement } from "../../transactions/executor.ts";
import type { ConfirmStatements, Identity } from "./confirm-statements.ts";
import { clip } from "./rows.ts";
import type { SqlNames } from "./sql-names.ts";
import {
  type AdminStatements,
  type EnqueueStatements,
  type HousekeepingStatements,
  type LeaseStatements,
  type TransactionCheck,
  UNASKED,
} from "./statements.ts";
import type { UnknownStatements } from "./unknown-statements.ts";

type Texts<Statements, Name extends keyof Statements> = Readonly<Record<Name, string>>;

export type EncodeIds = (ids: readonly string[]) => unknown;

type EnqueueName = "insert" | "findIdentities" | "deleteIdentities";

/** All messages of a call are one value. */
export function enqueueCalls(
  texts: Texts<EnqueueStatements, EnqueueName>,
  encode: {
    readonly message: (message: EncodedMessage) => unknown;
    readonly identity: (message: EncodedMessage) => unknown;
    /** Values after the messages. */
    readonly check?: (check: TransactionCheck, name: EnqueueName) => readonly unknown[];
  },
): Pick<EnqueueStatements, EnqueueName> {
  const call =
    (name: EnqueueName, one: (message: EncodedMessage) => unknown) =>
    (messages: readonly EncodedMessage[], check = UNASKED): Statement => ({
      name,
      text: texts[name],
      params: [JSON.stringify(messages.map(one)), ...(encode.check?.(check, name) ?? [])],
    });
  return {
    insert: call("insert", encode.message),
    findIdentities: call("findIdentities", encode.identity),
    deleteIdentities: call("deleteIdentities", encode.identity),
  };
}

type RegistryName =
  | "reportInstance"
  | "writeReport"
  | "readReports"
  | "readEveryLease"
  | "removeInstance"
  | "forgetInstances"
  | "readInstances"
  | "readSuspensions";

/**
 * reportInstance: owner, label. writeReport: report, owner. removeInstance: owner. readInstances:
 * the time-out in milliseconds, once per placeholder.
 */
export function registryCalls(
  texts: Texts<LeaseStatements, RegistryName>,
  timeouts: number,
): Pick<LeaseStatements, RegistryName> {
  const call = (name: RegistryName, params: readonly unknown[]): Statement => ({ name, text: texts[name], params });
  return {
    reportInstance: ({ owner, label }) => call("reportInstance", [owner, label]),
    writeReport: ({ owner, report }) => call("writeReport", [report, owner]),
    readReports: () => call("readReports", []),
    readEveryLease: () => call("readEveryLease", []),
    removeInstance: (owner) => call("removeInstance", [owner]),
    forgetInstances: () => call("forgetInstances", []),
    readInstances: (timeoutMs) =>
      call(
        "readInstances",
        Array.from({ length: timeouts }, () => timeoutMs),
      ),
    readSuspensions: () => call("readSuspensions", []),
  };
}

type ConfirmCalls = Omit<ConfirmStatements, keyof UnknownStatements>;
type ConfirmName = Exclude<keyof ConfirmCalls, "confirmIdentities" | "lockIdentities">;

/**
 * Identities are one JSON value; pairs: an id with a text. forgetConfirmations: age in
 * milliseconds, limit.
 */
export function confirmCalls(
  texts: Readonly<Record<ConfirmName, string>> & {
    readonly confirmIdentities?: string;
    readonly lockIdentities: Readonly<Record<"messages" | "archive", string>>;
  },
  encode: {
    readonly identity: (identity: Identity) => unknown;
    readonly ids: EncodeIds;
    readonly pairs: (pairs: readonly (readonly [id: string, text: string])[]) => readonly unknown[];
  },
): ConfirmCalls {
  const call = (name: ConfirmName, params: readonly unknown[]): Statement => ({ name, text: texts[name], params });
  const list = (identities: readonly Identity[]): string => JSON.stringify(identities.map(encode.identity));
  const { confirmIdentities } = texts;
  return {
    confirmIdentities:
      confirmIdentities === undefined
        ? undefined
        : (identities) => ({ name: "confirmIdentities", text: confirmIdentities, params: [list(identities)] }),
    lockIdentities: (identities, place) => ({
      name: `lockIdentities.${place}`,
      text: texts.lockIdentities[place],
      params: [list(identities)],
    }),
    confirmRows: (ids) => call("confirmRows", [encode.ids(ids)]),
    confirmArchived: (identities) => call("confirmArchived", [list(identities)]),
    touchRows: (ids) => call("touchRows", [encode.ids(ids)]),
    reportFailed: (rows) => call("reportFailed", encode.pairs(rows.map(({ id, reason }) => [id, reason]))),
    addConfirmations: (rows) => call("addConfirmations", encode.pairs(rows.map(({ id, consumer }) => [id, consumer]))),
    readConfirmations: (ids) => call("readConfirmations", [encode.ids(ids)]),
    forgetConfirmations: ({ olderThanMs, limit }) => call("forgetConfirmations", [olderThanMs, limit]),
  };
}

/**
 * The changes take: author (if the layout has updated_by), for suspendRows its milliseconds, ids.
 * putSuspension: scope, value, reason, author, milliseconds.
 */
export function operatorCalls(
  names: SqlNames,
  texts: Texts<AdminStatements, keyof AdminStatements>,
  encodeIds: EncodeIds,
): AdminStatements {
  const { limits } = names.layout;
  const call = (name: keyof AdminStatements, params: readonly unknown[]): Statement => ({
    name,
    params,
    text: texts[name],
  });
  const by = ({ author }: OperatorAction): readonly unknown[] =>
    names.column.updatedBy === undefined ? [] : [clip(author, limits.createdBy)];
  return {
    operatorRetry: ({ ids, action }) => call("operatorRetry", [...by(action), encodeIds(ids)]),
    bringForward: ({ ids, action }) => call("bringForward", [...by(action), encodeIds(ids)]),
    suspendRows: ({ ids, action, untilMs }) => call("suspendRows", [...by(action), untilMs, encodeIds(ids)]),
    resumeRows: ({ ids, action }) => call("resumeRows", [...by(action), encodeIds(ids)]),
    putSuspension: ({ author, endsInMs, reason, scope, value }) =>
      call("putSuspension", [scope, value, clip(reason, 512), clip(author, 64), endsInMs]),
  };
}

type RemovalName = "lockFinished" | "passFinished" | "copyToArchive" | "deleteRows" | "purgeArchive";

/**
 * One text per state. lockFinished: after id, limit, age in milliseconds; passFinished: after id,
 * rows to skip. copyToArchive, deleteRows: ids. purgeArchive: age, limit.
 */
export function removalCalls(
  texts: Texts<HousekeepingStatements, Exclude<RemovalName, "lockFinished" | "passFinished">> &
    Readonly<Record<"lockFinished" | "passFinished", Readonly<Record<"sent" | "consumed", string>>>>,
  encodeIds: EncodeIds,
): Pick<HousekeepingStatements, RemovalName> {
  return {
    lockFinished: ({ afterId, limit, olderThanMs, state }) => ({
      name: "lockFinished",
      text: texts.lockFinished[state],
      params: [afterId, limit, olderThanMs],
    }),
    passFinished: ({ afterId, rows, state }) => ({
      name: "passFinished",
      text: texts.passFinished[state],
      params: [afterId, rows - 1],
    }),
    copyToArchive: (ids) => ({ name: "copyToArchive", text: texts.copyToArchive, params: [encodeIds(ids)] }),
    deleteRows: (ids) => ({ name: "deleteRows", text: texts.deleteRows, params: [encodeIds(ids)] }),
    purgeArchive: ({ limit, olderThanMs }) => ({
      name: "purgeArchive",
      text: texts.purgeArchive,
      params: [olderThanMs, limit],
    }),
  };
}
