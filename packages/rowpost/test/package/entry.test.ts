/**
 * What importing rowpost costs: nothing but our own files. No driver and no broker client may be
 * loaded by an import, because they are optional: whoever uses PostgreSQL has no mysql2. Looks at
 * the folder that is published, as Node would load it for a user.
 */
import { execFile, execFileSync } from "node:child_process";
import { copyFile, mkdtemp, readdir, readFile, rm, symlink } from "node:fs/promises";
import { isBuiltin } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import ts from "typescript";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

const run = promisify(execFile);
const packageFolder = fileURLToPath(new URL("../../", import.meta.url));
const typesFolder = fileURLToPath(new URL("../../../../node_modules/@types", import.meta.url));
const sourceFolder = fileURLToPath(new URL("../../src/", import.meta.url));

interface Manifest {
  readonly exports: Readonly<Record<string, string | { readonly require: { readonly default: string } }>>;
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly peerDependencies: Readonly<Record<string, string>>;
  readonly peerDependenciesMeta: Readonly<Record<string, { readonly optional?: boolean }>>;
}

const manifest: Manifest = JSON.parse(await readFile(`${packageFolder}package.json`, "utf8"));
const entries = Object.keys(manifest.exports).filter((entry) => entry !== "./package.json");

/** An import in a source file: what it names, and whether it is an `import()` that runs later. */
interface Import {
  readonly file: string;
  readonly specifier: string | undefined;
  readonly dynamic: boolean;
}

/**
 * Every import of a package (not of a file of ours) in the sources; a computed `import()` has no
 * specifier.
 */
async function importsInSources(): Promise<Import[]> {
  const names = await readdir(sourceFolder, { recursive: true });
  const sources = names.filter((name) => name.endsWith(".ts") && !name.endsWith(".test.ts"));
  const found = await Promise.all(
    sources.map(async (name) => importsOf(name, await readFile(`${sourceFolder}${name}`, "utf8"))),
  );
  return found.flat().filter((entry) => entry.specifier?.startsWith(".") !== true);
}

function importsOf(file: string, text: string): Import[] {
  const tree = ts.createSourceFile(file, text, ts.ScriptTarget.Latest);
  const imports: Import[] = [];
  const visit = (node: ts.Node): void => {
    if ((ts.isImportDeclaration(node) || ts.isExportDeclaration(node)) && node.moduleSpecifier !== undefined) {
      imports.push({ file, specifier: textOf(node.moduleSpecifier), dynamic: false });
    } else if (ts.isCallExpression(node) && node.expression.kind === ts.SyntaxKind.ImportKeyword) {
      imports.push({ file, specifier: textOf(node.arguments[0]), dynamic: true });
    }
    ts.forEachChild(node, visit);
  };
  visit(tree);
  return imports;
}

function textOf(node: ts.Node | undefined): string | undefined {
  return node !== undefined && ts.isStringLiteralLike(node) ? node.text : undefined;
}

/**
 * `@grpc/grpc-js/build/x` and `mysql2/promise` are parts of the packages `@grpc/grpc-js` and
 * `mysql2`.
 */
function packageOf(specifier: string): string {
  return specifier
    .split("/")
    .slice(0, specifier.startsWith("@") ? 2 : 1)
    .join("/");
}

/** The file for a loader that knows `require` and `default` only, as Jest's. */
function commonjsFile(entry: string): string {
  const found = manifest.exports[entry];
  if (found === undefined || typeof found === "string") throw new Error(`${entry} has no file for require`);
  return join(published, found.require.default);
}

/** The code of all files in a folder of the published one. */
async function scriptsOf(kind: string): Promise<string> {
  const names = await readdir(join(published, kind), { recursive: true });
  const scripts = names.filter((name) => name.endsWith(".js"));
  return (await Promise.all(scripts.map((name) => readFile(join(published, kind, name), "utf8")))).join("\n");
}

/** What came of importing an entry: the names it exports, or why it could not be imported. */
type Outcome = { readonly names: readonly string[] } | { readonly failure: string };

/** Where the published folder is. */
let published: string;
let outcomes: Readonly<Record<string, Outcome>>;

beforeAll(async () => {
  const repository = join(packageFolder, "../..");
  published = await mkdtemp(join(tmpdir(), "rowpost-entries-"));
  await run(process.execPath, [join(repository, "tools/bundle.mjs"), published]);
  await symlink(join(repository, "node_modules"), join(published, "node_modules"));
  // In the folder, where `rowpost/...` names what is published.
  await copyFile(new URL("import-entries.mjs", import.meta.url), join(published, "import-entries.mjs"));
  const specifiers = [...entries.map(specifierOf), "mysql2"];
  const { stdout } = await run(process.execPath, ["import-entries.mjs", ...specifiers], { cwd: published });
  outcomes = JSON.parse(stdout);
}, 300_000);

afterAll(() => rm(published, { recursive: true, force: true }));

const specifierOf = (entry: string): string => entry.replace(".", "rowpost");

describe("the published package", () => {
  it("lists its entries one by one, and gives away no other file", () => {
    expect(entries).toEqual(expect.arrayContaining([".", "./mysql", "./testing"]));
    expect(entries.filter((entry) => !/^\.(\/[a-z-]+)?$/.test(entry))).toEqual([]);
  });

  it.each(entries)("%s loads no package", (entry) => {
    expect(outcomes[specifierOf(entry)]).toEqual({ names: expect.arrayContaining([expect.any(String)]) });
  });

  it.each(entries)("%s is there as CommonJS too, with the same names, and loads no package", (entry) => {
    const script = `
      const names = Object.keys(require(${JSON.stringify(commonjsFile(entry))}));
      const foreign = Object.keys(require.cache).filter((file) => file.includes("node_modules"));
      console.log(JSON.stringify({ names: names.sort(), foreign }));`;
    const options = ["--no-experimental-require-module", "-e", script];
    const stdout = execFileSync(process.execPath, options, { encoding: "utf8" });
    const outcome = outcomes[specifierOf(entry)];
    const names = outcome !== undefined && "names" in outcome ? [...outcome.names].sort() : [];
    expect(JSON.parse(stdout)).toEqual({ names, foreign: [] });
  });

  it("is one copy in Node, required or imported", () => {
    const script = `
      const required = require("rowpost");
      import("rowpost").then((imported) => console.log(required.RowpostError === imported.RowpostError));`;
    const stdout = execFileSync(process.execPath, ["-e", script], { cwd: published, encoding: "utf8" });
    expect(stdout.trim()).toBe("true");
  });

  it.each(["dist", "cjs"])("has each error's class once in %s", async (kind) => {
    const declared = (await scriptsOf(kind)).matchAll(/^var (\w+Error)(?:\$\d+)? = class\b/gm);
    const classes = [...declared].map(([, name]) => name);
    expect(classes).toContain("RowpostError");
    expect(classes.filter((name, index) => classes.indexOf(name) !== index)).toEqual([]);
  });

  it.each(["import", "require"])("throws by %s from one entry what another entry exports", (way) => {
    const [base, queue] = [".", "./queue"].map((entry) =>
      way === "require" ? `require(${JSON.stringify(commonjsFile(entry))})` : `await import("${specifierOf(entry)}")`,
    );
    const script = `
      void (async () => {
        const { ConfigurationError } = ${base};
        const { createQueue } = ${queue};
        try { createQueue({}) } catch (error) { console.log(error.name, error instanceof ConfigurationError) }
      })()`;
    const stdout = execFileSync(process.execPath, ["-e", script], { cwd: published, encoding: "utf8" });
    expect(stdout.trim()).toBe("ConfigurationError true");
  });

  it.each(["dist", "cjs"])("lacks no type in %s", async (kind) => {
    const names = await readdir(join(published, kind), { recursive: true });
    const files = names.filter((name) => name.endsWith(".d.ts")).map((name) => join(published, kind, name));
    const options = { module: ts.ModuleKind.Node16, target: ts.ScriptTarget.ES2023, strict: true, types: ["node"] };
    const program = ts.createProgram(files, { ...options, noEmit: true, typeRoots: [typesFolder] });
    const faults = files.flatMap((file) => ts.getPreEmitDiagnostics(program, program.getSourceFile(file)));
    expect(faults.map(({ file, messageText }) => [file?.fileName, messageText])).toEqual([]);
  });

  it("asks as CommonJS for nothing that Jest's loader lacks", async () => {
    expect((await scriptsOf("cjs")).match(/\bimport\.meta\b|[^.\w`]import\(/g)).toBeNull();
  });

  it("is imported where a driver would be noticed", () => {
    expect(outcomes["mysql2"]).toEqual({ failure: "loads mysql2" });
  });
});

describe("the manifest", () => {
  it("declares no dependency", () => {
    expect(Object.keys(manifest.dependencies ?? {})).toEqual([]);
  });

  it("declares every peer as optional", () => {
    const optional = Object.keys(manifest.peerDependenciesMeta).filter(
      (name) => manifest.peerDependenciesMeta[name]?.optional === true,
    );
    expect(optional).toEqual(Object.keys(manifest.peerDependencies));
  });

  it("declares exactly the packages that the sources load, and the sources load them lazily", async () => {
    const imports = await importsInSources();
    expect(
      imports.filter((entry) => entry.specifier === undefined),
      "import() of a computed name",
    ).toEqual([]);
    const packages = imports.filter((entry) => !isNodes(entry.specifier));
    expect(
      packages.filter((entry) => !entry.dynamic),
      "imports that load a client at once",
    ).toEqual([]);
    const loaded = new Set(packages.map((entry) => packageOf(entry.specifier ?? "")));
    expect([...loaded].sort()).toEqual(Object.keys(manifest.peerDependencies).sort());
  });
});

/** `node:sqlite` is a built-in module that Node 20 does not know yet. */
function isNodes(specifier: string | undefined): boolean {
  return specifier !== undefined && (specifier.startsWith("node:") || isBuiltin(specifier));
}
