/**
 * Twelve tasks that people give to a coding agent. A script does each task through /mcp and the command line, and throws if the goal is
 * missed.
 */
import { createHmac } from "node:crypto";
import type { Agent } from "./client.js";
import {
  BOOKING_CODE,
  HANGING_CODE,
  INVOICE_CODE,
  LEAD_CODES,
  NIGHTLY_REPORT_CODE,
  THANKS_MODULE,
  TOTALS_CODE,
} from "./texts.js";

export interface AgentTask {
  title: string;
  run(agent: Agent): Promise<void>;
}

function assertGoal(isTrue: boolean, expectation: string, actualValue: unknown): void {
  if (!isTrue) throw new Error(`${expectation} (got ${JSON.stringify(actualValue)})`);
}

const toJsonText = (value: unknown): string => JSON.stringify(value, null, 2);
const toJsonLines = (rows: readonly object[]): string => rows.map((row) => JSON.stringify(row)).join("\n");
const MANUAL_TRIGGERS = [{ trigger: "manual" }];

/** Runs the draft of an action and returns the completed run. @throws Error if the run does not complete */
async function runDraft(agent: Agent, action: string, payload: object = {}) {
  const result = await agent.callTool("run_draft", { action, payload });
  assertGoal(result.run.state === "completed", `${action} must complete`, result);
  return result;
}

async function writeTypedAction(agent: Agent): Promise<void> {
  await agent.runSvc(["init", "--url", agent.url, "--app", String(agent.appId)]);
  await agent.runSvc(["check"]);
  await agent.runSvc(["push"]);
  const { tests } = await agent.runSvc(["test"]);
  assertGoal(tests.length === 1 && tests[0].passed, "the test must pass", tests);
  await agent.runSvc(["publish", "hello", "--with-app"]);
  const { result } = await agent.runSvc(["run", "hello", "--payload", '{"name": "Ada"}']);
  assertGoal(result.text === "Hello Ada", "the action must greet", result);
}

async function scheduleNightlyReport(agent: Agent): Promise<void> {
  const { sections } = await agent.callTool("search_docs", { query: "send an e-mail from a schedule" });
  assertGoal(sections.length > 0, "the docs must say how", sections);
  agent.writeProjectFile("data/orders.json", toJsonText({ columns: ["Product", "Price"] }));
  await agent.runSvc(["push"]);
  await agent.runSvc(["data", "push", "orders"], {
    input: toJsonLines([
      { Product: "Lamp", Price: 30 },
      { Product: "Desk", Price: 90 },
    ]),
  });
  const schedule = { frequency: "0 4 * * *", timezone: "Europe/Berlin" };
  const preview = await agent.callTool("preview_schedule", schedule);
  assertGoal(JSON.stringify(preview).includes("T0"), "the schedule must have times", preview);
  await agent.callTool("save_draft", {
    name: "nightly-report",
    fields: {
      ...schedule,
      ...{ code: NIGHTLY_REPORT_CODE, active: true, dependencies: ["svc-datasources", "svc-communicate"] },
      triggers: [...MANUAL_TRIGGERS, { trigger: "schedule" }],
    },
  });
  const run = await runDraft(agent, "nightly-report");
  assertGoal(JSON.stringify(run).includes('"total":120'), "the report must add up", run);
  await agent.callTool("publish_action", { action: "nightly-report" });
}

/** Sends a signed webhook, as another system would. This request does not count as a call of the agent. */
async function sendBooking({ url, appId }: Agent, secret: string, seat: string): Promise<number> {
  const [id, time, body] = [`msg_${seat}`, Math.floor(Date.now() / 1000), JSON.stringify({ seat, name: "Ann" })];
  const signature = createHmac("sha256", Buffer.from(secret, "base64"))
    .update(`${id}.${time}.${body}`)
    .digest("base64");
  const headers = {
    ...{ "content-type": "application/json", "webhook-id": id },
    ...{ "webhook-timestamp": String(time), "webhook-signature": `v1,${signature}` },
  };
  return (await fetch(`${url}/h/${appId}/bookings`, { method: "POST", headers, body })).status;
}

async function receiveBookingWebhook(agent: Agent): Promise<void> {
  const [secret, wrongSecret] = ["c2VjcmV0IG9mIGFuIGFnZW50IGJlbmNoIQ==", "YW5vdGhlciBzZWNyZXQgb2YgdGhlIHNhbWU="];
  await agent.callTool("read_docs", { page: "http-triggers" });
  await agent.runSvc(["settings", "set", "__bookingSecret"], { input: `whsec_${secret}` });
  const seats = { columns: ["Seat", "Name"], indexes: [{ columns: ["Seat"], unique: true }] };
  agent.writeProjectFile("data/seats.json", toJsonText(seats));
  await agent.runSvc(["pull"]);
  await agent.runSvc(["push"]);
  const auth = { type: "signature", scheme: "standard-webhooks", setting: "__bookingSecret" };
  const triggers = [{ trigger: "http", where: { method: "POST", path: "bookings", auth } }];
  const fields = { code: BOOKING_CODE, active: true, dependencies: ["svc-datasources"], triggers };
  await agent.callTool("save_draft", { name: "book", fields });
  await agent.callTool("publish_action", { action: "book" });
  const statuses = [await sendBooking(agent, secret, "1A"), await sendBooking(agent, wrongSecret, "1B")];
  assertGoal(toJsonText(statuses) === toJsonText([200, 401]), "only the sender may book", statuses);
  const { entries } = await agent.callTool("query_data_source", { dataSource: "seats" });
  assertGoal(entries.length === 1 && entries[0].data.Seat === "1A", "one seat must be booked", entries);
}

async function repairFailingAction(agent: Agent): Promise<void> {
  const fields = { active: true, triggers: MANUAL_TRIGGERS };
  await agent.callTool("save_draft", { name: "invoice", fields: { ...fields, code: INVOICE_CODE.before } });
  const failed = await agent.callTool("run_draft", { action: "invoice", payload: { items: [{ price: 2 }, {}] } });
  assertGoal(failed.run.state === "failed", "it must fail first", failed);
  const { run } = { run: await agent.callTool("read_run", { runId: failed.runId }) };
  assertGoal(JSON.stringify(run).includes("invoice.js:3"), "the stack must name the line", run);
  const { updatedAt } = await agent.callTool("read_action", { action: "invoice" });
  await agent.callTool("save_draft", {
    ...{ name: "invoice", fields: { code: INVOICE_CODE.after } },
    ...(updatedAt !== undefined && { ifUpdatedAt: updatedAt }),
  });
  await runDraft(agent, "invoice", { items: [{ price: 2 }, {}] });
  const { approveAt } = await agent.callTool("propose_publish", { action: "invoice", reason: "Items without a price" });
  assertGoal(String(approveAt).includes("/studio#/"), "a person must get a link", approveAt);
}

async function importProductList(agent: Agent): Promise<void> {
  agent.writeProjectFile("data/products.json", toJsonText({ columns: ["Name", "Price"] }));
  agent.writeProjectFile(
    "products.jsonl",
    toJsonLines(Array.from({ length: 50 }, (_, at) => ({ Name: `Lamp ${at}`, Price: at }))),
  );
  await agent.runSvc(["pull"]);
  await agent.runSvc(["push"]);
  const { inserted } = await agent.runSvc(["data", "push", "products", "products.jsonl"]);
  assertGoal(inserted === 50, "all rows must be in", inserted);
  const query = { where: { Price: { $gte: 48 } }, order: [["data.Price", "DESC"]] };
  const { entries } = await agent.callTool("query_data_source", { dataSource: "products", ...query });
  assertGoal(entries.length === 2 && entries[0].data.Price === 49, "the query must find the last two", entries);
}

async function rollBackAction(agent: Agent): Promise<void> {
  const { versions } = await agent.runSvc(["versions", "hello"]);
  agent.writeProjectFile("lib/greeting.ts", "export const greeting = (name: string): string => `Bye ${name}`;\n");
  await agent.runSvc(["pull"]);
  await agent.runSvc(["push"]);
  await agent.runSvc(["publish", "hello"]);
  const after = await agent.runSvc(["run", "hello"]);
  assertGoal(after.result.text === "Bye world", "the bad version must be live", after);
  await agent.runSvc(["rollback", "hello", "--to", String(versions[0].id)]);
  const { result } = await agent.runSvc(["run", "hello"]);
  assertGoal(result.text === "Hello world", "the good version must be back", result);
}

async function promoteStage(agent: Agent): Promise<void> {
  const { app } = await agent.runSvc(["stage", "create", "staging", "--expires-in", "1"]);
  const stagingApp = { env: { SVC_APP: String(app.id) } };
  await agent.runSvc(["pull"]);
  agent.writeProjectFile("actions/thanks/action.ts", THANKS_MODULE);
  await agent.runSvc(["push", "--force"], stagingApp);
  await agent.runSvc(["run", "thanks"], stagingApp);
  const { plan } = await agent.runSvc(["promote", "--from", String(app.id), "--plan"]);
  assertGoal(
    plan.created.some(({ name }: { name: string }) => name === "thanks"),
    "the plan must name it",
    plan,
  );
  await agent.runSvc(["promote", "--from", String(app.id)]);
  assertGoal((await agent.runSvc(["run", "thanks"])).result === "Thanks", "it must be in the app", null);
}

async function allowOnlyInserts(agent: Agent): Promise<void> {
  const accessRules = [{ type: ["insert"], allow: "all", include: ["Text"] }];
  agent.writeProjectFile("data/feedback.json", toJsonText({ columns: ["Text", "Answer"], accessRules }));
  await agent.runSvc(["pull"]);
  await agent.runSvc(["push"]);
  const trial = { user: null, accessRules };
  const trialResult = await agent.callTool("test_access_rule", { dataSource: "feedback", trial });
  assertGoal(
    trialResult.operations !== undefined || JSON.stringify(trialResult).includes("insert"),
    "rules must be tried",
    trialResult,
  );
  const insert = (data: object) =>
    fetch(`${agent.url}/v1/apps/${agent.appId}/data-sources/feedback/entries?by=name`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(data),
    });
  assertGoal((await insert({ Text: "Nice" })).status === 201, "a visitor must be able to insert", null);
  const { entries } = await agent.callTool("query_data_source", { dataSource: "feedback" });
  assertGoal(entries.length === 1, "the entry must be there", entries);
}

async function runOnNewRow(agent: Agent): Promise<void> {
  agent.writeProjectFile("data/leads.json", toJsonText({ columns: ["Email", "State"] }));
  await agent.runSvc(["pull"]);
  await agent.runSvc(["push"]);
  const { dataSources } = await agent.callTool("list_data_sources");
  const { id } = dataSources.find(({ name }: { name: string }) => name === "leads");
  const where = { type: "dataSource.entry.create", dataSourceId: id };
  const fields = { active: true, dependencies: ["svc-datasources"] };
  await agent.callTool("save_draft", {
    ...{ name: "welcome", fields: { ...fields, code: LEAD_CODES.react, triggers: [{ trigger: "log", where }] } },
  });
  await agent.callTool("publish_action", { action: "welcome" });
  await agent.callTool("save_draft", {
    name: "add-lead",
    fields: { ...fields, code: LEAD_CODES.insert, triggers: MANUAL_TRIGGERS },
  });
  await runDraft(agent, "add-lead");
  const matched = await agent.callTool("test_trigger", { where });
  assertGoal(JSON.stringify(matched).includes("dataSource.entry.create"), "the trigger must match the row", matched);
  for (;;) {
    const { entries } = await agent.callTool("query_data_source", { dataSource: "leads" });
    if (entries[0].data.State === "welcomed") return;
  }
}

async function addFailureAlert(agent: Agent): Promise<void> {
  await agent.callTool("read_docs", { page: "alerts" });
  await agent.runSvc(["pull"]);
  const alert = { name: "jobs fail", condition: "failed", channel: "email", to: ["ann@example.com"], action: "hello" };
  agent.writeProjectFile("alerts.json", toJsonText([alert]));
  const { plan } = await agent.runSvc(["push"]);
  assertGoal(
    toJsonText(plan.created) === toJsonText([{ kind: "alert", name: "jobs fail" }]),
    "the alert must be new",
    plan,
  );
}

async function stopHangingRun(agent: Agent): Promise<void> {
  const fields = { active: true, triggers: MANUAL_TRIGGERS, code: HANGING_CODE };
  await agent.callTool("save_draft", { name: "hangs", fields });
  const { runId } = await agent.callTool("run_draft", { action: "hangs", wait: 0 });
  const { runs } = await agent.callTool("list_runs", { limit: 5 });
  assertGoal(runs[0].id === runId, "the run must be listed", runs);
  await agent.callTool("cancel_run", { runId });
  const run = await agent.callTool("wait_for_run", { runId });
  assertGoal(run.state === "cancelled", "the run must be cancelled", run);
}

async function useNpmPackage(agent: Agent): Promise<void> {
  const { problems } = await agent.callTool("check_code", { code: TOTALS_CODE });
  const { dependency } = problems[0];
  assertGoal(dependency === "svc-csv", "the check must name the package", problems);
  const fields = { active: true, triggers: MANUAL_TRIGGERS, code: TOTALS_CODE, dependencies: [dependency] };
  await agent.callTool("save_draft", { name: "totals", fields });
  const run = await runDraft(agent, "totals", { text: "Price\n2\n3\n" });
  assertGoal(JSON.stringify(run).includes('"total":5'), "the file must be read", run);
}

/** Tasks in the order of execution: later tasks use the results of earlier ones. */
export const TASKS: readonly AgentTask[] = [
  { title: "A typed action with a test, from an empty folder to live", run: writeTypedAction },
  { title: "A nightly report by e-mail", run: scheduleNightlyReport },
  { title: "Verify a webhook and book a seat", run: receiveBookingWebhook },
  { title: "Find why an action fails, and fix it", run: repairFailingAction },
  { title: "Import a list and query it", run: importProductList },
  { title: "Roll back a bad publication", run: rollBackAction },
  { title: "Try a change on a stage and promote it", run: promoteStage },
  { title: "Let visitors insert, and not read", run: allowOnlyInserts },
  { title: "React to each new row", run: runOnNewRow },
  { title: "An e-mail when a job fails", run: addFailureAlert },
  { title: "Find a run that hangs, and stop it", run: stopHangingRun },
  { title: "Add the package that code lacks", run: useNpmPackage },
];
