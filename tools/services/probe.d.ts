/** The servers that hold databases. */
export type DatabaseServiceName = "mariadb" | "mysql9" | "mysql8" | "postgres";

/**
 * The servers that tests use, by the name that scripts, tests and CI say: those of databases, and a
 * broker's own name.
 */
export type ServiceName = string;

/** What a probe saw. */
export interface ServiceReport {
  readonly name: ServiceName;
  /** The environment variable that moves the address. */
  readonly variable: string;
  /** `scheme://user:password@host:port/database` */
  readonly address: string;
  /** The right server took a login (or, without logins, answered in its own protocol). */
  readonly present: boolean;
  /** The product and its version, such as `MariaDB 10.11.19`; the reason when it is not present. */
  readonly detail: string;
}

/** One row of the table. */
export interface ServiceEntry {
  readonly variable: string;
  readonly defaultAddress: string;
  /** Tested on what `version` gives: another product on the port counts as absent. */
  readonly expects: RegExp;
  readonly version: (url: URL) => Promise<string>;
}

/** Each service by its name. */
export declare const services: Readonly<Record<ServiceName, ServiceEntry>>;

/** The address in force: the variable's, when set and not empty, else the default. */
export declare function addressOf(name: ServiceName): string;

/** Logs in and reads the version, within 3 seconds. Never throws. */
export declare function probe(name: ServiceName, address?: string): Promise<ServiceReport>;
