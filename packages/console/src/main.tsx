import { render } from "preact";
import { watchAddress } from "./address.ts";
import { beginSession } from "./api/session.ts";
import { App } from "./app.tsx";
import { applySettings } from "./settings.ts";
import "./styles/tokens.css";
import "./styles/shell.css";
import "./styles/parts.css";
import "./styles/pages.css";
import "./styles/queue.css";

const root = document.getElementById("app");
if (root === null) throw new Error("index.html has no #app");
applySettings();
watchAddress();
render(<App />, root);
await beginSession();
