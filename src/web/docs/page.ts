/**
 * Script of the documentation pages: adds copy buttons to code blocks, and fields that insert the reader's app and token into examples. The
 * pages also work without this script.
 */
import { addCopyButtons } from "./copy-button.js";
import "./docs.css";

const main = document.querySelector("main");
if (main) addCopyButtons(main);

/** Shell expression for the token: the exported SVC_TOKEN, or a placeholder. */
const NO_TOKEN = `\${SVC_TOKEN:-your token}`;
const APP_AND_TOKEN = `SVC_APP=1 SVC_TOKEN="${NO_TOKEN}"`;

/** Adds two fields above an example that contains an app and a token. The token stays in the page; it is neither stored nor sent. */
function addFields(frame: Element, code: HTMLElement): void {
  const form = Object.assign(document.createElement("form"), { className: "values" });
  const field = (name: string, value: string) => {
    const label = Object.assign(document.createElement("label"), { textContent: `${name} ` });
    const input = Object.assign(document.createElement("input"), { value, autocomplete: "off", spellcheck: false });
    label.append(input);
    form.append(label);
    return input;
  };
  const [app, token] = [field("App ID", "1"), field("Token", "")];
  const text = code.textContent ?? "";
  form.addEventListener("input", () => {
    // Other texts are rejected: they could be shell commands when the example is pasted.
    const id = app.value.replaceAll(/\D/g, "") || "1";
    const safe = token.value.replaceAll(/[^\w-]/g, "") || NO_TOKEN;
    code.textContent = text.replace(APP_AND_TOKEN, `SVC_APP=${id} SVC_TOKEN="${safe}"`);
  });
  form.addEventListener("submit", (event) => event.preventDefault());
  frame.before(form);
}

for (const code of document.querySelectorAll<HTMLElement>("main pre code")) {
  const frame = code.closest(".code");
  if (frame && code.textContent?.includes(APP_AND_TOKEN)) addFields(frame, code);
}
