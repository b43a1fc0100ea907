/**
 * Not installed in this workspace, because it refuses Node 20, the development version.
 * platformatic.ts describes the parts used, and the tests run with it on Node 22 and 24.
 */
declare module "@platformatic/kafka";
