import type { StoreContractCase } from "../case.ts";
export const archiveCases: readonly StoreContractCase[] = [];
