/**
 * Page on which a person allows a program to access one app (OAuth). The program redirects the browser to this page, or
 * the person enters the code that a device shows.
 */
import { resolveServiceUrl } from "../service-address.js";
import "./consent.css";

interface ConsentApp {
  id: number;
  name: string;
  role: string;
  scopes: string[];
}

interface ConsentRequest {
  client: string;
  /** URL of the program to which the browser returns after the person's decision; null if the person entered a device's code. */
  to: string | null;
  scopes: string[];
  appId?: number | null;
  apps: ConsentApp[];
}

const timeFormat = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short", hourCycle: "h23" });

const SCOPE_TEXTS: Record<string, string> = {
  read: "Read actions, runs, logs and data",
  run: "Run actions",
  settings: "Read public and private settings, and change settings",
  data: "Read and change entries, media and messages",
  manage: "Change drafts of actions and other definitions",
  publish: "Change what live users get",
};

const pageRoot = document.getElementById("consent")!;
const isDevice = location.pathname.endsWith("/device");

function createElement<Name extends keyof HTMLElementTagNameMap>(
  name: Name,
  properties: Partial<HTMLElementTagNameMap[Name]> = {},
  ...children: (Node | string)[]
): HTMLElementTagNameMap[Name] {
  const created = Object.assign(document.createElement(name), properties);
  created.append(...children);
  return created;
}

function showContent(...children: (Node | string)[]): void {
  pageRoot.replaceChildren(createElement("h1", {}, "App Actions"), ...children);
}

async function requestJson(path: string, body?: object): Promise<Record<string, unknown>> {
  const response = await fetch(resolveServiceUrl(path), {
    method: body ? "POST" : "GET",
    ...(body && { headers: { "content-type": "application/json" }, body: JSON.stringify(body) }),
  });
  const answer = (await response.json()) as Record<string, unknown>;
  if (!response.ok) throw new Error(String(answer["error"] ?? response.status));
  return answer;
}

const createProblemText = (error: unknown) =>
  createElement("p", { role: "alert", className: "problem" }, error instanceof Error ? error.message : String(error));

function createDecisionForm(requested: ConsentRequest, decide: (decision: object) => Promise<void>): HTMLElement {
  const select = createElement(
    "select",
    { name: "app", required: true },
    ...requested.apps.map(({ id, name, role }) => {
      return createElement(
        "option",
        { value: String(id), selected: id === requested.appId },
        `${name} · ${id} (${role})`,
      );
    }),
  );
  const scopeBoxes = createElement("fieldset", {}, createElement("legend", {}, "It may"));
  const update = () => {
    const app = requested.apps.find(({ id }) => String(id) === select.value);
    for (const label of scopeBoxes.querySelectorAll("label")) label.remove();
    for (const scope of requested.scopes.filter((scope) => app?.scopes.includes(scope))) {
      const checkbox = createElement("input", { type: "checkbox", name: "scope", value: scope, checked: true });
      scopeBoxes.append(createElement("label", {}, checkbox, ` ${SCOPE_TEXTS[scope] ?? scope}`));
    }
  };
  select.addEventListener("change", update);
  update();
  const fault = createElement("div");
  const form = createElement(
    "form",
    {},
    createElement("label", {}, "App ", select),
    scopeBoxes,
    fault,
    createElement("button", { type: "submit", className: "primary" }, "Allow"),
    createElement("button", { type: "button", name: "refuse" }, "Refuse"),
  );
  const sendDecision = (decision: object) => {
    decide(decision).catch((error: unknown) => fault.replaceChildren(createProblemText(error)));
  };
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const scopes = [...form.querySelectorAll<HTMLInputElement>("input[name=scope]:checked")].map(({ value }) => value);
    sendDecision({ allow: true, appId: Number(select.value), scopes });
  });
  form.querySelector("[name=refuse]")!.addEventListener("click", () => sendDecision({ allow: false }));
  return form;
}

function showConsentRequest(requested: ConsentRequest, decide: (decision: object) => Promise<void>): void {
  const name = createElement("strong", {}, requested.client);
  const warning =
    requested.to === null
      ? "Go on only if you started this sign-in yourself and see the same code there."
      : `You will be sent to ${requested.to}. Anyone can choose a program's name.`;
  if (requested.apps.length === 0) {
    showContent(createElement("p", {}, "You have no role on any app."));
    return;
  }
  showContent(
    createElement("p", {}, name, " wants to work on one of your apps."),
    createElement("p", {}, warning),
    createDecisionForm(requested, decide),
  );
}

async function showAuthorization(): Promise<void> {
  const path = `/oauth/consent${location.search}`;
  const requested = (await requestJson(path)) as unknown as ConsentRequest;
  showConsentRequest(requested, async (decision) => {
    const { redirectTo } = await requestJson(path, decision);
    location.assign(String(redirectTo));
  });
}

async function showDeviceRequest(code: string): Promise<void> {
  const path = `/oauth/devices/${encodeURIComponent(code)}`;
  const requested = (await requestJson(path)) as unknown as ConsentRequest;
  showConsentRequest(requested, async (decision) => {
    const { status } = await requestJson(path, decision);
    showContent(
      createElement(
        "p",
        {},
        status === "ALLOWED" ? "Done. Go back to your program." : "Refused. You can close this page.",
      ),
    );
  });
}

function showCodeForm(): void {
  const input = createElement("input", { name: "code", required: true, autocomplete: "off", ariaLabel: "Code" });
  input.value = new URLSearchParams(location.search).get("user_code") ?? "";
  const fault = createElement("div");
  const form = createElement(
    "form",
    {},
    createElement("label", {}, "Code that your program shows ", input),
    fault,
    createElement("button", { type: "submit", className: "primary" }, "Continue"),
  );
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    showDeviceRequest(input.value).catch((error: unknown) => fault.replaceChildren(createProblemText(error)));
  });
  showContent(form);
}

interface ProgramGrant {
  id: number;
  client: string;
  appId: number;
  scopes: string[];
  lastUsedAt: string | null;
}

async function listPrograms(): Promise<void> {
  const { grants } = (await requestJson("/oauth/grants")) as unknown as { grants: ProgramGrant[] };
  const items = grants.map(({ id, client, appId, scopes, lastUsedAt }) => {
    const endButton = createElement("button", { type: "button" }, "End access");
    endButton.addEventListener("click", async () => {
      await fetch(resolveServiceUrl(`/oauth/grants/${id}`), { method: "DELETE" });
      await listPrograms();
    });
    const lastUse = lastUsedAt === null ? "never used" : `last used ${timeFormat.format(new Date(lastUsedAt))}`;
    return createElement(
      "li",
      {},
      createElement("strong", {}, client),
      ` on app ${appId}: ${scopes.join(", ")}; ${lastUse} `,
      endButton,
    );
  });
  showContent(
    createElement("h2", {}, "Programs with access"),
    items.length > 0
      ? createElement("ul", {}, ...items)
      : createElement("p", {}, "No program has access to your apps."),
  );
}

if (location.pathname.endsWith("/programs"))
  listPrograms().catch((error: unknown) => showContent(createProblemText(error)));
else if (isDevice) showCodeForm();
else showAuthorization().catch((error: unknown) => showContent(createProblemText(error)));
