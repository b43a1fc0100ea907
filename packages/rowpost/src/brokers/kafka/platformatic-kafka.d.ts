/**
 * Not installed in this workspace, because it refuses Node 20, which we develop on. What is used of
 * it is described in platformatic.ts, and the tests run with it on Node 22 and 24.
 */
declare module "@platformatic/kafka";
