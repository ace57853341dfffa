/** Proxy between the command line `svc` and the service. The proxy can interrupt a push. */
import { once } from "node:events";
import { createServer, request } from "node:http";
import type { AddressInfo } from "node:net";
import { buffer } from "node:stream/consumers";

/**
 * Starts a proxy for the service. While `state.isArmed`, the proxy forwards half or all of a request that applies a push, and sends no
 * response to this request.
 * @param afterPush called before the proxy sends the response to a push
 */
export async function startPushProxy(
  serviceUrl: string,
  forwarded: "half" | "all",
  afterPush: () => Promise<unknown> = async () => undefined,
) {
  const state = { isArmed: false, hasStopped: false };
  const server = createServer((incoming, reply) => {
    const isPush = incoming.method === "PUT" && !incoming.url!.includes("plan=true");
    const isStopped = state.isArmed && isPush;
    void buffer(incoming).then((body) => {
      const { method, url, headers } = incoming;
      const onward = request(serviceUrl + url, { method: method!, headers }, (answer) => {
        if (isStopped) state.hasStopped = true;
        else {
          void (isPush ? afterPush() : Promise.resolve()).then(() => {
            reply.writeHead(answer.statusCode!, answer.headers);
            answer.pipe(reply);
          });
        }
      });
      onward.on("error", () => undefined);
      if (!isStopped || forwarded === "all") return onward.end(body);
      onward.write(body.subarray(0, body.length / 2), () => {
        onward.destroy();
        state.hasStopped = true;
      });
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return { server, state, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` };
}
