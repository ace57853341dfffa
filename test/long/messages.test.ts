/** Sends 10,000 messages at 100 per second, and kills the sending service twenty times in this period. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { expect } from "chai";
import { openDatabase, rows } from "../../src/data/database.js";
import { startMailServer } from "../harness/mail-server.js";
import { freshDatabase } from "../harness/postgres.js";
import { type ServiceProcess, startProcess } from "../harness/process.js";
import { createFirstCredentials } from "../harness/service.js";
import { until } from "../harness/until.js";

const MESSAGE_COUNT = 10_000;
const MESSAGES_PER_BATCH = 50;
const BATCH_EVERY_MS = 500;
const KILLS = 20;

describe("messages under kill -9", () => {
  it("arrive at most once each, none is lost before its first try, and the outbox has all of them", async () => {
    const [database, server] = await Promise.all([freshDatabase(), startMailServer()]);
    const dataDir = mkdtempSync(join(tmpdir(), "svc-messages-"));
    const { appId, tokens } = await createFirstCredentials(database.url, dataDir);
    const environment = {
      DATABASE_URL: database.url,
      ROLES: "api,scheduler",
      ALLOW_PRIVATE_NETWORK: "1",
      INTAKE_QUOTA_MB: "0",
      SETTINGS_KEY: Buffer.alloc(32, 7).toString("base64"),
      SMTP_URL: `smtp://127.0.0.1:${server.port}`,
      MAIL_FROM: "shop@example.com",
    };
    let current: ServiceProcess = startProcess(environment);
    let url = current.ready();
    let sending = true;

    async function sendBatch(first: number): Promise<void> {
      const body = Array.from({ length: MESSAGES_PER_BATCH }, (_, n) => ({
        options: { to: [{ email: `a${first + n}@example.com` }], subject: String(first + n), text: "x" },
      }));
      const headers = {
        "auth-token": tokens.api,
        "content-type": "application/json",
        "idempotency-key": `batch-${first}`,
      };
      for (;;) {
        const answer = await url
          .then((base) =>
            fetch(`${base}/v1/apps/${appId}/communicate/email/batch`, {
              method: "POST",
              headers,
              body: JSON.stringify(body),
            }),
          )
          .catch(() => null);
        if (answer?.status === 202) return;
        await delay(200);
      }
    }

    async function killAndRestart(): Promise<void> {
      const old = current;
      old.signal("SIGKILL");
      await old.clean();
      current = startProcess(environment);
      url = current.ready();
      url.catch(() => undefined);
    }

    async function killRepeatedly(): Promise<number> {
      let kills = 0;
      while (kills < KILLS && sending) {
        await url;
        await delay(Math.random() * 4_000);
        await killAndRestart();
        kills += 1;
      }
      while (kills < KILLS) {
        await url;
        await killAndRestart();
        kills += 1;
      }
      return kills;
    }

    const killed = killRepeatedly();
    for (let first = 0; first < MESSAGE_COUNT; first += MESSAGES_PER_BATCH) {
      await Promise.all([sendBatch(first), delay(BATCH_EVERY_MS)]);
    }
    sending = false;
    expect(await killed).to.equal(KILLS);
    await url;

    const db = await openDatabase(database.url, 2);
    const left = "SELECT FROM message WHERE status = 'queued' LIMIT 1";
    await until(async () => (await rows(db, left)).length === 0, 180_000);
    const outbox = await rows<{ status: string; subject: string; reference: string; attempts: number }>(
      db,
      "SELECT status, content->>'subject' AS subject, reference::text, attempts FROM message",
    );
    const statuses: Record<string, number> = {};
    for (const { status } of outbox) statuses[status] = (statuses[status] ?? 0) + 1;
    const arrivals = new Map<string, number>();
    for (const { messageId } of server.acceptedMessages) arrivals.set(messageId, (arrivals.get(messageId) ?? 0) + 1);
    const arrivalsByReference = new Map([...arrivals].map(([id, times]) => [id.slice(1, 37), times]));
    process.stdout.write(
      `${JSON.stringify({ statuses, arrived: arrivals.size, twice: [...arrivals.values()].filter((n) => n > 1).length })}\n`,
    );

    expect(new Set(outbox.map(({ subject }) => subject)).size, "each was accepted once").to.equal(MESSAGE_COUNT);
    expect(outbox).to.have.length(MESSAGE_COUNT);
    expect(
      [...arrivals.values()].filter((times) => times > 1),
      "none arrived twice",
    ).to.deep.equal([]);
    expect(
      Object.keys(statuses).every((status) => ["sent", "unknown"].includes(status)),
      JSON.stringify(statuses),
    ).to.equal(true);
    const sentAndGone = outbox.filter(
      ({ status, reference }) => status === "sent" && !arrivalsByReference.has(reference),
    );
    expect(sentAndGone, "what is said to be sent has arrived").to.deep.equal([]);
    const silent = outbox.filter(
      ({ status, reference }) => status !== "sent" && status !== "unknown" && arrivalsByReference.has(reference),
    );
    expect(silent, "what arrived is sent or unknown").to.deep.equal([]);
    expect(statuses["unknown"] ?? 0, "only what was under way is unknown").to.be.at.most(KILLS * 20);

    await current.clean();
    await db.destroy();
    await database.drop();
    await server.stop();
    rmSync(dataDir, { recursive: true, force: true });
  });
});
