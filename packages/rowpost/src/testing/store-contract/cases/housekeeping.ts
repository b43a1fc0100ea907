import type { StoreContractCase } from "../case.ts";
export const housekeepingCases: readonly StoreContractCase[] = [];
