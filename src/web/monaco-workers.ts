/** Tells Monaco where its workers are, before Monaco loads. The build puts their hashed names in WORKER_FILES. */
import { serviceAddress } from "./service-address.js";

declare const WORKER_FILES: { editor: string; json: string; graphql: string; javascript: string };

Object.assign(globalThis, {
  MonacoEnvironment: {
    getWorker(_id: string, label: string): Worker {
      const files = new Map(Object.entries(WORKER_FILES));
      return new Worker(serviceAddress(files.get(label) ?? WORKER_FILES.editor), { name: label });
    },
  },
});
