/** Checks names that become part of a table's name or of a key. */
import { InvalidNameError } from "../../runtime/errors.ts";

/** With `_message_info_consumption_202611` it has the 63 characters of a PostgreSQL table name. */
const LONGEST_TOPIC = 31;
const LONGEST_GROUP = 64;

/** Allows lower case English letters, digits and underscores. */
export function checkTopic(topic: unknown): string {
  if (typeof topic === "string" && topic.length <= LONGEST_TOPIC && /^[a-z0-9_]+$/.test(topic)) return topic;
  throw new InvalidNameError(
    `a topic of the message queue is 1 to ${LONGEST_TOPIC} characters of a-z, 0-9 and _, because it becomes part of a table's name; not ${shown(topic)}`,
  );
}

const PART_OF_A_GROUP = /^[\w.:-]+$/;
const LETTERS = "A-Z, a-z, 0-9 and _ . : -";

/** A group's name, or that of a broadcast instance. */
export function checkGroup(group: unknown): string {
  if (typeof group === "string" && group.length <= LONGEST_GROUP) {
    const parts = group.split("@");
    if (parts.length <= 2 && parts.every((part) => PART_OF_A_GROUP.test(part))) return group;
  }
  throw new InvalidNameError(
    `a consumer group is 1 to ${LONGEST_GROUP} characters of ${LETTERS}, with broadcast as group@instance; not ${shown(group)}`,
  );
}

export function instanceGroup(group: unknown, instance: unknown): string {
  const both = `${checkGroup(group)}@${typeof instance === "string" ? instance : ""}`;
  const isOne = typeof instance === "string" && PART_OF_A_GROUP.test(instance) && both.length <= LONGEST_GROUP;
  if (isOne) return checkGroup(both);
  throw new InvalidNameError(
    `broadcast.instance is ${LETTERS}, and with the group and an @ before it at most ${LONGEST_GROUP} characters; not ${shown(instance)}`,
  );
}

function shown(value: unknown): string {
  return typeof value === "string" ? JSON.stringify(value.slice(0, 80)) : typeof value;
}
