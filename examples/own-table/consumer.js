/** Another service: a webhook that takes the messages. */
import { once } from "node:events";
import { createServer } from "node:http";

/** Calls back with the header `rowpost-key` of each message: the id of an order. */
export async function startConsumer(onOrder) {
  const server = createServer((request, response) => {
    request.resume().on("end", () => {
      if (request.method === "POST") onOrder(request.headers["rowpost-key"]); // else the relay asks who is there
      response.end();
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${server.address().port}/orders`,
    close: () => new Promise((resolve) => server.close(resolve)),
  };
}
