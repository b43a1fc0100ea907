import { ConfigurationError } from "../../runtime/errors.ts";

export interface AccessKeys {
  readonly accessKey: string;
  readonly secretKey: string;
  readonly sessionToken: string | undefined;
}

/** Undefined: none are given. Throws {@link ConfigurationError} for half of them. */
export function accessKeysIn({
  accessKey,
  secretKey,
  sessionToken,
}: {
  readonly [Name in keyof AccessKeys]?: string | undefined;
}): AccessKeys | undefined {
  if (accessKey === undefined && secretKey === undefined && sessionToken === undefined) return undefined;
  if (accessKey && secretKey) return { accessKey, secretKey, sessionToken };
  throw new ConfigurationError("accessKey and secretKey belong together: give both or none");
}
