import { ConfigurationError } from "../../runtime/errors.ts";
import { percentDecoded } from "../../runtime/percent-decoded.ts";

export interface RabbitmqServer {
  readonly secure: boolean;
  /** Without the brackets of an IPv6 address. */
  readonly host: string;
  readonly port: number;
  readonly vhost: string;
  readonly username: string;
  readonly password: string;
  readonly label: string;
}

export interface Account {
  readonly username?: string | undefined;
  readonly password?: string | undefined;
}

/** Throws `ConfigurationError` without the URL, which may hold a password. */
export function serversFrom(url: string | readonly string[], account: Account): RabbitmqServer[] {
  const servers = [url].flat().map((each) => serverFrom(each, account));
  if (servers.length === 0) throw new ConfigurationError("rabbitmq broker: url is an empty list");
  return servers;
}

function serverFrom(url: string, account: Account): RabbitmqServer {
  if (!URL.canParse(url) || !/^amqps?:\/\/[^/]/i.test(url)) {
    throw new ConfigurationError(
      "rabbitmq broker: the url cannot be read; write amqp://user:password@host:5672/vhost, with special characters percent-encoded",
    );
  }
  const { protocol, hostname, port, pathname, username, password, search, hash } = new URL(url);
  if (search !== "" || hash !== "") {
    throw new ConfigurationError(
      "rabbitmq broker: the url takes no settings behind a ?; use the options, or rabbitmqFromUrl",
    );
  }
  const secure = protocol === "amqps:";
  const anonymous = username === "" && password === "";
  const server = {
    secure,
    host: percentDecoded("rabbitmq broker: the host in the url", hostname.replace(/^\[(.*)\]$/, "$1")),
    port: port === "" ? (secure ? 5671 : 5672) : Number(port),
    // Both "amqp://host" and "amqp://host/" mean the vhost "/", which is written "%2F".
    vhost: pathname.length > 1 ? percentDecoded("rabbitmq broker: the vhost in the url", pathname.slice(1)) : "/",
    username:
      account.username ?? (anonymous ? "guest" : percentDecoded("rabbitmq broker: the user in the url", username)),
    password:
      account.password ?? (anonymous ? "guest" : percentDecoded("rabbitmq broker: the password in the url", password)),
  };
  return { ...server, label: `${hostname}:${server.port}` };
}
