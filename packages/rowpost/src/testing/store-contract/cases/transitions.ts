import type { StoreContractCase } from "../case.ts";
export const transitionCases: readonly StoreContractCase[] = [];
