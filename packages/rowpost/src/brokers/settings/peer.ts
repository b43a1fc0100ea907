import { MissingPeerError } from "../../runtime/errors.ts";

/**
 * A peer that is being imported. Rejects with {@link MissingPeerError}, also for a version that
 * lacks what `fits` looks for: pnpm and yarn install one outside of the range with a warning only.
 */
export async function loadedPeer<Module>(
  importing: Promise<unknown>,
  name: string,
  wanted: {
    readonly neededFor: string;
    readonly range: string;
    readonly fits?: ((module: Module) => boolean) | undefined;
  },
): Promise<Module> {
  const { neededFor, range, fits } = wanted;
  let module: Module;
  try {
    module = (await importing) as Module;
  } catch (cause) {
    throw new MissingPeerError(name, neededFor, { cause, range });
  }
  if (fits?.(module) === false) throw new MissingPeerError(name, neededFor, { range, unfit: true });
  return module;
}
