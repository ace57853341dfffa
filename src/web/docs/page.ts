/**
 * Script of the documentation pages: adds copy buttons to code blocks, and fields that insert the reader's app and token into examples. The
 * pages also work without this script.
 */
import { addCopyButtons } from "./copy-button.js";
import "./docs.css";

const main = document.querySelector("main");
if (main) addCopyButtons(main);

/** Shell expression in examples for the reader's token: the environment variable SVC_TOKEN, or else the text "your token". */
const TOKEN_PLACEHOLDER = `\${SVC_TOKEN:-your token}`;
const EXAMPLE_VARIABLES = `SVC_APP=1 SVC_TOKEN="${TOKEN_PLACEHOLDER}"`;

/** Adds two fields above an example, for the app's ID and the token in it. The page neither stores nor sends the token. */
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
    // Only digits are inserted. Other characters could become shell commands when the reader pastes the example into a shell.
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
