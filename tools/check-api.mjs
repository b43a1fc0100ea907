/**
 * Everything that the packages export says what it is for: each exported name, and each member of
 * an exported interface, class or options type, has a docstring. What stands inside a member's type
 * is told by that member's text. Links of docstrings lead somewhere.
 *
 *   node tools/check-api.mjs
 */
import { relative } from "node:path";
import { Application, ReflectionKind, TypeDocReader } from "typedoc";
import { report } from "./project-files.mjs";

const app = await Application.bootstrap({ emit: "none", logLevel: "Warn" }, [new TypeDocReader()]);
const project = await app.convert();
if (project === undefined) process.exit(1);
app.validate(project);

/** A function's docstring is at its signature, a callback's at its type. */
function isDocumented(reflection) {
  const callback = reflection.type?.type === "reflection" ? reflection.type.declaration.signatures : undefined;
  const places = [reflection, ...(reflection.signatures ?? []), reflection.getSignature, ...(callback ?? [])];
  return places.some((place) => place?.hasComment() === true);
}

/** Members declared here; inherited ones are checked at their own interface. */
function membersOf(reflection) {
  if (reflection.kindOf(ReflectionKind.TypeAlias) && reflection.type?.type === "reflection") {
    return reflection.type.declaration.children ?? [];
  }
  if (!reflection.kindOf(ReflectionKind.ClassOrInterface)) return [];
  return (reflection.children ?? []).filter(
    ({ inheritedFrom, kind }) => inheritedFrom === undefined && kind !== ReflectionKind.Constructor,
  );
}

const exported = project.getReflectionsByKind(ReflectionKind.Module).flatMap(({ children }) => children ?? []);
const declared = exported.filter(({ kind }) => kind !== ReflectionKind.Reference);
const documentedNames = new Set(declared.filter(isDocumented).map((one) => one.getFullName()));
const missing = declared.flatMap((one) => [
  ...(documentedNames.has(one.getFullName()) ? [] : [one]),
  ...membersOf(one).filter((member) => !isDocumented(member)),
]);
report(
  "api",
  missing.map((one) => {
    const [source] = one.sources ?? [];
    return `${relative(".", source?.fullFileName ?? "")}:${source?.line}: ${one.name} has no docstring`;
  }),
  declared.length,
);
if (app.logger.hasWarnings() || app.logger.hasErrors()) process.exitCode = 1;
