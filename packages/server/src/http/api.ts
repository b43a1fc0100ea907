/** Types of the API for the app, imported as types so that a changed answer breaks its build. */
export type { Role, Route } from "./route.ts";
export type { AnswerOf, BodyOf, PathOf, QueryOf, RouteName } from "./routes.ts";
