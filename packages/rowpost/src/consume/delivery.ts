import type { ReceivedMessage } from "../inbox/identity.ts";
import type { DeliveredMessage } from "./message.ts";
import type { Unhandled } from "./options.ts";

/**
 * Verdict for the broker. `handled`: the effect is committed, now or earlier, or the message was
 * parked. `stopped`: nothing was done, or the verdict is no longer wanted.
 */
export type Verdict = "handled" | "stopped" | Unhandled;

export interface Delivery<Raw> {
  readonly raw: Raw;
  read(identity: ReceivedMessage | undefined): DeliveredMessage;
  /** Scope of keys, such as topic and partition. */
  readonly within?: string | undefined;
  /**
   * Whether a message that would go back to the broker is kept and retried here after the pause.
   * `always`: kept, because the messages behind it would suffer. `aside`: kept, but others use its
   * place meanwhile. `never`: its sender waits for the answer. Undefined: kept while its handler
   * could not be called, because a broker that counts returns would drop it for another's fault.
   */
  readonly stays?: "always" | "aside" | "never" | undefined;
  /**
   * True: the broker never delivers it again. It is tried even during a close, until it is handled
   * or has used all its tries once more.
   */
  readonly isLast?: boolean | undefined;
  /** True when the verdict is not wanted, because the broker has taken the message back. */
  isOver?(): boolean;
  /** Called after each try, whatever its result: this process has survived it. */
  tried?(): void;
  /**
   * Sends the verdict; later messages of the key wait for it. Rejects if the broker did not accept
   * it: the message comes again.
   */
  tell(verdict: Verdict): void | Promise<void>;
}
