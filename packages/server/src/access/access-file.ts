/**
 * `--access FILE.json`: users and tokens. It holds hashes of passwords and tokens (`rowpost user
 * hash`, `rowpost token create`).
 */
import { readFileSync } from "node:fs";
import { z } from "zod";
import { InputError } from "../failure.ts";
import { role } from "../http/schemas.ts";
import { proxySchema } from "./proxy.ts";
import { isPasswordHash } from "./secrets.ts";
import { topicsSchema } from "./topics.ts";

const name = z.string().trim().min(1).max(64);

const schema = z.strictObject({
  users: z
    .array(
      z.strictObject({
        name,
        role,
        topics: topicsSchema.optional(),
        password: z.string().refine(isPasswordHash, "must be what `rowpost user hash` prints"),
      }),
    )
    .default([]),
  tokens: z
    .array(
      z.strictObject({
        name,
        role: z.enum([...role.options, "metrics"]),
        topics: topicsSchema.optional(),
        hash: z.string().regex(/^[0-9a-f]{64}$/, "must be what `rowpost token create` prints as hash"),
        expires: z.iso.datetime({ offset: true }).optional(),
      }),
    )
    .default([]),
  proxy: proxySchema.optional(),
});

export type Access = z.infer<typeof schema>;

/** Reads the file. Throws {@link InputError}, which repeats nothing of it. */
export function readAccessFile(path: string): Access {
  let value: unknown;
  try {
    value = JSON.parse(readFileSync(path, "utf8"));
  } catch (error) {
    const why = error instanceof SyntaxError ? "is not JSON" : "cannot be read";
    throw new InputError(`--access ${path} ${why}; expected {"users":[…],"tokens":[…]}`);
  }
  const parsed = schema.safeParse(value);
  if (!parsed.success) {
    const [issue] = parsed.error.issues;
    throw new InputError(`--access ${path}: ${issue?.path.join(".") || "the file"} ${issue?.message ?? "is wrong"}`);
  }
  const { proxy, tokens, users } = parsed.data;
  if (users.length + tokens.length === 0 && proxy === undefined)
    throw new InputError(`--access ${path} names neither users nor tokens nor a proxy`);
  return parsed.data;
}
