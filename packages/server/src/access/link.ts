/** The one-time link: the way in of a first user, who has no password yet. */
import { randomSecret, sameHash, sha256 } from "./secrets.ts";

const LIFE_MS = 10 * 60_000;

/** A link that works once, within ten minutes. */
export interface OneTimeLink {
  /** Stands in the fragment of an address, which no log and no Referer has. */
  readonly token: string;
  /**
   * Runs `work` for the one who comes first with the right token; undefined: this is another one.
   * When `work` fails, the link can be used again.
   */
  use<T>(token: string, work: () => Promise<T>): Promise<T | undefined>;
  /** It can still be used. */
  isOpen(): boolean;
}

/** Makes one. */
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
