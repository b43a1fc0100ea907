import type { StoreContractCase } from "../case.ts";
export const scanCases: readonly StoreContractCase[] = [];
