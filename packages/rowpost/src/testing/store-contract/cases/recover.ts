import type { StoreContractCase } from "../case.ts";
export const recoverCases: readonly StoreContractCase[] = [];
