/** Builds the reference page of the metrics at `/metrics` from the source code that defines them. */
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { buildReferencePage, formatInlineCode, formatMarkdownTable } from "./tables.js";

const METRIC_DEFINITION_PATTERN = /"(svc_[a-z_]+)",\s*(?:help:\s*)?"([^"]+)"/g;
const METRIC_KIND_PATTERN = /new (Gauge|Counter|Histogram)\(\{\s*name: "(svc_[a-z_]+)"/g;

export function buildMetricsPage(root: string): string {
  const texts = globSync("src/{api,operations,engine}/**/*.ts", { cwd: root }).map((file) =>
    readFileSync(join(root, file), "utf8"),
  );
  const kindByName = new Map(
    texts.flatMap((text) =>
      [...text.matchAll(METRIC_KIND_PATTERN)].map(([, kind, name]) => [name!, kind!.toLowerCase()] as const),
    ),
  );
  const helpByName = new Map(
    texts.flatMap((text) =>
      [...text.matchAll(METRIC_DEFINITION_PATTERN)].map(([, name, help]) => [name!, help!] as const),
    ),
  );
  const rows = [...helpByName]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, help]) => [formatInlineCode(name), kindByName.get(name) ?? "gauge", help]);
  const lead =
    "For operators. Each process returns these metrics at `GET /metrics` in the format of Prometheus, with the usual `process_*` and `nodejs_*` metrics. [Watching](../operate/watching.md) explains the alerting rules and the dashboard. [Prometheus and Grafana](../operate/prometheus.md) has the scrape configuration.";
  return buildReferencePage("Metrics", lead, "the code", [formatMarkdownTable(["metric", "kind", "meaning"], rows)]);
}
