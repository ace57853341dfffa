/** Example requests to an action, for curl and in JavaScript. A person copies them. */
import type { HttpEndpoint } from "../shared/model.js";

export interface CallExample {
  /** Heading of the example: the method and path, or the name of the route. */
  title: string;
  curl: string;
  javascript: string;
}

const quoteForShell = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;

/** Headers with the credential, by the authentication type of the HTTP trigger. The person replaces the placeholder in the value. */
const CREDENTIAL_HEADERS: Record<string, [name: string, value: string]> = {
  bearer: ["Authorization", "Bearer $TOKEN"],
  basic: ["Authorization", "Basic $LOGIN"],
  signature: ["X-Signature", "$SIGNATURE"],
};

function createExample(
  title: string,
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
  const headerValues = Object.fromEntries(allHeaders);
  const fetchOptions = [
    `method: ${JSON.stringify(method)}`,
    ...(allHeaders.length > 0 ? [`headers: ${JSON.stringify(headerValues)}`] : []),
    ...(hasBody ? [`body: JSON.stringify(${body})`] : []),
  ].join(",\n  ");
  return { title, curl, javascript: `await fetch(${JSON.stringify(url)}, {\n  ${fetchOptions},\n});` };
}

/** Returns example requests to the live URL of an HTTP trigger. */
export function createEndpointExample({ method, url }: HttpEndpoint, authType: string, payload: string): CallExample {
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

/** Returns example requests to the routes `run` and `runWithResult`, which need an API token. */
export function createRunExamples(base: string, appId: number, name: string, payload: string): CallExample[] {
  return ["runWithResult", "run"].map((verb) => {
    const url = `${base}/v3/apps/${appId}/actions/${encodeURIComponent(name)}/${verb}?by=name`;
    return createExample(verb, "POST", url, [["Auth-token", "$TOKEN"]], payload);
  });
}
