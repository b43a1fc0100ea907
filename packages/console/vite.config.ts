import { fileURLToPath } from "node:url";
import { defineConfig } from "vite";

const at = (path: string): string => fileURLToPath(new URL(path, import.meta.url));

/** The app becomes a part of rowpost-server, which serves it from memory. */
export default defineConfig({
  root: at("."),
  // Below whatever prefix it is served: index.html gets its <base> from the server.
  base: "./",
  oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
  build: {
    outDir: at("../server/dist/console"),
    emptyOutDir: true,
    target: "es2023",
    cssTarget: "chrome123",
    // What it would add writes elements that the policy need not allow.
    modulePreload: false,
    assetsInlineLimit: 0,
    reportCompressedSize: false,
  },
});
