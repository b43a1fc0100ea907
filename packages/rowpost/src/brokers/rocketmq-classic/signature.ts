import { createHmac } from "node:crypto";
import type { AccessKeys } from "../rocketmq/access-keys.ts";
import type { Request } from "./frames.ts";

/**
 * Signs a request: HMAC-SHA1 with the secret key over all field values in order of their names,
 * then the body.
 */
export function signed(request: Request, keys: AccessKeys | undefined): Request {
  if (keys === undefined) return request;
  const { accessKey, secretKey, sessionToken } = keys;
  const fields: Record<string, string> = { ...request.fields, AccessKey: accessKey };
  if (sessionToken !== undefined) fields["SecurityToken"] = sessionToken;
  const hmac = createHmac("sha1", secretKey);
  for (const name of Object.keys(fields).sort()) hmac.update(fields[name] ?? "");
  if (request.body !== undefined) hmac.update(request.body);
  return { ...request, fields: { ...fields, Signature: hmac.digest("base64") } };
}
