import { randomSecret, sameHash, sha256 } from "./secrets.ts";

const LIFE_MS = 10 * 60_000;

/** A link that works once, within ten minutes. */
export interface OneTimeLink {
  /** Sent in the URL fragment, which appears in no log and no Referer. */
  readonly token: string;
  /**
   * Runs `work` for the first caller with the right token; undefined for any other. If `work`
   * fails, the link can be used again.
   */
  use<T>(token: string, work: () => Promise<T>): Promise<T | undefined>;
  isOpen(): boolean;
}

export function createOneTimeLink(now: () => number = Date.now): OneTimeLink {
  const token = randomSecret();
  const hash = sha256(token);
  const endsAtMs = now() + LIFE_MS;
  let used = false;
  const isOpen = (): boolean => !used && now() < endsAtMs;
  return {
    token,
    isOpen,
    async use(given, work) {
      if (!isOpen() || !sameHash(given, hash)) return undefined;
      used = true;
      try {
        return await work();
      } catch (error) {
        used = false;
        throw error;
      }
    },
  };
}
