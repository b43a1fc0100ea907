import { describe } from "vitest";
import { defineTakeoverCases } from "./takeover.cases.ts";

// Whether a process lives is read from /proc.
describe.runIf(process.platform === "linux")("takeover on sqlite", () => defineTakeoverCases("sqlite"));
