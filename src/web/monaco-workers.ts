/**
 * Sets the URLs of the web workers of the editor Monaco. Import this file before Monaco. The build inserts the hashed
 * file names as WORKER_FILES.
 */
import { resolveServiceUrl } from "./service-address.js";

declare const WORKER_FILES: { editor: string; json: string; graphql: string; javascript: string };

Object.assign(globalThis, {
  MonacoEnvironment: {
    getWorker(_id: string, label: string): Worker {
      const workerFiles = new Map(Object.entries(WORKER_FILES));
      return new Worker(resolveServiceUrl(workerFiles.get(label) ?? WORKER_FILES.editor), { name: label });
    },
  },
});
