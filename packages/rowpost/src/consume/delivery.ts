/** A message between its broker and the work: what the work asks of it, and what it says. */
import type { ReceivedMessage } from "../inbox/identity.ts";
import type { DeliveredMessage } from "./message.ts";
import type { Unhandled } from "./options.ts";

/**
 * What to tell the broker. `handled`: the effect is committed, by this call or before, or the
 * message was parked. `stopped`: nothing was done, or nobody waits for it any more.
 */
export type Verdict = "handled" | "stopped" | Unhandled;

/** A message that the broker has handed over. */
export interface Delivery<Raw> {
  readonly raw: Raw;
  /** Reads it; `identity`: other than that of its headers. Throws `MissingIdentityError`. */
  read(identity: ReceivedMessage | undefined): DeliveredMessage;
  /** Keys are parted by it, such as topic and partition. */
  readonly within?: string | undefined;
  /**
   * `always`: one that would go back to the broker stays, and is tried again here after the pause,
   * because what is behind it would suffer from going back with it. `aside`: the same, and others
   * have its place meanwhile. `never`: its sender waits for the answer. Else it stays while its
   * handler could not be called: a broker that counts how often a message came back would drop it
   * for what is not its fault.
   */
  readonly stays?: "always" | "aside" | "never" | undefined;
  /**
   * True: the broker never brings it again. It is tried at a close as well: until it is handled, or
   * has had all its tries once more.
   */
  readonly isLast?: boolean | undefined;
  /** True when nobody waits for a verdict: the broker has taken the message back. */
  isOver?(): boolean;
  /** Called after each try, whatever came of it: this process has survived it. */
  tried?(): void;
  /**
   * Tells the broker; later messages of the key wait until it has settled. Rejects where the broker
   * did not take it: the message comes again.
   */
  tell(verdict: Verdict): void | Promise<void>;
}
