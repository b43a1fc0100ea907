import type { StoreContractCase } from "../case.ts";
export const adminCases: readonly StoreContractCase[] = [];
