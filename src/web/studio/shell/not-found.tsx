/** Page for an unknown path below /studio. All pages of Studio have the path /studio and differ only in the fragment of the URL. */
import { resolveServiceUrl } from "../../service-address.js";

export function NotFoundPage() {
  return (
    <main className="welcome not-found">
      <h1>This page does not exist</h1>
      <p>The URL is wrong, or the page has moved.</p>
      <a className="button" href={resolveServiceUrl("/studio").href}>
        Go to Studio
      </a>
    </main>
  );
}
