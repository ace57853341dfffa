/** Page for an address under /studio that leads nowhere: the places of Studio are in the fragment of its one address. */
import { serviceAddress } from "../../service-address.js";

export function NotFound() {
  return (
    <main className="welcome not-found">
      <h1>This page does not exist</h1>
      <p>The address is mistyped, or the page has moved.</p>
      <a className="button" href={serviceAddress("/studio").href}>
        Go to Studio
      </a>
    </main>
  );
}
