/** Text for the person at the terminal after a start: the service's addresses, and how to sign in for the first time. */
import { serviceAddresses } from "../api/first-page.js";

/** Converts an address to a URL that a browser can open: browsers cannot open a wildcard address, and passkeys require a host name. */
const toClickable = (url: string): string =>
  url.replace(/^(https?:\/\/)(127\.0\.0\.1|0\.0\.0\.0|\[::1?\])(?=[:/]|$)/, "$1localhost");

/**
 * @param greeted.firstCredentials file with the first credentials if this start created it, otherwise null
 * @param greeted.setupLink link for the first administrator; null if there is one
 */
export function startGreeting(greeted: {
  baseUrl: string;
  firstCredentials: string | null;
  setupLink: string | null;
}): string {
  const { baseUrl, firstCredentials, setupLink } = greeted;
  const { studio, graphiql, api } = serviceAddresses(toClickable(baseUrl));
  const lines = [
    "",
    "Svc App Actions is up.",
    "",
    `  Studio    ${studio}`,
    `  GraphiQL  ${graphiql}`,
    `  API       ${api}`,
    "",
  ];
  if (setupLink !== null) {
    lines.push("  Create the first administrator (the link is valid once, for an hour):", "", `  ${setupLink}`, "");
  }
  if (firstCredentials !== null) lines.push(`  Tokens for programs are in ${firstCredentials}`, "");
  return `${lines.join("\n")}\n`;
}
