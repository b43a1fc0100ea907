/**
 * A Prisma client for raw statements, without `prisma generate`: the command line of Prisma
 * downloads engines from a host of its own, so it is no part of our tools. What it generates is a
 * call of `getPrismaClient` with the models and the query compiler; for raw SQL in a transaction no
 * model is needed. The client, its transactions and its driver adapters are the real ones.
 */
import * as runtime from "@prisma/client/runtime/client";

/** The part of the client that the tests use. */
export interface PrismaClient extends PrismaTransaction {
  $transaction<Result>(callback: (tx: PrismaTransaction) => Promise<Result>): Promise<Result>;
  $disconnect(): Promise<void>;
}

/** What an interactive transaction hands to its callback. */
export interface PrismaTransaction {
  $queryRawUnsafe<Row>(sql: string, ...params: readonly unknown[]): Promise<Row[]>;
  $executeRawUnsafe(sql: string, ...params: readonly unknown[]): Promise<number>;
}

type Provider = "mysql" | "postgresql";

/** No models, and a table of no parameters: eight zero bytes are more than the reader looks at. */
const withoutModels = {
  runtimeDataModel: { models: {}, enums: {}, types: {} },
  parameterizationSchema: { strings: [], graph: Buffer.alloc(64).toString("base64") },
};

/**
 * Makes a client. End it with `$disconnect`.
 *
 * @param adapter a `PrismaMariaDb` (provider mysql) or `PrismaPg` (provider postgresql)
 */
export function createPrismaClient(provider: Provider, adapter: runtime.SqlDriverAdapterFactory): PrismaClient {
  const Client = runtime.getPrismaClient({
    ...withoutModels,
    previewFeatures: [],
    clientVersion: "7.9.1",
    engineVersion: "none",
    activeProvider: provider,
    inlineSchema: `datasource db { provider = "${provider}" }`,
    compilerWasm: {
      getRuntime: () => import(`@prisma/client/runtime/query_compiler_small_bg.${provider}.mjs`),
      getQueryCompilerWasmModule: () => loadCompiler(provider),
      importName: "./query_compiler_small_bg.js",
    },
  });
  // Its own type lists the model methods that a generated client would have.
  return new Client({ adapter }) as unknown as PrismaClient;
}

/** Node has WebAssembly, but its types come with the browser's library only. */
const { WebAssembly } = globalThis as unknown as { WebAssembly: { Module: new (code: Uint8Array) => object } };

async function loadCompiler(provider: Provider): Promise<object> {
  const { wasm } = await import(`@prisma/client/runtime/query_compiler_small_bg.${provider}.wasm-base64.mjs`);
  return new WebAssembly.Module(Buffer.from(wasm, "base64"));
}
