/**
 * Loads the files of those parts of Studio that are not needed at first. Their names are fixed only at the end of the build, so this
 * module reads them from the page, into which the service writes them.
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
