/**
 * Loads the files of those parts of Studio that are not needed at first. The build determines the names of these files only at its end.
 * So the service writes the names into the page, and this module reads them there.
 */
import { resolveServiceUrl } from "../../service-address.js";

function getPartFiles(part: string): string[] {
  const parts = document.getElementById("studio")?.dataset["parts"] ?? "{}";
  return (JSON.parse(parts) as Record<string, string[]>)[part] ?? [];
}

/** Requests all files of a part at the same time. The browser would find imported files only after the first file has arrived. */
export function preloadStudioPart(part: string): void {
  for (const file of getPartFiles(part)) {
    document.head.append(
      Object.assign(document.createElement("link"), { rel: "modulepreload", href: resolveServiceUrl(file).href }),
    );
  }
}
