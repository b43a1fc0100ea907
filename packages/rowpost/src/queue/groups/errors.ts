/** Errors of calls on groups. */
import { RowpostError } from "../../runtime/errors.ts";

/** The message cannot be skipped now; the error's text says why. Nothing was written. */
export class CannotSkipError extends RowpostError {
  constructor(message: string) {
    super("CANNOT_SKIP", message);
  }
}

/** The dead letter was consumed, redelivered or discarded meanwhile. Nothing was written. */
export class NoDeadLetterError extends RowpostError {
  constructor(id: string, group: string, now: string) {
    const state = now === "absent" ? "is not there" : `is ${now}`;
    super("NO_DEAD_LETTER", `message ${id} is no dead letter of group ${group}: its redelivery ${state} now`);
  }
}

/** The group has living members. Nothing was deleted. */
export class GroupInUseError extends RowpostError {
  constructor(topic: string, group: string, members: readonly string[], silentMs: number) {
    super(
      "GROUP_IN_USE",
      `group ${group} of topic ${topic} has ${members.length === 1 ? "a living member" : "living members"} (${members.join(", ")}): stop them first; one that was killed counts for ${silentMs / 1_000} s`,
      { retriable: true },
    );
  }
}

/** A shadow group of this name exists. Nothing was begun. */
export class GroupExistsError extends RowpostError {
  constructor(topic: string, group: string) {
    super(
      "GROUP_EXISTS",
      `topic ${topic} has a group ${group} already: with resume: true the replay goes on where that one stopped; another name, or deleteGroup, begins anew`,
    );
  }
}
