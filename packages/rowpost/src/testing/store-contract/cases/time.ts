import type { StoreContractCase } from "../case.ts";
export const timeCases: readonly StoreContractCase[] = [];
