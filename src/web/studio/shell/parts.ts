/** Loads the files of parts of Studio. The service puts their names into the page, because the build knows the names only at its end. */
import { serviceAddress } from "../../service-address.js";

function partFiles(part: string): string[] {
  const parts = document.getElementById("studio")?.dataset["parts"] ?? "{}";
  return (JSON.parse(parts) as Record<string, string[]>)[part] ?? [];
}

/** Requests all files of a part at the same time. Otherwise the browser finds the imported files only after the first one has arrived. */
export function preloadPart(part: string): void {
  for (const file of partFiles(part)) {
    document.head.append(
      Object.assign(document.createElement("link"), { rel: "modulepreload", href: serviceAddress(file).href }),
    );
  }
}
