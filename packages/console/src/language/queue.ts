import { computed } from "@preact/signals";
import { language } from "../settings.ts";
import { queue as en } from "./en-queue.ts";
import { queue as zh } from "./zh-queue.ts";

export const queueWords = computed(() => (language.value === "zh" ? zh : en));
