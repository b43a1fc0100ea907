import type { StoreContractCase } from "../case.ts";
export const leaseCases: readonly StoreContractCase[] = [];
