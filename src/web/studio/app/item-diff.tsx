/** Shows how one part of an app, such as an action, differs between the manifests of two apps. */
import { createTwoFilesPatch } from "diff";
import { DiffView } from "../actions/diff-view.js";
import { ReadManifest } from "../documents.js";
import type { ApiClient } from "../shared/api.js";
import { useResource } from "../shared/use-resource.js";
import type { PlanItem } from "./manifest-plan.js";

type ManifestPart = Record<string, unknown>;

const MANIFEST_LIST_NAMES: Record<string, string> = {
  setting: "settings",
  secretBinding: "secretBindings",
  dataSource: "dataSources",
  action: "actions",
  alert: "alerts",
};

const getPartName = (part: ManifestPart, kind: string): unknown =>
  kind === "setting" ? part["key"] : kind === "secretBinding" ? `${part["key"]} ${part["origin"]}` : part["name"];

function findPart(manifest: ManifestPart, { kind, name }: PlanItem): unknown {
  if (kind === "app") return (manifest["app"] as ManifestPart | undefined)?.[name];
  const parts = (manifest[MANIFEST_LIST_NAMES[kind] ?? ""] ?? []) as ManifestPart[];
  return parts.find((part) => getPartName(part, kind) === name);
}

/** Returns a part of a manifest as text for the diff. Its fields are JSON; its source files or its code follow as plain text. */
function formatPart(part: unknown): string {
  if (part === undefined) return "";
  if (typeof part !== "object" || part === null) return `${JSON.stringify(part)}\n`;
  const { code, source, assets: _, ...fields } = part as ManifestPart;
  const files = (source as { files: Record<string, string> } | null | undefined)?.files;
  const texts = files ? Object.entries(files) : typeof code === "string" ? [["code", code] as const] : [];
  return [JSON.stringify(fields, null, 2), ...texts.map(([name, text]) => `// ${name}\n${text.trimEnd()}`), ""].join(
    "\n",
  );
}

interface ItemDiffProps {
  api: ApiClient;
  planItem: PlanItem;
  fromAppId: number;
  toAppId: number;
}

export function ItemDiff({ api, planItem, fromAppId, toAppId }: ItemDiffProps) {
  const { value, fault } = useResource({
    queryKey: ["item diff", fromAppId, toAppId, planItem],
    async queryFn() {
      const [from, to] = await Promise.all([fromAppId, toAppId].map((appId) => api.request(ReadManifest, { appId })));
      return [to!, from!].map(({ read: { manifest } }) => formatPart(findPart(manifest as ManifestPart, planItem)));
    },
  });
  if (!value) return <p className={fault ? "fault" : "hint"}>{fault ?? "Loading…"}</p>;
  const [before = "", after = ""] = value;
  const code = before === after ? null : createTwoFilesPatch("before", "after", before, after);
  return (
    <DiffView diff={{ fields: [], before: {}, after: {}, code } as unknown as Parameters<typeof DiffView>[0]["diff"]} />
  );
}
