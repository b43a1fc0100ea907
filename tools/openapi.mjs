/**
 * docs/openapi.json: the document that a console serves, valid as OpenAPI 3.1, and the table of
 * routes in docs/api.md and docs/api.zh-CN.md, all from the route table. Fails when one of them is
 * not what the sources say.
 *
 *   npm run check:openapi               compares, after a build
 *   node tools/openapi.mjs --write      writes them
 */
import { readFileSync } from "node:fs";
import { Validator } from "@seriousme/openapi-schema-validator";
import { openApiDocument } from "../packages/server/dist/http/openapi.js";
import { ROUTES } from "../packages/server/dist/http/routes.js";
import { madeFiles, report } from "./project-files.mjs";

const DOCUMENT = "docs/openapi.json";
const TABLES = [
  { page: "docs/api.md", roles: { anyone: "anyone", reader: "reader", operator: "operator", admin: "admin" } },
  { page: "docs/api.zh-CN.md", roles: { anyone: "任何人", reader: "reader", operator: "operator", admin: "admin" } },
];
const FROM = "<!-- routes: node tools/openapi.mjs --write -->\n";
const TO = "<!-- end of routes -->\n";

// Constant, so that the document does not change with a release.
const document = openApiDocument("1");
const { errors, valid } = await new Validator().validate(structuredClone(document));
const problems = valid ? [] : [`the document is not OpenAPI 3.1: ${JSON.stringify(errors).slice(0, 2_000)}`];

function rows(roles) {
  return Object.entries(ROUTES).map(([name, { ifMatch, method, path, query, role }]) => {
    const shown = path.replace(/:(\w+)/g, "{$1}");
    const more = [...Object.keys(query?.shape ?? {}), ...(ifMatch === true ? ["`If-Match`"] : [])].join(" ");
    return `| \`${name}\` | \`${method} ${shown}\` | ${roles[role]} | ${more} |\n`;
  });
}

/** The page with its current table. */
function pageWith(text, roles) {
  const [before, rest] = text.split(FROM);
  const [old, after] = rest?.split(TO) ?? [];
  if (after === undefined) return undefined;
  const head = old.split("\n").slice(0, 2).join("\n");
  return `${before}${FROM}${head}\n${rows(roles).join("")}${TO}${after}`;
}

const wanted = [
  { file: DOCUMENT, text: `${JSON.stringify(document, null, 2)}\n` },
  ...TABLES.map(({ page, roles }) => ({ file: page, text: pageWith(readFileSync(page, "utf8"), roles) })),
];
for (const { file } of wanted.filter(({ text }) => text === undefined))
  problems.push(`${file} has no table of routes between its two marks`);
const made = wanted.filter(({ text }) => text !== undefined);
problems.push(...madeFiles(made, "is not what the routes say: npm run build, then node tools/openapi.mjs --write"));
report("openapi", problems, `${Object.keys(ROUTES).length} routes`);
