/** What the service hands to one of its own pages that run actions, beside `window.ENV` (api/author-document.ts). */

export function pageData<Data extends { token: string }>(): Partial<Data> {
  const text = document.getElementById("svc-page")?.textContent;
  return text ? (JSON.parse(text) as Data) : {};
}
