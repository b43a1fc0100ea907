import type { Product } from "../servers/server.ts";
import { installPeer } from "./install.ts";

export interface Peer {
  readonly name: string;
  readonly version: string;
  readonly databases: readonly Product[];
  /** Enough for some seconds. Their rates fall with the backlog, so few messages favor them. */
  readonly messages: number;
  readonly settings: string;
  /** Installs it and returns the command line that drains `messages` in that database. */
  command(url: string, messages: number): readonly string[];
}

/** `program`: from its folder, if it does not run on this Node. */
export function nodeDriver(name: string, program?: string): Peer["command"] {
  return (url, messages) => {
    const folder = installPeer(name, "package.json");
    const node = program === undefined ? process.execPath : `${folder}/${program}`;
    return [node, "--no-deprecation", `${folder}/driver.mjs`, url, String(messages)];
  };
}

export const PEERS: readonly Peer[] = [
  {
    name: "pg-transactional-outbox",
    version: "0.5.7",
    databases: ["postgres"],
    messages: 2_000,
    settings: "polling, batch and pool 20, poll 50 ms",
    command: nodeDriver("pg-transactional-outbox"),
  },
  {
    name: "@fullstackhouse/nestjs-outbox",
    version: "4.1.2",
    databases: ["postgres", "mariadb", "mysql"],
    messages: 2_000,
    settings: "200 events a poll, poll 50 ms, pool 10",
    command: nodeDriver("nestjs-outbox"),
  },
  {
    name: "gruelbox transactionoutbox-core",
    version: "4.2.268",
    databases: ["postgres", "mariadb"],
    messages: 10_000,
    settings: "flush in a loop, 8 threads, READ COMMITTED",
    command: gruelboxDriver("Drain"),
  },
];

export function gruelboxDriver(program: "Drain" | "Lone"): Peer["command"] {
  return (url, messages) => {
    const folder = installPeer("gruelbox", "pom.xml");
    const classPath = `${folder}/target/classes:${folder}/target/dependency/*`;
    const product = url.startsWith("postgres") ? "postgres" : "mariadb";
    return ["java", "-Xmx512m", "-cp", classPath, program, jdbcUrl(url), product, String(messages)];
  };
}

function jdbcUrl(text: string): string {
  const url = new URL(text);
  const product = url.protocol.startsWith("postgres") ? "postgresql" : "mariadb";
  const more = product === "mariadb" ? "&useServerPrepStmts=true" : "";
  const user = `user=${url.username}&password=${url.password}`;
  return `jdbc:${product}://${url.host}${url.pathname}?${user}${more}`;
}
