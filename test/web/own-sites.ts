/** Helpers for tests of sites on other origins: build pages, start servers, and read the codes that visitors receive. */
import type { Server } from "node:http";
import type { AddressInfo } from "node:net";
import { build, stop } from "esbuild";
import type { Page } from "puppeteer";
import type { TestService } from "../harness/service.js";

/** Bundles a React program of the docs with the library that the service serves. */
export async function buildReactPage(source: string, serviceUrl: string): Promise<string> {
  const library = await (await fetch(`${serviceUrl}/client/svc.mjs`)).text();
  const { outputFiles } = await build({
    stdin: { contents: source, loader: "jsx", resolveDir: process.cwd() },
    plugins: [
      {
        name: "svc",
        setup(plugin) {
          plugin.onResolve({ filter: /^\.\/svc\.mjs$/ }, () => ({ path: "svc.mjs", namespace: "svc" }));
          plugin.onLoad({ filter: /./, namespace: "svc" }, () => ({ contents: library, loader: "js" }));
        },
      },
    ],
    ...{ bundle: true, write: false, format: "esm", logLevel: "silent" },
  });
  await stop();
  return outputFiles[0]!.text;
}

export async function listenAsLocalhost(site: Server): Promise<string> {
  await new Promise<void>((resolve) => site.listen(0, "127.0.0.1", resolve));
  return `http://localhost:${(site.address() as AddressInfo).port}`;
}

export async function readSentCode({ db }: TestService, address: string): Promise<string> {
  const [{ text }] = await db.query(
    `SELECT content->>'text' AS text FROM message
      WHERE recipients @> jsonb_build_array(jsonb_build_object('address', $1::text)) ORDER BY id DESC LIMIT 1`,
    [address],
  );
  return /\d{6}/.exec(text)![0];
}

/** Waits until the element #who of the page has this text. */
export const waitForText = (page: Page, text: string) =>
  page.waitForFunction(`document.querySelector("#who").textContent === ${JSON.stringify(text)}`);

export const signIn = async (page: Page, email: string) => {
  await page.type("[name=Email]", email);
  await page.type("[name=Password]", `${email} password`);
  await page.click("button");
};

/** Returns the token of the page's session. */
export const readPageToken = (page: Page) =>
  page.evaluate("JSON.parse(Object.entries(localStorage).find(([key]) => key.startsWith('svc.visitor'))[1]).token");
