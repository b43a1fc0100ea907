import type { StoreContractCase } from "../case.ts";
export const keyQueueCases: readonly StoreContractCase[] = [];
