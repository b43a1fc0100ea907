/** A database as a program of a test opens it, from its built package. */
export async function openDatabase({ kind, url }) {
  if (kind === "sqlite") return (await import("../../dist/databases/sqlite/index.js")).sqlite({ file: url });
  if (kind === "postgres") return (await import("../../dist/databases/postgres/index.js")).postgres({ url });
  return (await import("../../dist/databases/mysql/index.js")).mysql({ url });
}
