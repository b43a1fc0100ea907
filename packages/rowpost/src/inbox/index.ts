/**
 * rowpost/inbox: a consumer's table of handled messages, so that a message takes effect once,
 * however often it is delivered.
 *
 * @module
 */
export type { ReceivedMessage } from "./identity.ts";
export {
  createInbox,
  type Duplicate,
  type Handled,
  type HandledMessage,
  type HandlerTransaction,
  type Handling,
  type Inbox,
  type InboxOptions,
} from "./inbox.ts";
export * from "./reading/index.ts";
export type { InboxHousekeeping, KeepHouseOptions } from "./retention.ts";
