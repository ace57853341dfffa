/**
 * Program that owns an embedded PostgreSQL until SIGTERM. SIGUSR2 aborts it, and SIGHUP makes it run out of memory. It prints one line with
 * the database URL or an error.
 */
import { pino } from "pino";
import { startEmbeddedPostgres } from "../../src/engine/embedded-postgres.js";

function printLine(line: object): void {
  process.stdout.write(`${JSON.stringify(line)}\n`);
}

try {
  const dataDir = process.argv[2]!;
  const postgres = await startEmbeddedPostgres({ dataDir, log: pino({ level: "silent" }) });
  process.once("SIGTERM", () => postgres.stop().then(() => process.exit(0)));
  process.once("SIGUSR2", () => process.abort());
  process.once("SIGHUP", () => {
    for (const hoard: unknown[] = []; ; ) hoard.push(new Array(100_000).fill(hoard.length));
  });
  setInterval(() => {}, 60_000);
  printLine({ url: postgres.url });
} catch (error) {
  printLine({ error: (error as Error).message });
}
