import { checkOptions } from "../../runtime/check-options.ts";
import { checkGroup, checkTopic } from "../topics/names.ts";
import {
  type DeadLetterOptions,
  type DeadLetterPage,
  type DeadLetterParts,
  type DiscardOptions,
  deadLetters,
  discard,
  type EditOptions,
  editDeadLetter,
  type HandReport,
  type RedeliverOptions,
  redeliver,
} from "./dead-letters.ts";
import {
  checkedHand,
  deleteGroup,
  type GroupStatus,
  type GroupsOptions,
  groupsOf,
  HAND,
  type HandOptions,
  requireGroup,
  type SkipOptions,
  skip,
} from "./groups.ts";

/** Calls of `queue` that inspect consumer groups and change them by hand. */
export interface GroupCalls {
  /**
   * Returns the topic's consumer groups: lag, holders of partitions, and what holds them up. Counts
   * are exact up to a limit.
   */
  groups(options: GroupsOptions): Promise<GroupStatus[]>;
  /**
   * Pauses the members of the group until {@link resume}. Returns false when it was already paused.
   */
  pause(options: HandOptions): Promise<boolean>;
  /** Returns false when it was not paused. */
  resume(options: Pick<HandOptions, "topic" | "group">): Promise<boolean>;
  /**
   * Skips a message for the group for good: a redelivery, a dead letter, or the group's first
   * unfinished message. A record keeps author and reason.
   *
   * Throws `UnknownGroupError`, `CannotSkipError`.
   */
  skip(options: SkipOptions): Promise<void>;
  /** Lists dead letters and redeliveries of the group with their last errors. */
  deadLetters(options: DeadLetterOptions): Promise<DeadLetterPage>;
  /**
   * Redelivers dead letters with all their attempts, and waiting messages at once unless they wait
   * behind another of their ordering key. Records keep author and reason.
   */
  redeliver(options: RedeliverOptions): Promise<HandReport>;
  /** Discards dead letters for good. Records keep author and reason. */
  discard(options: DiscardOptions): Promise<HandReport>;
  /**
   * Appends a changed copy of a dead letter for this group alone and discards the old one, both or
   * neither. Resolves to the copy's id. Throws `NoDeadLetterError`.
   */
  editDeadLetter(options: EditOptions): Promise<string>;
  /**
   * Removes an unused group with its progress, redeliveries, dead letters and log of rewinds, so
   * that it no longer holds a month back. Its records stay, and a new group of the same name starts
   * anew. Returns false when it does not exist.
   *
   * Throws `GroupInUseError` while it has living members, `UnknownTopicError`.
   */
  deleteGroup(options: { readonly topic: string; readonly group: string }): Promise<boolean>;
}

/** Options are checked before any SQL. */
export function groupCalls(parts: DeadLetterParts): GroupCalls {
  const { store, ip } = parts;
  return {
    groups: (options) => groupsOf(parts, options),
    async pause(options) {
      checkOptions("pause", options, HAND);
      const { key, note } = checkedHand(options, ip);
      await requireGroup(parts, key);
      return await store.setPause(key, note);
    },
    async resume(options) {
      // Takes the options of `pause` too.
      checkOptions("resume", options, HAND);
      const { topic, group } = options;
      const key = { topic: checkTopic(topic), group: checkGroup(group) };
      await requireGroup(parts, key);
      const resumed = await store.setPause(key, undefined);
      parts.wake();
      return resumed;
    },
    skip: (options) => skip(parts, options, ip),
    deadLetters: (options) => deadLetters(parts, options),
    redeliver: (options) => redeliver(parts, options),
    discard: (options) => discard(parts, options),
    editDeadLetter: (options) => editDeadLetter(parts, options),
    deleteGroup: (options) => deleteGroup(parts, options),
  };
}
