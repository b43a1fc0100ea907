import { checkSchema } from "./check-schema.ts";
import type { StoreParts } from "./relay-store.ts";
import { createSessionSlots, type SessionSlots } from "./session-slots.ts";

/** Sessions of the operator's tools; the first one checks the table against the layout. */
export function createToolSlots(parts: StoreParts, statementTimeoutMs?: number): SessionSlots {
  const { layout, statements } = parts;
  let checked = false;
  return createSessionSlots({
    proveLost: false,
    shared: parts.sharedSession,
    connect: async () => {
      const session = await parts.connect({
        purpose: "tool",
        clock: layout.clock,
        ...(statementTimeoutMs === undefined ? {} : { statementTimeoutMs, stopsOnServer: true }),
      });
      try {
        if (!checked) await checkSchema(session, { layout, schema: statements.schema });
      } catch (error) {
        // No other code has it, and left open it would keep the process alive.
        await session.close();
        throw error;
      }
      checked = true;
      return session;
    },
  });
}
