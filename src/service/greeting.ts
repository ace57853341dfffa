/** Text that a person at the terminal sees after a start: the service's addresses, and how to sign in first. */
import { getServiceUrls } from "../api/root-page.js";

/** Converts the address at which the service listens to a URL for a browser. Passkeys work with `localhost`, but not with an IP address. */
const toLocalhostUrl = (url: string): string =>
  url.replace(/^(https?:\/\/)(127\.0\.0\.1|0\.0\.0\.0|\[::1?\])(?=[:/]|$)/, "$1localhost");

/**
 * @param service.firstCredentialsFile path of the file with the first credentials if this start created it, otherwise null
 * @param service.setupLink link that creates the first administrator; null if there already is one
 */
export function formatStartMessage(service: {
  baseUrl: string;
  firstCredentialsFile: string | null;
  setupLink: string | null;
}): string {
  const { baseUrl, firstCredentialsFile, setupLink } = service;
  const { studio, graphiql, api } = getServiceUrls(toLocalhostUrl(baseUrl));
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
  if (firstCredentialsFile !== null) lines.push(`  Tokens for programs are in ${firstCredentialsFile}`, "");
  return `${lines.join("\n")}\n`;
}
