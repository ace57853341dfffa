/** Templates for new actions. The service accepts each template unchanged. */
import { type ActionDraft, createDefaultDraft, createTriggerDraft } from "./draft.js";

export interface ActionTemplate {
  label: string;
  description: string;
  draft: Partial<ActionDraft>;
}

const FETCH_CODE = `/** Requests a web service that allows pages of other origins (CORS). A setting can contain its API key: context.settings.__apiKey. */
async function execute({ payload, settings }) {
  const url = payload.url ?? "https://api.github.com/zen";
  const response = await fetch(url);
  if (!response.ok) throw new Error(\`\${url} answered \${response.status}\`);
  const text = await response.text();
  console.log("read", text.length, "characters");
  return { status: response.status, text: text.slice(0, 1000) };
}
`;

const SCHEDULE_CODE = `/** Runs at the times of its frequency as soon as it is published. */
async function execute() {
  const today = new Date().toISOString().slice(0, 10);
  console.log("report for", today);
  return { today };
}
`;

const EVENT_CODE = `/** Runs when the app logs an event of the type that its trigger names. */
async function execute({ payload }) {
  console.log("event", payload);
  return { seen: payload };
}
`;

const CLIENT_CODE = `/** Runs in the browser of a visitor at each analytics event that its trigger names. */
async function execute({ payload }) {
  document.title = payload.data?.title ?? "Hello from an action";
  return { title: document.title };
}
`;

const EDITORS_ACCESS: ActionDraft["access"] = { who: "editors", user: "" };

export const ACTION_TEMPLATES: Record<string, ActionTemplate> = {
  hello: { label: "Hello", description: "Receives a payload and returns a result.", draft: { name: "hello" } },
  fetch: {
    label: "Call a web service",
    description: "Sends a request and returns the response.",
    draft: { name: "call-a-service", code: FETCH_CODE, access: EDITORS_ACCESS },
  },
  schedule: {
    label: "Every working day",
    description: "Runs on a schedule: every working day at 9:00.",
    draft: {
      name: "every-working-day",
      code: SCHEDULE_CODE,
      access: EDITORS_ACCESS,
      triggers: [createTriggerDraft("manual"), createTriggerDraft("schedule")],
      frequency: "0 9 * * 1-5",
    },
  },
  event: {
    label: "On an event",
    description: "Runs when the app logs an event of one type.",
    draft: {
      name: "on-an-event",
      code: EVENT_CODE,
      access: EDITORS_ACCESS,
      triggers: [createTriggerDraft("manual"), createTriggerDraft("log", { type: "app.example" })],
    },
  },
  client: {
    label: "In the page",
    description: "Runs in the browser of a visitor, at each page view.",
    draft: {
      name: "in-the-page",
      code: CLIENT_CODE,
      environment: "client",
      triggers: [createTriggerDraft("analytics")],
    },
  },
};

/** Returns a draft with the code of the template, or the default draft if no template has this name. */
export function createDraftFromTemplate(template: string | undefined): ActionDraft {
  const knownTemplate =
    template !== undefined && Object.hasOwn(ACTION_TEMPLATES, template) ? ACTION_TEMPLATES[template]!.draft : {};
  return { ...createDefaultDraft(), ...knownTemplate };
}
