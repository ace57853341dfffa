/** Examples of requests to an action that a person copies: for curl and in JavaScript. */
import type { Endpoint } from "../shared/model.js";

export interface CallExample {
  /** Name of the called endpoint. */
  name: string;
  curl: string;
  javascript: string;
}

const quoteForShell = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;

/** Headers with placeholders for the credentials that the person must insert. */
const CREDENTIAL_HEADERS: Record<string, [name: string, value: string]> = {
  bearer: ["Authorization", "Bearer $TOKEN"],
  basic: ["Authorization", "Basic $LOGIN"],
  signature: ["X-Signature", "$SIGNATURE"],
};

function createExample(
  name: string,
  method: string,
  url: string,
  headers: [string, string][],
  body: string | null,
): CallExample {
  const hasBody = body !== null && method !== "GET" && method !== "HEAD";
  const allHeaders: [string, string][] = hasBody ? [...headers, ["Content-Type", "application/json"]] : headers;
  const curl = [
    `curl ${method === "GET" ? "" : `-X ${method} `}${quoteForShell(url)}`,
    ...allHeaders.map(([key, value]) => `-H "${key}: ${value}"`),
    ...(hasBody ? [`-d ${quoteForShell(body)}`] : []),
  ].join(" \\\n  ");
  const values = Object.fromEntries(allHeaders);
  const options = [
    `method: ${JSON.stringify(method)}`,
    ...(allHeaders.length > 0 ? [`headers: ${JSON.stringify(values)}`] : []),
    ...(hasBody ? [`body: JSON.stringify(${body})`] : []),
  ].join(",\n  ");
  return { name, curl, javascript: `await fetch(${JSON.stringify(url)}, {\n  ${options},\n});` };
}

/** Returns examples for the live URL of an HTTP trigger. */
export function createEndpointExample({ method, url }: Endpoint, authType: string, payload: string): CallExample {
  const credentialHeader = CREDENTIAL_HEADERS[authType];
  const usedMethod = method ?? "POST";
  return createExample(
    `${method ?? "Any method"} ${new URL(url).pathname}`,
    usedMethod,
    url,
    credentialHeader ? [credentialHeader] : [],
    payload,
  );
}

/** Returns examples for `run` and `runWithResult`, with a token. */
export function createRunExamples(base: string, appId: number, name: string, payload: string): CallExample[] {
  return ["runWithResult", "run"].map((verb) => {
    const url = `${base}/v3/apps/${appId}/actions/${encodeURIComponent(name)}/${verb}?by=name`;
    return createExample(verb, "POST", url, [["Auth-token", "$TOKEN"]], payload);
  });
}
