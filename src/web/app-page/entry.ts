/**
 * Script `/client/app-page.js`: the default page of an app that has no page of its own. It uses only the client
 * library's public functions.
 */
import { readEmbeddedPageData } from "../runtime/page-data.js";

interface AppScreen {
  id: number;
  title: string;
}

const APP_SCREENS: AppScreen[] = [
  { id: 1, title: "Home" },
  { id: 2, title: "Offers" },
  { id: 3, title: "Contact" },
];

const PAGE_STYLE = `
  body { font: 16px/1.5 system-ui, sans-serif; max-width: 44rem; margin: 2rem auto; padding: 0 1rem; color: #1c2024; }
  nav, form { display: flex; gap: .5rem; flex-wrap: wrap; align-items: center; margin: 1rem 0; }
  button, input { font: inherit; padding: .35rem .7rem; border: 1px solid #b6bcc4; border-radius: 6px; background: #fff; }
  button { cursor: pointer; } button[aria-current] { background: #1c2024; color: #fff; }
  input { flex: 1 1 10rem; } output { display: block; white-space: pre-wrap; font: 14px/1.5 ui-monospace, monospace; }
  #greeting { font: inherit; font-size: 1.25rem; min-height: 2rem; } .badge { color: #60646c; font-size: .9rem; }
`;

const { name = "" } = readEmbeddedPageData();
const isViewer = window.ENV?.environment === "viewer";
const { Actions } = window.Svc.App.V3;
const { Analytics } = window.Svc.App;

function createElement<Name extends keyof HTMLElementTagNameMap>(
  tag: Name,
  properties: Partial<HTMLElementTagNameMap[Name]> & { textContent?: string } = {},
): HTMLElementTagNameMap[Name] {
  return Object.assign(document.createElement(tag), properties);
}

/** Element with the ID `greeting`, empty at first. Client actions can write text into this element, as the guide's example does. */
const greetingOutput = createElement("output", { id: "greeting" });
const eventOutput = createElement("output", { id: "events" });
const resultOutput = createElement("output", { id: "result" });

function showEvent(event: { type: string; data: Record<string, unknown> }): void {
  eventOutput.prepend(
    `${new Date().toLocaleTimeString(undefined, { hourCycle: "h23" })}  ${event.type}  ${JSON.stringify(event.data)}\n`,
  );
}

function createNavigation(): HTMLElement {
  const nav = createElement("nav", { ariaLabel: "Screens" });
  const buttons = APP_SCREENS.map((screen) => {
    const button = createElement("button", { type: "button", textContent: screen.title });
    button.onclick = () => viewScreen(screen);
    return button;
  });
  function viewScreen({ id, title }: AppScreen): void {
    for (const [index, button] of buttons.entries()) {
      button.toggleAttribute("aria-current", APP_SCREENS[index]?.id === id);
    }
    document.title = `${title} · ${name}`;
    showEvent(Analytics.pageView({ _pageId: id }));
  }
  const signUpButton = createElement("button", { type: "button", textContent: "Send the event “signup”" });
  signUpButton.onclick = () => showEvent(Analytics.event("signup", { plan: "free" }));
  nav.append(...buttons, signUpButton);
  viewScreen(APP_SCREENS[0] as AppScreen);
  return nav;
}

function createRunForm(): HTMLElement {
  const form = createElement("form");
  const actionInput = createElement("input", {
    name: "action",
    placeholder: "Action",
    required: true,
    ariaLabel: "Action",
  });
  const payloadInput = createElement("input", { name: "payload", value: "{}", ariaLabel: "Payload" });
  form.append(actionInput, payloadInput, createElement("button", { textContent: "Run with result" }));
  form.onsubmit = async (event) => {
    event.preventDefault();
    resultOutput.textContent = "…";
    try {
      const answer = await Actions.runWithResult(actionInput.value, JSON.parse(payloadInput.value));
      resultOutput.textContent = JSON.stringify(answer, null, 2) ?? "undefined";
    } catch (error) {
      const { status, message } = error as { status?: string; message: string };
      resultOutput.textContent = `${status ?? "Error"}: ${message}`;
    }
  };
  return form;
}

document.head.append(createElement("style", { textContent: PAGE_STYLE }));
document.querySelector("main")?.append(
  createElement("h1", { textContent: name }),
  createElement("p", {
    className: "badge",
    textContent: isViewer ? "App viewer: runs drafts" : "Live app: runs live versions",
  }),
  greetingOutput,
  createNavigation(),
  // Only the viewer, the preview of an app for its editors, has the form that runs actions by name.
  ...(isViewer ? [createElement("h2", { textContent: "Run an action" }), createRunForm(), resultOutput] : []),
  createElement("h2", { textContent: "Analytics events of this page" }),
  eventOutput,
);
