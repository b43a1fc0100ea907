import { vi } from "vitest";

/** Resolves once it holds; a slow machine may take minutes. */
export function until(condition: () => unknown): Promise<unknown> {
  return vi.waitUntil(condition, { timeout: 180_000, interval: 10 });
}
