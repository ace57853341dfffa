/** Twelve tasks that people give to a coding agent, each done by a script through /mcp and the command line. Each throws if its goal is missed. */
import { createHmac } from "node:crypto";
import type { Agent } from "./client.js";
import { BOOKING, HANGING, LEAD, NIGHTLY, REPAIRED, THANKS, TOTALS } from "./texts.js";

export interface Task {
  title: string;
  run(agent: Agent): Promise<void>;
}

function ensure(isTrue: boolean, what: string, seen: unknown): void {
  if (!isTrue) throw new Error(`${what} (got ${JSON.stringify(seen)})`);
}

const json = (value: unknown): string => JSON.stringify(value, null, 2);
const lines = (rows: readonly object[]): string => rows.map((row) => JSON.stringify(row)).join("\n");
const ON_DEMAND = [{ trigger: "manual" }];

/** Runs a draft and returns the run, which must have completed. */
async function runDraft(agent: Agent, action: string, payload: object = {}) {
  const result = await agent.tool("run_draft", { action, payload });
  ensure(result.run.state === "completed", `${action} must complete`, result);
  return result;
}

async function typedAction(agent: Agent): Promise<void> {
  await agent.svc(["init", "--url", agent.url, "--app", String(agent.appId)]);
  await agent.svc(["check"]);
  await agent.svc(["push"]);
  const { tests } = await agent.svc(["test"]);
  ensure(tests.length === 1 && tests[0].passed, "the test must pass", tests);
  await agent.svc(["publish", "hello", "--with-app"]);
  const { result } = await agent.svc(["run", "hello", "--payload", '{"name": "Ada"}']);
  ensure(result.text === "Hello Ada", "the action must greet", result);
}

async function nightlyReport(agent: Agent): Promise<void> {
  const { sections } = await agent.tool("search_docs", { query: "send an e-mail from a schedule" });
  ensure(sections.length > 0, "the docs must say how", sections);
  agent.write("data/orders.json", json({ columns: ["Product", "Price"] }));
  await agent.svc(["push"]);
  await agent.svc(["data", "push", "orders"], {
    input: lines([
      { Product: "Lamp", Price: 30 },
      { Product: "Desk", Price: 90 },
    ]),
  });
  const schedule = { frequency: "0 4 * * *", timezone: "Europe/Berlin" };
  const preview = await agent.tool("preview_schedule", schedule);
  ensure(JSON.stringify(preview).includes("T0"), "the schedule must have times", preview);
  await agent.tool("save_draft", {
    name: "nightly-report",
    fields: {
      ...schedule,
      ...{ code: NIGHTLY, active: true, dependencies: ["svc-datasources", "svc-communicate"] },
      triggers: [...ON_DEMAND, { trigger: "schedule" }],
    },
  });
  const run = await runDraft(agent, "nightly-report");
  ensure(JSON.stringify(run).includes('"total":120'), "the report must add up", run);
  await agent.tool("publish_action", { action: "nightly-report" });
}

/** Sends a webhook as another system would; this request is not the agent's. */
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

async function bookingWebhook(agent: Agent): Promise<void> {
  const [secret, other] = ["c2VjcmV0IG9mIGFuIGFnZW50IGJlbmNoIQ==", "YW5vdGhlciBzZWNyZXQgb2YgdGhlIHNhbWU="];
  await agent.tool("read_docs", { page: "http-triggers" });
  await agent.svc(["settings", "set", "__bookingSecret"], { input: `whsec_${secret}` });
  const seats = { columns: ["Seat", "Name"], indexes: [{ columns: ["Seat"], unique: true }] };
  agent.write("data/seats.json", json(seats));
  await agent.svc(["pull"]);
  await agent.svc(["push"]);
  const auth = { type: "signature", scheme: "standard-webhooks", setting: "__bookingSecret" };
  const triggers = [{ trigger: "http", where: { method: "POST", path: "bookings", auth } }];
  const fields = { code: BOOKING, active: true, dependencies: ["svc-datasources"], triggers };
  await agent.tool("save_draft", { name: "book", fields });
  await agent.tool("publish_action", { action: "book" });
  const answers = [await sendBooking(agent, secret, "1A"), await sendBooking(agent, other, "1B")];
  ensure(json(answers) === json([200, 401]), "only the sender may book", answers);
  const { entries } = await agent.tool("query_data_source", { dataSource: "seats" });
  ensure(entries.length === 1 && entries[0].data.Seat === "1A", "one seat must be booked", entries);
}

async function repairAction(agent: Agent): Promise<void> {
  const fields = { active: true, triggers: ON_DEMAND };
  await agent.tool("save_draft", { name: "invoice", fields: { ...fields, code: REPAIRED.before } });
  const failed = await agent.tool("run_draft", { action: "invoice", payload: { items: [{ price: 2 }, {}] } });
  ensure(failed.run.state === "failed", "it must fail first", failed);
  const { run } = { run: await agent.tool("read_run", { runId: failed.runId }) };
  ensure(JSON.stringify(run).includes("invoice.js:3"), "the stack must name the line", run);
  const { updatedAt } = await agent.tool("read_action", { action: "invoice" });
  await agent.tool("save_draft", {
    ...{ name: "invoice", fields: { code: REPAIRED.after } },
    ...(updatedAt !== undefined && { ifUpdatedAt: updatedAt }),
  });
  await runDraft(agent, "invoice", { items: [{ price: 2 }, {}] });
  const { approveAt } = await agent.tool("propose_publish", { action: "invoice", reason: "Items without a price" });
  ensure(String(approveAt).includes("/studio#/"), "a person must get a link", approveAt);
}

async function importList(agent: Agent): Promise<void> {
  agent.write("data/products.json", json({ columns: ["Name", "Price"] }));
  agent.write("products.jsonl", lines(Array.from({ length: 50 }, (_, at) => ({ Name: `Lamp ${at}`, Price: at }))));
  await agent.svc(["pull"]);
  await agent.svc(["push"]);
  const { inserted } = await agent.svc(["data", "push", "products", "products.jsonl"]);
  ensure(inserted === 50, "all rows must be in", inserted);
  const query = { where: { Price: { $gte: 48 } }, order: [["data.Price", "DESC"]] };
  const { entries } = await agent.tool("query_data_source", { dataSource: "products", ...query });
  ensure(entries.length === 2 && entries[0].data.Price === 49, "the query must find the last two", entries);
}

async function rollBack(agent: Agent): Promise<void> {
  const { versions } = await agent.svc(["versions", "hello"]);
  agent.write("lib/greeting.ts", "export const greeting = (name: string): string => `Bye ${name}`;\n");
  await agent.svc(["pull"]);
  await agent.svc(["push"]);
  await agent.svc(["publish", "hello"]);
  const after = await agent.svc(["run", "hello"]);
  ensure(after.result.text === "Bye world", "the bad version must be live", after);
  await agent.svc(["rollback", "hello", "--to", String(versions[0].id)]);
  const { result } = await agent.svc(["run", "hello"]);
  ensure(result.text === "Hello world", "the good version must be back", result);
}

async function promoteStage(agent: Agent): Promise<void> {
  const { app } = await agent.svc(["stage", "create", "staging", "--expires-in", "1"]);
  const there = { env: { SVC_APP: String(app.id) } };
  await agent.svc(["pull"]);
  agent.write("actions/thanks/action.ts", THANKS);
  await agent.svc(["push", "--force"], there);
  await agent.svc(["run", "thanks"], there);
  const { plan } = await agent.svc(["promote", "--from", String(app.id), "--plan"]);
  ensure(
    plan.created.some(({ name }: { name: string }) => name === "thanks"),
    "the plan must name it",
    plan,
  );
  await agent.svc(["promote", "--from", String(app.id)]);
  ensure((await agent.svc(["run", "thanks"])).result === "Thanks", "it must be in the app", null);
}

async function visitorsInsertOnly(agent: Agent): Promise<void> {
  const accessRules = [{ type: ["insert"], allow: "all", include: ["Text"] }];
  agent.write("data/feedback.json", json({ columns: ["Text", "Answer"], accessRules }));
  await agent.svc(["pull"]);
  await agent.svc(["push"]);
  const trial = { user: null, accessRules };
  const tried = await agent.tool("test_access_rule", { dataSource: "feedback", trial });
  ensure(tried.operations !== undefined || JSON.stringify(tried).includes("insert"), "rules must be tried", tried);
  const insert = (data: object) =>
    fetch(`${agent.url}/v1/apps/${agent.appId}/data-sources/feedback/entries?by=name`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(data),
    });
  ensure((await insert({ Text: "Nice" })).status === 201, "a visitor must be able to insert", null);
  const { entries } = await agent.tool("query_data_source", { dataSource: "feedback" });
  ensure(entries.length === 1, "the entry must be there", entries);
}

async function reactToRow(agent: Agent): Promise<void> {
  agent.write("data/leads.json", json({ columns: ["Email", "State"] }));
  await agent.svc(["pull"]);
  await agent.svc(["push"]);
  const { dataSources } = await agent.tool("list_data_sources");
  const { id } = dataSources.find(({ name }: { name: string }) => name === "leads");
  const where = { type: "dataSource.entry.create", dataSourceId: id };
  const fields = { active: true, dependencies: ["svc-datasources"] };
  await agent.tool("save_draft", {
    ...{ name: "welcome", fields: { ...fields, code: LEAD.react, triggers: [{ trigger: "log", where }] } },
  });
  await agent.tool("publish_action", { action: "welcome" });
  await agent.tool("save_draft", { name: "add-lead", fields: { ...fields, code: LEAD.insert, triggers: ON_DEMAND } });
  await runDraft(agent, "add-lead");
  const matched = await agent.tool("test_trigger", { where });
  ensure(JSON.stringify(matched).includes("dataSource.entry.create"), "the trigger must match the row", matched);
  for (;;) {
    const { entries } = await agent.tool("query_data_source", { dataSource: "leads" });
    if (entries[0].data.State === "welcomed") return;
  }
}

async function addAlert(agent: Agent): Promise<void> {
  await agent.tool("read_docs", { page: "alerts" });
  await agent.svc(["pull"]);
  const alert = { name: "jobs fail", condition: "failed", channel: "email", to: ["ann@example.com"], action: "hello" };
  agent.write("alerts.json", json([alert]));
  const { plan } = await agent.svc(["push"]);
  ensure(json(plan.created) === json([{ kind: "alert", name: "jobs fail" }]), "the alert must be new", plan);
}

async function stopHangingRun(agent: Agent): Promise<void> {
  const fields = { active: true, triggers: ON_DEMAND, code: HANGING };
  await agent.tool("save_draft", { name: "hangs", fields });
  const { runId } = await agent.tool("run_draft", { action: "hangs", wait: 0 });
  const { runs } = await agent.tool("list_runs", { limit: 5 });
  ensure(runs[0].id === runId, "the run must be listed", runs);
  await agent.tool("cancel_run", { runId });
  const run = await agent.tool("wait_for_run", { runId });
  ensure(run.state === "cancelled", "the run must be cancelled", run);
}

async function addPackage(agent: Agent): Promise<void> {
  const { problems } = await agent.tool("check_code", { code: TOTALS });
  const { dependency } = problems[0];
  ensure(dependency === "svc-csv", "the check must name the package", problems);
  const fields = { active: true, triggers: ON_DEMAND, code: TOTALS, dependencies: [dependency] };
  await agent.tool("save_draft", { name: "totals", fields });
  const run = await runDraft(agent, "totals", { text: "Price\n2\n3\n" });
  ensure(JSON.stringify(run).includes('"total":5'), "the file must be read", run);
}

/** In an order in which each task can use the results of earlier ones. */
export const TASKS: readonly Task[] = [
  { title: "A typed action with a test, from an empty folder to live", run: typedAction },
  { title: "A nightly report by e-mail", run: nightlyReport },
  { title: "Verify a webhook and book a seat", run: bookingWebhook },
  { title: "Find why an action fails, and fix it", run: repairAction },
  { title: "Import a list and query it", run: importList },
  { title: "Roll back a bad publication", run: rollBack },
  { title: "Try a change on a stage and promote it", run: promoteStage },
  { title: "Let visitors insert, and not read", run: visitorsInsertOnly },
  { title: "React to each new row", run: reactToRow },
  { title: "An e-mail when a job fails", run: addAlert },
  { title: "Find a run that hangs, and stop it", run: stopHangingRun },
  { title: "Add the package that code lacks", run: addPackage },
];
