/**
 * Imports each specifier that it is given, in a process where no package can be loaded but rowpost
 * itself, and prints what came of it as one JSON object: the exported names, or why it failed. Run
 * in the package's folder, where `rowpost/...` names the package itself.
 */
import { register } from "node:module";

const hook = `
  export async function resolve(specifier, context, next) {
    const resolved = await next(specifier, context);
    if (resolved.url.includes("/node_modules/")) throw new Error("loads " + specifier);
    return resolved;
  }`;
register(`data:text/javascript,${encodeURIComponent(hook)}`);

const outcomes = {};
for (const specifier of process.argv.slice(2)) {
  try {
    outcomes[specifier] = { names: Object.keys(await import(specifier)) };
  } catch (error) {
    outcomes[specifier] = { failure: error.message };
  }
}
console.log(JSON.stringify(outcomes));
