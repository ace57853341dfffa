/**
 * Webhook server that stores the alerts of a service. Creates alert rules that report failures of actions to this server, and compares the
 * stored alerts with the failed runs.
 */
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import type { Db } from "../../src/data/database.js";
import { until } from "./until.js";

/** Maximum time in milliseconds for which the test waits until the service has checked all ended runs and sent their alerts. */
const SETTLE_LIMIT_MS = 180_000;

interface ReceivedAlert {
  id: number;
  rule: { id: number };
  state: "firing" | "recovered";
}

export interface AlertHook {
  url: string;
  receivedAlerts: ReceivedAlert[];
  stop(): Promise<void>;
}

export async function startAlertHook(): Promise<AlertHook> {
  const received: ReceivedAlert[] = [];
  const server = createServer(async (request, response) => {
    let text = "";
    for await (const chunk of request.setEncoding("utf8")) text += chunk;
    const receivedAlert = JSON.parse(text) as ReceivedAlert;
    // A service that has received no response sends the same alert again, with the same ID.
    if (!received.some(({ id }) => id === receivedAlert.id)) received.push(receivedAlert);
    response.writeHead(204).end();
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}/hook`,
    receivedAlerts: received,
    async stop() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** Returns a rule's first fault: unsent alerts, no alert for failed runs, a wrong order, or a wrong last state. Null if there is none. */
function findFault(
  states: ReceivedAlert["state"][],
  row: { failed: number; told: boolean; unsent: number },
): string | null {
  if (row.unsent > 0) return `${row.unsent} alerts were not sent`;
  if (row.failed > 0 && states.length === 0) return `${row.failed} runs failed, but no alert was received`;
  const expected = states.map((_, at) => (at % 2 === 0 ? "firing" : "recovered"));
  if (states.join() !== expected.join()) return `alerts were received in a wrong order: ${states.join()}`;
  if ((states.at(-1) === "firing") === row.told) return null;
  return `the last alert has the state ${states.at(-1)}, but the column "told" of the rule has the value ${row.told}`;
}

const SELECT_ALERT_STATE = `
  SELECT coalesce((SELECT told FROM alert_state WHERE rule_id = $1 LIMIT 1), false) AS told,
         (SELECT count(*)::int FROM run WHERE action_id = $2 AND state = 'failed' AND finished_at > $3) AS failed,
         (SELECT count(*)::int FROM alert_delivery WHERE rule_id = $1 AND status <> 'sent') AS unsent`;

/**
 * Creates an alert rule for each action. The rule sends an alert to the webhook when a run of the live version fails. Returns the function
 * `faults`, which checks the received alerts.
 */
export async function createFailureRules(
  hook: AlertHook,
  service: { url: string; appId: number; token: string },
  liveVersions: readonly { id: number; masterId: number | null }[],
) {
  const post = async (path: string, body: object) => {
    const response = await fetch(`${service.url}/v1/apps/${service.appId}${path}`, {
      method: "POST",
      headers: { "auth-token": service.token, "content-type": "application/json" },
      body: JSON.stringify(body),
    });
    if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`);
    return response.json() as Promise<{ alert: { id: number } }>;
  };
  await post("/settings", { __hook: { url: hook.url, secret: "a secret of the test" } });
  const rule = { condition: "failed", channel: "webhook", setting: "__hook" };
  const rules: { id: number; actionId: number }[] = [];
  for (const { id: actionId, masterId } of liveVersions) {
    const { alert } = await post("/alerts", { ...rule, name: `of ${masterId}`, actionId: masterId });
    rules.push({ id: alert.id, actionId });
  }
  const since = new Date();
  return {
    /** Waits until the service has checked all ended runs and sent their alerts, but at most SETTLE_LIMIT_MS. Returns all rules' faults. */
    async faults(db: Db): Promise<string[]> {
      const [{ now }] = await db.query("SELECT now()");
      const settled = async () =>
        (
          await db.query(
            `SELECT (SELECT looked_until > $1 FROM alert_cursor)
                AND NOT EXISTS (SELECT FROM alert_delivery WHERE status = 'queued') AS settled`,
            [now],
          )
        )[0].settled;
      await until(settled, SETTLE_LIMIT_MS).catch(() => undefined);
      const faults: string[] = [];
      for (const { id, actionId } of rules) {
        const states = hook.receivedAlerts.filter((alert) => alert.rule.id === id).map(({ state }) => state);
        const fault = findFault(states, (await db.query(SELECT_ALERT_STATE, [id, actionId, since]))[0]);
        if (fault) faults.push(`rule ${id}: ${fault}`);
      }
      return faults;
    },
  };
}
