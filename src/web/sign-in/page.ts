/** Page that appears instead of a page that requires a signed-in person. Asks for a token, signs in with it and reloads. Stores nothing. */

import { serviceAddress } from "../service-address.js";

const PAGE_STYLE = `
  body { font: 16px/1.5 system-ui, sans-serif; max-width: 30rem; margin: 4rem auto; padding: 0 1rem; color: #1c2024; }
  form { display: flex; gap: .5rem; } input { flex: 1; }
  button, input { font: inherit; padding: .35rem .7rem; border: 1px solid #b6bcc4; border-radius: 6px; }
`;

const form = document.createElement("form");
const input = document.createElement("input");
Object.assign(input, { type: "password", name: "token", required: true, autocomplete: "off", ariaLabel: "Token" });
const button = Object.assign(document.createElement("button"), { textContent: "Sign in" });
const problemText = Object.assign(document.createElement("p"), { role: "alert" });
form.append(input, button);

form.onsubmit = async (event) => {
  event.preventDefault();
  problemText.textContent = "";
  // If the request fails, `response` is null. The code below handles null like an error response.
  const response = await fetch(serviceAddress("/v1/session"), {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ token: input.value.trim() }),
  }).catch(() => null);
  if (response?.ok) location.reload();
  else problemText.textContent = response ? "This token is not valid here." : "The service does not answer.";
};

const text = "This page is for editors of the app. Sign in with an editor's token, or with your account in Studio:";
const studioLink = Object.assign(document.createElement("a"), {
  href: serviceAddress("/studio").href,
  textContent: "sign in to Studio, then reload this page",
});
const paragraph = Object.assign(document.createElement("p"), { textContent: `${text} ` });
paragraph.append(studioLink, ".");
document.head.append(Object.assign(document.createElement("style"), { textContent: PAGE_STYLE }));
document
  .getElementById("sign-in")
  ?.append(Object.assign(document.createElement("h1"), { textContent: "Sign in" }), paragraph, form, problemText);
