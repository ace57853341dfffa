/** Opens the protocol of a browser over any transport. Knows neither who started the browser nor what is done in it. */
import { type Connection, type ConnectionTransport, connect } from "puppeteer-core";

/** Rejects when the transport closes first. */
export async function openConnection(transport: ConnectionTransport): Promise<Connection> {
  // Others' pages are not ours to touch: of all targets only the browser's own is wanted.
  const targetFilter = (target: { type(): string }) => target.type() === "browser";
  const browser = await connect({ transport, defaultViewport: null, targetFilter });
  const connection = (await browser.target().createCDPSession()).connection();
  if (connection === undefined) throw new Error("the connection closed");
  // Puppeteer would set up a page object for every target; here pages are driven over the protocol itself.
  await connection.send("Target.setAutoAttach", { autoAttach: false, waitForDebuggerOnStart: false, flatten: true });
  return connection;
}
