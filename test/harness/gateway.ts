/**
 * Proxy with a fixed port in front of a PostgreSQL server that a test can stop and start again. Clients always use the same URL.
 */

import { mkdtempSync, renameSync, rmSync } from "node:fs";
import type { AddressInfo } from "node:net";
import { connect, createServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pino } from "pino";
import { readPostmasterPidFile } from "../../src/engine/embedded-postgres/postmaster.js";
import { type EmbeddedPostgres, startEmbeddedPostgres } from "../../src/engine/embedded-postgres.js";

/**
 * Ways to lose a database: a fast stop (SIGINT), an immediate stop (SIGQUIT), SIGKILL, or a cut network. With `failed over`, the server is
 * killed by SIGKILL, and a new server uses its data folder under another path.
 */
export type DatabaseLoss = "SIGINT" | "SIGQUIT" | "SIGKILL" | "cut off" | "failed over";

export interface RestartablePostgres {
  url: string;
  /** Stops the server with SIGINT (a fast stop) and starts it again. */
  restart(): Promise<void>;
  /** Loses the database in the given way. The returned function restores it. */
  lose(loss: DatabaseLoss): Promise<() => Promise<void>>;
  stop(): Promise<void>;
}

export async function startRestartablePostgres(): Promise<RestartablePostgres> {
  const folder = mkdtempSync(join(tmpdir(), "svc-gateway-"));
  let servers = 1;
  const dataDir = () => join(folder, `server-${servers}`);
  const start = () =>
    startEmbeddedPostgres({
      dataDir: dataDir(),
      log: pino({ level: "silent" }),
      // Even without fsync, committed data survives the end of the server's processes. Only a failure of the machine would lose data.
      settings: { fsync: "off", max_connections: "200" },
    });
  let postgres: EmbeddedPostgres | null = await start();
  let isReachable = true;
  const password = new URL(postgres.url).password;
  const sockets = new Set<Socket>();
  const proxyServer = createServer((client) => {
    const port = isReachable && postgres && Number(new URL(postgres.url).port);
    if (!port) return void client.destroy();
    const server = connect(port, "127.0.0.1");
    for (const [socket, other] of [
      [client, server],
      [server, client],
    ] as const) {
      sockets.add(socket);
      socket.on("error", () => undefined).on("close", () => sockets.delete(socket) && other.destroy());
    }
    client.pipe(server).pipe(client);
  });
  await new Promise<void>((resolve) => proxyServer.listen(0, "127.0.0.1", resolve));
  const url = new URL(postgres.url);
  url.port = String((proxyServer.address() as AddressInfo).port);
  url.password = password;

  async function lose(loss: DatabaseLoss): Promise<() => Promise<void>> {
    if (loss === "cut off") {
      isReachable = false;
      for (const socket of sockets) socket.destroy();
      return async () => {
        isReachable = true;
      };
    }
    const last = postgres;
    postgres = null;
    const failsOver = loss === "failed over";
    process.kill(readPostmasterPidFile(join(dataDir(), "postgres"))!.pid, failsOver ? "SIGKILL" : loss);
    await last?.unexpectedExit;
    await last?.stop();
    if (failsOver) {
      const storage = dataDir();
      servers += 1;
      renameSync(storage, dataDir());
    }
    return async () => {
      postgres = await start();
    };
  }

  return {
    url: url.href,
    lose,
    restart: async () => (await lose("SIGINT"))(),
    async stop() {
      proxyServer.close();
      for (const socket of sockets) socket.destroy();
      await postgres?.stop();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
