/** Files of the parts of Studio that are loaded later. The service names them in the page, for the build knows them last. */
import { serviceAddress } from "../../service-address.js";

function filesOf(part: string): string[] {
  const parts = document.getElementById("studio")?.dataset["parts"] ?? "{}";
  return (JSON.parse(parts) as Record<string, string[]>)[part] ?? [];
}

/** Requests all files of a part at once. Without it the browser finds the files of a module only when the module has arrived. */
export function preloadPart(part: string): void {
  for (const file of filesOf(part)) {
    document.head.append(
      Object.assign(document.createElement("link"), { rel: "modulepreload", href: serviceAddress(file).href }),
    );
  }
}
