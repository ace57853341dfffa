/** Tells Monaco where its three workers are, before Monaco loads. The build puts their hashed names in WORKER_URLS. */

declare const WORKER_URLS: { editor: string; json: string; graphql: string };

Object.assign(globalThis, {
  MonacoEnvironment: {
    getWorker(_id: string, label: string): Worker {
      const url = label === "json" ? WORKER_URLS.json : label === "graphql" ? WORKER_URLS.graphql : WORKER_URLS.editor;
      return new Worker(url, { name: label });
    },
  },
});
