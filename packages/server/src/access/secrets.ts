/** Random secrets. Only hashes are stored, so that a leaked file or table grants no access. */
import { createHash, randomBytes, scrypt, timingSafeEqual } from "node:crypto";

/** 32 random bytes as text for URLs and headers. */
export function randomSecret(): string {
  return randomBytes(32).toString("base64url");
}

/** SHA-256 in hex, sufficient for random secrets. */
export function sha256(secret: string): string {
  return createHash("sha256").update(secret).digest("hex");
}

/** Compares in constant time. */
export function sameHash(secret: string, hash: string): boolean {
  return timingSafeEqual(Buffer.from(sha256(secret), "hex"), Buffer.from(hash.padEnd(64, "0").slice(0, 64), "hex"));
}

const COST = { N: 2 ** 15, r: 8, p: 3, maxmem: 2 ** 26 } as const;
const HASH = /^scrypt\$32768\$8\$3\$([\w-]{22})\$([\w-]{43})$/;

/** `scrypt$N$r$p$salt$hash`, for the access file. */
export async function hashPassword(password: string): Promise<string> {
  const salt = randomBytes(16);
  return `scrypt$${COST.N}$${COST.r}$${COST.p}$${salt.toString("base64url")}$${(await derive(password, salt)).toString("base64url")}`;
}

/** Is this what {@link hashPassword} makes? */
export function isPasswordHash(text: string): boolean {
  return HASH.test(text);
}

/**
 * With `hash` undefined it takes equally long and returns false, so that timing does not reveal
 * names.
 */
export async function isPassword(password: string, hash: string | undefined): Promise<boolean> {
  const [, salt, expected] = HASH.exec(hash ?? "") ?? [];
  const derived = await derive(password, Buffer.from(salt ?? "", "base64url"));
  const wanted = Buffer.from(expected ?? "", "base64url");
  return wanted.length === derived.length && timingSafeEqual(derived, wanted);
}

function derive(password: string, salt: Buffer): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    scrypt(password.normalize("NFKC"), salt, 32, COST, (error, key) => (error === null ? resolve(key) : reject(error)));
  });
}
