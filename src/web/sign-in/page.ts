/** Sign-in page that the service sends instead of a page for signed-in persons. Asks for a token, signs in with it, and reloads the URL. */

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

signInForm.onsubmit = async (event) => {
  event.preventDefault();
  problemText.textContent = "";
  // If the request fails, `response` is null. The code below handles null like an error response.
  const response = await fetch(resolveServiceUrl("/v1/session"), {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ token: tokenInput.value.trim() }),
  }).catch(() => null);
  if (response?.ok) location.reload();
  else problemText.textContent = response ? "This token is not valid here." : "The service does not answer.";
};

const introText =
  "This page is for editors of the app. Sign in with an editor's token, or with your account in Studio:";
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
