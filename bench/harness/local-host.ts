/**
 * A local HTTP server, run as a separate process: the target of fetch and request() in measured runs. It answers every request immediately,
 * and sends its URL to the parent.
 */
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

const httpServer = createServer((_request, response) => {
  response.writeHead(200, { "content-type": "text/plain", "access-control-allow-origin": "*" }).end("ok");
});
process.once("disconnect", () => process.exit(0));
httpServer.listen(0, "127.0.0.1");
await once(httpServer, "listening");
process.send!(`http://127.0.0.1:${(httpServer.address() as AddressInfo).port}/`);
