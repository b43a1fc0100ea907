/**
 * An operator with an account and a user in it, as `nsc` makes them: JWTs that are signed with
 * nkeys.
 */
import { nkeys } from "@nats-io/transport-node";

type Pair = ReturnType<typeof nkeys.createUser>;

const UNLIMITED = { subs: -1, data: -1, payload: -1 };
const ACCOUNT_LIMITS = {
  ...UNLIMITED,
  imports: -1,
  exports: -1,
  wildcards: true,
  conn: -1,
  leaf: -1,
  mem_storage: -1,
  disk_storage: -1,
  streams: -1,
  consumer: -1,
};

/** The server's configuration, and the text of the user's `.creds` file. */
export function operatorWithUser(): { readonly config: string; readonly credentials: string } {
  const [operator, system, account, user] = [
    nkeys.createOperator(),
    nkeys.createAccount(),
    nkeys.createAccount(),
    nkeys.createUser(),
  ];
  const accountJwt = claim(operator, account, { type: "account", limits: ACCOUNT_LIMITS });
  const systemJwt = claim(operator, system, {
    type: "account",
    limits: { ...ACCOUNT_LIMITS, mem_storage: 0, disk_storage: 0 },
  });
  const userJwt = claim(account, user, { type: "user", ...UNLIMITED });
  const preload = [
    [system, systemJwt],
    [account, accountJwt],
  ] as const;
  return {
    config: [
      `operator: ${claim(operator, operator, { type: "operator", system_account: system.getPublicKey() })}`,
      `system_account: ${system.getPublicKey()}`,
      "resolver: MEMORY",
      `resolver_preload: { ${preload.map(([pair, jwt]) => `${pair.getPublicKey()}: ${jwt}`).join(", ")} }`,
    ].join("\n"),
    credentials: [
      "-----BEGIN NATS USER JWT-----",
      userJwt,
      "------END NATS USER JWT------",
      "",
      "-----BEGIN USER NKEY SEED-----",
      new TextDecoder().decode(user.getSeed()),
      "------END USER NKEY SEED------",
      "",
    ].join("\n"),
  };
}

function claim(issuer: Pair, subject: Pair, nats: object): string {
  const now = Math.floor(Date.now() / 1000);
  const header = { typ: "JWT", alg: "ed25519-nkey" };
  const body = { jti: "test", iat: now, iss: issuer.getPublicKey(), sub: subject.getPublicKey(), name: "test" };
  const signed = [header, { ...body, nats: { ...nats, version: 2 } }].map(encoded).join(".");
  return `${signed}.${Buffer.from(issuer.sign(Buffer.from(signed))).toString("base64url")}`;
}

function encoded(part: object): string {
  return Buffer.from(JSON.stringify(part)).toString("base64url");
}
