import type { StoreContractCase } from "../case.ts";
export const layoutCases: readonly StoreContractCase[] = [];
