/** Lets a page load a server of the test as `http://plain.example`, which is no secure context: browsers lack some APIs there. */
import type { HTTPRequest, Page } from "puppeteer";

export const PLAIN_ORIGIN = "http://plain.example";

/** Headers of the page's requests that the server gets. */
const FORWARDED_HEADERS = ["accept", "content-type", "idempotency-key"];
/** Headers of a response that describe its compressed body. `fetch` has decompressed this body. */
const COMPRESSION_HEADERS = ["content-encoding", "content-length"];

async function forwardRequest(request: HTTPRequest, target: string, headers: Record<string, string>): Promise<void> {
  const { origin, pathname, search } = new URL(request.url());
  if (origin !== PLAIN_ORIGIN) return request.continue();
  const ownHeaders = Object.entries(request.headers()).filter(([name]) => FORWARDED_HEADERS.includes(name));
  const body = request.postData();
  const response = await fetch(`${target}${pathname}${search}`, {
    ...{ method: request.method(), headers: { ...Object.fromEntries(ownHeaders), ...headers } },
    ...(body !== undefined && { body }),
  });
  const responseHeaders = [...response.headers].filter(([name]) => !COMPRESSION_HEADERS.includes(name));
  await request.respond({
    ...{ status: response.status, headers: Object.fromEntries(responseHeaders) },
    body: new Uint8Array(await response.arrayBuffer()),
  });
}

/** Forwards the page's requests to `http://plain.example` to the server, with these headers. */
export async function forwardPlainOrigin(
  page: Page,
  target: string,
  headers: Record<string, string> = {},
): Promise<void> {
  await page.setRequestInterception(true);
  page.on("request", (request) => {
    forwardRequest(request, target, headers).catch((error: unknown) => {
      // A request that is still open when the page closes cannot be answered.
      if (!page.isClosed()) throw error;
    });
  });
}
