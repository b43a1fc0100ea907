import { MissingPeerError } from "../../runtime/errors.ts";

/** A peer that is being imported. Rejects with {@link MissingPeerError}. */
export async function loadedPeer<Module>(
  importing: Promise<unknown>,
  name: string,
  { neededFor, range }: { readonly neededFor: string; readonly range: string },
): Promise<Module> {
  try {
    return (await importing) as Module;
  } catch (cause) {
    throw new MissingPeerError(name, neededFor, { cause, range });
  }
}
