/** Page on which a person authorizes a program for one app: by a redirect of the program, or by the code of a device. */
import { serviceAddress } from "../service-address.js";
import "./consent.css";

interface App {
  id: number;
  name: string;
  role: string;
  scopes: string[];
}

interface Asked {
  client: string;
  /** URL to which the browser is redirected; null if a device shows the code. */
  to: string | null;
  scopes: string[];
  appId?: number | null;
  apps: App[];
}

const SCOPE_TEXTS: Record<string, string> = {
  read: "Read actions, runs, logs and data",
  run: "Run actions",
  settings: "Read public and private settings, and change settings",
  data: "Read and change entries, media and messages",
  manage: "Change drafts of actions and other definitions",
  publish: "Change what live users get",
};

const root = document.getElementById("consent")!;
const isDevice = location.pathname.endsWith("/device");

function element<Name extends keyof HTMLElementTagNameMap>(
  name: Name,
  properties: Partial<HTMLElementTagNameMap[Name]> = {},
  ...children: (Node | string)[]
): HTMLElementTagNameMap[Name] {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children);
  return made;
}

function show(...children: (Node | string)[]): void {
  root.replaceChildren(element("h1", {}, "App Actions"), ...children);
}

async function request(path: string, body?: object): Promise<Record<string, unknown>> {
  const response = await fetch(serviceAddress(path), {
    method: body ? "POST" : "GET",
    ...(body && { headers: { "content-type": "application/json" }, body: JSON.stringify(body) }),
  });
  const answer = (await response.json()) as Record<string, unknown>;
  if (!response.ok) throw new Error(String(answer["error"] ?? response.status));
  return answer;
}

const problem = (error: unknown) =>
  element("p", { role: "alert", className: "problem" }, error instanceof Error ? error.message : String(error));

/** Returns the form with the app and the scopes. Only the requested scopes are preselected. */
function decisionForm(requested: Asked, decide: (decision: object) => Promise<void>): HTMLElement {
  const select = element(
    "select",
    { name: "app", required: true },
    ...requested.apps.map(({ id, name, role }) => {
      return element("option", { value: String(id), selected: id === requested.appId }, `${name} · ${id} (${role})`);
    }),
  );
  const boxes = element("fieldset", {}, element("legend", {}, "It may"));
  const update = () => {
    const app = requested.apps.find(({ id }) => String(id) === select.value);
    for (const label of boxes.querySelectorAll("label")) label.remove();
    for (const scope of requested.scopes.filter((one) => app?.scopes.includes(one))) {
      const box = element("input", { type: "checkbox", name: "scope", value: scope, checked: true });
      boxes.append(element("label", {}, box, ` ${SCOPE_TEXTS[scope] ?? scope}`));
    }
  };
  select.addEventListener("change", update);
  update();
  const fault = element("div");
  const form = element(
    "form",
    {},
    element("label", {}, "App ", select),
    boxes,
    fault,
    element("button", { type: "submit", className: "primary" }, "Allow"),
    element("button", { type: "button", name: "refuse" }, "Refuse"),
  );
  const send = (decision: object) => {
    decide(decision).catch((error: unknown) => fault.replaceChildren(problem(error)));
  };
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const scopes = [...form.querySelectorAll<HTMLInputElement>("input[name=scope]:checked")].map(({ value }) => value);
    send({ allow: true, appId: Number(select.value), scopes });
  });
  form.querySelector("[name=refuse]")!.addEventListener("click", () => send({ allow: false }));
  return form;
}

function showRequest(requested: Asked, decide: (decision: object) => Promise<void>): void {
  const name = element("strong", {}, requested.client);
  const warning =
    requested.to === null
      ? "Go on only if you started this sign-in yourself and see the same code there."
      : `You will be sent to ${requested.to}. Anyone can choose a program's name.`;
  if (requested.apps.length === 0) {
    show(element("p", {}, "You have no role on any app."));
    return;
  }
  show(
    element("p", {}, name, " wants to work on one of your apps."),
    element("p", {}, warning),
    decisionForm(requested, decide),
  );
}

async function authorize(): Promise<void> {
  const path = `/oauth/consent${location.search}`;
  const requested = (await request(path)) as unknown as Asked;
  showRequest(requested, async (decision) => {
    const { redirectTo } = await request(path, decision);
    location.assign(String(redirectTo));
  });
}

async function confirmCode(code: string): Promise<void> {
  const path = `/oauth/devices/${encodeURIComponent(code)}`;
  const requested = (await request(path)) as unknown as Asked;
  showRequest(requested, async (decision) => {
    const { status } = await request(path, decision);
    show(
      element("p", {}, status === "ALLOWED" ? "Done. Go back to your program." : "Refused. You can close this page."),
    );
  });
}

function askForCode(): void {
  const input = element("input", { name: "code", required: true, autocomplete: "off", ariaLabel: "Code" });
  input.value = new URLSearchParams(location.search).get("user_code") ?? "";
  const fault = element("div");
  const form = element(
    "form",
    {},
    element("label", {}, "Code that your program shows ", input),
    fault,
    element("button", { type: "submit", className: "primary" }, "Continue"),
  );
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    confirmCode(input.value).catch((error: unknown) => fault.replaceChildren(problem(error)));
  });
  show(form);
}

interface Grant {
  id: number;
  client: string;
  appId: number;
  scopes: string[];
  lastUsedAt: string | null;
}

/** Lists the programs that this person has authorized, each with a button that revokes its access. */
async function listPrograms(): Promise<void> {
  const { grants } = (await request("/oauth/grants")) as unknown as { grants: Grant[] };
  const items = grants.map(({ id, client, appId, scopes, lastUsedAt }) => {
    const end = element("button", { type: "button" }, "End access");
    end.addEventListener("click", async () => {
      await fetch(serviceAddress(`/oauth/grants/${id}`), { method: "DELETE" });
      await listPrograms();
    });
    const used = lastUsedAt === null ? "never used" : `last used ${new Date(lastUsedAt).toLocaleString()}`;
    return element("li", {}, element("strong", {}, client), ` on app ${appId}: ${scopes.join(", ")}; ${used} `, end);
  });
  show(
    element("h2", {}, "Programs with access"),
    items.length > 0 ? element("ul", {}, ...items) : element("p", {}, "You let in no program."),
  );
}

if (location.pathname.endsWith("/programs")) listPrograms().catch((error: unknown) => show(problem(error)));
else if (isDevice) askForCode();
else authorize().catch((error: unknown) => show(problem(error)));
