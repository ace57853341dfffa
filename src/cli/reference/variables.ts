/** Builds the reference page of the service's environment variables, and of the settings of the compose file and the Helm chart. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { OPEN_ID_VARIABLE_DESCRIPTIONS } from "../../config/open-id.js";
import { listVariableDescriptions } from "../../config/variables.js";
import { buildReferencePage, formatInlineCode, formatMarkdownTable } from "./tables.js";

const COMPOSE_VARIABLE_MEANINGS: Record<string, string> = {
  POSTGRES_PASSWORD: "Password of the database in the compose file.",
  SETTINGS_KEY: "Key that encrypts settings: 32 bytes in base64. All processes need the same key.",
  PUBLIC_URL: "Address that browsers use.",
  TRUST_PROXY: "Proxies in front of the service whose header `X-Forwarded-For` the service trusts.",
  RUNNER_PUBLIC_URL: "Address at which runners reach the API.",
};

function readComposeRows(root: string): string[][] {
  const text = readFileSync(join(root, "compose.yaml"), "utf8");
  const composeVariables = new Map(
    [...text.matchAll(/\$\{([A-Z_]+)(:[-?])([^${}]*)\}/g)].map(([, name, operator, operand]) => [
      name!,
      operator === ":?" ? "required" : operand! || "unset",
    ]),
  );
  return [...composeVariables].map(([name, defaultText]) => [
    formatInlineCode(name),
    defaultText,
    COMPOSE_VARIABLE_MEANINGS[name] ?? "",
  ]);
}

function readHelmRows(root: string): string[][] {
  const rows: string[][] = [];
  const path: string[] = [];
  for (const line of readFileSync(join(root, "deploy/helm/svc-app-actions/values.yaml"), "utf8").split("\n")) {
    const [, indentation, name, value] = /^( *)(\w+):(?: (.*))?$/.exec(line) ?? [];
    if (indentation === undefined) continue;
    path.splice(indentation.length / 2, path.length, name!);
    if (value !== undefined && value !== "") rows.push([formatInlineCode(path.join(".")), formatInlineCode(value)]);
  }
  return rows;
}

export function buildVariablesPage(root: string): string {
  const lead =
    "For operators. If variables have invalid values, the service does not start, and the error names each of them. A variable with an empty value counts as unset. When the service starts, it also checks whether the machine can use the values of `HOST`, `PORT`, `EGRESS_ADDRESS`, `EGRESS_PROXY_HOST`, `CHROME_PATH`, `PACKAGES_FILE` and `DATA_DIR`. A variable that sets a limit applies to every app: you cannot set another limit for a single app.";
  const serviceRows = listVariableDescriptions().map(([name, { meaning, defaultText }]) => [
    formatInlineCode(name),
    defaultText,
    meaning,
  ]);
  return buildReferencePage(
    "Environment variables",
    lead,
    "`src/config`, `compose.yaml` and the chart's `values.yaml`",
    [
      "## The service",
      formatMarkdownTable(["variable", "default", "meaning"], serviceRows),
      "## Sign-in at OpenID providers",
      formatMarkdownTable(["variable", "default", "meaning"], OPEN_ID_VARIABLE_DESCRIPTIONS),
      "## compose.yaml",
      "Set the variables of this table in the shell or in the file `.env` beside `compose.yaml`. [Containers](../operate/containers.md) shows how to run the service with `compose.yaml`.",
      formatMarkdownTable(["variable", "default", "meaning"], readComposeRows(root)),
      "## Helm chart",
      "Each key under `environment` is a variable of the service.",
      formatMarkdownTable(["value", "default"], readHelmRows(root)),
      "## Object storage",
      "If you set `MEDIA_URL`, the service uses the AWS client to store the files of apps in an S3 bucket. This client reads its credentials from `AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY`, `AWS_SESSION_TOKEN`, `AWS_PROFILE`, or from the role of the machine.",
    ],
  );
}
