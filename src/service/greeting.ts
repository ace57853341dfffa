/** What a person at a terminal is told once the service is up: where to click, and at the first start how to sign in. Holds no token. */
import { addressesOf } from "../api/first-page.js";

/** Listening everywhere is no address that a browser opens. */
const clickable = (url: string): string => url.replace(/^(https?:\/\/)(0\.0\.0\.0|\[::\])(?=[:/]|$)/, "$1localhost");

/** @param firstCredentials the file that this start made; null at every other */
export function greeting({ baseUrl, firstCredentials }: { baseUrl: string; firstCredentials: string | null }): string {
  const { studio, graphiql, api } = addressesOf(clickable(baseUrl));
  const lines = [
    "",
    "Svc App Actions is up.",
    "",
    `  Studio    ${studio}`,
    `  GraphiQL  ${graphiql}`,
    `  API       ${api}`,
    "",
  ];
  if (firstCredentials !== null) {
    lines.push(`  To sign in, paste what stands under tokens.editor in ${firstCredentials}`, "");
  }
  return `${lines.join("\n")}\n`;
}
