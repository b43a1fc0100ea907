/** What `queue` offers for groups and their dead letters. */
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

/** Looking at consumer groups, and what people do to them; of `queue`. */
export interface GroupCalls {
  /**
   * The topic's consumer groups: how far behind, who holds which partition, what holds them up.
   * Counts are exact up to a limit.
   */
  groups(options: GroupsOptions): Promise<GroupStatus[]>;
  /** Members of the group take nothing more until {@link resume}. False: it was paused already. */
  pause(options: HandOptions): Promise<boolean>;
  /** False: it was not paused. */
  resume(options: Pick<HandOptions, "topic" | "group">): Promise<boolean>;
  /**
   * The group never gets this message: a redelivery or dead letter of it, or the first one that it
   * has not finished. A record says who did it and why.
   *
   * Throws `UnknownGroupError`, `CannotSkipError`.
   */
  skip(options: SkipOptions): Promise<void>;
  /** What the group has given up, or gets again; with the last errors. */
  deadLetters(options: DeadLetterOptions): Promise<DeadLetterPage>;
  /**
   * Dead letters are delivered again, with all their attempts; what waits anyway, at once, unless
   * it waits behind another one of its ordering key. Records say who did it and why.
   */
  redeliver(options: RedeliverOptions): Promise<HandReport>;
  /** The group never gets these dead letters again. Records say who did it and why. */
  discard(options: DiscardOptions): Promise<HandReport>;
  /**
   * Appends a changed copy of a dead letter, for this group alone, and discards the old one: both
   * or neither. Resolves to the copy's id. Throws `NoDeadLetterError`.
   */
  editDeadLetter(options: EditOptions): Promise<string>;
  /**
   * Removes a group that nobody reads with any more: its progress, redeliveries, dead letters and
   * log of rewinds. It holds no month back then. What it consumed stays in the records, and one of
   * its name begins anew. False: there was none.
   *
   * Throws `GroupInUseError` while it has living members, `UnknownTopicError`.
   */
  deleteGroup(options: { readonly topic: string; readonly group: string }): Promise<boolean>;
}

/** What is wrong with the options is said before any SQL. */
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
      // What was given to `pause` may be given here too.
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
