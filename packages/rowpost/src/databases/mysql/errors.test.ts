import { expect, test } from "vitest";
import { DatabaseConflictError, DatabaseUnavailableError } from "../../runtime/errors.ts";
import { endsTransaction, errorMentions, errorNumber, isAway, isDuplicate, translateError } from "./errors.ts";

const server = (errno: number): Error => Object.assign(new Error("from the server"), { errno });

test("the server's number is found wherever an ORM has put its error", () => {
  const original = server(1062);
  for (const wrapped of [
    original,
    new Error("wrapped", { cause: original }),
    Object.assign(new Error("sequelize"), { parent: original, original }),
    Object.assign(new Error("typeorm"), { driverError: original }),
    Object.assign(new Error("prisma"), {
      code: "P2010",
      meta: { driverAdapterError: { cause: { originalCode: "1062" } } },
    }),
  ]) {
    expect(errorNumber(wrapped)).toBe(1062);
    expect(isDuplicate(wrapped)).toBe(true);
    expect(errorMentions(wrapped, "P9")).toBe(false);
  }
  expect(isDuplicate(Object.assign(new Error("prisma"), { code: "P2002" }))).toBe(true);
  // Numbers such as -111 come from the operating system.
  expect(errorNumber(Object.assign(new Error("refused"), { errno: -111, code: "ECONNREFUSED" }))).toBe(0);
});

test("an error that wraps itself ends", () => {
  const error: Error & { cause?: unknown } = new Error("round");
  error.cause = error;
  expect(errorNumber(error)).toBe(0);
});

test("conflicts, losses and the rest are told apart", () => {
  for (const errno of [1213, 1205, 1020, 3572])
    expect(translateError(server(errno), "claim")).toBeInstanceOf(DatabaseConflictError);
  for (const errno of [1053, 1927, 3032, 4031, 1290, 1040])
    expect(translateError(server(errno), "claim")).toBeInstanceOf(DatabaseUnavailableError);
  for (const code of ["PROTOCOL_CONNECTION_LOST", "PROTOCOL_SEQUENCE_TIMEOUT", "ECONNRESET"]) {
    expect(isAway(Object.assign(new Error(code), { code }))).toBe(true);
  }
  expect(isAway(new Error("Can't add new command when connection is in closed state"))).toBe(true);
  const syntax = server(1064);
  expect(translateError(syntax, "claim")).toBe(syntax);
  expect([1213, 1206, 1062].map((errno) => endsTransaction(server(errno)))).toEqual([true, true, false]);
});
