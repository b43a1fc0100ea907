import { computed } from "@preact/signals";
import { language } from "../settings.ts";
import { type Dictionary, en } from "./en.ts";
import { zh } from "./zh.ts";

const DICTIONARIES: Readonly<Record<"en" | "zh", Dictionary>> = { en, zh };

export const words = computed(() => DICTIONARIES[language.value]);
