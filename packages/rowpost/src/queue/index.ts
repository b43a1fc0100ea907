/** The queue without its broker; `rowpost/queue` has both. */
export {
  ArchiveError,
  InvalidIdError,
  MonthDroppedError,
  MonthNotDroppedError,
  RewindRefusedError,
  UnknownGroupError,
} from "../message/queue-errors.ts";
export { UnavailableError } from "../runtime/away.ts";
export { InvalidNameError, UnknownTopicError } from "../runtime/errors.ts";
export { HandlerTimeoutError } from "../runtime/handler-timeout.ts";
export type { FailedEvent, HandledEvent, HandledMessageName, HandlingListeners } from "../runtime/handling-reports.ts";
export type { Queue, QueueOptions } from "./api.ts";
export type { BatchHandler, BatchOutcome, ConsumeBatchesOptions } from "./consuming/batches.ts";
export type { Consumer } from "./consuming/consumer.ts";
export type { PulledMessage } from "./consuming/desk.ts";
export { AlreadySettledError, PartitionLostError, PullerStoppedError, SettleTooLateError } from "./consuming/errors.ts";
export type { ConsumedMessage, TailedMessage } from "./consuming/message.ts";
export type { MessageHandler, QueueConsumeOptions, QueueHandlerContext } from "./consuming/options.ts";
export type { PullOptions, ReceiveOptions } from "./consuming/pull-options.ts";
export type { Puller } from "./consuming/puller.ts";
export type { GroupCalls } from "./groups/calls.ts";
export type {
  DeadLetter,
  DeadLetterFilter,
  DeadLetterOptions,
  DeadLetterPage,
  DiscardOptions,
  EditOptions,
  HandReport,
  RedeliverOptions,
} from "./groups/dead-letters.ts";
export { CannotSkipError, GroupExistsError, GroupInUseError, NoDeadLetterError } from "./groups/errors.ts";
export type {
  CountUpTo,
  GroupPartition,
  GroupStatus,
  GroupsOptions,
  HandOptions,
  SkipOptions,
} from "./groups/groups.ts";
export type { QueueMessage } from "./producing/encode.ts";
export type { AppendIn, RelayedAppends, RelayedMessage } from "./producing/relayed.ts";
export { createQueue } from "./queue.ts";
export type { TailOptions } from "./reading/tail.ts";
export type { RecallOptions } from "./recalling/recall.ts";
export type { ReplayOptions, ReplayReport } from "./replaying/replay.ts";
export type { DropMonthOptions, MonthDropped, RetentionOutcome } from "./retention/retention.ts";
export type { RewindEntry, RewoundPartition } from "./rewinding/requests.ts";
export type { RewindOptions, RewindPosition, RewindReport, UndoRewindOptions } from "./rewinding/rewind.ts";
export type { ConsumptionEntry, DroppedMonth } from "./searching/requests.ts";
export type {
  QueueMessageAttempt,
  QueueMessageDetail,
  QueueMessageGroup,
  QueueMessageSummary,
  QueueSearch,
  QueueSearchAnswer,
} from "./searching/search.ts";
export type { GroupStart, TopicSettings } from "./store.ts";
export type { TopicOptions } from "./topics/topics.ts";
export type { UnaccountedMessages, VerifyAnswer, VerifyOptions, VerifyPosition } from "./verifying/verify.ts";
