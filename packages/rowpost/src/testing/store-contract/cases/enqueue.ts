import type { StoreContractCase } from "../case.ts";
export const enqueueCases: readonly StoreContractCase[] = [];
