import type { StoreContractCase } from "../case.ts";
export const suspensionCases: readonly StoreContractCase[] = [];
