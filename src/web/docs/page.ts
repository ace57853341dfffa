/**
 * Script of the documentation pages: adds copy buttons to code blocks, and fields that insert the reader's app and token into examples. The
 * pages also work without this script.
 */
import { addCopyButtons } from "./copy-button.js";
import "./docs.css";

const mainElement = document.querySelector("main");
if (mainElement) addCopyButtons(mainElement);

/** Placeholder for a token in examples. The shell replaces it by the variable SVC_TOKEN, or by "your token" if there is none. */
const TOKEN_PLACEHOLDER = `\${SVC_TOKEN:-your token}`;
const EXAMPLE_VARIABLES = `SVC_APP=1 SVC_TOKEN="${TOKEN_PLACEHOLDER}"`;

/** Adds two fields above an example. The texts typed there replace its app ID and token. The page never stores or sends the token. */
function addExampleFields(frame: Element, code: HTMLElement): void {
  const form = Object.assign(document.createElement("form"), { className: "values" });
  const createField = (name: string, value: string) => {
    const label = Object.assign(document.createElement("label"), { textContent: `${name} ` });
    const input = Object.assign(document.createElement("input"), { value, autocomplete: "off", spellcheck: false });
    label.append(input);
    form.append(label);
    return input;
  };
  const [app, token] = [createField("App ID", "1"), createField("Token", "")];
  const text = code.textContent ?? "";
  form.addEventListener("input", () => {
    // Inserts only the digits of the typed ID. Other characters could become commands when the reader pastes the example into a shell.
    const id = app.value.replaceAll(/\D/g, "") || "1";
    const safeToken = token.value.replaceAll(/[^\w-]/g, "") || TOKEN_PLACEHOLDER;
    code.textContent = text.replace(EXAMPLE_VARIABLES, `SVC_APP=${id} SVC_TOKEN="${safeToken}"`);
  });
  form.addEventListener("submit", (event) => event.preventDefault());
  frame.before(form);
}

for (const code of document.querySelectorAll<HTMLElement>("main pre code")) {
  const frame = code.closest(".code");
  if (frame && code.textContent?.includes(EXAMPLE_VARIABLES)) addExampleFields(frame, code);
}
