import { computed } from "@preact/signals";
import { language } from "../settings.ts";
import { care as en } from "./en-care.ts";
import { care as zh } from "./zh-care.ts";

export const careWords = computed(() => (language.value === "zh" ? zh : en));
