import type { StoreContractCase } from "../case.ts";
export const fenceCases: readonly StoreContractCase[] = [];
