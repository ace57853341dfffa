/**
 * Sign-in page. The service sends it instead of a page that only signed-in persons can open. Asks for a token, signs in with this token,
 * and reloads the page.
 */
import { resolveServiceUrl } from "../service-address.js";

const PAGE_STYLE = `
  body { font: 16px/1.5 system-ui, sans-serif; max-width: 30rem; margin: 4rem auto; padding: 0 1rem; color: #1c2024; }
  form { display: flex; gap: .5rem; } input { flex: 1; }
  button, input { font: inherit; padding: .35rem .7rem; border: 1px solid #b6bcc4; border-radius: 6px; }
`;

const signInForm = document.createElement("form");
const tokenInput = document.createElement("input");
Object.assign(tokenInput, { type: "password", name: "token", required: true, autocomplete: "off", ariaLabel: "Token" });
const signInButton = Object.assign(document.createElement("button"), { textContent: "Sign in" });
const problemText = Object.assign(document.createElement("p"), { role: "alert" });
signInForm.append(tokenInput, signInButton);

/** Returns the text for a failed sign-in. @param response null if the request failed */
function describeProblem(response: Response | null): string {
  if (response === null) return "The service does not answer. Try again later.";
  return response.status === 401
    ? "This token is not valid. Enter another token."
    : `The service rejected the request (HTTP status ${response.status}). Try again later.`;
}

signInForm.onsubmit = async (event) => {
  event.preventDefault();
  problemText.textContent = "";
  const response = await fetch(resolveServiceUrl("/v1/session"), {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ token: tokenInput.value.trim() }),
  }).catch(() => null);
  if (response?.ok) location.reload();
  else problemText.textContent = describeProblem(response);
};

const introText =
  "Only people with a role on the app can open this page. Sign in with an editor's token, or with your account in Studio:";
const studioLink = Object.assign(document.createElement("a"), {
  href: resolveServiceUrl("/studio").href,
  textContent: "sign in to Studio, then reload this page",
});
const introParagraph = Object.assign(document.createElement("p"), { textContent: `${introText} ` });
introParagraph.append(studioLink, ".");
document.head.append(Object.assign(document.createElement("style"), { textContent: PAGE_STYLE }));
document
  .getElementById("sign-in")
  ?.append(
    Object.assign(document.createElement("h1"), { textContent: "Sign in" }),
    introParagraph,
    signInForm,
    problemText,
  );
