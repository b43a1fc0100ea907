/**
 * A consumer in a process of its own. Each delivery that it is sent has an effect, a row in
 * `effects`: through the inbox, in a transaction of the inbox's or of its own, or without it. It
 * answers when the transaction has committed, as a consumer acknowledges.
 *
 * Arguments as JSON in argv[2]: { kind, url, withInbox }
 */
import { createInbox } from "../../dist/inbox/index.js";
import { createOutbox } from "../../dist/index.js";

const { kind, url, withInbox } = JSON.parse(process.argv[2] ?? "{}");

const { [kind]: open } = await import(`../../dist/databases/${kind}/index.js`);
const database = open(kind === "sqlite" ? { file: url } : { url });
const inbox = createInbox({ database });
const outbox = createOutbox({ database });
const text = `INSERT INTO effects (consumer, message) VALUES (${kind === "postgres" ? "$1, $2" : "?, ?"})`;

async function deliver({ consumer, key, inOwn }) {
  const effect = (tx) => tx.query(text, [consumer, key]);
  if (!withInbox) {
    await database.transaction(effect);
    return "handled";
  }
  const handling = { consumer, message: { type: "order.paid", key } };
  if (!inOwn) return (await inbox.handle(database, handling, effect)).outcome;
  return (await outbox.transaction((tx) => inbox.handle(tx, handling, effect))).outcome;
}

process.on("message", (delivery) => {
  void deliver(delivery)
    .then(
      (outcome) => ({ outcome }),
      (error) => ({ outcome: "failed", code: error.code ?? String(error), retriable: error.retriable === true }),
    )
    .then((answer) => process.send({ id: delivery.id, ...answer }));
});
process.send("ready");
