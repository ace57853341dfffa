import { defineAction } from "svc";

export const config = defineAction({
  description: "Draws the theatre's page and follows the seats.",
  active: true,
  environment: "client",
  triggers: [
    {
      trigger: "analytics",
      where: {
        type: "analytics.pageView",
      },
    },
  ],
  dependencies: ["svc-datasources", "svc-session"],
});

/** Draws the theatre's page in the place of the empty app's. It sees the seats as far as their access rules show them to a visitor. */
async function execute() {
  if (document.querySelector("#bookings")) return;
  const { title = "", when = "" } = /** @type {Record<string, string>} */ (window.ENV?.appSettings?.["bookings"] ?? {});
  document.querySelector("main")?.replaceChildren(frame(title, when));

  const note = find("#bookings-note");
  const guest = find("#bookings-guest");
  /** @param {string} text */
  const tell = (text) => {
    note.textContent = text;
  };

  /** @param {SubmitEvent} event */
  async function signIn(event) {
    event.preventDefault();
    const fields = new FormData(/** @type {HTMLFormElement} */ (event.target));
    const where = { Email: String(fields.get("email")), Password: String(fields.get("password")) };
    try {
      await Svc.Session.authorize({ passport: "dataSource", dataSourceName: "bookings-guests", where });
    } catch (error) {
      return tell(error.status === "UNAUTHORIZED" ? "E-mail and password do not fit." : error.message);
    }
    const session = await Svc.Session.get();
    guest.textContent = `Signed in as ${session?.entries?.dataSource.data["Name"]}.`;
    tell("Choose a seat.");
  }
  find("#bookings-guest form").addEventListener("submit", signIn);

  /** @param {string} seat */
  async function book(seat) {
    tell(`Booking ${seat} …`);
    try {
      /** @type {{ refused?: string }} */
      const { refused } = await Svc.App.V3.Actions.runWithResult("bookings-book", { seat });
      if (refused) return tell(refused);
    } catch (error) {
      return tell(error.message);
    }
    // What starts the action bookings-thanks.
    Svc.App.Analytics.event("booked", { seat });
  }

  const seats = await Svc.DataSources.connectByName("bookings-seats");
  async function show() {
    const entries = await seats.find({ order: [["data.Seat", "ASC"]] });
    const buttons = entries.map(({ data }) => {
      const name = String(data["Seat"]);
      const disabled = data["Taken"] === true;
      const button = Object.assign(document.createElement("button"), { type: "button", textContent: name, disabled });
      button.setAttribute("aria-label", disabled ? `${name}, taken` : name);
      button.onclick = () => book(name);
      return button;
    });
    find("#bookings-seats").replaceChildren(...buttons);
  }
  await show();
  // Others book too.
  seats.subscribe({}, show);
}

/** @param {string} selector */
function find(selector) {
  return /** @type {HTMLElement} */ (document.querySelector(selector));
}

/**
 * @param {string} title
 * @param {string} when
 */
function frame(title, when) {
  const section = Object.assign(document.createElement("section"), { id: "bookings" });
  section.innerHTML = `
    <style>
      #bookings { text-align: center; }
      #bookings-stage { background: #3a3f47; color: #fff; border-radius: 6px; padding: .3rem; margin: 1.5rem auto; max-width: 28rem; }
      #bookings-seats { display: grid; grid-template-columns: repeat(6, minmax(0, 3.5rem)); gap: .6rem; justify-content: center; }
      #bookings-seats button { height: 3rem; border: 1px solid #1a6f4b; border-radius: 8px 8px 3px 3px; background: #e4f6ec; color: #0d4b30; }
      #bookings-seats button:disabled { border-color: #c8ccd2; background: #eceef1; color: #6b7078; cursor: not-allowed; }
      #bookings-note { min-height: 1.5rem; margin: 1.5rem 0; font-weight: 600; }
      #bookings form { justify-content: center; display: flex; gap: .5rem; flex-wrap: wrap; }
    </style>
    <h1></h1>
    <p></p>
    <div id="bookings-stage">stage</div>
    <div id="bookings-seats" role="group" aria-label="Seats"></div>
    <p id="bookings-note" role="status"></p>
    <div id="bookings-guest"><form>
      <input name="email" type="email" placeholder="E-mail" aria-label="E-mail" required>
      <input name="password" type="password" placeholder="Password" aria-label="Password" required>
      <button>Sign in</button>
    </form></div>`;
  // What an editor wrote is text, never markup.
  const [heading, paragraph] = section.querySelectorAll("h1, p");
  if (heading) heading.textContent = title;
  if (paragraph) paragraph.textContent = when;
  return section;
}
