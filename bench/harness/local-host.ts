/** A separate process that answers every request at once: the host of runs with fetch. Prints its URL once it listens. */
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

const http = createServer((_request, response) => {
  response.writeHead(200, { "content-type": "text/plain", "access-control-allow-origin": "*" }).end("ok");
});
process.once("disconnect", () => process.exit(0));
http.listen(0, "127.0.0.1");
await once(http, "listening");
process.send!(`http://127.0.0.1:${(http.address() as AddressInfo).port}/`);
