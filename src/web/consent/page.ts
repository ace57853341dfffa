/**
 * Pages on which a person allows a program to access one app (OAuth), and ends the access of programs. To ask for access, the program
 * redirects the browser to `/oauth/authorize`, or the person enters the program's code on `/oauth/device`.
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
  /** Host or scheme of the program's URL that the browser opens after the decision; null if the person entered a code. */
  to: string | null;
  scopes: string[];
  appId?: number | null;
  apps: ConsentApp[];
}

const timeFormat = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short", hourCycle: "h23" });

const SCOPE_TEXTS: Record<string, string> = {
  read: "Read actions, runs, logs, data and public settings",
  run: "Run actions",
  settings: "Read public and private settings, and change settings",
  data: "Read and change entries and media, and send messages",
  manage: "Change and run drafts, and change data sources, alert rules and other definitions",
  publish: "Publish and unpublish actions and the app",
};

/** Number of apps that the service returns at most. A person with more apps enters the ID of another app. */
const LISTED_APPS_MAX = 500;

const pageRoot = document.getElementById("consent")!;
const isDevicePage = location.pathname.endsWith("/device");

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

function throwNoResponse(): never {
  throw new Error("The service does not answer. Try again later.");
}

/** Sends a request with JSON and returns the body of the response. @throws Error with a message for the person */
async function requestJson(
  path: string,
  { method = "GET", body }: { method?: "GET" | "POST" | "DELETE"; body?: object } = {},
): Promise<Record<string, unknown>> {
  const response = await fetch(resolveServiceUrl(path), {
    method,
    ...(body && { headers: { "content-type": "application/json" }, body: JSON.stringify(body) }),
  }).catch(throwNoResponse);
  // A response that is not JSON is from a proxy whose connection to the service failed. It counts as no response.
  const answer = (await response.json().catch(throwNoResponse)) as Record<string, unknown>;
  if (!response.ok)
    throw new Error(String(answer["error"] ?? `The service responded with HTTP status ${response.status}.`));
  return answer;
}

const createProblemText = (error: unknown) =>
  createElement("p", { role: "alert", className: "problem" }, error instanceof Error ? error.message : String(error));

/** Functions that send a request of the decision form. */
interface DecisionFunctions {
  /** Sends the decision, and then shows the next page. */
  decide: (decision: object) => Promise<void>;
  /** Shows the form again, with this app in the list. */
  showApp: (appId: number) => Promise<void>;
}

/** Creates the field for the ID of an app that is not in the list. */
function createAppIdField(onAppId: (appId: number) => void): HTMLElement {
  const input = createElement("input", { name: "appId", type: "number", min: "1" });
  input.addEventListener("change", () => {
    if (input.validity.valid && input.value !== "") onAppId(input.valueAsNumber);
  });
  // Enter shows the app, and must not submit the form: the form would allow access to the app that is selected now.
  input.addEventListener("keydown", (event) => {
    if (event.key !== "Enter") return;
    event.preventDefault();
    input.blur();
  });
  return createElement("label", {}, "ID of an app that is not in the list ", input);
}

function createDecisionForm(consentRequest: ConsentRequest, { decide, showApp }: DecisionFunctions): HTMLElement {
  const appSelect = createElement(
    "select",
    { name: "app", required: true },
    ...consentRequest.apps.map(({ id, name, role }) => {
      return createElement(
        "option",
        { value: String(id), selected: id === consentRequest.appId },
        `${name} · ${id} (${role})`,
      );
    }),
  );
  const scopeBoxes = createElement("fieldset", {}, createElement("legend", {}, "Permissions"));
  const showScopesOfApp = () => {
    const app = consentRequest.apps.find(({ id }) => String(id) === appSelect.value);
    for (const label of scopeBoxes.querySelectorAll("label")) label.remove();
    for (const scope of consentRequest.scopes.filter((scope) => app?.scopes.includes(scope))) {
      const checkbox = createElement("input", { type: "checkbox", name: "scope", value: scope, checked: true });
      scopeBoxes.append(createElement("label", {}, checkbox, ` ${SCOPE_TEXTS[scope] ?? scope}`));
    }
  };
  appSelect.addEventListener("change", showScopesOfApp);
  showScopesOfApp();
  const problemElement = createElement("div");
  // Disables the buttons until the response arrives. Otherwise, a click could send a second decision, or a decision for the app that is
  // shown while another app loads.
  const runWithButtonsDisabled = (request: () => Promise<void>) => {
    const setButtonsDisabled = (isDisabled: boolean) => {
      for (const button of form.querySelectorAll("button")) button.disabled = isDisabled;
    };
    setButtonsDisabled(true);
    request().catch((error: unknown) => {
      problemElement.replaceChildren(createProblemText(error));
      setButtonsDisabled(false);
    });
  };
  const appIdField = createAppIdField((appId) => runWithButtonsDisabled(() => showApp(appId)));
  const form = createElement(
    "form",
    {},
    createElement("label", {}, "App ", appSelect),
    ...(consentRequest.apps.length >= LISTED_APPS_MAX ? [appIdField] : []),
    scopeBoxes,
    problemElement,
    createElement("button", { type: "submit", className: "primary" }, "Allow"),
    createElement("button", { type: "button", name: "refuse" }, "Refuse"),
  );
  const sendDecision = (decision: object) => runWithButtonsDisabled(() => decide(decision));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const scopes = [...form.querySelectorAll<HTMLInputElement>("input[name=scope]:checked")].map(({ value }) => value);
    sendDecision({ allow: true, appId: Number(appSelect.value), scopes });
  });
  form.querySelector("[name=refuse]")!.addEventListener("click", () => sendDecision({ allow: false }));
  return form;
}

function showConsentRequest(consentRequest: ConsentRequest, functions: DecisionFunctions): void {
  const name = createElement("strong", {}, consentRequest.client);
  const warning =
    consentRequest.to === null
      ? "Continue only if you started this sign-in yourself, and if your program shows the code that you entered."
      : `After your decision, the browser opens ${consentRequest.to}. Check this address: any program can use this name.`;
  if (consentRequest.apps.length === 0) {
    showContent(createElement("p", {}, "You have no role on any app, so you cannot allow a program to access one."));
    return;
  }
  showContent(
    createElement("p", {}, name, " wants to work on one of your apps."),
    createElement("p", {}, warning),
    createDecisionForm(consentRequest, functions),
  );
}

/**
 * Requests the data of the decision form: the program, its scopes, and the person's apps.
 * @param appId app that must be in the list; null for any apps
 * @throws Error with a message for the person
 */
async function requestConsent(path: string, appId: number | null): Promise<ConsentRequest> {
  const [route = "", queryText] = path.split("?");
  const query = new URLSearchParams(queryText);
  if (appId !== null) query.set("app", String(appId));
  const consentRequest = (await requestJson(`${route}?${query}`)) as unknown as ConsentRequest;
  if (appId !== null && !consentRequest.apps.some(({ id }) => id === appId))
    throw new Error(`You have no role on an app with the ID ${appId}.`);
  return consentRequest;
}

const showDecisionOutcome = (text: string) => showContent(createElement("p", {}, text));

async function showAuthorization(appId: number | null = null): Promise<void> {
  const path = `/oauth/consent${location.search}`;
  showConsentRequest(await requestConsent(path, appId), {
    showApp: showAuthorization,
    async decide(decision) {
      const { redirectTo } = await requestJson(path, { method: "POST", body: decision });
      // The browser may pass this address to another program. Then this page stays open and shows the text.
      showDecisionOutcome("Done. Go back to your program.");
      location.assign(String(redirectTo));
    },
  });
}

async function showDeviceRequest(code: string, appId: number | null = null): Promise<void> {
  const path = `/oauth/devices/${encodeURIComponent(code)}`;
  showConsentRequest(await requestConsent(path, appId), {
    showApp: (id) => showDeviceRequest(code, id),
    async decide(decision) {
      const { status } = await requestJson(path, { method: "POST", body: decision });
      showDecisionOutcome(
        status === "ALLOWED" ? "Done. Go back to your program." : "Refused. You can close this page.",
      );
    },
  });
}

function showCodeForm(): void {
  const input = createElement("input", { name: "code", required: true, autocomplete: "off", ariaLabel: "Code" });
  input.value = new URLSearchParams(location.search).get("user_code") ?? "";
  const problemElement = createElement("div");
  const form = createElement(
    "form",
    {},
    createElement("label", {}, "Code that your program shows ", input),
    problemElement,
    createElement("button", { type: "submit", className: "primary" }, "Continue"),
  );
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    showDeviceRequest(input.value).catch((error: unknown) => problemElement.replaceChildren(createProblemText(error)));
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

async function showPrograms(): Promise<void> {
  const { grants } = (await requestJson("/oauth/grants")) as unknown as { grants: ProgramGrant[] };
  const problemElement = createElement("div");
  const endAccess = async (id: number) => {
    await requestJson(`/oauth/grants/${id}`, { method: "DELETE" });
    await showPrograms();
  };
  const items = grants.map(({ id, client, appId, scopes, lastUsedAt }) => {
    const endButton = createElement("button", { type: "button" }, "End access");
    endButton.addEventListener("click", () => {
      endAccess(id).catch((error: unknown) => problemElement.replaceChildren(createProblemText(error)));
    });
    const lastUseText = lastUsedAt === null ? "never used" : `last used ${timeFormat.format(new Date(lastUsedAt))}`;
    return createElement(
      "li",
      {},
      createElement("strong", {}, client),
      ` on app ${appId}: ${scopes.join(", ")}; ${lastUseText} `,
      endButton,
    );
  });
  showContent(
    createElement("h2", {}, "Programs with access"),
    problemElement,
    items.length > 0
      ? createElement("ul", {}, ...items)
      : createElement("p", {}, "No program has access to your apps."),
  );
}

if (location.pathname.endsWith("/programs"))
  showPrograms().catch((error: unknown) => showContent(createProblemText(error)));
else if (isDevicePage) showCodeForm();
else showAuthorization().catch((error: unknown) => showContent(createProblemText(error)));
